"""Attention of dense and of packed sequences."""

from __future__ import annotations

from typing import Any

import torch

from kiln._library import library
from kiln.torch._gradients import Differentiable
from kiln.torch._operation import TorchOperation

__all__ = ["attention", "attention_varlen"]

_TABLES = ("cu_seqlens_q?", "cu_seqlens_k?", "seqused_q?", "seqused_k?")
_OPTIONS = ("causal", "align", "window_left", "window_right", "softcap", "scale")
#: Upper bounds of a packed sequence's rows, where libkiln takes them.
_BOUNDS = tuple(
    o for o in ("max_queries", "max_keys") if o in library().operations["attention_backward"].option
)
_BIASES = ("sink?", "alibi?", "bias?")
_SCALES = ("q_descale?", "k_descale?", "v_descale?")
_EIGHTH = (torch.float8_e4m3fn, torch.float8_e5m2)


def _outputs(a: dict[str, Any]) -> dict[str, torch.Tensor]:
    q, v = a["q"], a["v"]
    o = q.new_empty(
        (*q.shape[:-1], v.shape[-1]), dtype=torch.bfloat16 if q.dtype in _EIGHTH else q.dtype
    )
    return {"o": o, "lse": _new_lse(q)}


def _new_lse(q: torch.Tensor) -> torch.Tensor:
    """[B, H, S], packed [H, T]."""
    shape = (q.shape[1], q.shape[0]) if q.dim() == 3 else (q.shape[0], q.shape[2], q.shape[1])
    return q.new_empty(shape, dtype=torch.float32)


def _gradients(a: dict[str, Any]) -> dict[str, torch.Tensor]:
    out = {f"d{name}": a[name].new_empty(a[name].shape) for name in ("q", "k", "v")}
    # Rows of no sequence are left alone by the kernel: they have no part in the loss.
    if a["cu_seqlens_q"] is not None or a["seqused_q"] is not None or a["seqused_k"] is not None:
        out = {name: tensor.zero_() for name, tensor in out.items()}
    for name in ("sink", "bias"):
        if a[name] is not None:
            out[f"d{name}"] = a[name].new_empty(a[name].shape)
    return out


_forward = TorchOperation(
    "attention",
    ("q", "k", "v", *_BIASES, *_TABLES, *_SCALES),
    (*_OPTIONS, *(o for o in _BOUNDS if o in library().operations["attention"].option)),
    _outputs,
    with_outputs=("lse",),
)
_backward = {
    extra: TorchOperation(
        "attention_backward",
        ("q", "k", "v", "o", "lse", "do", "dlse?", *_BIASES, *_TABLES),
        (*_OPTIONS, *_BOUNDS, "deterministic"),
        _gradients,
        with_outputs=extra,
    )
    for extra in ((), ("dsink",), ("dbias",), ("dbias", "dsink"))
}
_attention = Differentiable(
    _forward, _backward, cast=("q", "k", "v"), of_backward=("deterministic",)
)


def _run(values: dict[str, Any], return_lse: bool, out: torch.Tensor | None) -> Any:
    if out is None:
        o, lse = _attention(values)
    else:
        o, lse = out, _new_lse(values["q"])
        _forward.into(values, (o, lse))
    return (o, lse) if return_lse else o


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
    values = {
        "q": q,
        "k": k,
        "v": v,
        "sink": sink,
        "alibi": alibi,
        "bias": bias,
        "scale": scale,
        "causal": causal,
        "align": alignment,
        "window_left": window[0],
        "window_right": window[1],
        "softcap": softcap,
        "deterministic": deterministic,
        "q_descale": q_descale,
        "k_descale": k_descale,
        "v_descale": v_descale,
    }
    return _run(values, return_lse, out)


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
    max_seqlen_q, max_seqlen_k: upper bounds of a sequence's rows; default: Tq, Tk.
    seqused_q, seqused_k: [N], int32, how many rows of each sequence count; default: all.

    Returns o, [Tq, H, Dv]; with return_lse also lse, [H, Tq], f32.  The rest is as of attention.
    """
    values = {
        "q": q,
        "k": k,
        "v": v,
        "cu_seqlens_q": cu_seqlens_q,
        "cu_seqlens_k": cu_seqlens_k,
        "seqused_q": seqused_q,
        "seqused_k": seqused_k,
        "sink": sink,
        "alibi": alibi,
        "scale": scale,
        "causal": causal,
        "align": alignment,
        "window_left": window[0],
        "window_right": window[1],
        "softcap": softcap,
        "deterministic": deterministic,
        "max_queries": q.shape[0] if max_seqlen_q is None else max_seqlen_q,
        "max_keys": k.shape[0] if max_seqlen_k is None else max_seqlen_k,
    }
    return _run(values, return_lse, out)
