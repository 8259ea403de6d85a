"""Operations under what torch does to programs: opcheck, compile, export, checkpoint, autocast,
torch.func."""

import importlib

import pytest
import torch
from common import Counted, normal
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

import kiln.torch as kt

module = {
    name: importlib.import_module(f"kiln.torch.{name}")
    for name in ("attention", "linear", "matmul", "rows")
}


def qkv(grad=True):
    return [normal(1, 16, 2, 32, grad=grad) for _ in range(3)]


def rwkv(grad=True):
    r, k, v = (normal(1, 16, 1, 16, grad=grad) for _ in range(3))
    a, b = ((0.1 * normal(1, 16, 1, 16)).detach().requires_grad_(grad) for _ in range(2))
    return r, (-torch.rand(1, 16, 1, 16)).requires_grad_(grad), k, v, a, b


def calls():
    """An operation of each kind with its arguments by name."""
    q, k, v = qkv(grad=False)
    forward = module["attention"]._forward
    o, lse = forward({"q": q, "k": k, "v": v})
    backward = module["attention"]._backward
    yield forward, {"q": q, "k": k, "v": v, "causal": True}
    yield backward[()], {"q": q, "k": k, "v": v, "o": o, "lse": lse, "do": o}
    sink = torch.zeros(2)
    yield backward[("dsink",)], {"q": q, "k": k, "v": v, "o": o, "lse": lse, "do": o, "sink": sink}
    r, w, k, v, a, b = rwkv(grad=False)
    rule = module["linear"]._rules["rwkv7"]
    values = {"r": r, "w": w, "k": k, "v": v, "a": a, "b": b}
    yield rule.plain.forward, values
    yield rule.with_state.forward, {**values, "initial_state": torch.zeros(1, 1, 16, 16)}
    yield rule.with_state.backward[("dh0",)], {
        **values,
        "do": v,
        "initial_state": torch.zeros(1, 1, 16, 16),
    }
    x = normal(4, 32, grad=False)
    yield module["matmul"]._forward, {"a": x, "b": x, "transpose_b": True}
    yield module["rows"]._softmax, {"x": x}
    yield module["rows"]._layer_norm, {"x": x, "eps": 1e-5}


@pytest.mark.parametrize("at", range(9))
def test_opcheck(at):
    operation, values = list(calls())[at]
    arguments = tuple(values.get(name) for name in operation.arguments)
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    if at in (0, 4):  # slow
        tests += ("test_aot_dispatch_dynamic",)
    torch.library.opcheck(operation.overload, arguments, test_utils=tests)


def test_outputs_are_what_the_library_says():
    """The shapes for tracing and those of libkiln are one fact in two languages."""
    from kiln._functions import outputs_of

    for operation, values in calls():
        made = operation._new(tuple(values.get(name) for name in operation.arguments))
        asked = {n: True for n in operation.outputs if operation.table.outputs[n].optional}
        told = outputs_of(operation.table, {**values, **asked})
        for name, tensor in zip(operation.outputs, made):
            short = {"torch.float32": "f32", "torch.bfloat16": "bf16"}[str(tensor.dtype)]
            assert told[name] == (tuple(tensor.shape), short), (operation.name, name)


FUNCTIONS = {
    "attention": lambda: (lambda q, k, v: kt.attention(q * 2, k, v, causal=True), qkv()),
    "rwkv7": lambda: (lambda *t: kt.rwkv7(*t), rwkv()),
    "kda": lambda: (
        lambda q, k, v: sum(
            t.float().sum()
            for t in kt.kda(
                q, k, v, -q.abs(), torch.sigmoid(q[..., 0].float()), output_final_state=True
            )
        ),
        [normal(1, 16, 1, 16) * 0.2 for _ in range(3)],
    ),
    "matmul": lambda: (lambda a, b: kt.matmul(a, b), [normal(8, 16), normal(16, 8)]),
    "layer_norm": lambda: (
        lambda x, w, b: kt.layer_norm(kt.softmax(x), w, b),
        [normal(4, 32), normal(32), normal(32)],
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compile_without_breaks(name):
    function, inputs = FUNCTIONS[name]()
    inputs = [t.detach().requires_grad_() for t in inputs]
    wanted = function(*inputs)
    by = torch.autograd.grad(wanted.float().sum(), inputs)
    got = torch.compile(function, fullgraph=True, backend="aot_eager")(*inputs)
    assert torch.equal(got, wanted)
    for mine, other in zip(torch.autograd.grad(got.float().sum(), inputs), by):
        assert torch.equal(mine, other)


def test_dynamic_shapes_compile_once():
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    function = torch.compile(
        lambda q, k, v: kt.attention(q, k, v), fullgraph=True, backend=backend, dynamic=True
    )
    for rows in (24, 40, 56):
        q, (_, k, v) = normal(1, rows, 2, 32, grad=False), qkv(grad=False)
        assert torch.equal(function(q, k, v), kt.attention(q, k, v))
    assert len(graphs) == 1


class Layer(torch.nn.Module):
    def forward(self, q, k, v):
        return kt.attention(q, k, v, causal=True)


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict):
    inputs = qkv(grad=False)
    program = torch.export.export(Layer(), tuple(inputs), strict=strict)
    targets = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert torch.ops.kiln.attention.default in targets
    assert torch.equal(program.module()(*inputs), Layer()(*inputs))


def test_checkpoint_runs_forward_again():
    q, k, v = qkv()
    (wanted,) = torch.autograd.grad(kt.attention(q, k, v).sum(), q)
    with Counted() as counted:
        (got,) = torch.autograd.grad(
            checkpoint(lambda q: kt.attention(q, k, v), q, use_reentrant=False).sum(), q
        )
    assert torch.equal(got, wanted) and counted.calls == 2


def test_selective_checkpoint_saves_the_operation():
    q, k, v = qkv()
    kept = torch.ops.kiln.attention_with_lse.default

    def policy(_, operation, *__, **___):
        return (
            CheckpointPolicy.MUST_SAVE if operation is kept else CheckpointPolicy.PREFER_RECOMPUTE
        )

    with Counted() as counted:
        checkpoint(
            lambda q: kt.attention(q * 1, k, v) * 1,
            q,
            use_reentrant=False,
            context_fn=lambda: create_selective_checkpoint_contexts(policy),
        ).sum().backward()
    assert counted.calls == 1 and q.grad is not None


def test_autocast_casts_activations_and_no_gates():
    q, k, v = (t.detach().float().requires_grad_() for t in qkv())
    with pytest.raises((ValueError, NotImplementedError), match="q"):
        kt.attention(q, k, v)
    with torch.autocast(torch.get_default_device().type, dtype=torch.bfloat16):
        o = kt.attention(q, k, v)
        product = kt.matmul(q[0, :, 0], k[0, :, 0], transpose_b=True)
        rule = kt.rwkv7(
            *(t.detach().float() for t in rwkv()), initial_state=torch.zeros(1, 1, 16, 16)
        )
    assert o.dtype == product.dtype == rule.dtype == torch.bfloat16
    o.sum().backward()
    assert q.grad.dtype == torch.float32
    gate = normal(1, 16, 1, 16, dtype=torch.float32, grad=False)
    from kiln.torch._gradients import cast_for_autocast

    with torch.autocast(torch.get_default_device().type, dtype=torch.bfloat16):
        assert cast_for_autocast((gate, gate), (0,))[1] is gate


def test_functional_gradient():
    q, k, v = qkv(grad=False)
    got = torch.func.grad(lambda q: kt.attention(q, k, v).float().sum())(q)
    q.requires_grad_()
    assert torch.equal(got, torch.autograd.grad(kt.attention(q, k, v).float().sum(), q)[0])


@pytest.mark.parametrize("name", ["attention", "rwkv7"])
def test_a_second_derivative_is_refused(name):
    function, inputs = FUNCTIONS[name]()
    (first,) = torch.autograd.grad(function(*inputs).float().sum(), inputs[0], create_graph=True)
    with pytest.raises(NotImplementedError, match=f"{name}_backward.*second derivatives"):
        torch.autograd.grad(first.float().sum(), inputs[0])


def test_second_derivatives_of_the_others():
    a, w = normal(4, 16, dtype=torch.float32), normal(16, dtype=torch.float32)

    def penalty(softmax, layer_norm, matmul):
        value = matmul(layer_norm(softmax(a), w, w), a.mT).square().sum()
        (first,) = torch.autograd.grad(value, a, create_graph=True)
        return torch.autograd.grad(first.square().sum(), (a, w))

    mine = penalty(kt.softmax, kt.layer_norm, kt.matmul)
    wanted = penalty(
        lambda x: x.softmax(-1),
        lambda x, w, b: torch.nn.functional.layer_norm(x, (16,), w, b),
        torch.matmul,
    )
    for got, value in zip(mine, wanted):
        assert (got - value).abs().max() <= 1e-4 * value.abs().max()


def test_vmap_is_refused():
    q, k, v = qkv()
    with pytest.raises(RuntimeError, match="vmap"):
        torch.vmap(lambda q: kt.attention(q, k, v))(torch.stack([q, q]))
