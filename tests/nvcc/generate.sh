#!/usr/bin/env bash
# Compiles every kernel of tests/nvcc/kernels to PTX: two targets, optimised and debug, and assembles it.  Needs nvcc
# and ptxas (CUDA 13.0).  A file with the line "// Only sm_90a." or "// Only sm_90a, optimised." is made for these only.
# Run it after a kernel changed, then commit the PTX: machines that only test have no nvcc.
#   tests/nvcc/generate.sh [kernel ...]     (names without .cu; default: all)
set -euo pipefail
cd "$(dirname "$0")/kernels"
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if [ ! -x "$nvcc" ]; then
  echo "generate.sh: no nvcc found; set NVCC to its path" >&2
  exit 1
fi
ptxas=${PTXAS:-$(dirname "$nvcc")/ptxas}
mkdir -p ../ptx
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for file in *.cu; do names+=("${file%.cu}"); done
fi
for name in "${names[@]}"; do
  targets="sm_80 sm_90a" builds="O3 G"
  if grep -q '^// Only sm_90a' "$name.cu"; then targets=sm_90a; fi
  if grep -q '^// Only sm_90a, optimised' "$name.cu"; then builds=O3; fi
  for target in $targets; do
    for build in $builds; do
      if [ $build = G ]; then flags=-G; else flags="-O3 -lineinfo"; fi
      # shellcheck disable=SC2086
      "$nvcc" -std=c++17 -ptx -arch="compute_${target#sm_}" $flags -o "../ptx/$name.$target.$build.ptx" "$name.cu"
      "$ptxas" -arch="$target" -o /dev/null "../ptx/$name.$target.$build.ptx"
    done
  done
  echo "$name: $(cat ../ptx/"$name".*.ptx | wc -c) bytes"
done
# Comments carry no meaning, and the paths in .file would name the machine that compiled.
sed -i -E -e '/^\/\//d' -e 's|^([[:space:]]*\.file[[:space:]]+[0-9]+[[:space:]]+")[^"]*/([^"/]*")|\1\2|' ../ptx/*.ptx
echo "total: $(cat ../ptx/*.ptx | wc -c) bytes"
