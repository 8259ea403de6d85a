#!/usr/bin/env bash
# Builds Kiln and runs its tests.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'EOF'
usage: scripts/test.sh [--ci | --full] [--preset NAME] [-j N] [--help]

Installs what is missing (scripts/setup.sh), builds the preset `dev` and runs every test.
Without --full: fixed-seed samples of the large matrices.
  --ci           also samples under the sanitizers (presets asan and tsan): the runtime, the emulator,
                 and kiln-opt, unless the rest took 30 minutes
  --full         every matrix, projects outside the tree, and all that the sanitizers can see (hours on two cores)
  --preset NAME  another preset of CMakePresets.json
  -j N           N parallel jobs (default: the number of cores)
The last line counts: N passed, N failed, N skipped.  Exit status 0 if nothing failed.
EOF
}

full=0
sanitize=no # no, some, all
preset=dev
jobs=$(nproc)
while [ $# -gt 0 ]; do
  case "$1" in
    --ci) sanitize=some ;;
    --full) full=1 sanitize=all ;;
    --preset) preset=${2:?--preset needs a name}; shift ;;
    -j) jobs=${2:?-j needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "test.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

scripts/setup.sh
started=$SECONDS
results=()

# run PRESET TIER TARGETS [ctest arguments]: builds and tests one preset; TIER 1 = every matrix.  TARGETS: names without
# "kiln-", or all.
run() {
  local name=$1 tier=$2 target=$3
  shift 3
  echo "== $name: building"
  cmake --preset "$name" >"build-$name.log" 2>&1 || { cat "build-$name.log"; rm -f "build-$name.log"; exit 1; }
  rm -f "build-$name.log"
  local targets=(all)
  [ "$target" = all ] || targets=(${target// / kiln-})
  [ "$target" = all ] || targets[0]=kiln-${targets[0]}
  cmake --build --preset "$name" -j "$jobs" --target "${targets[@]}"
  echo "== $name: testing ($((SECONDS - started)) s so far)"
  local report="$PWD/build/$name/junit.xml"
  rm -f "$report"
  KILN_TEST_FULL=$tier ctest --test-dir "build/$name" -j "$jobs" --output-on-failure --progress \
    --test-output-size-passed 65536 --output-junit "$report" "$@" || true
  [ -s "$report" ] || { echo "test.sh: $name wrote no results" >&2; exit 1; }
  results+=("$name=$report")
}

# Tests with the label "full" take minutes: projects outside the tree against the installed package.
everything=()
[ "$full" = 1 ] || everything=(-LE '^full$')
run "$preset" "$full" all "${everything[@]}"
if [ "$sanitize" != no ] && [ "$preset" = dev ]; then
  # The sanitizers see the samples: instrumented code is several times slower, and finds the same defects on them.
  # Debian's LLVM is not instrumented: it cannot unpoison what our half of an LLVM allocator poisoned; and the compiler
  # contains crashes itself, which needs the signals.  Of what is linked with MLIR they see kiln-opt, and so the dialects,
  # passes and lowering; tests that compile and run kernels are left to the preset dev.
  export ASAN_OPTIONS=allow_user_poisoning=0:use_sigaltstack=0:handle_segv=0:handle_sigbus=0:handle_sigill=0:handle_sigfpe=0
  export LSAN_OPTIONS=suppressions=$PWD/tests/support/leaks.supp:print_suppressions=0
  programs=(cache jit runtime io emulator layout ptx target)
  [ "$sanitize" = all ] && programs+=(assembler cli emulator-fuzz language nvcc parity softfloat)
  targets="${programs[*]/%/-tests}"
  filter="kiln-($(IFS='|'; echo "${programs[*]}"))-tests/"
  # Instrumented passes take ten minutes to compile: a build without a compiler cache has not got them in its hour.
  latest=1800
  if [ "$sanitize" = all ] || [ $((SECONDS - started)) -lt $latest ]; then
    targets+=" opt"
    filter+="|tile/|tile_gpu/|passes/"
  else
    echo "== asan: kiln-opt is left out: $((SECONDS - started)) s so far (limit $latest s; --full runs it)"
  fi
  run asan 0 "$targets" -R "^($filter)"
  # Threads: launches over several host threads, which the emulator's own tests make; the compile service with a
  # compiler of the tests, its lock-free table of variants; the cache.  LLVM's atomics are not instrumented, so the
  # compiler itself stays out: each of its synchronisations would be reported.
  run tsan 0 "emulator-tests jit-tests cache-tests" \
    -R '^kiln-(emulator|jit|cache)-tests/'
fi
echo "== $((SECONDS - started)) s"
python3 scripts/summarise_tests.py "${results[@]}"
