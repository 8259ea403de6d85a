"""Attention of dense and of packed sequences."""

from __future__ import annotations

from typing import Any

import torch

from kiln.torch._gradients import Differentiable
from kiln.torch._operation import Rule, TorchOperation, empty_like, of_arguments

__all__ = ["attention", "attention_varlen"]

_TABLES = ("cu_seqlens_q?", "cu_seqlens_k?", "seqused_q?", "seqused_k?")
_BIASES = ("sink?", "alibi?", "bias?")
_SCALES = ("q_descale?", "k_descale?", "v_descale?")
_OPTIONS = ("causal", "align", "window_left", "window_right", "softcap", "scale")
_EIGHTH = (torch.float8_e4m3fn, torch.float8_e5m2)


def _new_o(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """As q with v's columns; of fp8 bf16."""
    if q.dtype not in _EIGHTH:
        if q.shape[-1] == v.shape[-1]:
            return torch.empty_like(q, memory_format=torch.contiguous_format)
        return q.new_empty((*q.shape[:-1], v.shape[-1]))
    return q.new_empty((*q.shape[:-1], v.shape[-1]), dtype=torch.bfloat16)


def _new_lse(q: torch.Tensor) -> torch.Tensor:
    """[B, H, S], packed [H, T]."""
    shape = q.shape
    if len(shape) == 3:
        return q.new_empty((shape[1], shape[0]), dtype=torch.float32)
    return q.new_empty((shape[0], shape[2], shape[1]), dtype=torch.float32)


def _gradient_of_rows(name: str) -> Rule:
    def rule(x: Any, cu_seqlens_q: Any, seqused_q: Any, seqused_k: Any) -> torch.Tensor:
        if cu_seqlens_q is None and seqused_q is None and seqused_k is None:
            return torch.empty_like(x, memory_format=torch.contiguous_format)
        # Rows of no sequence are left alone by the kernel: they have no part in the loss.
        return torch.zeros_like(x, memory_format=torch.contiguous_format)

    rule.fills = True  # type: ignore[attr-defined]
    return of_arguments(rule, x=name)


_alone, _forward = (
    TorchOperation(
        "attention",
        ("q", "k", "v", *_BIASES, *_TABLES, *_SCALES),
        _OPTIONS,
        {"o": _new_o, "lse": _new_lse},
        with_outputs=extra,
    )
    for extra in ((), ("lse",))
)
_backward = {
    extra: TorchOperation(
        "attention_backward",
        ("q", "k", "v", "o", "lse", "do", "dlse?", *_BIASES, *_TABLES),
        (*_OPTIONS, "deterministic"),
        {f"d{name}": _gradient_of_rows(name) for name in ("q", "k", "v")}
        | {f"d{name}": empty_like(name) for name in ("sink", "bias")},
        with_outputs=extra,
    )
    for extra in ((), ("dsink",), ("dbias",), ("dbias", "dsink"))
}
_attention = Differentiable(
    _forward, _backward, cast=("q", "k", "v"), of_backward=("deterministic",)
)


def _into(out: torch.Tensor, values: tuple[Any, ...], return_lse: bool) -> Any:
    operation = _forward if return_lse else _alone
    results = operation.into(values, o=out)
    return results if return_lse else results[0]


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    sink: torch.Tensor | None = None,
    alibi: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    alignment: str = "bottom_right",
    deterministic: bool = False,
    q_descale: torch.Tensor | None = None,
    k_descale: torch.Tensor | None = None,
    v_descale: torch.Tensor | None = None,
    return_lse: bool = False,
    out: torch.Tensor | None = None,
) -> Any:
    """softmax(mask(softcap(scale q k^T) + alibi + bias)) v, head by head.

    q: [B, Sq, H, D]; k: [B, Sk, Hk, D]; v: [B, Sk, Hk, Dv]; bf16, f16 or (without gradients) fp8
    e4m3.  H is a multiple of Hk.  Any strides but 1 along the last dimension.
    scale: of the scores; default 1 / sqrt(D).
    causal: a query sees no key after its own; alignment says where the diagonal starts if Sq and Sk
    differ.
    window: how many keys on each side a query sees; -1: all.
    softcap: scores become softcap tanh(score / softcap); 0: they stay.
    sink: [H], f32, a logit of each head that has no value.  alibi: [H] or [B, H], f32, slopes.
    bias: [B or 1, H or 1, Sq or 1, Sk or 1], f32 or 16 bits, added to the scores.
    deterministic: the gradient by q has the same bits in every run.
    q_descale, k_descale, v_descale: [B, Hk], f32, what fp8 numbers are multiplied by.
    out: written in place of a new o, without torch's dispatcher and without gradients.

    Returns o, [B, Sq, H, Dv], of q's type (bf16 for fp8); with return_lse also the logarithm of the
    softmax's sum, [B, H, Sq], f32.  Gradients by q, k, v, sink and bias, of o and of lse.
    Raises ValueError for shapes and types that do not fit, NotImplementedError for what no kernel
    does.
    """
    # In the order of _forward's inputs and _OPTIONS, as one display: that is what costs least.
    # fmt: off
    values = (q, k, v, sink, alibi, bias, None, None, None, None, q_descale, k_descale, v_descale,
              causal, alignment, window[0], window[1], softcap, scale)
    # fmt: on
    if out is not None:
        return _into(out, values, return_lse)
    return _attention.run(values, (deterministic,), None if return_lse else _alone)


def attention_varlen(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    *,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    seqused_q: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    sink: torch.Tensor | None = None,
    alibi: torch.Tensor | None = None,
    alignment: str = "bottom_right",
    deterministic: bool = False,
    return_lse: bool = False,
    out: torch.Tensor | None = None,
) -> Any:
    """As attention, of sequences that stand one after the other.

    q: [Tq, H, D]; k: [Tk, Hk, D]; v: [Tk, Hk, Dv].
    cu_seqlens_q, cu_seqlens_k: [N + 1], int32, where each sequence starts; the first is 0, the last
    Tq, Tk.
    max_seqlen_q, max_seqlen_k: upper bounds of a sequence's rows, which Kiln's kernels do not need.
    seqused_q, seqused_k: [N], int32, how many rows of each sequence count; default: all.

    Returns o, [Tq, H, Dv]; with return_lse also lse, [H, Tq], f32.  The rest is as of attention.
    """
    tables = (cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k)
    options = (causal, alignment, window[0], window[1], softcap, scale)
    values = (q, k, v, sink, alibi, None, *tables, None, None, None, *options)
    if out is not None:
        return _into(out, values, return_lse)
    return _attention.run(values, (deterministic,), None if return_lse else _alone)
