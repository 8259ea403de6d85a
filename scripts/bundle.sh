#!/usr/bin/env bash
# Packs the programs that a GPU machine without our toolchain needs.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'EOF'
usage: scripts/bundle.sh [-j N] [-o FILE] [--help]

Builds the preset `bundle` and packs kiln with its compiler, the benchmarks, the tests that run on a GPU and their data
into dist/kiln-bundle.tar.xz.  Nothing in it needs more than libc and libm.  Unpacked, everything runs from the folder
kiln-bundle:
  bin/kiln demo      tests/kiln-kernel-tests --device cuda:0      tests/kiln-gpu-tests      bin/kiln-parity
  -j N      N parallel jobs (default: the number of cores)
  -o FILE   another archive
EOF
}

jobs=$(nproc)
archive=dist/kiln-bundle.tar.xz
limit_mib=40
while [ $# -gt 0 ]; do
  case "$1" in
    -j) jobs=${2:?-j needs a number}; shift ;;
    -o) archive=${2:?-o needs a file}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "bundle.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

cmake --preset bundle >/dev/null
# What a GPU machine runs: the command, every benchmark, and the tests that compare a GPU with the emulator.
mapfile -t programs < <(cmake --build build/bundle --target help |
  sed -nE 's/^(kiln|kiln-bench-[a-z0-9-]+|kiln-parity|kiln-numbers|kiln-(gpu|jit-gpu|kernel|parity|nvcc|wgmma)-tests): phony$/\1/p' |
  sort -u)
[ ${#programs[@]} -gt 0 ] || { echo "bundle.sh: the preset bundle has no programs" >&2; exit 1; }
# kiln is in libkiln.so, next to it.  The compiler is opened at run time, next to the program that asks for it.
programs+=(libkiln.so kiln-compile-helper libkiln-compiler.so libkiln-jit-fake-compiler.so)
targets=("${programs[@]/#lib/}")
cmake --build build/bundle -j "$jobs" --target "${targets[@]/%.so/}"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/kiln-bundle
mkdir -p "$root/bin" "$root/tests"
for program in "${programs[@]}"; do
  for folder in bin tests; do
    [ ! -x "build/bundle/$folder/$program" ] || cp "build/bundle/$folder/$program" "$root/$folder/"
  done
done
# The tests find their data next to them: in a bundle KILN_SOURCE_DIR is the folder that they are started in.
for data in tests/parity tests/nvcc tests/kernels/data; do
  [ -d "$data" ] || continue
  (cd "$data" && find . -type f ! -name '*.cpp' ! -name '*.h' ! -name CMakeLists.txt -print0) |
    while IFS= read -r -d '' f; do install -D -m 644 "$data/$f" "$root/$data/$f"; done
done
version=$(git describe --always --dirty 2>/dev/null || echo unknown)
printf '%s\n' "$version" >"$root/VERSION"

status=0
for file in "$root"/bin/* "$root"/tests/kiln-*; do
  [ -f "$file" ] || continue
  foreign=$(readelf -d "$file" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | grep -vE '^(libkiln\.so|libc\.so\.6|libm\.so\.6|ld-linux-.*)$' || true)
  if [ -n "$foreign" ]; then
    echo "bundle.sh: $(basename "$file") needs more than libc and libm: ${foreign//$'\n'/, }" >&2
    status=1
  fi
done
[ $status -eq 0 ] || exit 1

mkdir -p "$(dirname "$archive")"
tar -C "$stage" --sort=name --owner=0 --group=0 -cf - kiln-bundle | xz -6 -T "$jobs" >"$archive.tmp"
mv "$archive.tmp" "$archive"

# Proof: the unpacked command answers, from another folder.
trial=$stage/trial
mkdir "$trial"
tar -C "$trial" -xf "$archive"
(cd "$trial/kiln-bundle" && bin/kiln --version && bin/kiln devices >/dev/null &&
  KILN_CACHE_DIR=off bin/kiln demo add --target sm_80 >/dev/null)

bytes=$(stat -c %s "$archive")
echo "$archive: $(awk "BEGIN { printf \"%.1f\", $bytes / 1048576 }") MiB, ${#programs[@]} programs: ${programs[*]}"
if [ "$bytes" -gt $((limit_mib * 1048576)) ]; then
  echo "bundle.sh: more than $limit_mib MiB" >&2
  exit 1
fi
