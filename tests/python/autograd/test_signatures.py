"""Signatures that users rely on are recorded: kiln.torch's own, its operations', and those of what
compat stands for."""

import inspect
import pathlib
import re

import pytest
import torch

import kiln.torch as kt
from kiln.compat import flash_attn

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


@pytest.mark.parametrize("name", flash_attn.__all__)
def test_flash_attention_2(name):
    assert str(inspect.signature(getattr(flash_attn, name))) == FLASH_ATTENTION_2[name]


def test_every_function_documents_its_tensors():
    for name in kt.__all__:
        text = inspect.getdoc(getattr(kt, name))
        assert text and re.search(r"\[[A-Z.]|dplr|gated|gla", text), name


if __name__ == "__main__":
    RECORD.write_text(signatures())
