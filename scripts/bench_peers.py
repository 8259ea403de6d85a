#!/usr/bin/env python3
"""Times what others have for the benchmarks of benchmarks.py: PyTorch, FlexAttention, cuBLAS, cuDNN, FlashAttention-2, FLA.

One JSON object a line: {"id", "peer", "ms"} or {"id", "peer", "error"}; {"id", "done"} after the last of a benchmark.
Which benchmarks: the arguments, or, without any, lines of the standard input, so that record_benchmarks.py can time Kiln
and its peers in turn.  Needs torch with a GPU; flash-linear-attention where its rows are asked for; for Triton the forward
parts of its tutorials 03 and 06 as mm_tutorial.py and fa_tutorial.py in the folder that KILN_PEERS names.
"""
import json
import os
import sys

import torch
import torch.nn.functional as F

from benchmarks import ALL

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def median(call, samples=15, batch=10):
    """Milliseconds of a call: the median of batches between two events, as kiln bench measures."""
    for _ in range(3):
        call()
    times = []
    for _ in range(samples):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(batch):
            call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / batch)
    return sorted(times)[len(times) // 2]


def pytorch(name, shape):
    *extents, dtype = shape
    x = torch.randn(*extents, device="cuda", dtype=TYPES[dtype])
    out = torch.empty_like(x)
    last = x.shape[-1:]
    if name == "copy":
        return lambda: out.copy_(x)
    if name == "add":
        y = torch.randn_like(x)
        return lambda: torch.add(x, y, out=out)
    if name == "transpose":
        turned = torch.empty_like(x)
        return lambda: turned.copy_(x.T)
    if name == "softmax":
        return lambda: torch.softmax(x, -1)
    if name == "layer_norm":
        weight, bias = torch.randn(2, *last, device="cuda", dtype=x.dtype)
        return lambda: F.layer_norm(x, last, weight, bias)
    if name == "cumsum":
        return lambda: torch.cumsum(x, -1)
    if name == "reduce_sum":
        return lambda: torch.sum(x)
    raise ValueError(name)


def cublas(shape):
    a, b = (torch.randn(shape[0], shape[0], device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return lambda: a @ b


def only(backend):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel({"cuDNN": SDPBackend.CUDNN_ATTENTION, "FlashAttention-2": SDPBackend.FLASH_ATTENTION}[backend])


def attention(backend, shape, backward=False):
    batch, length, heads, dim, causal = shape
    q, k, v = (torch.randn(batch, heads, length, dim, device="cuda", dtype=torch.bfloat16) for _ in range(3))

    def call():
        with only(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    if not backward:
        return call
    for tensor in (q, k, v):
        tensor.requires_grad_()
    o = call()
    do = torch.randn_like(o)
    return lambda: torch.autograd.grad(o, (q, k, v), do, retain_graph=True)


def decode(backend, shape):
    """The last query stands at the last key; is_causal would have the first one at the first key."""
    from torch.nn.attention.bias import causal_lower_right
    batch, tokens, keys, heads, key_heads, dim = shape
    new = lambda rows, count: torch.randn(batch, rows, count, dim, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    k, v = new(keys, key_heads), new(keys, key_heads)
    if backend == "FlashAttention-2":
        q, mask = new(tokens, heads), causal_lower_right(tokens, keys) if tokens > 1 else None
    else:  # it has no such mask of its own: the heads of a group are rows, which read keys and values once
        group = heads // key_heads
        q, mask = new(tokens * group, key_heads), None
        if tokens > 1:
            mask = torch.ones(tokens, keys, device="cuda", dtype=torch.bool).tril(keys - tokens).repeat_interleave(group, 0)

    def call():
        with only(backend):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=q.shape[1] != key_heads)
    return call


def flex(shape, backward=False):
    """Compiled, as its users call it; the mask of blocks is made before."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    batch, length, heads, dim, lengths = shape
    documents = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths)).cuda()
    blocks = create_block_mask(lambda b, h, i, j: documents[i] == documents[j], None, None, length, length,
                               device="cuda", BLOCK_SIZE=128)
    compiled = torch.compile(flex_attention, dynamic=False)
    q, k, v = (torch.randn(batch, heads, length, dim, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    if not backward:
        return lambda: compiled(q, k, v, block_mask=blocks)
    for tensor in (q, k, v):
        tensor.requires_grad_()
    o = compiled(q, k, v, block_mask=blocks)
    do = torch.randn_like(o)
    return lambda: torch.autograd.grad(o, (q, k, v), do, retain_graph=True)


def triton(shape):
    sys.path.insert(0, os.environ["KILN_PEERS"])
    if len(shape) == 1:
        import mm_tutorial
        a, b = (torch.randn(shape[0], shape[0], device="cuda", dtype=torch.bfloat16) for _ in range(2))
        return lambda: mm_tutorial.matmul(a, b)
    import fa_tutorial
    batch, length, heads, dim, causal = shape
    q, k, v = (torch.randn(batch, heads, length, dim, device="cuda", dtype=torch.float16) for _ in range(3))
    ways = []
    fa_tutorial._attn_fwd.cache.clear()  # what it tuned for another mask is not for this one
    for specialized in (False,) if causal else (False, True):  # the faster one counts; of masks it has none on Hopper
        try:
            call = lambda s=specialized: fa_tutorial.attention(q, k, v, causal, dim**-0.5, s)
            ways.append((median(call, 3), call))
        except Exception:
            pass
    return min(ways, key=lambda w: w[0])[1]


def recurrence(rule, way, shape):
    batch, length, heads, dim = shape
    new = lambda: torch.randn(batch, length, heads, dim, device="cuda", dtype=torch.bfloat16)
    q, k, v = new(), F.normalize(new().float(), dim=-1).bfloat16(), new()
    a = F.normalize(new().float(), dim=-1).bfloat16()
    b = (-a.float() * torch.rand_like(a.float())).bfloat16()
    g = (-0.6065306597126334 * torch.rand(batch, length, heads, dim, device="cuda").sigmoid()).bfloat16()
    beta = torch.rand(batch, length, heads, device="cuda").bfloat16()
    h0 = torch.zeros(batch, heads, dim, dim, device="cuda")
    keep = dict(scale=1.0, initial_state=h0, output_final_state=True)
    if rule == "rwkv7":
        from fla.ops.rwkv7 import chunk_rwkv7
        inputs = dict(r=q, w=g, k=k, v=v, a=a, b=b)
        call = lambda: chunk_rwkv7(**inputs, **keep, safe_gate=True, chunk_size=64)
    elif rule == "dplr":
        from fla.ops.generalized_delta_rule import chunk_dplr_delta_rule
        inputs = dict(q=q, k=k, v=v, a=a, b=b, gk=g)
        call = lambda: chunk_dplr_delta_rule(**inputs, **keep)
    elif rule == "kda":
        from fla.ops.kda import chunk_kda
        inputs = dict(q=q, k=k, v=v, g=g, beta=beta)
        call = lambda: chunk_kda(**inputs, **keep)
    else:
        from fla.ops.gla import chunk_gla
        inputs = dict(q=q, k=k, v=v, g=g)
        call = lambda: chunk_gla(**inputs, **keep)
    if way == "forward":
        def forward():
            with torch.no_grad():
                return call()
        return forward
    for tensor in inputs.values():
        tensor.requires_grad_()
    o, _ = call()
    do = torch.randn_like(o)
    return lambda: torch.autograd.grad(o, list(inputs.values()), do, retain_graph=True)


def peer(name, shape):
    first, *rest = name.split()
    if first == "torch":
        return pytorch(rest[0], shape)
    if first == "cuBLAS":
        return cublas(shape)
    if first == "Triton":
        return triton(shape)
    if first == "FlexAttention":
        return flex(shape, backward=bool(rest))
    if first == "flash-linear-attention":
        return recurrence(rest[0], rest[1], shape)
    if rest == ["decode"]:
        return decode(first, shape)
    return attention(first, shape, backward=bool(rest))


def measure(benchmark):
    for name in benchmark.peers:
        if name == "Triton" and "KILN_PEERS" not in os.environ:
            continue
        row = {"id": benchmark.id, "peer": name.removesuffix(" forward").removesuffix(" backward").removesuffix(" decode")}
        try:
            row["ms"] = median(peer(name, benchmark.shape))
        except Exception as e:  # a peer that refuses is a row, too
            row["error"] = f"{type(e).__name__}: {e}"[:200]
        print(json.dumps(row), flush=True)
        torch.cuda.empty_cache()
    print(json.dumps({"id": benchmark.id, "done": True}), flush=True)


def main():
    torch.manual_seed(0)
    of = {b.id: b for b in ALL}
    for wanted in sys.argv[1:] or (line.strip() for line in sys.stdin):
        measure(of[wanted])


if __name__ == "__main__":
    main()
