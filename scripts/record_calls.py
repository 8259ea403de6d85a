#!/usr/bin/env python3
"""record_calls.py OUT.json [--commit C]: what calls from PyTorch cost the host on a GPU machine, for the performance
page.  KILN_LIBRARY names libkiln.so, PYTHONPATH has runtime/python.

Small tensors, so that the host is what a loop of calls waits for; medians of batches of calls.
"""
import argparse
import datetime
import gc
import json
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F

import benchmarks
import kiln.torch as kt
from record_benchmarks import clocks

BATCHES, CALLS = 31, 200
ROWS, HEADS, DIM = 64, 2, 64
COMPARED = ("call-attention-plain", "call-softmax")  # with float64, by `calls`


def batch_ms(call):
    """A call's milliseconds in one batch, which the GPU finishes outside of the time."""
    gc.disable()  # as timeit does
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    took = 1000 * (time.perf_counter() - begin) / CALLS
    gc.enable()
    torch.cuda.synchronize()
    return took


def tensors(count, *shape, dtype=torch.bfloat16, grad=False):
    return [torch.randn(*shape, device="cuda", dtype=dtype).requires_grad_(grad) for _ in range(count)]


def both_ways(forward, inputs):
    direction = torch.randn_like(forward(*inputs))
    return lambda: torch.autograd.grad(forward(*inputs), inputs, direction)


def sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def bare():
    """An operation in Python that makes outputs as attention's and does nothing, as every door of torch costs it."""
    library = torch.library.Library("kiln_bare", "DEF")
    library.define("bare(Tensor q, Tensor k, Tensor v, float scale, bool causal) -> (Tensor, Tensor)")
    library.impl("bare", lambda q, k, v, scale, causal: (torch.empty_like(q), q.new_empty(
        (q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32)), "CUDA")
    return library  # which keeps it


def check(got, want, of):
    """Against float64; the tests compare every shape class."""
    error = (got.double() - want).abs().max().item()
    if not error <= 2e-2 * want.abs().max().item():
        sys.exit(f"{of} is off by {error}")


def calls():
    """(benchmark, its call, peer -> the peer's).  Two are compared; gradients and RWKV7 are by tests on a GPU."""
    shape, other = (1, ROWS, HEADS, DIM), (1, HEADS, ROWS, DIM)
    q, k, v = tensors(3, *shape)
    qd, kd, vd = (t.double().transpose(1, 2) for t in (q, k, v))
    check(kt.attention(q, k, v), ((qd @ kd.mT / DIM**0.5).softmax(-1) @ vd).transpose(1, 2), "attention")
    x, = tensors(1, ROWS, 256, dtype=torch.float32)
    check(kt.softmax(x), x.double().softmax(-1), "softmax")
    theirs = tensors(3, *other)
    mine, theirs_too = tensors(3, *shape, grad=True), tensors(3, *other, grad=True)
    yield ("call-operation", lambda: torch.ops.kiln_bare.bare.default(q, k, v, 0.5, True), {})
    yield ("call-softmax", lambda: kt.softmax(x), {"torch": lambda: torch.softmax(x, -1)})
    yield ("call-attention-plain", lambda: kt.attention(q, k, v), {"torch SDPA": lambda: sdpa(*theirs)})
    yield ("call-attention-taped", lambda: kt.attention(*mine), {"torch SDPA": lambda: sdpa(*theirs_too)})
    yield ("call-attention-backward", both_ways(kt.attention, mine), {"torch SDPA": both_ways(sdpa, theirs_too)})
    state = tensors(6, *shape)
    yield ("call-rwkv7-plain", lambda: kt.rwkv7(*state), {})
    taped = tensors(6, *shape, grad=True)
    yield ("call-rwkv7-backward", both_ways(kt.rwkv7, taped), {})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--commit", default="")
    words = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("record_calls.py: torch sees no GPU here")
    kept = bare()
    known = {b.id for b in benchmarks.calls()}
    record = {"date": datetime.date.today().isoformat(), "commit": words.commit, "before": clocks(), "kiln": {},
              "peers": [], "torch": torch.__version__, "device": torch.cuda.get_device_name()}
    for name, call, peers in calls():
        known.remove(name)
        print(name, file=sys.stderr, flush=True)
        runs = {"": call, **peers}
        times = {who: [] for who in runs}
        for who, run in runs.items():
            for _ in range(3):
                batch_ms(run)
        for _ in range(BATCHES):  # in turn, so that the host is in the same state
            for who, run in runs.items():
                times[who].append(batch_ms(run))
        record["kiln"][name] = {"medianMs": statistics.median(times[""]), "minMs": min(times[""]),
                                "maxMs": max(times[""])}
        if name in COMPARED:
            record["kiln"][name]["check"] = "good"
        record["peers"] += [{"id": name, "peer": who, "ms": statistics.median(of), "minMs": min(of), "maxMs": max(of)}
                            for who, of in times.items() if who]
        record["after"] = clocks()
        pathlib.Path(words.out).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    del kept
    if known:
        sys.exit(f"record_calls.py times no {', '.join(sorted(known))}")


if __name__ == "__main__":
    main()
