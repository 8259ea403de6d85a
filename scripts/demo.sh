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
  3. runs that attention on q, k and v of one .npy file, and compares it with NumPy,
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
