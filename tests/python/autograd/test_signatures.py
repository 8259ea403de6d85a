"""Signatures that users rely on are recorded: kiln.torch's own, its operations', and those of what
compat stands for."""

import ast
import inspect
import pathlib
import re

import pytest
import torch

import kiln.torch as kt
from kiln.compat import _fla_checks, fla, flash_attn, flash_attn_3, flash_attn_4

RECORD = pathlib.Path(__file__).with_name("signatures.txt")
DENSE = (
    "dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,"
    " alibi_slopes=None, deterministic=False, return_attn_probs=False"
)
#: flash_attn 2.8.3, flash_attn/flash_attn_interface.py.
FLASH_ATTENTION_2 = {
    "flash_attn_func": f"(q, k, v, {DENSE})",
    "flash_attn_kvpacked_func": f"(q, kv, {DENSE})",
    "flash_attn_qkvpacked_func": f"(qkv, {DENSE})",
    "flash_attn_varlen_func": (
        f"(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, {DENSE},"
        " block_table=None)"
    ),
    "flash_attn_varlen_kvpacked_func": (
        f"(q, kv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, {DENSE})"
    ),
    "flash_attn_varlen_qkvpacked_func": f"(qkv, cu_seqlens, max_seqlen, {DENSE})",
    "flash_attn_with_kvcache": (
        "(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None,"
        " cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None, block_table=None,"
        " softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,"
        " rotary_interleaved=True, alibi_slopes=None, num_splits=0, return_softmax_lse=False)"
    ),
}
DESCALES = "q_descale=None, k_descale=None, v_descale=None"
CHUNKED = "window_size=(-1, -1), attention_chunk=0, softcap=0.0"
OF_3 = (
    f"softmax_scale=None, causal=False, qv=None, {DESCALES}, {CHUNKED}, num_splits=1,"
    " pack_gqa=None, deterministic=False, sm_margin=0, return_attn_probs=False"
)
#: flash_attn_3 3.0.0b1, hopper/flash_attn_interface.py.
FLASH_ATTENTION_3 = {
    "flash_attn_func": f"(q, k, v, {OF_3})",
    "flash_attn_qkvpacked_func": (
        f"(qkv, softmax_scale=None, causal=False, {DESCALES}, {CHUNKED}, deterministic=False,"
        " num_heads_q=None, sm_margin=0, return_attn_probs=False)"
    ),
    "flash_attn_varlen_func": (
        "(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, seqused_q=None,"
        f" seqused_k=None, {OF_3})"
    ),
    "flash_attn_with_kvcache": (
        "(q, k_cache, v_cache, k=None, v=None, qv=None, rotary_cos=None, rotary_sin=None,"
        " cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None, page_table=None,"
        " cu_seqlens_q=None, cu_seqlens_k_new=None, max_seqlen_q=None, rotary_seqlens=None,"
        f" {DESCALES}, softmax_scale=None, causal=False, {CHUNKED}, rotary_interleaved=True,"
        " scheduler_metadata=None, num_splits=0, pack_gqa=None, sm_margin=0,"
        " return_softmax_lse=False)"
    ),
}
OF_4 = (
    "softmax_scale=None, causal=False, window_size=(None, None), learnable_sink=None,"
    " softcap=0.0, num_splits=1, pack_gqa=None, deterministic=False, score_mod=None,"
    " score_mod_bwd=None, mask_mod=None"
)
GATHER = "gather_bwd_recompute_p=False, gather_bwd_token_chunk=None"
#: flash_attn_4 4.0.0b36, flash_attn/cute/interface.py.
FLASH_ATTENTION_4 = {
    "flash_attn_func": (
        f"(q, k, v, qv=None, gather_kv_indices=None, {OF_4}, aux_tensors=None, aux_scalars=None,"
        " block_sparse_tensors=None, block_sparse_tensors_bwd=None, return_lse=False,"
        f" {GATHER})"
    ),
    "flash_attn_varlen_func": (
        "(q, k, v, qv=None, cu_seqlens_q=None, cu_seqlens_k=None, max_seqlen_q=None,"
        " max_seqlen_k=None, min_seqlen_k=None, seqused_q=None, seqused_k=None,"
        f" gather_kv_indices=None, page_table=None, {OF_4}, block_sparse_tensors=None,"
        " aux_tensors=None, aux_scalars=None, return_lse=False, scheduler_metadata=None,"
        " seqlen_k_per_split=None, disable_scheduler_metadata=False,"
        f" {GATHER})"
    ),
}

STATE = "scale=None, initial_state=None, output_final_state=False"
PACKED = "cu_seqlens=None, cu_seqlens_cpu=None"
DPLR = (
    f"initial_state=None, output_final_state=False, {PACKED}, safe_gate=False, chunk_size=None,"
    " disable_recompute=False, cp_context=None, lower_bound=None"
)
NORM, SIGMOID = "use_qk_l2norm_in_kernel=False", "use_beta_sigmoid_in_kernel=False"
#: fla 0.6.0, fla/ops.
FLASH_LINEAR_ATTENTION = {
    "chunk_dplr_delta_rule": f"(q, k, v, a, b, gk, scale=None, {DPLR}, **kwargs)",
    "chunk_rwkv7": f"(r, w, k, v, a, b, scale=1.0, {DPLR})",
    "chunk_iplr_delta_rule": f"(q, k, v, a, b, {STATE}, {PACKED}, **kwargs)",
    "chunk_gated_delta_rule": (
        f"(q, k, v, g, beta, {STATE}, {NORM}, {SIGMOID}, allow_neg_eigval=False,"
        f" state_v_first=False, {PACKED}, chunk_indices=None, cp_context=None, **kwargs)"
    ),
    "chunk_kda": (
        f"(q, k, v, g, beta, {STATE}, {NORM}, use_gate_in_kernel=False, {SIGMOID},"
        " allow_neg_eigval=False, safe_gate=False, lower_bound=None, disable_recompute=False,"
        f" return_intermediate_states=False, state_v_first=False, {PACKED}, cp_context=None,"
        " use_graph=False, max_num_seqs=None, **kwargs)"
    ),
    "fused_mul_recurrent_rwkv7": (
        "(r, w, k, v, kk, a, scale=1.0, initial_state=None, output_final_state=False,"
        " reverse=False, cu_seqlens=None)"
    ),
    "chunk_delta_rule": f"(q, k, v, beta, {STATE}, {NORM}, {PACKED}, **kwargs)",
    "chunk_gla": f"(q, k, v, g, {STATE}, state_v_first=False, {PACKED})",
    "chunk_simple_gla": (
        f"(q, k, v, g=None, g_gamma=None, {STATE}, state_v_first=False, {PACKED}, **kwargs)"
    ),
}


def signatures():
    lines = [
        f"kiln.torch.{name}{inspect.signature(getattr(kt, name))}" for name in sorted(kt.__all__)
    ]
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if name.startswith("kiln::"):
            lines.append(str(torch._C._get_schema(name, "")))
    return "".join(f"{line}\n" for line in lines)


def test_signatures_are_those_on_record():
    """A change that is meant: write signatures() to the file."""
    assert signatures() == RECORD.read_text()


RECORDS = [
    (flash_attn, FLASH_ATTENTION_2),
    (flash_attn_3, FLASH_ATTENTION_3),
    (flash_attn_4, FLASH_ATTENTION_4),
    (fla, FLASH_LINEAR_ATTENTION),
]


@pytest.mark.parametrize("module, record", RECORDS, ids=lambda x: getattr(x, "__name__", ""))
def test_those_of_others_are_theirs(module, record):
    own = {"calls", "disable", "enable", "refusals"} if module is fla else set()
    assert set(module.__all__) - own == set(record)
    for name, signature in record.items():
        assert str(inspect.signature(getattr(module, name))) == signature, name


def refused_by(module):
    """The arguments that a module of compat refuses, as its source says."""
    for call in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            if call.func.id == "refuse_given":
                yield from (k.arg for k in call.keywords)
            if call.func.id == "refuse":
                yield call.args[1].value
    if module is fla:
        yield from _fla_checks.UNSUPPORTED


@pytest.mark.parametrize("module", [m for m, _ in RECORDS], ids=lambda m: m.__name__)
def test_what_is_refused_is_documented(module):
    page = (pathlib.Path(__file__).parents[3] / "docs" / "drop-ins.md").read_text()
    generation = module.__name__.rpartition("_")[2]
    if module is not fla:
        generation = generation if generation.isdigit() else "2"
        page = next(line for line in page.splitlines() if line.startswith(f"| {generation} |"))
    refused = set(refused_by(module))
    assert refused
    for name in refused:
        assert re.search(rf"\b{name}\b", module.__doc__), name
        assert f"`{name}`" in page, name


def test_every_function_documents_its_tensors():
    for name in kt.__all__:
        text = inspect.getdoc(getattr(kt, name))
        assert text and re.search(r"\[[A-Z.]|dplr|gated|gla", text), name


if __name__ == "__main__":
    RECORD.write_text(signatures())
