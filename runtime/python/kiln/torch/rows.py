"""Operations on rows: softmax and layer norm.

Their gradients are a few operations of torch's, which have gradients themselves.
"""

from __future__ import annotations

from typing import Any

import torch

from kiln.torch._gradients import applier
from kiln.torch._operation import TorchOperation, empty_like

__all__ = ["layer_norm", "softmax"]


_LIKE_X = {"out": empty_like("x")}
_softmax = TorchOperation("softmax", ("x",), (), _LIKE_X)
_layer_norm = TorchOperation("layer_norm", ("x", "weight?", "bias?"), ("eps",), _LIKE_X)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return _softmax.invoke(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        (p,) = ctx.saved_tensors
        d = gradient.float() * p.float()
        return (d - p.float() * d.sum(-1, keepdim=True)).to(p.dtype)


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(x: Any, weight: Any, bias: Any, eps: Any) -> Any:
        return _layer_norm.invoke(x, weight, bias, eps)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, weight, bias, ctx.eps = inputs
        ctx.save_for_backward(x, weight)
        ctx.bias_dtype = None if bias is None else bias.dtype

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        x, weight = ctx.saved_tensors
        d, dx, dweight, dbias = gradient.float(), None, None, None
        centred = x.float() - x.float().mean(-1, keepdim=True)
        factor = torch.rsqrt(centred.square().mean(-1, keepdim=True) + ctx.eps)
        normal = centred * factor
        if ctx.needs_input_grad[0]:
            dn = d if weight is None else d * weight.float()
            dx = factor * (
                dn - dn.mean(-1, keepdim=True) - normal * (dn * normal).mean(-1, keepdim=True)
            )
            dx = dx.to(x.dtype)
        if ctx.needs_input_grad[1]:
            dweight = (d * normal).reshape(-1, d.shape[-1]).sum(0).to(weight.dtype)
        if ctx.needs_input_grad[2]:
            dbias = d.reshape(-1, d.shape[-1]).sum(0).to(ctx.bias_dtype)
        return dx, dweight, dbias, None


_apply_softmax, _apply_layer_norm = applier(_Softmax), applier(_LayerNorm)


def _wants_gradient(*tensors: torch.Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def softmax(x: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """exp(x - max) / sum along the last dimension.

    x: [..., N]; f32, f16 or bf16.  out: [R, N] or [N] as x, written in place of a new tensor,
    without torch's dispatcher and without gradients.  Returns x's shape and type.
    Raises ValueError for types that no kernel takes.
    """
    if out is not None:
        return _softmax.into((x,), out=out)[0]
    rows = x if x.dim() in (1, 2) else x.reshape(-1, x.shape[-1])
    p = _apply_softmax(rows) if _wants_gradient(x) else _softmax.invoke(rows)
    return p.reshape(x.shape)


def layer_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    *,
    eps: float = 1e-5,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias along the last dimension.

    x: [..., N]; f32, f16 or bf16.  weight, bias: [N], both or none, of x's type.  out: as of
    softmax.
    Returns x's shape and type.  Raises ValueError for shapes and types that do not fit.
    """
    if out is not None:
        return _layer_norm.into((x, weight, bias, eps), out=out)[0]
    rows = x if x.dim() in (1, 2) else x.reshape(-1, x.shape[-1])
    apply = _apply_layer_norm if _wants_gradient(x, weight, bias) else _layer_norm.invoke
    return apply(rows, weight, bias, eps).reshape(x.shape)
