"""Kernels written in C++ inside a Python program.

The source is compiled once, with the front end's headers and archives, into a library that records
kernels as text; the text runs as that of a file does (_kernel.py), through libkiln.  So a kernel of
the user's own has the devices, streams, cache and checks of every other.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kiln import errors
from kiln._kernel import Kernel, kernel
from kiln._library import library

__all__ = ["InlineModule", "load_inline"]

_OWN = pathlib.Path(__file__).parent
_FLAGS = ("-std=c++20", "-O0", "-fPIC", "-shared", "-fvisibility=hidden")
_KINDS = {bool: 0, int: 1, float: 2, str: 3}


class _Value(ctypes.Structure):
    """As Inline.h's."""

    _fields_ = [
        ("kind", ctypes.c_int),
        ("whole", ctypes.c_longlong),
        ("number", ctypes.c_double),
        ("text", ctypes.c_char_p),
    ]


class _Recorded(ctypes.Structure):
    """As Inline.h's."""

    _fields_ = [("name", ctypes.c_char_p), ("text", ctypes.c_char_p), ("error", ctypes.c_char_p)]


class _FrontEnd(NamedTuple):
    headers: pathlib.Path
    archives: tuple[pathlib.Path, ...]


def _front_end() -> _FrontEnd:
    """The front end of this package, of the build tree of KILN_LIBRARY, or of where that is
    installed."""
    names = ("libkiln-language.a", "libkiln-support.a")
    above = pathlib.Path(library().path).resolve().parents[1]
    places = [
        _FrontEnd(_OWN / "include", tuple(_OWN / "lib" / n for n in names)),
        _FrontEnd(
            _OWN.parents[2],
            tuple(above / folder / n for folder, n in zip(("compiler/language", "support"), names)),
        ),
        _FrontEnd(above / "include" / "kiln", tuple(above / "lib" / n for n in names)),
    ]
    for found in places:
        if (found.headers / "compiler/language/Language.h").is_file() and all(
            archive.is_file() for archive in found.archives
        ):
            return found
    raise FileNotFoundError(
        f"kiln.load_inline: {names[0]} and its headers are not there: none of"
        f" {', '.join(str(p.archives[0]) for p in places)}; build the target kiln-language"
    )


def _compiler(named: str | None) -> str:
    """Raises FileNotFoundError if there is none."""
    asked = named or os.environ.get("CXX")
    for name in [asked] if asked else ["g++", "clang++", "c++"]:
        found = shutil.which(name)
        if found:
            return found
    raise FileNotFoundError(
        f"kiln.load_inline: there is no C++ compiler {asked or 'g++, clang++ or c++'}; install one"
        " (g++ 12 or newer), or name it by `compiler` or CXX"
    )


@functools.cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout


def _cache() -> pathlib.Path:
    """The folder of what is made here: `inline` in that of the kernel cache."""
    named = os.environ.get("KILN_CACHE_DIR", "")
    if named == "off":
        return pathlib.Path(_session().name)
    if named:
        return pathlib.Path(named) / "inline"
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return (pathlib.Path(xdg) if xdg.startswith("/") else pathlib.Path.home() / ".cache").joinpath(
        "kiln", "inline"
    )


@functools.cache
def _session() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="kiln-inline-")


def _key(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _put(folder: pathlib.Path, file: str, make: Callable[[pathlib.Path], Any]) -> pathlib.Path:
    """`file` in the folder, made by `make` in another one if it is not there yet: other processes
    see it whole or not at all."""
    there = folder / file
    if not there.is_file():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            made = pathlib.Path(work) / file
            make(made)
            os.replace(made, there)
    return there


def _build(
    source: str, functions: tuple[str, ...], compiler: str | None, flags: tuple[str, ...]
) -> pathlib.Path:
    front_end, command = _front_end(), _compiler(compiler)
    text = '#include "Inline.h"\n#line 1 "inline.cpp"\n' + source
    text += "\n" + "".join(f"KILN_INLINE_FUNCTION({name})\n" for name in functions)
    archives = [(str(a), a.stat().st_mtime_ns, a.stat().st_size) for a in front_end.archives]
    glue = (_OWN / "Inline.h").read_text()
    key = _key(text, glue, command, _version(command), _FLAGS, flags, archives)

    def make(out: pathlib.Path) -> None:
        file = out.with_name("source.cpp")
        file.write_text(text)
        ran = subprocess.run(
            [
                command,
                *_FLAGS,
                *flags,
                f"-I{front_end.headers}",
                f"-I{_OWN}",
                str(file),
                "-o",
                str(out),
                *map(str, front_end.archives),
            ],
            capture_output=True,
            text=True,
        )
        if ran.returncode:
            raise errors.CompileError(
                f"kiln.load_inline: {os.path.basename(command)} refuses the source:\n{ran.stderr}"
            )

    return _put(_cache() / key, "module.so", make)


class InlineModule:
    """The functions of a source.  `module.f(0.5)` records the kernel of f's parameters, once for
    each set of them, and is a kernel as kiln.kernel gives: `module.f(0.5)[grid](x, out, n)`."""

    def __init__(self, file: pathlib.Path, functions: tuple[str, ...]) -> None:
        self._file, self._functions = file, functions
        self._module = ctypes.CDLL(str(file))
        for name in functions:
            setattr(self, name, self._recorder(name))

    def __repr__(self) -> str:
        return f"kiln.load_inline(.., {self._functions!r})"

    def _recorder(self, name: str) -> Callable[..., Kernel]:
        function = getattr(self._module, f"kiln_inline_{name}")
        known: dict[Any, Kernel] = {}

        def record(*parameters: Any) -> Kernel:
            # NumPy's numbers are numbers; 1 and True are not the same.
            values = [p.item() if isinstance(p, np.generic) else p for p in parameters]
            for at, value in enumerate(values):
                if type(value) not in _KINDS:
                    raise TypeError(
                        f"{name}: parameter {at} is of type {type(value).__name__}; give a flag, a"
                        " number or a text; arrays are the kernel's, after the grid"
                    )
            key = tuple([(type(value), value) for value in values])
            found = known.get(key)
            if found is None:
                found = known[key] = self._record(name, function, values)
            return found

        record.__name__ = record.__qualname__ = name
        record.__doc__ = f"The kernel that the C++ function {name} records with these parameters."
        return record

    def _record(self, name: str, function: Any, parameters: list[Any]) -> Kernel:
        values = (_Value * max(len(parameters), 1))()
        for at, (to, value) in enumerate(zip(values, parameters)):
            to.kind = _KINDS[type(value)]
            if isinstance(value, str):
                to.text = value.encode()
            elif isinstance(value, float):
                to.number = value
            elif -(2**63) <= value < 2**63:
                to.whole = value
            else:
                raise ValueError(f"{name}: parameter {at} = {value} has more than 64 bits")
        out = _Recorded()
        if function(values, ctypes.c_size_t(len(parameters)), ctypes.byref(out)):
            raise ValueError(f"{name}: {out.error.decode()}")
        text = out.text
        file = _put(
            self._file.parent, f"{name}-{_key(text)}.mlir", lambda made: made.write_bytes(text)
        )
        return kernel(file, out.name.decode())


def load_inline(
    source: str,
    functions: str | Sequence[str],
    *,
    compiler: str | None = None,
    flags: Sequence[str] = (),
) -> InlineModule:
    """Compiles C++ that records kernels, and gives its functions.

    source: C++20 with Kiln's front end (included and its namespace opened).  functions: which of
    its functions are wanted; each gives a kernel, and takes flags, numbers and texts.
    compiler: g++ 12 or newer, or clang++; default: CXX, else the first of g++, clang++, c++.
    flags: more arguments of it.

    The library is kept next to the kernel cache: the same source is compiled once.  Raises
    kiln.CompileError with the compiler's messages, FileNotFoundError without a compiler, ValueError
    for names that are none.
    """
    names = (functions,) if isinstance(functions, str) else tuple(functions)
    for name in names:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(
                f"kiln.load_inline: functions has {name!r}; give names of functions outside of any"
                " namespace"
            )
    if not names:
        raise ValueError("kiln.load_inline: functions is empty; name the functions of the source")
    return InlineModule(_build(source, names, compiler, tuple(flags)), names)
