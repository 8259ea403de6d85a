"""FlashAttention 2's functions (flash_attn 2.8.3), computed by Kiln.

    from kiln.compat.flash_attn import flash_attn_func, flash_attn_varlen_func

Signatures, shapes and results are FlashAttention's: causal masks are aligned bottom right, rows
without keys are 0, lse is [B, H, S] or [H, T] in f32, head dimensions that are no multiple of 8 are
padded.  return_attn_probs returns (out, lse, None), as FlashAttention does without dropout.
Not supported, and named by a NotImplementedError: dropout_p, block_table of
flash_attn_varlen_func, cache_leftpad together with rotary_cos.
"""

from __future__ import annotations

from typing import Any

from kiln.compat._flash import decode, refuse, run
from kiln.torch.attention import attention, attention_varlen

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
]


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
        refuse(name, "dropout_p", dropout_p, "give 0.0")
    o, lse = run(
        call,
        tensors,
        offsets,
        scale=softmax_scale,
        causal=causal,
        window=tuple(window_size),
        softcap=softcap,
        alibi=alibi_slopes,
        deterministic=deterministic,
        **lengths,
    )
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
        refuse(
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


def flash_attn_with_kvcache(
    q,
    k_cache,
    v_cache,
    k=None,
    v=None,
    rotary_cos=None,
    rotary_sin=None,
    cache_seqlens=None,
    cache_batch_idx=None,
    cache_leftpad=None,
    block_table=None,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    rotary_interleaved=True,
    alibi_slopes=None,
    num_splits=0,
    return_softmax_lse=False,
):
    """q: [B, S, H, D]; k_cache, v_cache: [Bc, rows, Hk, D], with a block_table [blocks, rows of a
    block, Hk, D], changed in place by k, v: [B, Snew, Hk, D].  Returns out, [B, S, H, D]; no
    gradient.  Blocks may have any number of rows."""
    o, lse = decode(
        "flash_attn_with_kvcache",
        q,
        k_cache,
        v_cache,
        k,
        v,
        rotary_cos=rotary_cos,
        rotary_sin=rotary_sin,
        rotary_interleaved=rotary_interleaved and rotary_cos is not None,
        cache_seqlens=cache_seqlens,
        cache_batch_idx=cache_batch_idx,
        cache_leftpad=cache_leftpad,
        page_table=block_table,
        scale=softmax_scale,
        causal=causal,
        window=window_size,
        softcap=softcap,
        alibi=alibi_slopes,
        num_splits=num_splits,
    )
    return (o, lse) if return_softmax_lse else o
