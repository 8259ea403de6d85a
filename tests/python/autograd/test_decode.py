"""Attention over a cache: lengths, new rows in place, pages, rotations, and what tracing sees of
it."""

import pytest
import torch
from common import attention, normal

import kiln.torch as kt

B, H, HK, D, ROOM, NEW = 2, 4, 2, 32, 24, 2
LENGTHS = [9, 17]


def inputs(dtype=torch.bfloat16):
    q, k, v = (normal(B, NEW, n, D, grad=False, dtype=dtype) for n in (H, HK, HK))
    caches = [normal(B, ROOM, HK, D, grad=False, dtype=dtype) for _ in range(2)]
    return q, caches, (k, v), torch.tensor(LENGTHS, dtype=torch.int32)


def assert_near(got, wanted):
    assert (got.double() - wanted).abs().max() <= 0.02 * wanted.abs().max()


def expected(q, caches, new, **options):
    """o, lse and the caches after the call, sequence by sequence in float64."""
    caches, outputs = [c.clone() for c in caches], []
    for b, length in enumerate(LENGTHS):
        for cache, rows in zip(caches, new):
            cache[b, length : length + NEW] = rows[b]
        k, v = (c[b : b + 1, : length + NEW].double() for c in caches)
        outputs.append(attention(q[b : b + 1].double(), k, v, causal=True, **options))
    return (*(torch.cat(t) for t in zip(*outputs)), caches)


def test_new_rows_are_written_and_attended_to():
    q, caches, new, lengths = inputs()
    o, lse, after = expected(q, caches, new, softcap=3.0)
    got = kt.attention_decode(
        q, *caches, *new, cache_seqlens=lengths, causal=True, softcap=3.0, return_lse=True
    )
    assert_near(got[0], o)
    assert (got[1].double() - lse).abs().max() <= 4e-3
    assert all(torch.equal(a, b) for a, b in zip(caches, after))
    # The rows lie there now: the call that only reads says the same.
    again = kt.attention_decode(q, *caches, cache_seqlens=lengths + NEW, causal=True, softcap=3.0)
    assert_near(again, o)
    out = torch.zeros_like(q)
    read = {"cache_seqlens": lengths + NEW, "causal": True, "softcap": 3.0, "out": out}
    assert kt.attention_decode(q, *caches, **read) is out and torch.equal(out, again)


def test_caches_that_are_views():
    q, caches, new, lengths = inputs()
    o, _, after = expected(q, caches, new)
    both = torch.stack(caches, 2)  # [B, room, 2, Hk, D]
    got = kt.attention_decode(q, *both.unbind(2), *new, cache_seqlens=lengths, causal=True)
    assert_near(got, o)
    assert torch.equal(both, torch.stack(after, 2))


def test_pages():
    q, caches, new, lengths = inputs()
    o, _, after = expected(q, caches, new)
    size = 8
    order = torch.randperm(B * ROOM // size)
    pages = [c.view(-1, size, HK, D)[order].contiguous() for c in caches]
    table = torch.argsort(order).view(B, -1).int()
    got = kt.attention_decode(q, *pages, *new, cache_seqlens=lengths, page_table=table, causal=True)
    assert_near(got, o)
    assert all(torch.equal(p[table.long()].flatten(1, 2), a) for p, a in zip(pages, after))


def test_it_compiles_and_the_order_of_writes_is_kept():
    q, caches, new, lengths = inputs()
    o, _, after = expected(q, caches, new)

    def step(q, k_cache, v_cache, k, v):
        first = kt.attention_decode(q, k_cache, v_cache, k, v, cache_seqlens=lengths, causal=True)
        return first, k_cache.float().sum()

    function = torch.compile(step, fullgraph=True, backend="aot_eager")
    got, total = function(q, *caches, *new)
    assert_near(got, o)
    assert all(torch.equal(a, b) for a, b in zip(caches, after))
    assert total == after[0].float().sum()


def test_torch_finds_the_schema_right():
    q, caches, new, lengths = inputs()
    named = {"q": q, "k_cache": caches[0], "v_cache": caches[1], "cache_seqlens": lengths}
    named |= {"k_new": new[0], "v_new": new[1], "causal": True}
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_static")
    for operation in (
        torch.ops.kiln.attention_decode_append,
        torch.ops.kiln.attention_decode_append_with_lse,
        torch.ops.kiln.attention_decode,
        torch.ops.kiln.attention_decode_with_lse,
    ):
        arguments = [a.name for a in operation.default._schema.arguments]
        torch.library.opcheck(
            operation.default, [named.get(name) for name in arguments], test_utils=tests
        )


def test_what_is_wrong_is_named():
    q, caches, new, lengths = inputs()
    with pytest.raises(RuntimeError, match="argument 'q' requires a gradient.*no_grad"):
        kt.attention_decode(q.clone().requires_grad_(), *caches)
    with pytest.raises(ValueError, match="cache_seqlens"):
        kt.attention_decode(q, *caches, *new)
    with pytest.raises(ValueError, match="v_new"):
        kt.attention_decode(q, *caches, new[0], cache_seqlens=lengths)
    with pytest.raises(ValueError, match="rotary_cos"):
        kt.attention_decode(q, *caches, rotary_cos=torch.ones(ROOM, 8))


def test_fp8():
    scales = [torch.full((B, HK), s) for s in (0.5, 2.0, 0.25)]
    q, caches, _, lengths = inputs()
    q, *caches = ((t * 2).to(torch.float8_e4m3fn) for t in (q, *caches))
    got = kt.attention_decode(
        q,
        *caches,
        cache_seqlens=lengths,
        causal=True,
        q_descale=scales[0],
        k_descale=scales[1],
        v_descale=scales[2],
    )
    assert got.dtype == torch.bfloat16
    for b, length in enumerate(LENGTHS):
        k, v = (c[b : b + 1, :length].double() * s for c, s in zip(caches, (2.0, 0.25)))
        wanted = attention(q[b : b + 1].double() * 0.5, k, v, causal=True)[0]
        # Probabilities become e4m3, too: half a unit of their 4 bits.
        assert (got[b : b + 1].double() - wanted).abs().max() <= 2**-4 * wanted.abs().max()
