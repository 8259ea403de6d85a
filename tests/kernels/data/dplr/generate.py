#!/usr/bin/env python3
"""Makes the golden vectors next to it anew; usage: generate.py dplr_reference.py   (README.md says what they are)"""
import importlib.util
import pathlib
import shutil
import sys

import numpy as np

spec = importlib.util.spec_from_file_location("oracle", sys.argv[1])
oracle = importlib.util.module_from_spec(spec)
spec.loader.exec_module(oracle)

# Name: extents, gates as the oracle's `make` has them, scale, cu_seqlens.  Scales are exact in f32.
CASES = {
    "dense": (dict(B=2, T=20, H=2, K=16, V=16), "rwkv7", 1.0, None),
    "wide_v": (dict(B=1, T=36, H=1, K=16, V=24), "logsig", 0.25, None),
    "packed": (dict(B=1, T=83, H=1, K=16, V=16), "rwkv7", 1.0, [0, 0, 5, 70, 70, 83]),
    "pinned": (dict(B=1, T=66, H=1, K=16, V=16), "pin5", 1.0, None),
    "harsh": (dict(B=1, T=24, H=2, K=16, V=16), "harsh", 0.5, None),
}


def bits_of_bf16(x):
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


for number, (case, (extents, gate, scale, cu)) in enumerate(CASES.items()):
    rng = np.random.default_rng(42 + number)
    x, h0 = oracle.make(rng, **extents, gate=gate, ab="rwkv7" if gate == "rwkv7" else "unit", N=cu and len(cu) - 1)
    do, dht = rng.standard_normal(x["v"].shape), rng.standard_normal(h0.shape)
    # What kernels can be given: the oracle takes the rounded numbers.
    x = {n: oracle.rnd(y, "f32" if n == "g" else "bf16") for n, y in x.items()}
    do, h0, dht = oracle.rnd(do, "bf16"), oracle.rnd(h0, "f32"), oracle.rnd(dht, "f32")
    o, ht, gradients = oracle.run(x, scale, h0, None if cu is None else np.array(cu), None, (do, dht))
    out = {n: bits_of_bf16(y) for n, y in {**x, "do": do}.items() if n != "g"}
    out |= {n: y.astype(np.float32) for n, y in {"g": x["g"], "initial_state": h0, "dht": dht}.items()}
    out |= {"o": o, "final_state": ht, "scale": np.array([scale]), **{"d" + n: y for n, y in gradients.items()}}
    if cu is not None:
        out["cu_seqlens"] = np.array(cu, np.int64)
    folder = pathlib.Path(__file__).resolve().parent / case
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for n, y in out.items():
        np.save(folder / f"{n}.npy", y)
