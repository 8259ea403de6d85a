"""libkiln.so: where it is, and its functions.

It is opened at the first use, not at import, so that `import kiln` costs nothing.  Its operations
describe themselves (`kiln_describe`): no list of them, nor of their arguments, stands in Python.
"""

from __future__ import annotations

import dataclasses
import functools
import glob
import importlib.util
import json
import os
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

from kiln import errors

_CUDA_PTXAS = "/usr/local/cuda/bin/ptxas"  # where libkiln looks after PATH

__all__ = [
    "Library",
    "Operation",
    "Option",
    "TensorParameter",
    "command",
    "library",
    "offer_assemblers",
]


@dataclasses.dataclass(frozen=True)
class TensorParameter:
    """An input or an output of an operation."""

    name: str
    output: bool
    optional: bool
    description: str
    dtype: str | None = None  # None: the caller's
    in_place_of: str | None = None  # the input that an output is

    @property
    def in_place(self) -> bool:
        return self.in_place_of is not None


@dataclasses.dataclass(frozen=True)
class Option:
    """What a call says besides its tensors.  None of it: its default."""

    name: str
    kind: str  # "flag", "whole", "float", "choice" or "text"
    description: str
    default: Any = None
    choices: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Operation:
    """A row of the table that libkiln gives, and its function."""

    name: str
    summary: str
    dtypes: tuple[str, ...]
    tensors: tuple[TensorParameter, ...]
    options: tuple[Option, ...]
    function: Callable[..., Any]

    @functools.cached_property
    def positions(self) -> dict[str, int]:
        """Where each argument stands in a call of `function`: tensors, options, the workspace."""
        names = [p.name for p in (*self.tensors, *self.options)]
        return {name: at for at, name in enumerate([*names, "workspace"])}

    @functools.cached_property
    def inputs(self) -> dict[str, TensorParameter]:
        return {p.name: p for p in self.tensors if not p.output}

    @functools.cached_property
    def outputs(self) -> dict[str, TensorParameter]:
        return {p.name: p for p in self.tensors if p.output}

    @functools.cached_property
    def option(self) -> dict[str, Option]:
        return {o.name: o for o in self.options}

    def replace(self, function: Callable[..., Any]) -> None:
        """Has calls go to this function: of tools that look at calls."""
        object.__setattr__(self, "function", function)

    def arguments(self, values: dict[str, Any]) -> list[Any]:
        """The arguments of a call, in its order; those that are not given are None."""
        out: list[Any] = [None] * (1 + max((self.positions[name] for name in values), default=-1))
        for name, value in values.items():
            out[self.positions[name]] = value
        return out


class Library:
    """libkiln.so of this process."""

    def __init__(self, path: str) -> None:
        import tvm_ffi  # which imports torch, if there is one

        for kind, cls in errors.KINDS.items():
            tvm_ffi.register_error(kind, cls)
        self.path = path
        self.module = tvm_ffi.load_module(path)
        self.description: dict[str, Any] = json.loads(self.function("describe")())
        self.operations = {
            row["name"]: self._operation(row) for row in self.description["operations"]
        }

    def function(self, name: str) -> Callable[..., Any]:
        return self.module[f"kiln_{name}"]

    def _operation(self, row: dict[str, Any]) -> Operation:
        tensor_fields = {f.name for f in dataclasses.fields(TensorParameter)}
        option_fields = {f.name for f in dataclasses.fields(Option)}
        return Operation(
            row["name"],
            row["summary"],
            tuple(row["dtypes"]),
            tuple(
                TensorParameter(**{k: v for k, v in p.items() if k in tensor_fields})
                for p in row["tensors"]
            ),
            tuple(
                Option(
                    **{
                        k: tuple(v) if k == "choices" else v
                        for k, v in o.items()
                        if k in option_fields
                    }
                )
                for o in row["options"]
            ),
            self.function(row["name"]),
        )


def _path() -> str:
    """The library's file: KILN_LIBRARY (for development), else the one in this package."""
    named = os.environ.get("KILN_LIBRARY")
    if named:
        if not os.path.isfile(named):
            raise FileNotFoundError(
                f"kiln: KILN_LIBRARY names {named}, which is no file; build it with "
                "`cmake --build build/dev --target kiln-door`, or unset the variable"
            )
        return named
    own = pathlib.Path(__file__).parent / "lib" / "libkiln.so"
    if not own.is_file():
        raise FileNotFoundError(
            f"kiln: {own} is missing: this package was not built as a wheel; set KILN_LIBRARY to a"
            " libkiln.so"
        )
    return str(own)


def command() -> str:
    """The command `kiln` that belongs to the library.  Raises FileNotFoundError if it is not there."""
    found = pathlib.Path(library().path).with_name("kiln")
    if not found.is_file():
        raise FileNotFoundError(f"kiln: {found} is missing; build the target kiln")
    return str(found)


def _find_in(package: str, pattern: str) -> str | None:
    """The last of the files in a package that may be run or loaded, without importing it."""
    try:
        found = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # ValueError: a stand-in in its place
        return None
    for folder in (found.submodule_search_locations or []) if found else []:
        files = sorted(f for f in glob.glob(os.path.join(folder, pattern)) if os.path.isfile(f))
        if files:
            return files[-1]
    return None


def offer_assemblers() -> None:
    """Wheels of torch, of Triton and of CUDA bring libnvJitLink and ptxas.  Kiln takes them if the
    user has named none; a ptxas of the machine's own comes first."""
    offered = {"KILN_NVJITLINK": _find_in("nvidia", "*/lib/libnvJitLink.so*")}
    if not shutil.which("ptxas") and not os.path.exists(_CUDA_PTXAS):
        places = (
            ("nvidia", "*/bin/ptxas"),
            ("torch", "bin/ptxas"),
            ("triton", "backends/nvidia/bin/ptxas"),
        )
        found = (_find_in(package, place) for package, place in places)
        offered["KILN_PTXAS"] = next((f for f in found if f and os.access(f, os.X_OK)), None)
    for knob, file in offered.items():
        if file and knob not in os.environ:
            os.environ[knob] = file


@functools.cache
def library() -> Library:
    """The library, opened at the first call."""
    path = _path()
    offer_assemblers()
    return Library(path)
