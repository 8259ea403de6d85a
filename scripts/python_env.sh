#!/usr/bin/env bash
# A virtual environment for Kiln's Python tests: NumPy, tvm-ffi, pytest, and torch without CUDA.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  cat <<'EOF'
usage: scripts/python_env.sh [--help] DIR

Makes DIR a virtual environment with all that tests/python needs, in about a minute; if it is one already, in a second.
PyPI's torch wants gigabytes of CUDA; here it gets stand-ins (scripts/torch_stand_ins.py), and its CPU part works.
Exit status: 0 ready, also if only torch or JAX could not be had (DIR/missing-torch, DIR/missing-jax say why); 77 PyPI could not be reached, or has
not got the packages: the reason is printed, and tests are skipped; 2 wrong arguments.
EOF
}

dir=
for arg in "$@"; do
  case "$arg" in
    -h | --help) usage; exit 0 ;;
    -*) echo "python_env.sh: unknown argument '$arg'" >&2; usage >&2; exit 2 ;;
    *) [ -z "$dir" ] || { usage >&2; exit 2; }; dir=$arg ;;
  esac
done
[ -n "$dir" ] || { usage >&2; exit 2; }

packages=(apache-tvm-ffi==0.1.15.post2 numpy==2.4.6 ml-dtypes==0.6.0 pytest==9.2.0)
jax=(jax==0.10.2 jaxlib==0.10.2 jax-tvm-ffi==0.1.3) # of the CPU
# torch without its dependencies, and those of them that are Python.
torch=(torch==2.15.0)
of_torch=(filelock==4.3.1 typing-extensions==4.16.0 sympy==1.14.0 networkx==3.6.1 jinja2==3.1.6 fsspec==2026.9.0)

stop() { # the reason
  echo "python_env.sh: skipped: $1" >&2
  exit 77
}

mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 2
exec 9>"$dir/lock"
flock 9 # several tests may ask at the same time
stamp=$(cat "$here/python_env.sh" "$here/torch_stand_ins.py" | sha256sum)
[ "$(cat "$dir/stamp" 2>/dev/null)" = "$stamp $dir" ] && exit 0
rm -rf "$dir/stamp" "$dir"/missing-* "$dir/bin" "$dir/lib"

log=$dir/log
python3 -m venv "$dir" >"$log" 2>&1 || stop "python3 -m venv failed; is python3-venv installed (scripts/setup.sh)?"
timeout 60 "$dir/bin/python" -m pip -q --disable-pip-version-check --retries 0 --timeout 10 install uv==0.13.9 \
  >>"$log" 2>&1 || stop "pip could not get uv: $(grep -m1 -E 'ERROR|rror:' "$log" || echo 'no answer within 60 s')"
get() { # seconds, uv's arguments
  local seconds=$1
  shift
  UV_HTTP_TIMEOUT=30 timeout "$seconds" "$dir/bin/uv" -q pip install --python "$dir/bin/python" "$@" >>"$log" 2>&1
}
get 60 "${packages[@]}" || stop "PyPI did not give ${packages[*]}: $(tail -n1 "$log")"
compiler=$(command -v clang-22 || command -v cc || true)
without() { # package
  echo "$1: $(tail -n1 "$log")" >"$dir/missing-${1%%=*}"
  echo "python_env.sh: without $1, see $log" >&2
}
{ get 60 "${of_torch[@]}" && get 200 --no-deps "${torch[@]}" &&
  "$dir/bin/python" "$here/torch_stand_ins.py" --cc "$compiler" "$dir"/lib/python3*/site-packages/torch/lib >>"$log" 2>&1 &&
  timeout 120 "$dir/bin/python" -c 'import torch' >>"$log" 2>&1; } || without "${torch[0]}"
{ get 120 "${jax[@]}" && JAX_PLATFORMS=cpu timeout 120 "$dir/bin/python" -c 'import jax_tvm_ffi' >>"$log" 2>&1; } ||
  without "${jax[0]}"
[ -e "$dir/missing-torch" ] || [ -e "$dir/missing-jax" ] || printf '%s' "$stamp $dir" >"$dir/stamp"
