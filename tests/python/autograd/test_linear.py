"""The rules of linear attention, forward and backward, against their recurrences in float64."""

import pytest
import torch
from common import doubles, gradients, normal, rule

import kiln.torch as kt

B, T, H, K, V = 1, 37, 2, 32, 16


def decays(*shape):
    return (-torch.rand(*shape)).requires_grad_()


def inputs_of(name):
    """By the reference's names, in the function's order."""
    q, k, v = normal(B, T, H, K), normal(B, T, H, K), normal(B, T, H, V)
    k = (torch.nn.functional.normalize(k.detach().float(), dim=-1)).to(k.dtype).requires_grad_()
    a, b = (-k.detach()).requires_grad_(), (k.detach() * 0.5).requires_grad_()
    beta = torch.rand(B, T, H).requires_grad_()
    tensors = {"q": q, "k": k, "v": v, "a": a, "b": b, "g": decays(B, T, H, K), "beta": beta}
    if name in ("gated_delta_rule", "simple_gla"):
        tensors["g"] = decays(B, T, H)
    order = {
        "rwkv7": "q g k v a b",
        "dplr": "q k v a b g",
        "iplr": "q k v a b",
        "kda": "q k v g beta",
        "gated_delta_rule": "q k v g beta",
        "delta_rule": "q k v beta",
        "gla": "q k v g",
        "simple_gla": "q k v g",
    }
    return {n: tensors[n] for n in order[name].split()}


def assert_rms(got, wanted, share):
    """The root mean square of the differences, as a share of that of the values."""
    error = (got.double() - wanted).square().mean().sqrt()
    assert error <= share * wanted.square().mean().sqrt() + 1e-6, (
        error / wanted.square().mean().sqrt()
    )


NAMES = ["rwkv7", "dplr", "iplr", "kda", "gated_delta_rule", "delta_rule", "gla", "simple_gla"]


@pytest.mark.parametrize("name", NAMES)
def test_forward_and_backward(name):
    inputs = inputs_of(name)
    state = normal(B, H, K, V, dtype=torch.float32)
    o, last = getattr(kt, name)(*inputs.values(), initial_state=state, output_final_state=True)
    assert o.dtype == torch.bfloat16 and last.dtype == torch.float32
    direction = torch.randn_like(o), torch.randn_like(last)
    mine = gradients((o, last), [*inputs.values(), state], direction)
    exact = dict(zip(inputs, doubles(*inputs.values())))
    (state64,) = doubles(state)
    wanted = rule(name, **exact, state=state64)
    by = gradients(wanted, [*exact.values(), state64], [d.double() for d in direction])
    assert_rms(o, wanted[0], 0.007)
    assert_rms(last, wanted[1], 0.007)
    for tensor, got, w in zip([*inputs.values(), state], mine, by):
        assert got.dtype == tensor.dtype
        assert_rms(got, w, 0.008)


def test_without_a_state():
    inputs = inputs_of("rwkv7")
    o = kt.rwkv7(*inputs.values())
    assert isinstance(o, torch.Tensor)
    assert_rms(o, rule("rwkv7", **dict(zip(inputs, doubles(*inputs.values()))))[0], 0.007)
    o.sum().backward()
    assert all(t.grad is not None for t in inputs.values())


def test_the_last_state_alone_has_gradients():
    inputs = inputs_of("gla")
    kt.gla(*inputs.values(), output_final_state=True)[1].sum().backward()
    exact = dict(zip(inputs, doubles(*inputs.values())))
    rule("gla", **exact)[1].sum().backward()
    assert (inputs["q"].grad == 0).all()
    assert_rms(inputs["k"].grad, exact["k"].grad, 0.008)


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_packed_sequences_are_as_each_alone(kind):
    inputs = inputs_of("kda")
    offsets = [0, 5, 30, 37]
    o, last = kt.kda(
        *inputs.values(), cu_seqlens=torch.tensor(offsets, dtype=kind), output_final_state=True
    )
    assert last.shape == (3, H, K, V)
    mine = gradients(o, list(inputs.values()), torch.ones_like(o))
    for n, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        alone = [t.detach()[:, begin:end].requires_grad_() for t in inputs.values()]
        one, state = kt.kda(*alone, output_final_state=True)
        assert_rms(o[:, begin:end], one.double(), 1e-3)
        assert_rms(last[n], state[0].double(), 1e-3)
        for got, wanted in zip(mine, gradients(one, alone, torch.ones_like(one))):
            assert_rms(got[:, begin:end], wanted.double(), 0.01)
