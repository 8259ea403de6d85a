"""Products of matrices."""

from __future__ import annotations

from typing import Any

import torch

from kiln.torch._gradients import applier, cast_for_autocast
from kiln.torch._operation import TorchOperation

__all__ = ["matmul"]

_DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
#: What products of types that have no outputs of their own are summed up to.
_WIDE = {
    torch.float8_e4m3fn: torch.float32,
    torch.float8_e5m2: torch.float32,
    torch.int8: torch.int32,
}


def _new_out(
    a: torch.Tensor, b: torch.Tensor, out_dtype: str | None, transpose_a: bool, transpose_b: bool
) -> torch.Tensor:
    x, y = a.shape, b.shape
    dtype = _DTYPES[out_dtype] if out_dtype else _WIDE.get(a.dtype) or a.dtype
    rows, columns = x[-1 if transpose_a else -2], y[-2 if transpose_b else -1]
    return a.new_empty((*(x[:-2] or y[:-2]), rows, columns), dtype=dtype)


_forward = TorchOperation(
    "matmul",
    ("a", "b", "bias?"),
    ("scale", "activation", "precision", "out_dtype", "transpose_a", "transpose_b"),
    {"out": _new_out},
)


def _sum_to(gradient: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A matrix that served every batch has the sum of their gradients."""
    if gradient.dim() > like.dim():
        gradient = gradient.sum(0)
    return gradient.to(like.dtype)


class _Matmul(torch.autograd.Function):
    @staticmethod
    def forward(
        a: Any, b: Any, bias: Any, scale: Any, precision: Any, out_dtype: Any, ta: bool, tb: bool
    ) -> Any:
        return _forward.invoke(a, b, bias, scale, None, precision, out_dtype, ta, tb)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        a, b, bias, scale, precision, _, ta, tb = inputs
        ctx.save_for_backward(a, b)
        ctx.options = scale, precision, ta, tb
        ctx.bias_dtype = None if bias is None else bias.dtype

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        a, b = ctx.saved_tensors
        scale, precision, ta, tb = ctx.options
        d = gradient.to(a.dtype)

        def product(x: Any, y: Any, tx: bool, ty: bool) -> Any:
            if (
                torch.is_grad_enabled() and not torch.compiler.is_compiling()
            ):  # of a second derivative
                return _apply(x, y, None, scale, precision, None, tx, ty)
            return _forward.invoke(x, y, None, scale, None, precision, None, tx, ty)

        da = db = dbias = None
        if ctx.needs_input_grad[0]:
            da = _sum_to(product(b, d, tb, True) if ta else product(d, b, False, not tb), a)
        if ctx.needs_input_grad[1]:
            db = _sum_to(product(d, a, True, ta) if tb else product(a, d, not ta, False), b)
        if ctx.needs_input_grad[2]:
            dbias = gradient.flatten(0, -2).sum(0, dtype=torch.float32).to(ctx.bias_dtype)
        return da, db, dbias, None, None, None, None, None


_apply = applier(_Matmul)


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    scale: float | None = None,
    activation: str | None = None,
    precision: str | None = None,
    out_dtype: torch.dtype | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """activation(scale a b + bias).

    a: [M, K] or [B, M, K]; b: [K, N] or [B, K, N], of a's type: f32, f16, bf16, or without
    gradients fp8 (e4m3, e5m2) and i8.  A matrix serves every batch of the other.  transpose_a,
    transpose_b: a is [K, M], b is [N, K].
    bias: [N], of the result's type.  activation: "relu", "gelu" or "silu", without gradients.
    precision: of f32: "ieee" (default), "tf32" or "tf32x3".
    out: written in place of a new tensor, without torch's dispatcher and without gradients.

    Returns [M, N] or [B, M, N], of out_dtype; default: a's type, of fp8 f32, of i8 i32.
    Raises ValueError for shapes and types that do not fit, NotImplementedError for gradients of an
    activation.
    """
    a, b, bias = cast_for_autocast((a, b, bias), (0, 1, 2))
    name = None if out_dtype is None else _name_of(out_dtype)
    if out is None and torch.is_grad_enabled():
        if a.requires_grad or b.requires_grad or (bias is not None and bias.requires_grad):
            if activation not in (None, "none"):
                raise NotImplementedError(
                    f"matmul: activation = {activation} has no gradient; leave it out and apply"
                    " torch's to the result"
                )
            return _apply(a, b, bias, scale, precision, name, transpose_a, transpose_b)
    values = (a, b, bias, scale, activation, precision, name, transpose_a, transpose_b)
    return _forward.invoke(*values) if out is None else _forward.into(values, out=out)[0]


def _name_of(dtype: torch.dtype) -> str:
    if dtype not in _NAMES:
        raise ValueError(f"matmul: out_dtype = {dtype}; give one of {', '.join(map(str, _NAMES))}")
    return _NAMES[dtype]
