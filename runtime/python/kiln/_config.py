"""Knobs and devices of the process."""

from __future__ import annotations

import difflib
import json
import os
from typing import Any

from kiln._library import library

__all__ = ["config", "devices"]


def _state() -> dict[str, Any]:
    return json.loads(library().function("devices")())


def devices() -> list[dict[str, Any]]:
    """The devices of this machine, GPUs first: name, description, multiprocessors, memory_bytes,
    driver."""
    return _state()["devices"]


class _Set:
    """Knobs that were set; as a context manager it puts the old values back."""

    def __init__(self, before: dict[str, str | None]) -> None:
        self._before = before

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        for variable, value in self._before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value


def config(**values: Any) -> _Set:
    """Sets knobs (docs/knobs.md): kiln.config(cache_dir="/tmp/kernels", log="cache=info").

    A knob's name is that of its environment variable without KILN_, in lower case; None unsets it,
    True and False are 1 and 0.  Knobs are read when the first call opens a device: after that
    RuntimeError is raised.  With `with`, for programs that are started inside, the old values come
    back at the end.
    Raises TypeError for a name that is no knob.
    """
    known = {
        row["variable"].removeprefix("KILN_").lower(): row["variable"]
        for row in library().description["knobs"]
    }
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(sorted(known))}"
            raise TypeError(f"kiln.config: there is no knob '{name}'; {hint}")
    if _state()["open"]:
        raise RuntimeError(
            "kiln.config: a device is open, and has read its knobs; call config before the first"
            " operation"
        )
    before = {known[name]: os.environ.get(known[name]) for name in values}
    for name, value in values.items():
        if value is None:
            os.environ.pop(known[name], None)
        else:
            os.environ[known[name]] = str(int(value) if isinstance(value, bool) else value)
    return _Set(before)
