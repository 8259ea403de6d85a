"""Drop-ins: what programs that were written for others get."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from common import Counted, attention, normal

from kiln.compat import flash_attn as fa


def qkv(columns=32, grad=True):
    return [normal(2, 24, 2, columns, grad=grad) for _ in range(3)]


class TestFlashAttention2:
    def test_results(self):
        q, k, v = qkv()
        o, lse, probabilities = fa.flash_attn_func(
            q,
            k,
            v,
            causal=True,
            window_size=(8, 0),
            softcap=3.0,
            alibi_slopes=torch.tensor([0.5, 0.1]),
            deterministic=True,
            return_attn_probs=True,
        )
        wanted, wanted_lse = attention(
            *(t.double() for t in (q, k, v)),
            causal=True,
            window=(8, 0),
            softcap=3.0,
            alibi=torch.tensor([0.5, 0.1])
        )
        assert (o.double() - wanted).abs().max() <= 0.02 * wanted.abs().max()
        assert (lse.double() - wanted_lse).abs().max() <= 4e-3 and probabilities is None
        o.sum().backward()
        assert all(t.grad is not None for t in (q, k, v))

    def test_packed_and_apart_are_the_same(self):
        q, k, v = qkv(grad=False)
        wanted = fa.flash_attn_func(q, k, v)
        assert torch.equal(fa.flash_attn_qkvpacked_func(torch.stack([q, k, v], 2)), wanted)
        assert torch.equal(fa.flash_attn_kvpacked_func(q, torch.stack([k, v], 2)), wanted)

    def test_varlen(self):
        q, k, v = (t.flatten(0, 1) for t in qkv(grad=False))
        cu = torch.tensor([0, 30, 48], dtype=torch.int32)
        wanted = torch.cat(
            [
                fa.flash_attn_func(*(t[None, a:b] for t in (q, k, v)))[0]
                for a, b in ((0, 30), (30, 48))
            ]
        )
        assert torch.equal(fa.flash_attn_varlen_func(q, k, v, cu, cu, 30, 30), wanted)
        assert torch.equal(
            fa.flash_attn_varlen_kvpacked_func(q, torch.stack([k, v], 1), cu, cu, 30, 30), wanted
        )
        assert torch.equal(
            fa.flash_attn_varlen_qkvpacked_func(torch.stack([q, k, v], 1), cu, 30), wanted
        )

    def test_odd_head_dimensions(self):
        q, k, v = qkv(columns=20)
        o = fa.flash_attn_func(q, k, v)
        wanted, _ = attention(*(t.double() for t in (q, k, v)))
        assert o.shape == q.shape and (o.double() - wanted).abs().max() <= 0.02 * wanted.abs().max()
        o.sum().backward()
        assert q.grad.shape == q.shape

    def test_what_is_not_supported_is_named(self):
        q, k, v = qkv(grad=False)
        with pytest.raises(
            NotImplementedError, match="flash_attn_func: argument 'dropout_p' = 0.1"
        ):
            fa.flash_attn_func(q, k, v, dropout_p=0.1)
        cu = torch.tensor([0, 24], dtype=torch.int32)
        with pytest.raises(NotImplementedError, match="block_table"):
            fa.flash_attn_varlen_func(q[0], k[0], v[0], cu, cu, 24, 24, block_table=cu)

    def test_compiles(self):
        q, k, v = qkv()
        function = torch.compile(
            lambda q: fa.flash_attn_func(q, k, v, causal=True), fullgraph=True, backend="aot_eager"
        )
        assert torch.equal(function(q), fa.flash_attn_func(q, k, v, causal=True))


class TestScaledDotProductAttention:
    @pytest.fixture(autouse=True)
    def enabled(self):
        from kiln.compat import sdpa

        sdpa.enable()
        yield sdpa
        sdpa.disable()

    @staticmethod
    def inputs(rows=24, keys=40):
        return [normal(2, 2, n, 32) for n in (rows, keys, keys)]

    @pytest.mark.parametrize(
        "options",
        [{}, {"is_causal": True}, {"scale": 0.3}, {"mask": bool}, {"mask": float}],
        ids=str,
    )
    def test_results(self, enabled, options):
        q, k, v = self.inputs()
        call = torch.nn.functional.scaled_dot_product_attention
        kind, options = options.get("mask"), {n: o for n, o in options.items() if n != "mask"}
        if kind:
            mask = torch.rand(24, 40) > 0.3
            options["attn_mask"] = (
                mask if kind is bool else torch.randn(24, 40, dtype=torch.bfloat16)
            )
        got = call(q, k, v, **options)
        assert got.shape == q.shape
        direction = torch.randn_like(got)
        mine = torch.autograd.grad(got, (q, k, v), direction)
        enabled.disable()
        exact = [t.detach().double().requires_grad_() for t in (q, k, v)]
        if kind is float:
            options["attn_mask"] = options["attn_mask"].double()
        wanted = call(*exact, **options)
        assert (got.double() - wanted).abs().max() <= 0.02 * wanted.abs().max()
        for a, b in zip(mine, torch.autograd.grad(wanted, exact, direction.double())):
            assert (a.double() - b).abs().max() <= 0.02 * b.abs().max()

    def test_the_kernel_of_a_gpu_is_aligned_as_causal_lower_right(self, enabled):
        q, k, v = (t.detach() for t in self.inputs())
        o, lse, *_, rows, keys, _, _, _ = enabled._of_gpu(q, k, v, 0.0, True)
        assert (rows, keys) == (24, 40)
        direction = torch.randn_like(o)
        mine = enabled._of_gpu_backward(
            direction, q, k, v, o, lse, None, None, 24, 40, 0.0, True, None, None
        )
        enabled.disable()
        exact = [t.double().requires_grad_() for t in (q, k, v)]
        mask = torch.ones(24, 40, dtype=torch.bool).tril(40 - 24)
        wanted = torch.nn.functional.scaled_dot_product_attention(*exact, attn_mask=mask)
        assert (o.double() - wanted).abs().max() <= 0.02 * wanted.abs().max()
        for a, b in zip(mine, torch.autograd.grad(wanted, exact, direction.double())):
            assert (a.double() - b).abs().max() <= 0.02 * b.abs().max()

    @pytest.mark.parametrize("wanted", [False, True])
    def test_determinism_is_passed_on(self, enabled, wanted, monkeypatch):
        given = []
        backward = enabled._backward[()]

        def noted(values):
            given.append(values["deterministic"])
            return backward(values)

        monkeypatch.setattr(enabled, "_backward", {(): noted})
        torch.use_deterministic_algorithms(wanted)
        try:
            with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                output = torch.nn.functional.scaled_dot_product_attention(*self.inputs())
            output.sum().backward()
        finally:
            torch.use_deterministic_algorithms(False)
        assert given == [wanted]

    def test_it_is_kiln_that_runs(self, enabled):
        q, k, v = (t.detach() for t in self.inputs())
        call = torch.nn.functional.scaled_dot_product_attention
        with Counted() as counted, sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            call(q, k, v)
        assert counted.calls == 1
        if q.is_cuda:
            return  # torch looks at types itself there
        with pytest.raises(NotImplementedError, match="dropout_p = 0.1"):
            torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.1)

    @pytest.mark.skipif(torch.get_default_device().type != "cpu", reason="torch chooses on a GPU")
    @pytest.mark.parametrize("dtype, columns", [(torch.float32, 32), (torch.bfloat16, 20)])
    def test_what_kiln_has_no_kernel_for_stays_torchs(self, enabled, dtype, columns):
        q, k, v = (normal(2, 4, 24, columns, dtype=dtype) for _ in range(3))
        call = torch.nn.functional.scaled_dot_product_attention
        with Counted() as counted:
            got = call(q, k, v, is_causal=True)
            gradients = torch.autograd.grad(got, (q, k, v), torch.ones_like(got))
        assert counted.calls == 0
        enabled.disable()
        wanted = call(q, k, v, is_causal=True)
        assert torch.equal(got, wanted)
        for a, b in zip(gradients, torch.autograd.grad(wanted, (q, k, v), torch.ones_like(got))):
            assert torch.equal(a, b)

    def test_compiles(self, enabled):
        q, k, v = self.inputs()
        call = torch.nn.functional.scaled_dot_product_attention
        function = torch.compile(
            lambda q: call(q, k, v, is_causal=True), fullgraph=True, backend="aot_eager"
        )
        assert torch.equal(function(q), call(q, k, v, is_causal=True))
        function(q).sum().backward()
        assert q.grad is not None
