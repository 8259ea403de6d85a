#!/usr/bin/env bash
# Installs what Kiln needs to be built and tested on Debian 12.  Safe to run again: it installs only what is missing.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/setup.sh [--check] [--help]

Installs the packages that Kiln is built and tested with (Debian 12, as root or through sudo).
  --check   install nothing; say what is missing and exit with 1 if anything is
EOF
}

packages=(
  clang-22 lld-22 libclang-rt-22-dev # compiler, linker, sanitizer runtimes
  clang-format-22 clang-tidy-22      # style checks
  cmake ninja-build ccache           # build
  libgtest-dev                       # tests
  nlohmann-json3-dev libcli11-dev    # JSON, command line
  libxxhash-dev                      # cache keys
  libhiredis-dev libsodium-dev       # the cache's server
  redis-server                       # its tests
  libopenmpi-dev openmpi-bin         # sweeps over many hosts
  chromium                           # opens the report of a sweep, in a test
  libmlir-22-dev mlir-22-tools       # the compiler: MLIR, its tablegen
  llvm-22-dev llvm-22-tools          # LLVM's NVPTX back end, lit, FileCheck
  zlib1g-dev libzstd-dev             # named by LLVM's packages
  binutils                           # nm, for the test of the CPU levels
  xz-utils                           # scripts/bundle.sh
  python3 python3-numpy python3-venv # scripts, oracles, the Python tests
)

check_only=false
for arg in "$@"; do
  case "$arg" in
    --check) check_only=true ;;
    -h | --help) usage; exit 0 ;;
    *) echo "setup.sh: unknown argument '$arg'" >&2; usage >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query >/dev/null; then
  echo "setup.sh: this is no Debian system.  Install these, or what they hold, by hand:" >&2
  printf '  %s\n' "${packages[@]}" >&2
  exit 1
fi

missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo)
  else
    check_only=true
  fi
fi
if $check_only; then
  echo "setup.sh: not installed: ${missing[*]}" >&2
  echo "setup.sh: as root, run:  apt-get update && apt-get install -y ${missing[*]}" >&2
  exit 1
fi

echo "setup.sh: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
if ! "${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"; then
  echo "setup.sh: apt-get failed; needed: ${missing[*]}" >&2
  exit 1
fi
