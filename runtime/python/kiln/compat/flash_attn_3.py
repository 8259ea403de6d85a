"""FlashAttention 3's functions (flash_attn_interface of hopper/, 3.0.0b1), computed by Kiln.

    from kiln.compat.flash_attn_3 import flash_attn_func, flash_attn_with_kvcache

Signatures, shapes and results are FlashAttention's: causal masks are aligned bottom right, rows
without keys are 0, lse is [B, H, S] or [H, T] in f32; return_attn_probs returns (out, lse).

Not supported, and named by a NotImplementedError: qv, attention_chunk; q_descale, k_descale,
v_descale of packed sequences; of the cache cu_seqlens_q, cu_seqlens_k_new, rotary_seqlens, and
cache_leftpad together with rotary_cos.  Hints have no effect: num_splits (but of the cache),
pack_gqa, sm_margin, scheduler_metadata, for which get_scheduler_metadata is not needed.
"""

from __future__ import annotations

from kiln.compat._flash import decode, refuse_given, run
from kiln.torch.attention import attention, attention_varlen

__all__ = [
    "flash_attn_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_with_kvcache",
]


def flash_attn_func(
    q,
    k,
    v,
    softmax_scale=None,
    causal=False,
    qv=None,
    q_descale=None,
    k_descale=None,
    v_descale=None,
    window_size=(-1, -1),
    attention_chunk=0,
    softcap=0.0,
    num_splits=1,
    pack_gqa=None,
    deterministic=False,
    sm_margin=0,
    return_attn_probs=False,
):
    """q: [B, S, H, D]; k: [B, Sk, Hk, D]; v: [B, Sk, Hk, Dv]; bf16, f16, or without gradients fp8
    e4m3 with descales, [B, Hk].  Returns out, [B, S, H, Dv]."""
    refuse_given("flash_attn_func", qv=qv, attention_chunk=attention_chunk)
    o, lse = run(
        attention,
        (q, k, v),
        scale=softmax_scale,
        causal=causal,
        window=tuple(window_size),
        softcap=softcap,
        deterministic=deterministic,
        q_descale=q_descale,
        k_descale=k_descale,
        v_descale=v_descale,
    )
    return (o, lse) if return_attn_probs else o


def flash_attn_qkvpacked_func(
    qkv,
    softmax_scale=None,
    causal=False,
    q_descale=None,
    k_descale=None,
    v_descale=None,
    window_size=(-1, -1),
    attention_chunk=0,
    softcap=0.0,
    deterministic=False,
    num_heads_q=None,
    sm_margin=0,
    return_attn_probs=False,
):
    """As flash_attn_func; qkv: [B, S, 3, H, D], or with num_heads_q [B, S, H + 2 Hk, D]."""
    name = "flash_attn_qkvpacked_func"
    refuse_given(name, attention_chunk=attention_chunk)
    if qkv.dim() == 5:
        tensors = qkv.unbind(-3)
    else:
        if num_heads_q is None or (qkv.shape[-2] - num_heads_q) % 2 or num_heads_q >= qkv.shape[-2]:
            raise ValueError(
                f"{name}: argument 'num_heads_q' is {num_heads_q}; qkv has {qkv.shape[-2]} heads:"
                " give those of q, so that as many of k as of v are left"
            )
        heads = (qkv.shape[-2] - num_heads_q) // 2
        tensors = qkv.split([num_heads_q, heads, heads], -2)
    o, lse = run(
        attention,
        tuple(tensors),
        scale=softmax_scale,
        causal=causal,
        window=tuple(window_size),
        softcap=softcap,
        deterministic=deterministic,
        q_descale=q_descale,
        k_descale=k_descale,
        v_descale=v_descale,
    )
    return (o, lse) if return_attn_probs else o


def flash_attn_varlen_func(
    q,
    k,
    v,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q,
    max_seqlen_k,
    seqused_q=None,
    seqused_k=None,
    softmax_scale=None,
    causal=False,
    qv=None,
    q_descale=None,
    k_descale=None,
    v_descale=None,
    window_size=(-1, -1),
    attention_chunk=0,
    softcap=0.0,
    num_splits=1,
    pack_gqa=None,
    deterministic=False,
    sm_margin=0,
    return_attn_probs=False,
):
    """q: [T, H, D]; k: [Tk, Hk, D]; v: [Tk, Hk, Dv]; cu_seqlens_*: [B + 1] and seqused_*: [B],
    int32.  Returns out, [T, H, Dv]."""
    refuse_given(
        "flash_attn_varlen_func",
        qv=qv,
        q_descale=q_descale,
        k_descale=k_descale,
        v_descale=v_descale,
        attention_chunk=attention_chunk,
    )
    o, lse = run(
        attention_varlen,
        (q, k, v),
        (cu_seqlens_q, cu_seqlens_k),
        max_seqlen_q=max_seqlen_q,
        max_seqlen_k=max_seqlen_k,
        seqused_q=seqused_q,
        seqused_k=seqused_k,
        scale=softmax_scale,
        causal=causal,
        window=tuple(window_size),
        softcap=softcap,
        deterministic=deterministic,
    )
    return (o, lse) if return_attn_probs else o


def flash_attn_with_kvcache(
    q,
    k_cache,
    v_cache,
    k=None,
    v=None,
    qv=None,
    rotary_cos=None,
    rotary_sin=None,
    cache_seqlens=None,
    cache_batch_idx=None,
    cache_leftpad=None,
    page_table=None,
    cu_seqlens_q=None,
    cu_seqlens_k_new=None,
    max_seqlen_q=None,
    rotary_seqlens=None,
    q_descale=None,
    k_descale=None,
    v_descale=None,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    attention_chunk=0,
    softcap=0.0,
    rotary_interleaved=True,
    scheduler_metadata=None,
    num_splits=0,
    pack_gqa=None,
    sm_margin=0,
    return_softmax_lse=False,
):
    """q: [B, S, H, D]; k_cache, v_cache: [Bc, rows, Hk, D] and [.., Dv], with a page_table [pages,
    rows of a page, Hk, D], changed in place by k, v: [B, Snew, Hk, D] and [.., Dv].  Returns out,
    [B, S, H, Dv]; no gradient.  With return_softmax_lse also lse, [B, H, S], and two empty tensors:
    FlashAttention's sums of splits."""
    name = "flash_attn_with_kvcache"
    refuse_given(
        name,
        qv=qv,
        cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_k_new=cu_seqlens_k_new,
        rotary_seqlens=rotary_seqlens,
        attention_chunk=attention_chunk,
    )
    o, lse = decode(
        name,
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
        page_table=page_table,
        q_descale=q_descale,
        k_descale=k_descale,
        v_descale=v_descale,
        scale=softmax_scale,
        causal=causal,
        window=window_size,
        softcap=softcap,
        num_splits=num_splits,
    )
    return (o, lse, q.new_empty(0), q.new_empty(0)) if return_softmax_lse else o
