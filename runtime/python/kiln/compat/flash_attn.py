"""FlashAttention 2's functions (flash_attn 2.8.3), computed by Kiln.

    from kiln.compat.flash_attn import flash_attn_func, flash_attn_varlen_func

Signatures, shapes and results are FlashAttention's: causal masks are aligned bottom right, rows
without keys are 0, lse is [B, H, S] or [H, T] in f32, head dimensions that are no multiple of 8 are
padded.  return_attn_probs returns (out, lse, None), as FlashAttention does without dropout.
dropout_p and block_table are not supported.
"""

from __future__ import annotations

from typing import Any

import torch

from kiln.torch.attention import attention, attention_varlen

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
]


def _refuse(function: str, argument: str, value: Any, remedy: str) -> None:
    raise NotImplementedError(
        f"{function}: argument '{argument}' = {value} is not supported by Kiln; {remedy}"
    )


def _run(
    name: str,
    call: Any,
    tensors: tuple[Any, ...],
    options: tuple[Any, ...],
    offsets: tuple[Any, ...] = (),
    **lengths: Any,
) -> Any:
    (
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        alibi_slopes,
        deterministic,
        return_attn_probs,
    ) = options
    if dropout_p:
        _refuse(name, "dropout_p", dropout_p, "give 0.0")
    columns, width = tensors[0].shape[-1], tensors[2].shape[-1]
    scale = columns**-0.5 if softmax_scale is None else softmax_scale
    if columns % 8 or width % 8:
        tensors = tuple(torch.nn.functional.pad(t, (0, -t.shape[-1] % 8)) for t in tensors)
    o, lse = call(
        *tensors,
        *offsets,
        scale=scale,
        causal=causal,
        window=tuple(window_size),
        softcap=softcap,
        alibi=alibi_slopes,
        deterministic=deterministic,
        return_lse=True,
        **lengths,
    )
    o = o if o.shape[-1] == width else o[..., :width]
    return (o, lse, None) if return_attn_probs else o


def flash_attn_func(
    q,
    k,
    v,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    deterministic=False,
    return_attn_probs=False,
):
    """q: [B, S, H, D]; k, v: [B, Sk, Hk, D]; bf16 or f16.  Returns out, [B, S, H, D]."""
    options = (
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        alibi_slopes,
        deterministic,
        return_attn_probs,
    )
    return _run("flash_attn_func", attention, (q, k, v), options)


def flash_attn_kvpacked_func(
    q,
    kv,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    deterministic=False,
    return_attn_probs=False,
):
    """As flash_attn_func; kv: [B, Sk, 2, Hk, D]."""
    options = (
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        alibi_slopes,
        deterministic,
        return_attn_probs,
    )
    return _run("flash_attn_kvpacked_func", attention, (q, *kv.unbind(2)), options)


def flash_attn_qkvpacked_func(
    qkv,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    deterministic=False,
    return_attn_probs=False,
):
    """As flash_attn_func; qkv: [B, S, 3, H, D]."""
    options = (
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        alibi_slopes,
        deterministic,
        return_attn_probs,
    )
    return _run("flash_attn_qkvpacked_func", attention, qkv.unbind(2), options)


def flash_attn_varlen_func(
    q,
    k,
    v,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q,
    max_seqlen_k,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    deterministic=False,
    return_attn_probs=False,
    block_table=None,
):
    """q: [T, H, D]; k, v: [Tk, Hk, D]; cu_seqlens_*: [B + 1], int32.  Returns out, [T, H, D]."""
    if block_table is not None:
        _refuse(
            "flash_attn_varlen_func",
            "block_table",
            "a tensor",
            "give keys and values that are not in pages",
        )
    options = (
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        alibi_slopes,
        deterministic,
        return_attn_probs,
    )
    lengths = {"max_seqlen_q": max_seqlen_q, "max_seqlen_k": max_seqlen_k}
    offsets = (cu_seqlens_q, cu_seqlens_k)
    return _run("flash_attn_varlen_func", attention_varlen, (q, k, v), options, offsets, **lengths)


def flash_attn_varlen_kvpacked_func(
    q,
    kv,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q,
    max_seqlen_k,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    deterministic=False,
    return_attn_probs=False,
):
    """As flash_attn_varlen_func; kv: [Tk, 2, Hk, D]."""
    tensors, offsets = (q, *kv.unbind(1)), (cu_seqlens_q, cu_seqlens_k)
    options = (
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        alibi_slopes,
        deterministic,
        return_attn_probs,
    )
    lengths = {"max_seqlen_q": max_seqlen_q, "max_seqlen_k": max_seqlen_k}
    return _run(
        "flash_attn_varlen_kvpacked_func", attention_varlen, tensors, options, offsets, **lengths
    )


def flash_attn_varlen_qkvpacked_func(
    qkv,
    cu_seqlens,
    max_seqlen,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    deterministic=False,
    return_attn_probs=False,
):
    """As flash_attn_varlen_func; qkv: [T, 3, H, D]."""
    options = (
        dropout_p,
        softmax_scale,
        causal,
        window_size,
        softcap,
        alibi_slopes,
        deterministic,
        return_attn_probs,
    )
    lengths = {"max_seqlen_q": max_seqlen, "max_seqlen_k": max_seqlen}
    offsets = (cu_seqlens, cu_seqlens)
    return _run(
        "flash_attn_varlen_qkvpacked_func",
        attention_varlen,
        qkv.unbind(1),
        options,
        offsets,
        **lengths,
    )
