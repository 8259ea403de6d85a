"""Attention, forward and backward, against float64."""

import pytest
import torch
from common import assert_as_good, attention, doubles, gradients, normal

import kiln.torch as kt

CASES = {
    "plain": {},
    "causal": {"causal": True},
    "top left": {"causal": True, "alignment": "top_left"},
    "window": {"window": (20, 5), "scale": 0.2},
    "softcap": {"softcap": 5.0},
}


def check(got, inputs, options, factor=2.0):
    """o, lse and the gradients by all inputs (a dictionary) of a call."""
    o, lse = got
    direction = torch.randn_like(o), torch.randn_like(lse)
    names = [n for n, t in inputs.items() if t.requires_grad]
    mine = gradients((o, lse), [inputs[n] for n in names], direction)

    def same(tensors):
        wanted = attention(**tensors, **options)
        by = [tensors[n] for n in names]
        return wanted, gradients(wanted, by, [d.to(w.dtype) for d, w in zip(direction, wanted)])

    exact = same(dict(zip(inputs, doubles(*inputs.values()))))
    rounded = same(
        {n: t.detach().to(o.dtype).requires_grad_(t.requires_grad) for n, t in inputs.items()}
    )
    assert_as_good(o, exact[0][0], rounded[0][0], factor)
    assert (lse.double() - exact[0][1]).abs().max() <= 1e-4 + 1e-3 * options.get("softcap", 0)
    for name, gradient, wanted, base in zip(names, mine, exact[1], rounded[1]):
        assert gradient.dtype == inputs[name].dtype, name
        assert_as_good(gradient, wanted, base, factor)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_forward_and_backward(case, dtype):
    inputs = {
        "q": normal(2, 24, 4, 32, dtype=dtype),
        "k": normal(2, 40, 2, 32, dtype=dtype),
        "v": normal(2, 40, 2, 16, dtype=dtype),
    }
    options = CASES[case]
    factor = 3.0 if "softcap" in options else 2.0
    check(kt.attention(**inputs, **options, return_lse=True), inputs, options, factor)


def test_sink_and_bias_have_gradients():
    inputs = {
        "q": normal(1, 24, 2, 32),
        "k": normal(1, 24, 2, 32),
        "v": normal(1, 24, 2, 32),
        "sink": normal(2, dtype=torch.float32),
        "bias": normal(1, 2, 24, 24, dtype=torch.float32),
    }
    check(kt.attention(**inputs, causal=True, return_lse=True), inputs, {"causal": True})


@pytest.mark.parametrize("wanted", ["sink", "bias", "q"])
def test_a_gradient_alone(wanted):
    """Those that are not asked for are not computed, and not mixed up."""
    inputs = {
        "q": normal(1, 24, 2, 32, grad=False),
        "k": normal(1, 24, 2, 32, grad=False),
        "v": normal(1, 24, 2, 32, grad=False),
        "sink": normal(2, dtype=torch.float32, grad=False),
        "bias": normal(1, 2, 24, 24, dtype=torch.float32, grad=False),
    }
    inputs[wanted].requires_grad_()
    check(kt.attention(**inputs, return_lse=True), inputs, {})


def test_lse_alone_has_gradients():
    q, k, v = (normal(1, 16, 1, 32) for _ in range(3))
    kt.attention(q, k, v, return_lse=True)[1].sum().backward()
    exact = doubles(q, k, v)
    attention(*exact)[1].sum().backward()
    for mine, wanted in zip((q, k), exact):
        assert (mine.grad.double() - wanted.grad).abs().max() <= 2.0**-7 * wanted.grad.abs().max()
    assert (v.grad == 0).all()


def test_alibi():
    q, k, v = (normal(1, 24, 2, 32, grad=False) for _ in range(3))
    slopes = torch.tensor([0.5, 0.1])
    wanted = attention(*doubles(q, k, v), alibi=slopes.double(), causal=True)[0]
    assert_as_good(
        kt.attention(q, k, v, alibi=slopes, causal=True),
        wanted,
        attention(q, k, v, alibi=slopes.to(q.dtype), causal=True)[0],
    )


@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences_are_as_each_alone(causal):
    lengths = [(9, 20), (24, 24), (1, 3)]
    cu_q, cu_k = (
        torch.tensor([0, *torch.tensor([n[i] for n in lengths]).cumsum(0)], dtype=torch.int32)
        for i in (0, 1)
    )
    q, k, v = normal(34, 2, 32), normal(47, 2, 32), normal(47, 2, 32)
    o, lse = kt.attention_varlen(q, k, v, cu_q, cu_k, causal=causal, return_lse=True)
    direction = torch.randn_like(o)
    mine = gradients(o, (q, k, v), direction)
    assert lse.shape == (2, 34)
    for n in range(len(lengths)):
        rows, keys = slice(cu_q[n], cu_q[n + 1]), slice(cu_k[n], cu_k[n + 1])
        alone = [
            t.detach()[None, at].requires_grad_() for t, at in ((q, rows), (k, keys), (v, keys))
        ]
        one, one_lse = kt.attention(*alone, causal=causal, return_lse=True)
        assert torch.equal(one[0], o[rows]) and torch.equal(one_lse[0], lse[:, rows])
        for got, wanted, at in zip(
            mine, gradients(one, alone, direction[None, rows]), (rows, keys, keys)
        ):
            assert_as_good(got[at], wanted[0].double(), wanted[0])


def test_fp8_gives_bf16():
    q, k, v = (torch.randn(1, 32, 2, 32).to(torch.float8_e4m3fn) for _ in range(3))
    scale = torch.full((1, 2), 0.5)
    got = kt.attention(q, k, v, v_descale=scale)
    wanted = 0.5 * attention(*(t.double() for t in (q, k, v)))[0]
    assert got.dtype == torch.bfloat16
    assert (got.double() - wanted).abs().max() <= 0.05 * wanted.abs().max()


def test_views_of_one_projection():
    """q, k and v are strided views; their gradients come back through the view."""
    qkv = normal(1, 24, 3, 2, 32)
    o = kt.attention(*qkv.unbind(2))
    o.sum().backward()
    apart = [t.detach().contiguous().requires_grad_() for t in qkv.unbind(2)]
    same = kt.attention(*apart)
    same.sum().backward()
    assert torch.equal(o, same)
    assert torch.equal(qkv.grad, torch.stack([t.grad for t in apart], 2))
