"""FlashAttention 4's functions (flash_attn.cute, 4.0.0b36), computed by Kiln.

    from kiln.compat.flash_attn_4 import flash_attn_func, flash_attn_varlen_func

Signatures, shapes and results are FlashAttention's: a call returns (out, lse), lse None unless
return_lse; causal masks are aligned bottom right, rows without keys are 0.  A sink has a gradient.

Not supported, and named by a NotImplementedError: qv, gather_kv_indices, gather_bwd_recompute_p,
gather_bwd_token_chunk, page_table, score_mod, score_mod_bwd, mask_mod, aux_tensors, aux_scalars,
block_sparse_tensors, block_sparse_tensors_bwd.  Hints have no effect: num_splits, pack_gqa,
min_seqlen_k, scheduler_metadata, seqlen_k_per_split, disable_scheduler_metadata.
"""

from __future__ import annotations

from typing import Any

import torch

from kiln.compat._flash import refuse_given, run
from kiln.torch.attention import attention, attention_varlen

__all__ = ["flash_attn_func", "flash_attn_varlen_func"]


def _options(
    softmax_scale: Any, causal: Any, window: Any, sink: Any, softcap: Any, deterministic: Any
) -> dict[str, Any]:
    return {
        "scale": softmax_scale,
        "causal": causal,
        "window": tuple(-1 if w is None else w for w in window),
        "sink": None if sink is None else sink.float(),
        "softcap": softcap,
        "deterministic": deterministic,
    }


def flash_attn_func(
    q,
    k,
    v,
    qv=None,
    gather_kv_indices=None,
    softmax_scale=None,
    causal=False,
    window_size=(None, None),
    learnable_sink=None,
    softcap=0.0,
    num_splits=1,
    pack_gqa=None,
    deterministic=False,
    score_mod=None,
    score_mod_bwd=None,
    mask_mod=None,
    aux_tensors=None,
    aux_scalars=None,
    block_sparse_tensors=None,
    block_sparse_tensors_bwd=None,
    return_lse=False,
    gather_bwd_recompute_p=False,
    gather_bwd_token_chunk=None,
):
    """q: [B, S, H, D]; k: [B, Sk, Hk, D]; v: [B, Sk, Hk, Dv]; bf16 or f16; learnable_sink: [H].
    Returns out, [B, S, H, Dv], and lse, [B, H, S], or None."""
    refuse_given(
        "flash_attn_func",
        qv=qv,
        gather_kv_indices=gather_kv_indices,
        score_mod=score_mod,
        score_mod_bwd=score_mod_bwd,
        mask_mod=mask_mod,
        aux_tensors=aux_tensors,
        aux_scalars=aux_scalars,
        block_sparse_tensors=block_sparse_tensors,
        block_sparse_tensors_bwd=block_sparse_tensors_bwd,
        gather_bwd_recompute_p=gather_bwd_recompute_p,
        gather_bwd_token_chunk=gather_bwd_token_chunk,
    )
    options = _options(softmax_scale, causal, window_size, learnable_sink, softcap, deterministic)
    o, lse = run(attention, (q, k, v), **options)
    return o, lse if return_lse else None


def _packed(
    tensors: tuple[torch.Tensor, ...], offsets: torch.Tensor | None
) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    """Tensors [B, S, ..] without offsets as packed sequences of S rows each."""
    if offsets is not None:
        return tensors, offsets
    batch, rows = tensors[0].shape[:2]
    offsets = torch.arange(batch + 1, dtype=torch.int32, device=tensors[0].device) * rows
    return tuple(t.flatten(0, 1) for t in tensors), offsets


def flash_attn_varlen_func(
    q,
    k,
    v,
    qv=None,
    cu_seqlens_q=None,
    cu_seqlens_k=None,
    max_seqlen_q=None,
    max_seqlen_k=None,
    min_seqlen_k=None,
    seqused_q=None,
    seqused_k=None,
    gather_kv_indices=None,
    page_table=None,
    softmax_scale=None,
    causal=False,
    window_size=(None, None),
    learnable_sink=None,
    softcap=0.0,
    num_splits=1,
    pack_gqa=None,
    deterministic=False,
    score_mod=None,
    score_mod_bwd=None,
    mask_mod=None,
    block_sparse_tensors=None,
    aux_tensors=None,
    aux_scalars=None,
    return_lse=False,
    scheduler_metadata=None,
    seqlen_k_per_split=None,
    disable_scheduler_metadata=False,
    gather_bwd_recompute_p=False,
    gather_bwd_token_chunk=None,
):
    """q: [T, H, D] with cu_seqlens_q: [B + 1], int32, else [B, S, H, D]; k, v the same with
    cu_seqlens_k; seqused_*: [B], int32.  Returns out, as q, and lse, [H, T] or [B, H, S], or None.
    """
    refuse_given(
        "flash_attn_varlen_func",
        qv=qv,
        gather_kv_indices=gather_kv_indices,
        page_table=page_table,
        score_mod=score_mod,
        score_mod_bwd=score_mod_bwd,
        mask_mod=mask_mod,
        block_sparse_tensors=block_sparse_tensors,
        aux_tensors=aux_tensors,
        aux_scalars=aux_scalars,
        gather_bwd_recompute_p=gather_bwd_recompute_p,
        gather_bwd_token_chunk=gather_bwd_token_chunk,
    )
    for name, rank, offsets in (("q", q.dim(), cu_seqlens_q), ("k", k.dim(), cu_seqlens_k)):
        if rank != (4 if offsets is None else 3):
            raise ValueError(
                f"flash_attn_varlen_func: argument '{name}' has {rank} dimensions; give 3 with"
                f" cu_seqlens_{name}, and 4 without"
            )
    (queries,), offsets_q = _packed((q,), cu_seqlens_q)
    keys, offsets_k = _packed((k, v), cu_seqlens_k)
    o, lse = run(
        attention_varlen,
        (queries, *keys),
        (offsets_q, offsets_k),
        max_seqlen_q=q.shape[1] if cu_seqlens_q is None else max_seqlen_q,
        max_seqlen_k=k.shape[1] if cu_seqlens_k is None else max_seqlen_k,
        seqused_q=seqused_q,
        seqused_k=seqused_k,
        **_options(softmax_scale, causal, window_size, learnable_sink, softcap, deterministic),
    )
    if cu_seqlens_q is None:
        o, lse = o.unflatten(0, q.shape[:2]), lse.unflatten(1, q.shape[:2]).transpose(0, 1)
    return o, lse if return_lse else None
