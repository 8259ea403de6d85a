#!/usr/bin/env python3
"""Runs Kiln's Python tests in the environment of scripts/python_env.sh.

Exit status 77, with the reason, where the environment cannot be had: such tests are skipped, not
failed.
"""

import argparse
import os
import pathlib
import subprocess
import sys

SKIPPED = 77


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--environment",
        required=True,
        help="folder of the virtual environment; made if it is not there",
    )
    parser.add_argument("--library", required=True, help="libkiln.so")
    parser.add_argument("--compiler", required=True, help="libkiln-compiler.so")
    parser.add_argument("--cache", required=True, help="folder of the kernel cache")
    parser.add_argument("--needs-torch", action="store_true", help="skip if there is no torch")
    parser.add_argument("--needs-jax", action="store_true", help="skip if there is no JAX")
    parser.add_argument(
        "--script", action="store_true", help="the argument is a program, not tests for pytest"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="for pytest, or the program")
    args = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    made = subprocess.run(["bash", str(root / "scripts" / "python_env.sh"), args.environment])
    if made.returncode:
        return made.returncode
    for package, needed in (("torch", args.needs_torch), ("jax", args.needs_jax)):
        missing = pathlib.Path(args.environment) / f"missing-{package}"
        if needed and missing.exists():
            print(f"skipped: {missing.read_text().strip()}")
            return SKIPPED
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("KILN_", "PYTHON"))
    }
    environment.update(
        KILN_LIBRARY=args.library,
        KILN_COMPILER=args.compiler,
        KILN_CACHE_DIR=args.cache,
        KILN_CHECKS="fail",  # whatever the emulator finds in a kernel fails the test
        PYTHONPATH=str(root / "runtime" / "python"),
        PYTHONDONTWRITEBYTECODE="1",
    )
    python = os.path.join(args.environment, "bin", "python")
    pytest = (
        [] if args.script else ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5"]
    )
    return subprocess.run([python, *pytest, *args.arguments], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
