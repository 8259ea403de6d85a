"""What Kiln raises, by the kind of failure.

Wrong arguments raise Python's own ValueError and TypeError, what no kernel does
NotImplementedError, a missing file FileNotFoundError or OSError, memory that is not there
MemoryError (on a GPU under torch: torch.OutOfMemoryError).  The rest are the classes below.  Every
message names the argument, its value, the limit, and what can be done.  Inside a function that
torch.compile compiled, and out of torch.ops.kiln itself, all come as RuntimeError, the class's name
before the message.
"""

from __future__ import annotations

__all__ = ["KilnError", "CompileError", "DeviceError", "NotReady", "Finding", "InternalError"]


class KilnError(RuntimeError):
    """Any failure that is not one of Python's own."""


class CompileError(KilnError):
    """A kernel did not compile; the message holds the compiler's diagnostics."""


class DeviceError(KilnError):
    """The driver, or the device, failed."""


class NotReady(KilnError):
    """A kernel is not compiled yet, and a compile is not possible now, such as in the capture of a
    graph."""


class Finding(KilnError):
    """The emulator found a defect in a kernel: an access out of bounds, a race, a read of what
    nobody wrote."""


class InternalError(KilnError):
    """A defect of Kiln.  Please report it, with the message."""


#: The kinds that libkiln names, where Python has no class of that name.
KINDS: dict[str, type[Exception]] = {
    **{cls.__name__: cls for cls in (CompileError, DeviceError, NotReady, Finding, InternalError)},
    **{cls.__name__: cls for cls in (NotImplementedError, FileNotFoundError, OSError)},
}
