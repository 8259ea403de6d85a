"""An operation of libkiln as an operation of torch.

A TorchOperation has a schema made from libkiln's table, an implementation for CPU tensors (the
emulator) and CUDA tensors, and a fake one for tracing.  It is functional: its outputs are new
tensors, and there are always as many.  An output that is optional makes another operation, which
has it (`kiln::rwkv7`, `kiln::rwkv7_with_final_state`).

It has no gradient: that is given by an autograd.Function around it (_gradients.py).  This is the
way that costs least for each call (define and impl, not custom_op), and the one that works with
torch.compile, export, checkpointing and torch.func.

Not handled here: views that are to be negated or conjugated, which torch's dispatcher resolves
before it calls the implementation; tensors without memory (fake ones, wrapper subclasses), which
libkiln refuses by name.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from kiln._library import Operation, library

__all__ = ["NAMESPACE", "TorchOperation"]

NAMESPACE = torch.library.Library("kiln", "DEF")
_TYPES = {"flag": "bool", "whole": "int", "float": "float", "choice": "str", "text": "str"}
_SLOW = 1.0  # seconds of a call on the emulator after which the user is told what it is

#: Makes the outputs of a call: from the inputs and options by name, a tensor for each output by
#: name.
Outputs = Callable[[dict[str, Any]], dict[str, torch.Tensor]]


def _warn_of_emulator(name: str, seconds: float) -> None:
    global _SLOW
    if seconds > _SLOW:
        _SLOW = float("inf")  # once
        warnings.warn(
            f"kiln::{name} took {seconds:.1f} s: tensors on the CPU run on Kiln's emulator of a"
            " GPU, which is for tests and finds defects; move the tensors to a GPU for speed",
            stacklevel=2,
        )


class TorchOperation:
    """One overload in torch.ops.kiln.

    name: of libkiln's operation.
    inputs: names of the tensors that it takes, in the order of the schema; `?` after a name: it
    may be None.
    options: names of the options that it takes, after the tensors; each may be None.
    outputs: makes the outputs' tensors, fake ones for fake inputs.
    with_outputs: optional outputs that it has besides those that are not optional.
    """

    def __init__(
        self,
        name: str,
        inputs: tuple[str, ...],
        options: tuple[str, ...],
        outputs: Outputs,
        with_outputs: tuple[str, ...] = (),
    ) -> None:
        self.table: Operation = library().operations[name]
        self.name = "_with_".join((name, *with_outputs))
        self.inputs = tuple(i.rstrip("?") for i in inputs)
        self.arguments = (*self.inputs, *options)
        self.outputs = tuple(
            n for n, p in self.table.outputs.items() if not p.optional or n in with_outputs
        )
        self._make = outputs
        positions = self.table.positions
        self._places = [positions[n] for n in self.arguments]
        self._output_places = [positions[n] for n in self.outputs]
        self._length = 1 + max(self._places + self._output_places)
        written = [f"Tensor{'?' * i.endswith('?')} {n}" for i, n in zip(inputs, self.inputs)]
        written += [f"{_TYPES[self.table.option[o].kind]}? {o}" for o in options]
        results = ", ".join(["Tensor"] * len(self.outputs))
        NAMESPACE.define(
            f"{self.name}({', '.join(written)}) ->"
            f" {results if len(self.outputs) == 1 else f'({results})'}"
        )
        for key in ("CPU", "CUDA"):
            NAMESPACE.impl(self.name, self._run, key)
        torch.library.register_fake(f"kiln::{self.name}", self._fake, lib=NAMESPACE)
        self.overload = getattr(torch.ops.kiln, self.name).default

    def _new(self, values: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
        made = self._make(dict(zip(self.arguments, values)))
        return tuple(made[name] for name in self.outputs)

    def _fake(self, *values: Any) -> Any:
        made = self._new(values)
        return made if len(made) > 1 else made[0]

    def _run(self, *values: Any) -> Any:
        made = self._new(values)
        self.call(values, made)
        return made if len(made) > 1 else made[0]

    def call(self, values: tuple[Any, ...], outputs: tuple[torch.Tensor, ...]) -> None:
        """Runs it into these outputs, past torch's dispatcher."""
        arguments: list[Any] = [None] * self._length
        for place, value in zip(self._places, values):
            # As FlashAttention does.  Gradients of sums come with strides of 0.
            if (
                isinstance(value, torch.Tensor)
                and value.is_cuda
                and value.dim()
                and value.stride(-1) != 1
            ):
                value = value.contiguous()
            arguments[place] = value
        for place, value in zip(self._output_places, outputs):
            arguments[place] = value
        if values[0].device.type != "cpu":
            self.table.function(*arguments)
            return
        begin = time.perf_counter()
        self.table.function(*arguments)
        _warn_of_emulator(self.name, time.perf_counter() - begin)

    def into(self, values: dict[str, Any], outputs: tuple[torch.Tensor, ...]) -> None:
        """As `call`, for tensors of the user's: `out=` of the public functions.

        Raises RuntimeError for a tensor that wants a gradient, ValueError for one that is not what
        its memory says.
        """
        grad = torch.is_grad_enabled()
        for name, value in (*values.items(), *zip(self.outputs, outputs)):
            if not isinstance(value, torch.Tensor):
                continue
            if value.requires_grad and grad:
                raise RuntimeError(
                    f"{self.name}: argument '{name}' requires a gradient; leave 'out' out, or call"
                    " it under torch.no_grad()"
                )
            if value.is_neg() or value.is_conj():
                raise ValueError(
                    f"{self.name}: argument '{name}' is a view to be negated or conjugated; give"
                    " resolve_neg() or resolve_conj()"
                )
        self.call(tuple(values.get(name) for name in self.arguments), outputs)

    def __call__(self, values: dict[str, Any]) -> Any:
        """The call through torch's dispatcher, arguments by name; those that are left out are
        None."""
        return self.overload(*[values.get(name) for name in self.arguments])
