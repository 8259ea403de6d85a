"""A kernel of the user's own, as text."""

from __future__ import annotations

import os
from typing import Any

from kiln._arrays import argument, is_array
from kiln._library import library

__all__ = ["Kernel", "kernel"]


class Kernel:
    """A text kernel of a file.  `k[grid](x, out, 0.5, n)` launches it with its parameters in
    order."""

    def __init__(self, file: str, name: str) -> None:
        self.file, self.name = file, name

    def __repr__(self) -> str:
        return f"kiln.kernel({self.file!r}, {self.name!r})"

    def __getitem__(self, grid: int | tuple[int, ...]) -> _Launcher:
        """grid: how many programs run, in one to three dimensions."""
        extents = grid if isinstance(grid, tuple) else (grid,)
        if not 1 <= len(extents) <= 3:
            raise ValueError(f"{self!r}: the grid has {len(extents)} dimensions; give one to three")
        return _Launcher(self, (*extents, 1, 1)[:3])


class _Launcher:
    def __init__(self, of: Kernel, grid: tuple[int, ...]) -> None:
        self._of, self._grid = of, grid

    def __call__(self, *arguments: Any) -> None:
        """Arrays for pointers, numbers for the rest.

        Arrays of the host's memory are in C order, can be written, and run on the emulator, where
        whatever the kernel does wrong raises kiln.Finding; arrays on a GPU run on its current
        stream.
        """
        passed = [
            (
                argument(f"{self._of!r}: argument {at}", value, written=True)
                if is_array(value) and not _is_number(value)
                else _number(value)
            )
            for at, value in enumerate(arguments)
        ]
        library().function("launch")(self._of.file, self._of.name, *self._grid, *passed)


def _is_number(value: Any) -> bool:
    """NumPy's scalars speak DLPack in some versions, and are numbers."""
    return not hasattr(value, "__setitem__")


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def kernel(file: str | os.PathLike[str], name: str = "") -> Kernel:
    """The kernel `name` of a text file (.mlir) in the tile dialect; the name may be left out if the
    file has one.

    The file is read at the first launch, and not again in this process.  Then FileNotFoundError is
    raised if there is none, and ValueError or kiln.CompileError, with the compiler's diagnostics,
    if it is none that compiles.
    """
    return Kernel(os.fspath(file), name)
