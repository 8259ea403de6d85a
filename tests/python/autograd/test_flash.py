"""FlashAttention's functions of the cache, and those of generations 3 and 4."""

import pytest
import torch
from common import attention, normal
from test_decode import LENGTHS, NEW, ROOM, assert_near, expected, inputs

from kiln.compat import flash_attn as fa2
from kiln.compat import flash_attn_3 as fa3
from kiln.compat import flash_attn_4 as fa4


def qkv(columns=32, rows=24, grad=True):
    return [normal(2, rows, n, columns, grad=grad) for n in (4, 2, 2)]


def rotated(x, cos, sin, lengths, interleaved):
    """FlashAttention's rotation of [B, S, H, D], token t of a sequence by row length + t."""
    half = cos.shape[1]
    rows = [torch.arange(x.shape[1]) + n for n in lengths]
    c, s = (torch.stack([t.double()[r] for r in rows])[:, :, None] for t in (cos, sin))
    x = x.double().clone()
    first = slice(0, 2 * half, 2) if interleaved else slice(0, half)
    second = slice(1, 2 * half, 2) if interleaved else slice(half, 2 * half)
    a, b = x[..., first].clone(), x[..., second].clone()
    x[..., first], x[..., second] = a * c - b * s, a * s + b * c
    return x


class TestCache:
    @pytest.mark.parametrize("generation", [fa2, fa3], ids=["2", "3"])
    def test_new_rows(self, generation):
        q, caches, new, lengths = inputs()
        o, lse, after = expected(q, caches, new)
        got, got_lse, *_ = generation.flash_attn_with_kvcache(
            q, *caches, *new, cache_seqlens=lengths, causal=True, return_softmax_lse=True
        )
        assert_near(got, o)
        assert (got_lse.double() - lse).abs().max() <= 4e-3
        assert all(torch.equal(a, b) for a, b in zip(caches, after))

    @pytest.mark.parametrize("interleaved", [False, True])
    def test_rotation(self, interleaved):
        q, caches, (k, v), lengths = inputs()
        angle = torch.rand(ROOM, 8) * 6
        cos, sin = angle.cos().bfloat16(), angle.sin().bfloat16()
        turned = [rotated(t, cos, sin, LENGTHS, interleaved) for t in (q, k)]
        o, _, after = expected(turned[0], caches, (turned[1].bfloat16(), v))
        got = fa2.flash_attn_with_kvcache(
            q,
            *caches,
            k,
            v,
            cos,
            sin,
            lengths,
            causal=True,
            rotary_interleaved=interleaved,
        )
        assert_near(got, o)
        assert_near(caches[0], after[0].double())

    def test_rotation_of_more_queries_than_new_tokens(self):
        q, caches, (k, v), lengths = inputs()
        angle = torch.rand(ROOM, 8)  # a row for each position, and none more
        cos, sin = angle.cos(), angle.sin()
        got = fa2.flash_attn_with_kvcache(
            q, *caches, k[:, :1], v[:, :1], cos, sin, lengths, causal=True
        )
        assert got.isfinite().all()

    def test_lengths_count_the_rows_before_the_first_key(self):
        q, caches, _, lengths = inputs()
        padding = torch.tensor([3, 0], dtype=torch.int32)
        got = fa2.flash_attn_with_kvcache(
            q, *caches, cache_seqlens=lengths, cache_leftpad=padding, causal=True
        )
        for b, (begin, end) in enumerate(zip(padding.tolist(), LENGTHS)):
            k, v = (c[b : b + 1, begin:end].double() for c in caches)
            assert_near(got[b : b + 1], attention(q[b : b + 1].double(), k, v, causal=True)[0])
        cos = torch.ones(ROOM, 8)
        with pytest.raises(NotImplementedError, match="cache_leftpad.*together with rotary_cos"):
            fa2.flash_attn_with_kvcache(q, *caches, q, q, cos, cos, lengths, None, padding)

    def test_odd_head_dimensions_and_a_number_for_all_lengths(self):
        q, caches, new, _ = inputs()
        q, *caches = (t[..., :20].contiguous() for t in (q, *caches))
        new = [t[..., :20] for t in new]
        got = fa2.flash_attn_with_kvcache(q, *caches, *new, cache_seqlens=9, causal=True)
        assert all(torch.equal(c[:, 9 : 9 + NEW], n) for c, n in zip(caches, new))
        k, v = (c[:, : 9 + NEW].double() for c in caches)
        assert_near(got, attention(q.double(), k, v, causal=True)[0])

    def test_nothing_has_a_gradient(self):
        q, caches, new, lengths = inputs()
        o = fa2.flash_attn_with_kvcache(q.requires_grad_(), *caches, cache_seqlens=lengths)
        assert not o.requires_grad


class TestFlashAttention3:
    def test_results_and_gradients(self):
        q, k, v = qkv()
        o, lse = fa3.flash_attn_func(
            q, k, v, causal=True, window_size=(8, 0), softcap=3.0, return_attn_probs=True
        )
        wanted = attention(
            *(t.double() for t in (q, k, v)), causal=True, window=(8, 0), softcap=3.0
        )
        assert_near(o, wanted[0])
        assert (lse.double() - wanted[1]).abs().max() <= 4e-3
        o.sum().backward()
        assert all(t.grad is not None for t in (q, k, v))

    def test_packed_and_apart_are_the_same(self):
        q, k, v = qkv(grad=False)
        wanted = fa3.flash_attn_func(q, k, v)
        one = torch.cat([q, k, v], 2)
        assert torch.equal(fa3.flash_attn_qkvpacked_func(one, num_heads_q=4), wanted)
        q, k, v = (t[:, :, :2] for t in (q, k, v))
        got = fa3.flash_attn_qkvpacked_func(torch.stack([q, k, v], 2))
        assert torch.equal(got, fa3.flash_attn_func(q, k, v))
        with pytest.raises(ValueError, match="'num_heads_q' is None; qkv has 8 heads"):
            fa3.flash_attn_qkvpacked_func(one)

    def test_packed_sequences(self):
        q, k, v = (t.flatten(0, 1) for t in qkv(grad=False))
        cu, used = (torch.tensor(n, dtype=torch.int32) for n in ([0, 30, 48], [30, 10]))
        got = fa3.flash_attn_varlen_func(q, k, v, cu, cu, 30, 30, seqused_k=used, causal=True)
        wanted = attention(
            q[None, 30:].double(), k[None, 30:40].double(), v[None, 30:40].double(), causal=True
        )[0]
        assert_near(got[30:], wanted[0].nan_to_num())  # rows without keys are 0

    def test_what_is_not_supported_is_named(self):
        q, k, v = qkv(grad=False)
        with pytest.raises(NotImplementedError, match="'qv' = a tensor of shape"):
            fa3.flash_attn_func(q, k, v, qv=q)
        with pytest.raises(NotImplementedError, match="'attention_chunk' = 16"):
            fa3.flash_attn_func(q, k, v, attention_chunk=16)
        with pytest.raises(NotImplementedError, match="kvcache: argument 'rotary_seqlens'"):
            fa3.flash_attn_with_kvcache(q, k, v, rotary_seqlens=q)
        with pytest.raises(NotImplementedError, match="varlen_func: argument 'k_descale'"):
            fa3.flash_attn_varlen_func(q[0], k[0], v[0], q, q, 1, 1, k_descale=q)


class TestFlashAttention4:
    def test_results_and_gradients(self):
        q, k, v = qkv()
        sink = normal(4)
        o, lse = fa4.flash_attn_func(
            q, k, v, causal=True, window_size=(8, None), learnable_sink=sink, return_lse=True
        )
        exact = [t.detach().double().requires_grad_() for t in (q, k, v, sink)]
        wanted, wanted_lse = attention(*exact[:3], causal=True, window=(8, -1), sink=exact[3])
        assert_near(o, wanted)
        assert (lse.double() - wanted_lse).abs().max() <= 4e-3
        mine = torch.autograd.grad(o.float().sum(), (q, k, v, sink))
        for a, b in zip(mine, torch.autograd.grad(wanted.sum(), exact)):
            assert (a.double() - b).abs().max() <= 0.02 * b.abs().max() + 0.02
        assert fa4.flash_attn_func(q, k, v)[1] is None

    def test_sequences_packed_or_not(self):
        q, k, v = qkv(grad=False)
        cu = torch.tensor([0, 24, 48], dtype=torch.int32)
        wanted, wanted_lse = fa4.flash_attn_func(q, k, v, return_lse=True)
        flat = [t.flatten(0, 1) for t in (q, k, v)]
        packed, lse = fa4.flash_attn_varlen_func(
            *flat,
            cu_seqlens_q=cu,
            cu_seqlens_k=cu,
            max_seqlen_q=24,
            max_seqlen_k=24,
            return_lse=True,
        )
        assert torch.equal(packed, wanted.flatten(0, 1))
        assert torch.equal(lse.unflatten(1, (2, 24)).transpose(0, 1), wanted_lse)
        apart, lse = fa4.flash_attn_varlen_func(q, k, v, return_lse=True)
        assert torch.equal(apart, wanted) and torch.equal(lse, wanted_lse)
        mixed, lse = fa4.flash_attn_varlen_func(q, *flat[1:], cu_seqlens_k=cu, max_seqlen_k=24)
        assert torch.equal(mixed, wanted) and lse is None
        used = torch.tensor([24, 5], dtype=torch.int32)
        some = fa4.flash_attn_varlen_func(q, k, v, seqused_k=used)[0]
        assert_near(some[1:], attention(*(t[1:].double() for t in (q, k[:, :5], v[:, :5])))[0])

    def test_what_is_not_supported_is_named(self):
        q, k, v = qkv(grad=False)
        with pytest.raises(NotImplementedError, match="'score_mod' = function"):
            fa4.flash_attn_func(q, k, v, score_mod=lambda *_: None)
        with pytest.raises(NotImplementedError, match="varlen_func: argument 'page_table'"):
            fa4.flash_attn_varlen_func(q, k, v, page_table=q)
        with pytest.raises(ValueError, match="'k' has 4 dimensions; give 3 with cu_seqlens_k"):
            fa4.flash_attn_varlen_func(q, k, v, cu_seqlens_k=q)
