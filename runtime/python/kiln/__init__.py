"""Kiln: GPU kernels, compiled when they are first called, from Python.

Every operation of the library is a function here, on arrays of NumPy, CuPy or torch, without
gradients:

    import kiln
    p = kiln.softmax(x)  # NumPy: on the emulator; CuPy, torch: on the array's GPU
    o, lse = kiln.attention(q, k, v, causal=True, lse=True)

`kiln.torch` has operations of torch with gradients, for torch.compile, export and checkpointing.
`help(kiln.softmax)` lists an operation's arguments; `kiln.operations()` lists the operations,
`kiln.devices()` the devices; `kiln.config` sets knobs; `kiln.kernel` runs a text kernel of your
own, `kiln.load_inline` one that is written in C++; `kiln.warm_up` compiles ahead, `kiln.explain`
says what a call launches.
"""

from __future__ import annotations

import importlib
from typing import Any

from kiln.errors import CompileError, DeviceError, Finding, InternalError, KilnError, NotReady

__version__ = "0.1.0"
__all__ = [
    "CompileError",
    "DeviceError",
    "Finding",
    "InternalError",
    "KilnError",
    "NotReady",
    "config",
    "devices",
    "explain",
    "kernel",
    "load_inline",
    "operations",
    "warm_up",
]

#: Where the functions are that are imported when they are first asked for.
_MODULES = {
    "config": "_config",
    "devices": "_config",
    "explain": "_plans",
    "kernel": "_kernel",
    "load_inline": "_inline",
    "warm_up": "_plans",
}


def operations() -> dict[str, str]:
    """Names of the operations, and what each of them computes."""
    from kiln._library import library

    return {name: operation.summary for name, operation in library().operations.items()}


def __getattr__(name: str) -> Any:
    """The operations, made when they are first asked for: `import kiln` opens no library."""
    if name.startswith("_"):
        raise AttributeError(name)
    if name in ("torch", "jax", "compat"):
        return importlib.import_module(f"kiln.{name}")
    if name in _MODULES:
        return getattr(importlib.import_module(f"kiln.{_MODULES[name]}"), name)
    from kiln._functions import function
    from kiln._library import library

    operation = library().operations.get(name)
    if operation is None:
        raise AttributeError(f"kiln has no operation '{name}'; kiln.operations() lists them")
    globals()[name] = made = function(operation)
    return made


def __dir__() -> list[str]:
    return sorted([*globals(), *operations()])
