"""Softmax, layer norm and products, forward and backward."""

import pytest
import torch
from common import doubles, normal

import kiln.torch as kt


def assert_same(mine, tensors, formula, unit):
    """Values and gradients of a function of tensors, against the same in float64."""
    exact = doubles(*tensors)
    wanted = formula(*exact)
    direction = torch.randn_like(mine)
    mine.backward(direction)
    wanted.backward(direction.double())
    pairs = [
        (mine, wanted),
        *((t.grad, e.grad) for t, e in zip(tensors, exact) if t is not None and t.requires_grad),
    ]
    for got, value in pairs:
        assert got.shape == value.shape
        assert (got.double() - value).abs().max() <= unit * (value.abs().max() + 1)


UNITS = {torch.float32: 2.0**-18, torch.bfloat16: 2.0**-6, torch.float16: 2.0**-9}


@pytest.mark.parametrize("dtype", UNITS)
@pytest.mark.parametrize("shape", [(40,), (5, 40), (2, 3, 40)], ids=str)
def test_softmax(dtype, shape):
    x = normal(*shape, dtype=dtype)
    assert_same(kt.softmax(x), [x], lambda x: x.softmax(-1), UNITS[dtype])


@pytest.mark.parametrize("dtype", UNITS)
def test_layer_norm(dtype):
    x, w, b = normal(2, 3, 40, dtype=dtype), normal(40, dtype=dtype), normal(40, dtype=dtype)
    formula = lambda x, w, b: torch.nn.functional.layer_norm(x, (40,), w, b, 1e-3)
    assert_same(kt.layer_norm(x, w, b, eps=1e-3), [x, w, b], formula, UNITS[dtype])


def test_layer_norm_without_weights():
    x = normal(5, 40, dtype=torch.float32)
    assert_same(kt.layer_norm(x), [x], lambda x: torch.nn.functional.layer_norm(x, (40,)), 2.0**-18)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_matmul(ta, tb):
    a, b, bias = (
        normal(*((24, 17) if ta else (17, 24))),
        normal(*((9, 24) if tb else (24, 9))),
        normal(9),
    )

    def formula(a, b, bias):
        return 0.5 * (a.mT if ta else a) @ (b.mT if tb else b) + bias

    assert_same(
        kt.matmul(a, b, bias, scale=0.5, transpose_a=ta, transpose_b=tb),
        [a, b, bias],
        formula,
        2.0**-6,
    )


@pytest.mark.parametrize(
    "shapes", [((3, 8, 16), (3, 16, 8)), ((3, 8, 16), (16, 8)), ((8, 16), (3, 16, 8))], ids=str
)
def test_batches(shapes):
    a, b = (normal(*s, dtype=torch.float32) for s in shapes)
    assert_same(kt.matmul(a, b), [a, b], torch.matmul, 2.0**-18)


def test_types_of_products():
    a = torch.randn(8, 32)
    eighth, small = a.to(torch.float8_e4m3fn), (10 * a).to(torch.int8)
    assert kt.matmul(eighth, eighth, transpose_b=True).dtype == torch.float32
    whole = small.int().cpu()  # on a GPU torch has no such product
    assert torch.equal(kt.matmul(small, small, transpose_b=True).cpu(), whole @ whole.T)
    assert (
        kt.matmul(a.bfloat16(), a.bfloat16(), transpose_b=True, out_dtype=torch.float32).dtype
        == torch.float32
    )


def test_an_activation():
    a, b = normal(8, 16, grad=False), normal(16, 8, grad=False)
    assert (kt.matmul(a, b, activation="relu") == kt.matmul(a, b).relu()).all()
    with pytest.raises(NotImplementedError, match="activation = relu"):
        kt.matmul(a, b.requires_grad_(), activation="relu")
