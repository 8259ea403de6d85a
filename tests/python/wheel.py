#!/usr/bin/env python3
"""Builds the wheel of a build tree, installs it in a new environment, and runs what a user would
try first.

Exit status 77 where PyPI cannot be reached.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """
import numpy as np, kiln
assert "site-packages" in kiln.__file__
assert (kiln.softmax(np.ones((2, 8), np.float32)) == 0.125).all()
source = '''
Kernel twice() {
  return kernel("twice", {}, [](Arg<Pointer<f32>, "x"> x, Arg<Pointer<f32>, "out"> out) {
    store(out + range(0, 32), 2.0f * load(x + range(0, 32)));
  });
}
'''
x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
kiln.load_inline(source, "twice").twice()[1](x, out)
assert (out == 2).all()
print(kiln.__version__)
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--environment",
        required=True,
        help="folder of the tests' virtual environment, which has uv",
    )
    parser.add_argument("--build", required=True, help="the build tree")
    parser.add_argument(
        "--limit",
        type=float,
        metavar="MB",
        help="the wheel may have that many MB at most (10^6 bytes)",
    )
    args = parser.parse_args()
    made = subprocess.run(["bash", str(ROOT / "scripts" / "python_env.sh"), args.environment])
    if made.returncode:
        return made.returncode
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("KILN_", "PYTHON"))}

    def run(*command: object) -> str:
        return subprocess.run(
            [str(c) for c in command],
            check=True,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout

    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        uv = pathlib.Path(args.environment) / "bin" / "uv"
        run(uv, "-q", "venv", "--seed", work / "venv")
        python = work / "venv" / "bin" / "python"
        run(
            python,
            "-m",
            "pip",
            "-q",
            "wheel",
            "--no-deps",
            ROOT / "runtime" / "python",
            "-w",
            work,
            "-C",
            f"cmake.define.KILN_BUILD_DIR={args.build}",
        )
        (wheel,) = work.glob("*.whl")
        if not wheel.name.startswith("kiln-") or "-py3-none-" not in wheel.name:
            print(f"{wheel.name} is not for every Python", file=sys.stderr)
            return 1
        run(uv, "-q", "pip", "install", "--python", python, wheel)
        environment["KILN_CACHE_DIR"] = str(work / "cache")
        version = run(python, "-c", PROGRAM).strip()
        told = run(work / "venv" / "bin" / "kiln", "--version").strip()
        if told != f"kiln {version}":
            print(f"the command says '{told}', the package {version}", file=sys.stderr)
            return 1
        size = wheel.stat().st_size / 1e6
        print(f"{wheel.name}: {size:.1f} MB, {told}")
        if args.limit and size > args.limit:
            print(f"it may have {args.limit:g} MB; its largest files:", file=sys.stderr)
            with zipfile.ZipFile(wheel) as archive:
                files = sorted(archive.infolist(), key=lambda file: -file.compress_size)
            for file in files[:5]:
                print(f"  {file.compress_size / 1e6:.1f} MB {file.filename}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
