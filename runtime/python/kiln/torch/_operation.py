"""An operation of libkiln as an operation of torch.

A TorchOperation has a schema made from libkiln's table, an implementation for CPU tensors (the
emulator) and CUDA tensors, and a fake one for tracing.  It is functional: its outputs are new
tensors, and there are always as many.  An output that is optional makes another operation, which
has it (`kiln::rwkv7`, `kiln::rwkv7_with_final_state`).

It has no gradient: that is given by an autograd.Function around it (_gradients.py).  This is the
way that costs least for each call (define and impl, not custom_op), and the one that works with
torch.compile, export, checkpointing and torch.func.

A call is one pass through the dispatcher, into libkiln (runtime/door/TorchOperation.h), which makes
the outputs and runs no Python.  There is an implementation in Python, too: for a torch without the
functions that libkiln needs, for KILN_TORCH_PYTHON=1, and in the mode InPython, where calls are
looked at.  What depends on the operation alone is bound when it is made: a call moves its arguments
by position, without dictionaries, and allocates the outputs that it has and nothing else
(tests/python/autograd/test_host_time.py counts).

Not handled here: views that are to be negated or conjugated, which torch's dispatcher resolves
before it calls the implementation; tensors without memory (fake ones, wrapper subclasses), which
libkiln refuses by name.
"""

from __future__ import annotations

import builtins
import inspect
import operator
import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from kiln import errors
from kiln._library import Operation, library
from kiln.torch._workspace import Workspaces

__all__ = [
    "InPython",
    "NAMESPACE",
    "Rule",
    "TorchOperation",
    "as_raised",
    "empty_like",
    "implement",
    "invoking",
    "of_arguments",
    "picker",
]

NAMESPACE = torch.library.Library("kiln", "DEF")
_TYPES = {"flag": "bool", "whole": "int", "float": "float", "choice": "str", "text": "str"}
_SLOW = 1.0  # seconds of a call on the emulator after which the user is told what it is

#: What runs an operation in Python, by its overload.
_in_python: dict[Any, Callable[..., Any]] = {}

#: Makes an output of a call from the arguments that its parameters name; a fake tensor for fake
#: ones.  Its attribute `fills`: elements that the call leaves alone are 0.
Rule = Callable[..., torch.Tensor]


def _warn_of_emulator(name: str, seconds: float) -> None:
    global _SLOW
    if seconds > _SLOW:
        _SLOW = float("inf")  # once
        warnings.warn(
            f"kiln::{name} took {seconds:.1f} s: tensors on the CPU run on Kiln's emulator of a"
            " GPU, which is for tests and finds defects; move the tensors to a GPU for speed",
            stacklevel=2,
        )


def picker(places: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Takes the values of these places out of a tuple, in C."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    begin = places[0] if places else 0
    return operator.itemgetter(slice(begin, begin + len(places)))


def of_arguments(rule: Rule, **names: str) -> Rule:
    """The rule with other names of its parameters: x="q" has its `x` be the call's `q`."""
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    rule.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(names.get(n, n), either) for n in inspect.signature(rule).parameters]
    )
    return rule


def empty_like(name: str) -> Rule:
    """The rule of an output that is as the input `name`, dense."""

    def rule(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x, memory_format=torch.contiguous_format)

    return of_arguments(rule, x=name)


class InPython(TorchDispatchMode):
    """In it Kiln's operations run in Python, by the functions of kiln._library's table."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        run = _in_python.get(function)
        if run and any(t not in (torch.Tensor, torch.nn.Parameter, FakeTensor) for t in types):
            return NotImplemented  # a subclass takes its call apart first
        if run is None or any(
            isinstance(a, FakeTensor) or getattr(a, "is_meta", False) for a in args
        ):
            return function(*args, **(kwargs or {}))
        return run(*args)


def as_raised(error: RuntimeError) -> Exception:
    """libkiln's error, which torch's dispatcher hands on as a RuntimeError with the kind before the
    message."""
    kind, _, message = str(error).partition("\nException raised from kiln")[0].partition(": ")
    if not kind.startswith("kiln."):
        return error
    kind = kind.removeprefix("kiln.")
    if kind == "OutOfMemoryError":
        return torch.OutOfMemoryError(message)
    return (errors.KINDS.get(kind) or getattr(builtins, kind, errors.KilnError))(message)


def invoking(overload: Callable[..., Any]) -> Callable[..., Any]:
    """The overload, with errors of their own classes."""

    def invoke(*values: Any) -> Any:
        try:
            return overload(*values)
        except RuntimeError as error:
            raise as_raised(error) from None

    return invoke


def implement(
    name: str, table: Operation, inputs: str, options: str, outputs: str, run: Callable[..., Any]
) -> Any:
    """Implements a schema of NAMESPACE by libkiln's operation; returns the overload.

    inputs, options, outputs: as of runtime/door/TorchOperation.h.  run: the same in Python.
    """
    native = library().function("torch_implement")
    if os.environ.get("KILN_TORCH_PYTHON") == "1":
        native = None
    for key in ("CPU", "CUDA"):
        if native is None or not native(table.name, name, key, inputs, options, outputs):
            NAMESPACE.impl(name, run, key)
    overload = getattr(torch.ops.kiln, name).default
    _in_python[overload] = run
    return overload


class TorchOperation:
    """One overload in torch.ops.kiln.

    name: of libkiln's operation.
    inputs: names of the tensors that it takes, in the order of the schema; `?` after a name: it
    may be None.
    options: names of the options that it takes, after the tensors; each may be None.
    rules: for each output its rule; those of other outputs are left alone.
    with_outputs: optional outputs that it has besides those that are not optional.
    """

    def __init__(
        self,
        name: str,
        inputs: tuple[str, ...],
        options: tuple[str, ...],
        rules: dict[str, Rule],
        with_outputs: tuple[str, ...] = (),
    ) -> None:
        self.table: Operation = library().operations[name]
        self.name = "_with_".join((name, *with_outputs))
        self.inputs = tuple(i.rstrip("?") for i in inputs)
        self.options = options
        self.arguments = (*self.inputs, *options)
        self.outputs = tuple(
            n for n, p in self.table.outputs.items() if not p.optional or n in with_outputs
        )
        self._makers = [self._maker(rules[n]) for n in self.outputs]
        self._single = len(self.outputs) == 1
        # (None, arguments, outputs) -> the arguments of libkiln's function, but for the workspace
        positions = self.table.positions
        places = [0] * positions["workspace"]
        for at, n in enumerate((*self.arguments, *self.outputs)):
            places[positions[n]] = 1 + at
        self._arrange = picker(places)
        self._workspaces = Workspaces(self.table)
        written = [f"Tensor{'?' * i.endswith('?')} {n}" for i, n in zip(inputs, self.inputs)]
        written += [f"{_TYPES[self.table.option[o].kind]}? {o}" for o in options]
        results = ", ".join(["Tensor"] * len(self.outputs))
        NAMESPACE.define(
            f"{self.name}({', '.join(written)}) -> {results if self._single else f'({results})'}"
        )
        torch.library.register_fake(f"kiln::{self.name}", self._fake, lib=NAMESPACE)
        filled = [n + "*" * getattr(rules[n], "fills", False) for n in self.outputs]
        self.overload = implement(
            self.name,
            self.table,
            " ".join(inputs),
            " ".join(options),
            " ".join(filled),
            self._run,
        )
        self.invoke = invoking(self.overload)

    def _maker(self, rule: Rule) -> tuple[Rule, Callable[[tuple[Any, ...]], tuple[Any, ...]]]:
        names = inspect.signature(rule).parameters
        return rule, picker([self.arguments.index(n) for n in names])

    def _new(self, values: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
        return tuple([rule(*pick(values)) for rule, pick in self._makers])

    def _fake(self, *values: Any) -> Any:
        made = self._new(values)
        return made[0] if self._single else made

    def _run(self, *values: Any) -> Any:
        made = self._new(values)
        self.call(values, made)
        return made[0] if self._single else made

    def call(self, values: tuple[Any, ...], outputs: tuple[torch.Tensor, ...]) -> None:
        """Runs it into these outputs, past torch's dispatcher.  values: in the order of
        `arguments`."""
        if not values[0].is_cpu:
            return self._call_on_gpu(values, outputs)
        begin = time.perf_counter()
        self.table.function(*self._arrange((None, *values, *outputs)))
        _warn_of_emulator(self.name, time.perf_counter() - begin)

    def _call_on_gpu(self, values: tuple[Any, ...], outputs: tuple[torch.Tensor, ...]) -> None:
        count = len(self.inputs)
        tensors, options = list(values[:count]), values[count:]
        key = [*options]
        for at, tensor in enumerate(tensors):
            if tensor is None:
                key.append(None)
                continue
            key += tensor.shape, tensor.dtype
            # As FlashAttention does.  Gradients of sums come with strides of 0.
            if tensor.dim() and tensor.stride(-1) != 1:
                tensors[at] = tensor.contiguous()
        arguments = self._arrange((None, *tensors, *options, *outputs))
        self._workspaces.call(arguments, tuple(key), values[0].device)

    def into(self, values: tuple[Any, ...], **given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """As `call`, for tensors of the user's: `out=` of the public functions.  Outputs that are
        not given are made; returns all.

        Raises RuntimeError for a tensor that wants a gradient, ValueError for one that is not what
        its memory says.
        """
        outputs = tuple(
            given[name] if name in given else rule(*pick(values))
            for name, (rule, pick) in zip(self.outputs, self._makers)
        )
        grad = torch.is_grad_enabled()
        for value in (*values[: len(self.inputs)], *outputs):
            if value is None or not isinstance(value, torch.Tensor):
                continue  # which libkiln refuses
            if (value.requires_grad and grad) or value.is_neg() or value.is_conj():
                self._refuse(values, outputs, value)
        self.call(values, outputs)
        return outputs

    def _refuse(self, values: tuple[Any, ...], outputs: tuple[Any, ...], bad: Any) -> None:
        all_values = zip((*self.arguments, *self.outputs), (*values, *outputs))
        where = next(
            f"{self.name}: argument '{name}'" for name, value in all_values if value is bad
        )
        if bad.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"{where} requires a gradient; leave 'out' out, or call it under torch.no_grad()"
            )
        raise ValueError(
            f"{where} is a view to be negated or conjugated; give resolve_neg() or resolve_conj()"
        )

    def __call__(self, values: dict[str, Any]) -> Any:
        """The call through torch's dispatcher, arguments by name; those that are left out are
        None."""
        return self.invoke(*[values.get(name) for name in self.arguments])
