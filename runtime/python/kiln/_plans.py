"""Calls that are described, not run: compiled ahead of time, or told.

What a function of the user's calls of libkiln's operations is caught on its way, in this thread;
its outputs are made, and hold anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kiln import errors
from kiln._library import Operation, command, library

__all__ = ["Explanation", "explain", "warm_up"]

_one_at_a_time = threading.RLock()


@contextlib.contextmanager
def _caught() -> Iterator[list[tuple[Operation, tuple[Any, ...]]]]:
    """The calls of operations that this thread makes inside, which do not run."""
    calls: list[tuple[Operation, tuple[Any, ...]]] = []
    me = threading.get_ident()

    def catching(operation: Operation, run: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if threading.get_ident() != me:
                return run(*arguments)
            calls.append((operation, arguments))

        return call

    in_python: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if "torch" in sys.modules:  # as whoever calls kiln.torch has it
        with contextlib.suppress(ImportError):  # a torch that kiln.torch cannot use
            from kiln.torch._operation import InPython

            in_python = InPython()
    with _one_at_a_time, in_python:
        functions = {o.name: o.function for o in library().operations.values()}
        try:
            for operation in library().operations.values():
                operation.replace(catching(operation, operation.function))
            yield calls
        finally:
            for operation in library().operations.values():
                operation.replace(functions[operation.name])


def warm_up(
    calls: str | os.PathLike[str] | Iterable[Callable[[], Any]], *, device: str = "auto"
) -> None:
    """Compiles what calls need, side by side, so that the program's first calls find it there.

    calls: functions without arguments, as `lambda: kiln.torch.attention(q, k, v)`.  Each is called
    once: Kiln's operations compile and do not run, all else does; results hold anything.  Tensors
    may be empty ones of the right shapes, on the device of the later calls.  Gradients on a GPU,
    which torch computes in another thread, do run.
    Or the name of a file, a call a line, as the command `kiln warm` has it (docs/commands.md): that
    fills the cache on disk, for `device`: "auto", "cuda:N", "offline:sm_90a", ..

    Raises what a wrong call would raise, kiln.CompileError, or for a file kiln.KilnError with the
    command's report.
    """
    if isinstance(calls, (str, os.PathLike)):
        return _warm_file(pathlib.Path(calls), device)
    if device != "auto":
        raise ValueError(
            f"kiln.warm_up: device = {device!r}: functions run on their tensors' device; leave it"
            " out, or give a file of calls"
        )
    with _caught() as caught:
        for function in calls:
            if not callable(function):
                raise TypeError(
                    f"kiln.warm_up: {function!r} is no function; give functions without arguments,"
                    " as `lambda: kiln.softmax(x)`"
                )
            function()
    prepare = library().function("prepare")
    for wait in (False, True):
        for operation, arguments in caught:
            prepare(operation.name, wait, *arguments)


def _warm_file(file: pathlib.Path, device: str) -> None:
    if not file.is_file():
        raise FileNotFoundError(f"kiln.warm_up: {file} is no file; give a list of calls")
    ran = subprocess.run(
        [command(), "warm", str(file), "--device", device], capture_output=True, text=True
    )
    if ran.returncode:
        raise errors.KilnError(f"kiln.warm_up: {file}: {ran.stderr.strip() or ran.stdout.strip()}")


class Explanation:
    """What calls launch.  calls: a dictionary for each (runtime/door/DoorCall.h); str() is for
    people."""

    def __init__(self, calls: list[dict[str, Any]]) -> None:
        self.calls = calls

    def __repr__(self) -> str:
        lines = []
        for call in self.calls:
            needed = sum(part["bytes"] for part in call["workspace"])
            lines.append(f"{call['operation']} on {call['device']}, {needed} bytes of workspace")
            for launch in call["launches"]:
                facts = [
                    f"grid {'x'.join(map(str, launch['grid']))}",
                    f"{launch['threads']} threads",
                    f"{launch['shared_bytes']} bytes of shared memory",
                    launch["configuration"],
                    launch["arguments"],
                    f"{launch['code']} in {launch['milliseconds']:.0f} ms",
                ]
                lines.append(f"  {launch['kernel']}: {', '.join(f for f in facts if f)}")
        return "\n".join(lines) or "no operation of Kiln is called"


def explain(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Explanation:
    """What the operations launch that function(*arguments, **named) calls: kernels with their grids
    and configurations, the classes of arguments that they were compiled for, the workspace, and
    where the code came from.  They are compiled, and do not run.

    function: one of kiln's or kiln.torch's, or of your own.
    Raises what a wrong call would raise.
    """
    with _caught() as caught:
        function(*arguments, **named)
    told = library().function("explain")
    return Explanation([json.loads(told(o.name, *given)) for o, given in caught])
