"""Workspaces of calls on a GPU: memory of torch's, not of libkiln's.

torch's allocator gives a tensor on the current stream for each call, so two streams never share
one, and in the capture of a graph it comes from the graph's pool.  How many bytes a call needs is
asked once and remembered.  The number may go stale, for instance when a sweep in the background
finds a faster kernel that needs more: libkiln refuses a workspace that is too small, also one of no
bytes, before it launches anything; then the number is asked for again, once.
"""

from __future__ import annotations

from typing import Any

import torch

from kiln._library import Operation, library

__all__ = ["Workspaces"]

_LIMIT = 4096  # of what is remembered; then it is forgotten and asked for again


class Workspaces:
    """Those of one operation."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._bytes: dict[Any, int] = {}
        self._empty: dict[torch.device, torch.Tensor] = {}  # for calls that need none

    def call(self, arguments: tuple[Any, ...], key: Any, device: torch.device) -> None:
        """Runs the operation with a workspace.

        arguments: all but the workspace.  key: what the bytes follow from, the arguments' shapes,
        types and options; calls of one key may differ in the rest.
        """
        size = self._bytes.get((key, device))
        if size is None:
            size = self._ask(arguments, key, device)
        try:
            self._operation.function(*arguments, self._new(size, device))
        except ValueError as refused:
            try:
                needed = self._ask(arguments, key, device)
            except ValueError:
                needed = 0
            if needed <= size:  # it was refused for something else
                raise refused from None
            self._operation.function(*arguments, self._new(needed, device))

    def _ask(self, arguments: tuple[Any, ...], key: Any, device: torch.device) -> int:
        size = library().function("workspace")(self._operation.name, *arguments)
        if len(self._bytes) >= _LIMIT:
            self._bytes.clear()
        self._bytes[key, device] = size
        return size

    def _new(self, size: int, device: torch.device) -> torch.Tensor:
        if size:
            return torch.empty(size, dtype=torch.uint8, device=device)
        if device not in self._empty:
            self._empty[device] = torch.empty(0, dtype=torch.uint8, device=device)
        return self._empty[device]
