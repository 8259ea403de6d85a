"""What Kiln takes of a call of flash-linear-attention's functions, and what it does not.

A function under `checked` looks at its arguments before it computes; FLA's registry asks `.check`
alone.  Shapes that do not fit are left to the operations, which refuse them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["STEPS", "UNSUPPORTED", "checked", "dtype_of"]

HALF = (torch.bfloat16, torch.float16)
STEPS = (*HALF, torch.float32)  # of what goes token by token
_CHUNKS = (None, 16, 32, 64)
_COLUMNS = 256  # of K and V (kernels/dplr)
#: What FLA takes and Kiln does not.  None, False: FLA's own default.
UNSUPPORTED = ("cp_context", "return_intermediate_states", "reverse", "use_graph")


def _refuse(function: str, argument: str, why: str, remedy: str) -> None:
    raise NotImplementedError(
        f"{function}: argument '{argument}' {why}; that is not supported by Kiln: {remedy}"
    )


def dtype_of(first: torch.Tensor) -> torch.dtype:
    """The type that a call runs in: its first tensor's, or autocast's."""
    kind = first.device.type
    if first.dtype not in HALF and torch.is_autocast_enabled(kind):
        return torch.get_autocast_dtype(kind)
    return first.dtype


def _check(
    function: str,
    names: tuple[str, ...],
    known: tuple[str, ...],
    dtypes: tuple[torch.dtype, ...],
    given: Any,
) -> None:
    """Raises NotImplementedError, or ValueError and TypeError for what FLA has not either.

    names: of FLA's parameters.  known: of the arguments that it takes by **kwargs.  dtypes: that
    Kiln computes it in."""
    for name in given:
        if name not in names and name not in known:
            raise TypeError(
                f"{function}: there is no argument '{name}'; it has {', '.join((*names, *known))}"
            )
    first, v = given.get(names[0]), given.get("v")
    if not isinstance(first, torch.Tensor) or not isinstance(v, torch.Tensor):
        return  # the call itself says what is missing
    for name in UNSUPPORTED:
        value = given.get(name)
        if value is not None and value is not False:
            _refuse(function, name, "is given", "leave it out")
    if dtype_of(first) not in dtypes:
        _refuse(function, names[0], f"is of the type {first.dtype}", "give bfloat16 or float16")
    if first.device.type not in ("cpu", "cuda"):
        _refuse(function, names[0], f"is on {first.device}", "give tensors on an NVIDIA GPU")
    for name, tensor in ((names[0], first), ("v", v)):
        if tensor.shape[-1] > _COLUMNS:
            _refuse(function, name, f"has {tensor.shape[-1]} columns", f"give at most {_COLUMNS}")
    size, bound = given.get("chunk_size"), given.get("lower_bound")
    if size not in _CHUNKS:
        _refuse(function, "chunk_size", f"is {size}", "give 16, 32 or 64, or leave it out")
    if bound is not None and bound >= 0:
        raise ValueError(
            f"{function}: argument 'lower_bound' is {bound}; give a log decay below 0, or leave it"
            " out"
        )
    if given.get("allow_neg_eigval") and not given.get("use_beta_sigmoid_in_kernel"):
        raise ValueError(
            f"{function}: argument 'allow_neg_eigval' needs use_beta_sigmoid_in_kernel=True"
        )
    if given.get("use_gate_in_kernel") and given.get("A_log") is None and bound is None:
        raise ValueError(f"{function}: argument 'use_gate_in_kernel' needs A_log")
    if given.get("safe_gate") and given.get("use_gate_in_kernel") and bound is None:
        raise ValueError(
            f"{function}: arguments 'safe_gate' and 'use_gate_in_kernel' need" " lower_bound"
        )


def checked(
    *known: str, dtypes: tuple[torch.dtype, ...] = HALF
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function of FLA's whose arguments are checked first; `.check` does that alone."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        kinds = inspect.signature(function).parameters.values()
        names = tuple(p.name for p in kinds if p.kind is not inspect.Parameter.VAR_KEYWORD)

        def check(*args: Any, **kwargs: Any) -> None:
            _check(function.__name__, names, known, dtypes, {**dict(zip(names, args)), **kwargs})

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            check(*args, **kwargs)
            return function(*args, **kwargs)

        call.check = check  # type: ignore[attr-defined]
        return call

    return decorate
