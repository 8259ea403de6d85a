#!/bin/sh
# Compiles the .cu and .ll files next to it to the .ptx files of the parser's tests; usage: generate.sh [NVCC [LLC]]
# The committed files were made with CUDA 13.0 and LLVM 22.  They are samples of syntax: what they compute does not
# matter.  The sources are compiled from a fixed folder, because debug information records it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
nvcc=${1:-nvcc} llc=${2:-llc-22}
mkdir -p /var/tmp/kiln-ptx-samples
cd /var/tmp/kiln-ptx-samples
cp "$here"/*.cu "$here"/*.ll .
compile() { # output, source, target, flags...
  out=$1 source=$2 target=$3
  shift 3
  "$nvcc" -ptx -arch="$target" -std=c++20 "$@" "$source" -o "$here/$out"
}
compile basics_sm75.ptx basics.cu sm_75 -O3
compile basics_sm90a_fast.ptx basics.cu sm_90a -O3 -use_fast_math -lineinfo
compile basics_sm80_debug.ptx basics.cu sm_80 -G
compile calls_sm75.ptx calls.cu sm_75 -O3 -lineinfo
compile calls_sm100a.ptx calls.cu sm_100a -O3
compile async_sm80.ptx async.cu sm_80 -O3
compile hopper_sm90a.ptx hopper.cu sm_90a -O3
compile hopper_sm90a_debug.ptx hopper.cu sm_90a -G
"$llc" -mcpu=sm_90a -mattr=+ptx90 -O3 llvm.ll -o "$here/llvm_sm90a.ptx"
