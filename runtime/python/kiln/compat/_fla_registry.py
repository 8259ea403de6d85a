"""Kiln in flash-linear-attention's registry of backends.

FLA (from 0.6 on) asks the backends of a function, by priority, whether they take a call; the first
that does computes it, else FLA itself.  Functions that FLA has given no registry get one: they are
replaced in FLA's modules by themselves with FLA's own dispatch around them, and put back later.

Kiln's backend stays registered once it is: whether it is enabled is asked at every call.
"""

from __future__ import annotations

import collections
import importlib
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["Registry"]

#: Before TileLang (5) and the backends of vendors (3), after those of machines that Kiln has not
#: (Ascend, 0).
_PRIORITY = 1

#: By FLA's module: Kiln's function of that name.
Table = dict[str, Callable[..., Any]]


class Registry:
    """What `enable` and `disable` of kiln.compat.fla do.

    Each function has `.check`, which raises what the function would raise for its arguments.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.enabled = False
        self.calls: collections.Counter[str] = collections.Counter()
        self.refusals: collections.Counter[str] = collections.Counter()
        self._registered = False
        self._replaced: list[tuple[Callable[..., Any], Callable[..., Any]]] = []

    def enable(self) -> None:
        if not self._registered:
            self._register(_fla_backends())
            self._registered = True
        for original, dispatched in self._replaced:
            _replace(original, dispatched)
        self.enabled = True

    def disable(self) -> None:
        for original, dispatched in self._replaced:
            _replace(dispatched, original)
        self.enabled = False

    def _register(self, backends: Any) -> None:
        kiln = self._backend(backends.BaseBackend)
        self._replaced.clear()  # of a call that failed half way
        for module, function in self.table.items():
            theirs = _theirs(module, function.__name__)
            registry = _registry_of(theirs, backends.BackendRegistry)
            if registry is None:
                dispatched = backends.dispatch(theirs)
                self._replaced.append((theirs, dispatched))
                registry = _registry_of(dispatched, backends.BackendRegistry)
            registry.register(kiln())

    def _backend(self, base: type) -> type:
        """FLA finds what a backend computes, and what it verifies, by the functions' names."""
        registry = self

        class Kiln(base):  # type: ignore[misc]
            backend_type = "kiln"
            priority = _PRIORITY

            def is_enabled(self) -> bool:
                return registry.enabled

        for function in self.table.values():
            setattr(Kiln, function.__name__, staticmethod(self._counted(function)))
            setattr(Kiln, f"{function.__name__}_verifier", staticmethod(self._verifier(function)))
        return Kiln

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[function.__name__] += 1
            return function(*args, **kwargs)

        return call

    def _verifier(self, function: Any) -> Callable[..., tuple[bool, str | None]]:
        def verify(*args: Any, **kwargs: Any) -> tuple[bool, str | None]:
            try:
                function.check(*args, **kwargs)
            except (NotImplementedError, TypeError, ValueError) as error:
                self.refusals[str(error)] += 1
                return False, str(error)
            return True, None

        return verify


def _theirs(module: str, name: str) -> Callable[..., Any]:
    try:
        return getattr(importlib.import_module(module), name)
    except (AttributeError, ModuleNotFoundError) as error:
        version = getattr(sys.modules["fla"], "__version__", "?")
        raise ImportError(
            f"kiln.compat.fla: fla {version} has no {module}.{name} ({error}); install"
            " flash-linear-attention 0.6, or call the functions of kiln.compat.fla themselves"
        ) from error


def _registry_of(function: Any, kind: type) -> Any:
    """FLA's registry around a function, None if there is none.

    It is read from the function, not found by a name: under a name that FLA has given up, a backend
    would be registered where nobody asks.
    """
    while function is not None:
        for cell in getattr(function, "__closure__", None) or ():
            if isinstance(cell.cell_contents, kind):
                return cell.cell_contents
        function = getattr(function, "__wrapped__", None)
    return None


def _replace(old: Callable[..., Any], new: Callable[..., Any]) -> None:
    """In every module of FLA's that is loaded; modules loaded later import what stands there."""
    for name, module in list(sys.modules.items()):
        if name == "fla" or name.startswith("fla."):
            for attribute, value in list(vars(module).items()):
                if value is old:
                    setattr(module, attribute, new)


def _fla_backends() -> Any:
    """FLA's module of backends.  Raises ImportError and RuntimeError, with the remedy."""
    try:
        import fla
    except ModuleNotFoundError as error:
        raise ImportError(
            f"kiln.compat.fla: there is no module {error.name}; install flash-linear-attention, or"
            " call the functions of kiln.compat.fla themselves, which need no FLA"
        ) from error
    try:
        backends = importlib.import_module("fla.backends")
    except ModuleNotFoundError as error:
        if error.name != "fla.backends":
            raise
        raise ImportError(
            f"kiln.compat.fla: fla {getattr(fla, '__version__', '?')} has no fla.backends; install"
            " flash-linear-attention 0.6 or newer"
        ) from error
    if getattr(backends, "_DISPATCH_DISABLED", False):
        raise RuntimeError(
            "kiln.compat.fla: FLA_DISABLE_BACKEND_DISPATCH=1 switches FLA's registry off; unset it"
            " before fla is imported"
        )
    return backends
