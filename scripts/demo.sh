#!/usr/bin/env bash
# The main job: every kernel of the library compiled at its first call, run, and compared with float64, attention of a Llama 3 8B layer
# among them; PTX from nvcc run and checked; a layout conversion planned.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'EOF'
usage: scripts/demo.sh [--device NAME] [--help]

Installs what is missing (scripts/setup.sh), builds `kiln`, then
  1. lists the devices,
  2. compiles every kernel of the library at its first call, runs it, and compares the results with float64; attention with the heads of
     a Llama 3 8B layer, on a GPU over 8,192 tokens,
  3. runs that attention on q, k and v of one .npy file, and the layer of an RWKV-7 1.5B model (32 heads of 64), forward and backward; compares
     them with NumPy,
  4. runs softmax on a .npy file, twice: the second run finds the kernel in the cache,
  5. runs a kernel in PTX that nvcc made, and one with a planted fault, and shows the report,
  6. plans a layout conversion for a GPU and draws the layout.
No GPU is needed.  Files are left in build/demo/.
  --device NAME  where steps 2 to 5 run (default: auto, the first GPU, else the emulator of sm_90a)
EOF
}

device=auto
while [ $# -gt 0 ]; do
  case "$1" in
    --device) device=${2:?--device needs a name}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "demo.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

scripts/setup.sh
echo "== building kiln (preset dev)"
mkdir -p build/demo
cmake --preset dev >build/demo/configure.log 2>&1 || { cat build/demo/configure.log; exit 1; }
# All that `cmake --install build/dev` copies.
cmake --build --preset dev --target kiln-installed
kiln=$PWD/build/dev/bin/kiln
ptx=$PWD/tests/nvcc/ptx/rows.sm_80.O3.ptx
cd build/demo

echo
echo "== 1. devices"
"$kiln" devices

echo
echo "== 2. the kernels of the library"
export KILN_CACHE_DIR=$PWD/cache
rm -rf "$KILN_CACHE_DIR"
"$kiln" demo --device "$device"

echo
echo "== 3. attention of a Llama 3 8B layer: 32 heads, 8 key heads, 128 columns, causal, 256 tokens, bf16; q, k and v lie in one file"
/usr/bin/python3 - <<'EOF'
import numpy as np
np.save("qkv.npy", np.random.default_rng(8).normal(0, 1, (256, 1, 32 + 2 * 8, 128)).astype(np.float32))
EOF
"$kiln" run attention --qkv qkv.npy --heads 32,8 --causal --dtype bf16 --output o.npy --lse lse.npy --device "$device"
/usr/bin/python3 - <<'EOF'
import numpy as np
bits = np.load("qkv.npy").view(np.uint32).astype(np.uint64)  # rounded to bf16, as the kernel reads it
x = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)[:, 0]
q, k, v = (t.transpose(1, 0, 2) for t in (x[:, :32], x[:, 32:40].repeat(4, 1), x[:, 40:].repeat(4, 1)))
scores = q @ k.transpose(0, 2, 1) / np.sqrt(128)
scores[:, ~np.tri(256, dtype=bool)] = -np.inf
lse = np.log(np.exp(scores).sum(2))
want = (np.exp(scores - lse[:, :, None]) @ v).transpose(1, 0, 2)
error = np.abs(np.load("o.npy")[:, 0] - want).max(), np.abs(np.load("lse.npy")[0] - lse).max()
print(f"largest difference from float64: {error[0]:.2e} of o, {error[1]:.2e} of lse")
assert error[0] < 3e-2 and error[1] < 1e-4, "the result is wrong"
EOF

echo
echo "== the layer of an RWKV-7 1.5B model: 32 heads of 64, 64 tokens, bf16; forward, then the gradients of all inputs"
/usr/bin/python3 - <<'EOF'
import numpy as np
rng = np.random.default_rng(7)
shape = (1, 64, 32, 64)
x = {n: rng.normal(0, 1, shape).astype(np.float32) for n in ("r", "k", "v", "do")}
kk = rng.uniform(0, 1, shape)
kk /= np.linalg.norm(kk, axis=-1, keepdims=True)
x["a"], x["b"] = -kk, kk * rng.uniform(0, 1, shape)
x["w"] = -np.exp(-0.5) / (1 + np.exp(-rng.normal(0, 1, shape)))
for n, v in x.items():
    np.save(f"rwkv7_{n}.npy", v.astype(np.float32))
EOF
rwkv7=(--r rwkv7_r.npy --w rwkv7_w.npy --k rwkv7_k.npy --v rwkv7_v.npy --a rwkv7_a.npy --b rwkv7_b.npy --lower-bound -0.6066 --dtype bf16 --device "$device")
"$kiln" run rwkv7 "${rwkv7[@]}" --o rwkv7_o.npy --final-state rwkv7_s.npy
"$kiln" run rwkv7_backward "${rwkv7[@]}" --do rwkv7_do.npy --dr rwkv7_dr.npy --dw rwkv7_dw.npy --dk rwkv7_dk.npy --dv rwkv7_dv.npy \
  --da rwkv7_da.npy --db rwkv7_db.npy
/usr/bin/python3 - <<'EOF'
import numpy as np
def bf16(x):  # as the kernel reads it
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)
x = {n: np.load(f"rwkv7_{n}.npy")[0] for n in ("r", "w", "k", "v", "a", "b", "do")}
r, k, v, a, b, do = (bf16(x[n]) for n in ("r", "k", "v", "a", "b", "do"))
w = np.exp(x["w"].astype(np.float64))
S, states, o = np.zeros((32, 64, 64)), [], []
outer = lambda x, y: x[:, :, None] * y[:, None, :]
for t in range(64):
    states.append(S)
    S = w[t][:, :, None] * S + outer(b[t], np.einsum("hkv,hk->hv", S, a[t])) + outer(k[t], v[t])
    o.append(np.einsum("hkv,hk->hv", S, r[t]))
ratio = lambda got, want: np.sqrt(((got - want) ** 2).mean() / (want ** 2).mean())
error = ratio(np.load("rwkv7_o.npy")[0], np.stack(o)), ratio(np.load("rwkv7_s.npy")[0], S)
D, dv = np.zeros_like(S), []
for t in reversed(range(64)):
    D = D + outer(r[t], do[t])
    dv.append(np.einsum("hkv,hk->hv", D, k[t]))
    D = w[t][:, :, None] * D + outer(a[t], np.einsum("hkv,hk->hv", D, b[t]))
back = ratio(np.load("rwkv7_dv.npy")[0], np.stack(dv[::-1]))
print(f"root mean square of the difference from float64, over that of the result: o {error[0]:.4f}, state {error[1]:.4f}, dv {back:.4f}")
assert max(error) < 0.008 and back < 0.008, "the result is wrong"
EOF

echo
echo "== 4. softmax of 256 rows of 1000, from a file; the second run compiles nothing"
/usr/bin/python3 - <<'EOF'
import numpy as np
np.save("x.npy", np.random.default_rng(1).normal(0, 3, (256, 1000)).astype(np.float32))
EOF
rm -rf "$KILN_CACHE_DIR"
"$kiln" run softmax --input x.npy --output y.npy --device "$device"
"$kiln" run softmax --input x.npy --output y.npy --device "$device"
cat >check.py <<'EOF'
import numpy as np
x, y = np.load("x.npy").astype(np.float64), np.load("y.npy")
e = np.exp(x - x.max(1, keepdims=True))
want = e / e.sum(1, keepdims=True)
error = np.abs(y - want).max()
print(f"largest difference from float64: {error:.2e}")
assert error < 1e-6, "the result is wrong"
EOF
/usr/bin/python3 check.py

echo
echo "== 5. the same in PTX by nvcc"
rm y.npy
"$kiln" run "$ptx" --entry softmax --grid 256 --block 128 --device "$device" --time \
  --arg x.npy --arg out:f32:256x1000 --arg i32:1000 --output 1:y.npy
/usr/bin/python3 check.py

echo
echo "== that kernel with one column too many: the check reports it (exit status 1)"
status=0
"$kiln" run "$ptx" --entry softmax --grid 256 --block 128 --target sm_80 \
  --arg x.npy --arg out:f32:256x1000 --arg i32:1001 --output 1:wrong.npy || status=$?
[ "$status" = 1 ] || { echo "demo.sh: expected exit status 1, got $status" >&2; exit 1; }

echo
echo "== 6. an accumulator becomes rows: the plan for sm_90a, and a picture"
"$kiln" explain --layout 'mma<version=3, warpsPerCTA=[4,1], instrN=64> : 64x64xf16' \
  --to 'blocked<sizePerThread=[1,8], threadsPerWarp=[8,4], warpsPerCTA=[4,1], order=[1,0]>' \
  --target sm_90a --svg accumulator.svg | tail -n 40
echo "drawn: build/demo/accumulator.svg"
echo "== done"
