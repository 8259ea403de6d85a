"""Gradients of operations: an autograd.Function around a forward and a backward operation of
libkiln.

What goes where is read from the operations' own names: the backward operation takes inputs and
outputs of the forward one under their names, the gradient by an output `o` as `do`, and gives the
gradient by an input `q` as `dq`.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch

from kiln.torch._operation import TorchOperation

__all__ = ["Differentiable", "cast_for_autocast"]

#: The names of states' gradients in the linear attention literature, which libkiln follows.
_GRADIENT_BY = {"final_state": "dht"}
_GRADIENT_TO = {"initial_state": "dh0"}


def cast_for_autocast(values: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Under torch.autocast, the tensors of these names in its type.  Others (gates, states, tables)
    stay."""
    kind = values[names[0]].device.type
    if not torch.is_autocast_enabled(kind):
        return values
    dtype = torch.get_autocast_dtype(kind)
    cast = {
        n: values[n].to(dtype)
        for n in names
        if values.get(n) is not None and values[n].is_floating_point()
    }
    return {**values, **cast}


class Differentiable:
    """A forward operation with a gradient.

    forward: the operation.
    backward: for each set of optional gradients (names of its outputs, sorted) the backward
    operation that gives them.
    cast: the inputs that autocast casts.
    of_backward: options of the backward operations that the forward one has not.
    """

    def __init__(
        self,
        forward: TorchOperation,
        backward: dict[tuple[str, ...], TorchOperation],
        cast: tuple[str, ...],
        of_backward: tuple[str, ...] = (),
    ) -> None:
        self.forward, self.backward, self.cast, self.of_backward = (
            forward,
            backward,
            cast,
            of_backward,
        )
        self.function = _function_of(self)

    def __call__(self, values: dict[str, Any]) -> Any:
        """The call with arguments by name.  The Function costs time, so it is left out where no
        gradient is wanted."""
        values = cast_for_autocast(values, self.cast)
        if torch.is_grad_enabled() and any(
            isinstance(value, torch.Tensor) and value.requires_grad for value in values.values()
        ):
            return self.function.apply(
                *[values.get(name) for name in (*self.forward.arguments, *self.of_backward)]
            )
        return self.forward(values)


def _function_of(of: Differentiable) -> type[torch.autograd.Function]:
    # What the Function refers to is plain data and torch's overloads: Dynamo traces it.
    overload, outputs = of.forward.overload, of.forward.outputs
    count, inputs = len(of.forward.arguments), of.forward.inputs
    arguments = (*of.forward.arguments, *of.of_backward)
    taken = next(iter(of.backward.values())).inputs
    kept = tuple(n for n in (*inputs, *outputs) if n in taken)
    options = arguments[len(inputs) :]
    gradient_to = {name: _GRADIENT_TO.get(name, "d" + name) for name in inputs}
    gradient_by = {name: _GRADIENT_BY.get(name, "d" + name) for name in outputs}
    optional = tuple(sorted({name for names in of.backward for name in names}))
    backward_of = {
        ",".join(k): (op.overload, _without_gradient(op), op.arguments, op.outputs)
        for k, op in of.backward.items()
    }

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(*values: Any) -> Any:
            return overload(*values[:count])

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            named = dict(zip(arguments, inputs))
            results = output if isinstance(output, tuple) else (output,)
            named.update(zip(outputs, results))
            ctx.save_for_backward(*[named[name] for name in kept])
            ctx.options = tuple(named[name] for name in options)
            # What the backward operation takes no gradient by has none.
            constant = [r for n, r in zip(outputs, results) if gradient_by[n] not in taken]
            if constant:
                ctx.mark_non_differentiable(*constant)
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            saved = dict(zip(kept, ctx.saved_tensors))
            values = {**saved, **dict(zip(options, ctx.options))}
            values.update((gradient_by[n], g) for n, g in zip(outputs, gradients) if g is not None)
            if "do" not in values:  # only another output has a gradient
                values["do"] = _zeros_of_output(saved, outputs[0])
            wanted = {
                name
                for name, needed in zip(inputs, ctx.needs_input_grad)
                if needed and saved.get(name) is not None
            }
            gradients_to = {gradient_to[name] for name in wanted}
            plain, refusing, its_arguments, its_outputs = backward_of[
                ",".join(n for n in optional if n in gradients_to)
            ]
            its_values = [values.get(name) for name in its_arguments]
            if torch.is_grad_enabled() and not torch.compiler.is_compiling():
                results = refusing.apply(*its_values)
            else:
                results = plain(*its_values)
            found = dict(zip(its_outputs, results))
            by_inputs = tuple(
                found.get(gradient_to[name]) if name in wanted else None for name in inputs
            )
            return by_inputs + (None,) * len(options)

    Function.__name__ = Function.__qualname__ = f"kiln_{of.forward.name}"
    # apply() asks for it at every call, which takes longer than all else unless it is there.
    forward: Any = Function.forward
    forward.__signature__ = inspect.signature(forward)
    return Function


def _without_gradient(operation: TorchOperation) -> type[torch.autograd.Function]:
    """The operation, with a gradient that is an error: a second derivative must not silently be 0.

    torch's once_differentiable looks at the incoming gradients only, which may be constants.
    """
    overload, name = operation.overload, operation.name

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(*values: Any) -> Any:
            return overload(*values)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            raise NotImplementedError(
                f"kiln::{name} has no gradient: second derivatives are not supported"
            )

    return Function


def _zeros_of_output(saved: dict[str, Any], name: str) -> torch.Tensor:
    """Zeros like the first output; the rules' o is not saved, and has v's shape and the queries'
    type."""
    return torch.zeros_like(saved[name] if name in saved else saved["v"])
