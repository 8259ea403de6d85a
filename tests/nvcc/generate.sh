#!/usr/bin/env bash
# Compiles every kernel of tests/nvcc/kernels to PTX: two targets, optimised and debug.  Needs nvcc (CUDA 13.0).
# Run it after a kernel changed, then commit the PTX: machines that only test have no nvcc.
#   tests/nvcc/generate.sh [kernel ...]     (names without .cu; default: all)
set -euo pipefail
cd "$(dirname "$0")/kernels"
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if [ ! -x "$nvcc" ]; then
  echo "generate.sh: no nvcc found; set NVCC to its path" >&2
  exit 1
fi
mkdir -p ../ptx
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for file in *.cu; do names+=("${file%.cu}"); done
fi
for name in "${names[@]}"; do
  for target in sm_80 sm_90a; do
    arch=compute_${target#sm_}
    "$nvcc" -std=c++17 -ptx -arch="$arch" -O3 -lineinfo -o "../ptx/$name.$target.O3.ptx" "$name.cu"
    "$nvcc" -std=c++17 -ptx -arch="$arch" -G -o "../ptx/$name.$target.G.ptx" "$name.cu"
  done
  echo "$name: $(cat ../ptx/"$name".*.ptx | wc -c) bytes"
done
# Comments carry no meaning, and the paths in .file would name the machine that compiled.
sed -i -E -e '/^\/\//d' -e 's|^([[:space:]]*\.file[[:space:]]+[0-9]+[[:space:]]+")[^"]*/([^"/]*")|\1\2|' ../ptx/*.ptx
echo "total: $(cat ../ptx/*.ptx | wc -c) bytes"
