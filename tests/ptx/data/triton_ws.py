"""triton_ws.py FOLDER: writes triton_ws4_sm120a.ptx and triton_ws8_sm120a.ptx there, without line numbers.

A matrix product of f16 whose loop Triton (3.6) splits in two roles: one warp group copies tiles by tensor maps, the
others multiply. What it is kept for: registers handed from role to role (.maxnreg 256, setmaxnreg 256).
"""
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def mm_ws(a_desc, b_desc, c_desc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(N, BN)
    row = tl.program_id(0) // across * BM
    column = tl.program_id(0) % across * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=True, num_stages=2):
        a = a_desc.load([row, k * BK])
        b = b_desc.load([column, k * BK])
        acc = tl.dot(a, b.T, acc)
    c_desc.store([row, column], acc.to(tl.float16))


for warps in (4, 8):
    sizes = {"BM": 64, "BN": 64, "BK": 32}
    signature = {"a_desc": "tensordesc<fp16[64, 32]>", "b_desc": "tensordesc<fp16[64, 32]>",
                 "c_desc": "tensordesc<fp16[64, 64]>", "M": "i32", "N": "i32", "K": "i32"}
    signature.update({name: "constexpr" for name in sizes})
    made = triton.compile(ASTSource(fn=mm_ws, signature=signature, constexprs=sizes),
                          target=GPUTarget("cuda", 120, 32), options={"num_warps": warps})
    text = re.sub(r"(?m)^\s*\.(loc|file).*\n| +//.*$", "", made.asm["ptx"])
    text = re.sub(r"(?ms)^\s*\.section.*", "", text)
    with open(f"{sys.argv[1]}/triton_ws{warps}_sm120a.ptx", "w", encoding="utf-8") as out:
        out.write(text)
