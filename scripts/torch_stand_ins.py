#!/usr/bin/env python3
"""Makes PyPI's CUDA build of torch import on a machine without CUDA.

torch's libraries name CUDA's (cuBLAS, cuDNN, ..): gigabytes that a CPU never needs.  For each of
them that the loader does not find, a small library of its name is put next to torch's: every symbol
that torch takes from it becomes a function that returns 100, CUDA's code for having no device.
Which libraries and which symbols is read from torch's own files, so there is no list to keep.  The
driver (libcuda) gets none: only what is loaded lazily names it, and Kiln itself looks for it.
"""

import argparse
import ctypes
import pathlib
import re
import subprocess
import sys

NEEDED = re.compile(r"^\s+NEEDED\s+(\S+)$", re.M)
VERSIONS = re.compile(r"^\s+required from (\S+):\n((?:\s+0x\S+ 0x\S+ \d+ \S+\n)+)", re.M)
UNDEFINED = re.compile(r"^\s+[Uw] (\S+)$", re.M)
DRIVER = "libcuda.so.1"
OF_THE_SYSTEM = re.compile(
    r"(GLIBC|GLIBCXX|CXXABI|GCC|GOMP|OMP|OACC)_"
)  # versions of libraries that are everywhere


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def is_found(soname: str, names: list[str], torch_lib: pathlib.Path) -> bool:
    """Whether the loader has it: next to torch, in a package of NVIDIA's, or on the system with all
    that torch takes."""
    if (torch_lib / soname).exists() or any(torch_lib.parents[1].glob(f"nvidia/*/lib/{soname}")):
        return True
    try:
        library = ctypes.CDLL(soname)
    except OSError:
        return False
    return all(hasattr(library, name) for name in names)


def is_of(symbol: str, soname: str) -> bool:
    """Whether a symbol without a version is this library's: libnccl.so.2 has ncclSend."""
    stem = re.split(r"[._]", soname.removeprefix("lib"))[0]
    return symbol.lower().startswith(stem.lower())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "torch_lib", type=pathlib.Path, help="the folder torch/lib of site-packages"
    )
    parser.add_argument("--cc", default="clang-22", help="a C compiler (default: %(default)s)")
    args = parser.parse_args()
    libraries = sorted(args.torch_lib.glob("*.so"))
    if not libraries:
        print(f"torch_stand_ins.py: no libraries in {args.torch_lib}", file=sys.stderr)
        return 1
    versions: dict[str, set[str]] = {}  # of each library that is needed
    for library in libraries:
        headers = run("objdump", "-p", str(library))
        for soname in NEEDED.findall(headers):
            versions.setdefault(soname, set())
        for soname, lines in VERSIONS.findall(headers):
            versions.setdefault(soname, set()).update(
                line.split()[-1] for line in lines.splitlines()
            )
    symbols = set(
        UNDEFINED.findall(
            run("nm", "-D", "--undefined-only", "--with-symbol-versions", *map(str, libraries))
        )
    )
    for soname in sorted(versions):
        if any(OF_THE_SYSTEM.match(version) for version in versions[soname]):
            continue
        if len(versions[soname]) > 1:
            print(
                f"torch_stand_ins.py: {soname} has several versions: {versions[soname]}",
                file=sys.stderr,
            )
            return 1
        version = next(iter(versions[soname]), "")
        pairs = (symbol.replace("@@", "@").partition("@")[::2] for symbol in symbols)
        names = sorted(
            {n for n, v in pairs if (v == version if version else not v and is_of(n, soname))}
        )
        if soname == DRIVER or is_found(soname, names, args.torch_lib):
            continue
        work = args.torch_lib / "stand_in"
        source, script = work.with_suffix(".c"), work.with_suffix(".map")
        source.write_text("".join(f"int {name}(void) {{ return 100; }}\n" for name in names))
        command = [
            args.cc,
            "-shared",
            "-fPIC",
            "-w",
            "-fno-builtin",
            str(source),
            f"-Wl,-soname,{soname}",
        ]
        if version:
            script.write_text(f"{version} {{ global: *; }};\n")
            command.append(f"-Wl,--version-script={script}")
        run(*command, "-o", str(args.torch_lib / soname))
        for file in (source, script):
            file.unlink(missing_ok=True)
        print(f"{soname}: {len(names)} functions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
