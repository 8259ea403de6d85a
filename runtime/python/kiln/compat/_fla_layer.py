"""What FLA's RWKV7 layer computes around its recurrence, by torch in place of Triton.

FLA tunes each of these small kernels at its first call, which takes a minute in a fresh process.
torch has all of them built in.  Sums are in f32, and what goes in and out has FLA's types; results
differ from FLA's in the last bit of a bf16 at most.

Not taken (FLA's own kernels go on): packed sequences of token_shift, group_norm with a residual, as
an RMS norm, or before the norm.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

__all__ = [
    "fused_addcmul_rwkv7",
    "fused_k_rwkv7",
    "gate_output_correction",
    "group_norm",
    "l2norm",
    "token_shift",
]


def token_shift(x, cu_seqlens=None, cache=None, output_cache=False, chunk_indices=None):
    """The token before each one less the token.  x: [B, T, D]; cache: [B, D], the token before the
    first, none: zeros.  With output_cache also the last token, [B, D]."""
    first = (
        torch.zeros_like(x[:, :1]) if cache is None else cache.to(x.dtype).view(-1, 1, x.shape[-1])
    )
    delta = torch.cat((first, x[:, :-1]), 1) - x
    return (delta, x[:, -1].clone()) if output_cache else delta


def fused_addcmul_rwkv7(hidden_states, delta, xr, xw, xk, xv, xa, xg=None):
    """hidden_states + delta * each of the six; [B, T, D] and [1, 1, D].  None of a missing xg."""
    return tuple(
        None if by is None else torch.addcmul(hidden_states, delta, by.to(hidden_states.dtype))
        for by in (xr, xw, xk, xv, xa, xg)
    )


def fused_k_rwkv7(k, a, ka, cu_seqlens=None, cu_seqlens_cpu=None):
    """k (1 + (a - 1) ka); [B, T, D], and ka [D]."""
    return k.addcmul(k * (a - 1), ka.to(k.dtype))


class _Normed(torch.autograd.Function):
    """Nothing but x is kept for the gradient."""

    @staticmethod
    def forward(x: torch.Tensor, eps: float, dtype: torch.dtype) -> torch.Tensor:
        f = x.float()
        return (f * torch.rsqrt(f.square().sum(-1, keepdim=True) + eps)).to(dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.eps, _ = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (x,) = ctx.saved_tensors
        f, d = x.float(), gradient.float()
        factor = torch.rsqrt(f.square().sum(-1, keepdim=True) + ctx.eps)
        y = f * factor
        return (factor * (d - y * (d * y).sum(-1, keepdim=True))).to(x.dtype), None, None


def l2norm(x, eps=1e-6, output_dtype=None):
    """x / |x| along the last dimension."""
    return _Normed.apply(x, eps, output_dtype or x.dtype)


def gate_output_correction(o, r, k, r_k, v, g):
    """(o + (r k r_k summed along D) v) g.  o, g: [B, T, H D]; r, k, v: [B, T, H, D]; r_k: [H, D]."""
    weight = (r.float() * k.float() * r_k.float()).sum(-1, keepdim=True)
    return ((o.float() + (weight * v.float()).view(o.shape)) * g.float()).to(o.dtype)


def group_norm(
    x,
    weight,
    bias,
    residual=None,
    eps=1e-5,
    prenorm=False,
    residual_in_fp32=False,
    is_rms_norm=False,
    num_groups=1,
):
    """Each of the groups of the last dimension less its mean, over its deviation.  x: [.., C];
    weight and bias: [C] or None."""
    dtype = x.dtype
    if weight is not None and weight.dtype != dtype:
        x = x.float()
    weight, bias = (None if t is None else t.to(x.dtype) for t in (weight, bias))
    return (
        F.group_norm(x.reshape(-1, x.shape[-1]), num_groups, weight, bias, eps)
        .view(x.shape)
        .to(dtype)
    )


def _check_token_shift(x, cu_seqlens=None, *args, **kwargs):
    if cu_seqlens is not None:
        raise NotImplementedError("token_shift: argument 'cu_seqlens' is given; FLA computes it")


def _check_group_norm(x, weight, bias, residual=None, *args, **kwargs):
    if residual is not None or args or kwargs.get("prenorm") or kwargs.get("is_rms_norm"):
        raise NotImplementedError("group_norm: a residual or an RMS norm; FLA computes it")


token_shift.check = _check_token_shift  # type: ignore[attr-defined]
group_norm.check = _check_group_norm  # type: ignore[attr-defined]
for _function in (fused_addcmul_rwkv7, fused_k_rwkv7, l2norm, gate_output_correction):
    _function.check = lambda *args, **kwargs: None  # type: ignore[attr-defined]

#: Where FLA defines them (_fla_registry.py).
TABLE = {
    "fla.modules.token_shift": token_shift,
    "fla.ops.rwkv7.fused_addcmul": fused_addcmul_rwkv7,
    "fla.ops.rwkv7.fused_k_update": fused_k_rwkv7,
    "fla.ops.rwkv7.gate_output_correction": gate_output_correction,
    "fla.modules.norm.l2norm": l2norm,
    "fla.modules.norm.layernorm": group_norm,
}
