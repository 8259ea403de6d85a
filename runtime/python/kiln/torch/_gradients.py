"""Gradients of operations: an autograd.Function around a forward and a backward operation of
libkiln.

What goes where is read from the operations' own names (_gradient_names.py), once for each set of
gradients that is asked for: a _Plan, by which calls move tensors by position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from kiln import _gradient_names
from kiln.torch._operation import TorchOperation, as_raised, picker

_is_any_autocast_enabled = torch._C._is_any_autocast_enabled
_is_transforming = torch._C._are_functorch_transforms_active

__all__ = ["Differentiable", "applier", "cast_for_autocast"]


def cast_for_autocast(tensors: tuple[Any, ...], places: tuple[int, ...]) -> tuple[Any, ...]:
    """Under torch.autocast, the tensors of these places in its type.  Others (gates, states,
    tables) stay."""
    # What is no tensor is refused by the schema of the operation.
    kind = "cuda" if getattr(tensors[0], "is_cuda", False) else "cpu"
    if not torch.is_autocast_enabled(kind):
        return tensors
    dtype = torch.get_autocast_dtype(kind)
    cast = list(tensors)
    for at in places:
        if cast[at] is not None and cast[at].is_floating_point():
            cast[at] = cast[at].to(dtype)
    return tuple(cast)


def _eager(
    function: type[torch.autograd.Function], forward: Callable[..., Any] | None = None
) -> Any:
    """function.apply, at half its cost, for calls that nothing traces.

    function: with setup_context, which torch.func wants.  For it torch reads the signature of
    `forward` at each call; a Function whose forward takes the context needs that not.
    forward: both in one, faster.
    """

    def both(ctx: Any, *values: Any) -> Any:
        output = function.forward(*values)
        function.setup_context(ctx, values, output)
        return output

    members = {
        "forward": staticmethod(forward or both),
        "setup_context": torch.autograd.Function.setup_context,  # as if there were none
    }
    made = type(function)(function.__name__, (function,), members)
    # That of C: older versions of torch have one in Python before it, for torch.func.
    return super(torch.autograd.Function, made).apply


def applier(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """function.apply where a call is traced or transformed, else the faster one of `_eager`."""
    run = _eager(function)

    def apply(*values: Any) -> Any:
        if torch.compiler.is_compiling() or _is_transforming():
            return function.apply(*values)
        return run(*values)

    return apply


class _Plan(NamedTuple):
    """The backward call of one set of gradients."""

    operation: Any  # its overload
    refusing: Any  # a Function around it
    places: tuple[int, ...]  # of its arguments in (None, saved tensors, options, gradients, zeros)
    zeros_like: int  # the saved tensor that the first output's gradient is like; 0: it is given
    results: tuple[int, ...]  # for each input its gradient's place in (None, the call's outputs)


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
        self.forward, self.backward, self.of_backward = forward, backward, of_backward
        self._cast = tuple(forward.inputs.index(name) for name in cast)
        self._tensors = len(forward.inputs)
        self._function, self._all, self._first = _functions_of(self)

    def run(
        self,
        values: tuple[Any, ...],
        of_backward: tuple[Any, ...] = (),
        alone: TorchOperation | None = None,
    ) -> Any:
        """The call.  values: as forward.arguments; of_backward: the options of that name.

        alone: the operation of the first output and no other.  If it is given, that is the result;
        and it serves where no gradient is wanted.
        A Function costs time, so it is left out there.
        """
        if _is_any_autocast_enabled():
            values = cast_for_autocast(values, self._cast)
        try:  # as `invoke`, without its frame
            if torch.is_grad_enabled():
                for tensor in values[: self._tensors]:
                    if tensor is not None and getattr(tensor, "requires_grad", False):
                        return self._with_gradient(values, of_backward, alone is not None)
            return (alone or self.forward).overload(*values)
        except RuntimeError as error:
            raised = as_raised(error)
            if raised is error:  # torch's, or of a hook of the user's
                raise
            raise raised from None

    def _with_gradient(
        self, values: tuple[Any, ...], of_backward: tuple[Any, ...], first: bool
    ) -> Any:
        given = self._tensors
        options = (*values[given:], *of_backward)
        while values[given - 1] is None:  # each costs as much as a tensor
            given -= 1
        if torch.compiler.is_compiling() or _is_transforming():
            results = self._function.apply(options, *values[:given])
            return results[0] if first else results
        return (self._first if first else self._all)(options, *values[:given])

    def __call__(self, values: dict[str, Any]) -> Any:
        """The call with arguments by name; those that are left out are None."""
        get = values.get
        return self.run(
            tuple([get(name) for name in self.forward.arguments]),
            tuple([get(name) for name in self.of_backward]),
        )


def _functions_of(of: Differentiable) -> tuple[type[torch.autograd.Function], Any, Any]:
    """The Function of the arguments (options, *tensors), the backward call's options at the end;
    tensors at the end may be left out.  What it refers to is plain data and torch's overloads: Dynamo traces it.

    Also two of `_eager`: one gives all outputs; the other gives the first, and keeps the rest for
    the gradient.  They save what `setup_context` saves.
    """
    direct = getattr(of.forward.overload, "_op", of.forward.overload)  # without a frame of Python
    overload, outputs = of.forward.invoke, of.forward.outputs
    inputs = of.forward.inputs
    count = len(of.forward.options)
    options = (*of.forward.options, *of.of_backward)
    taken = next(iter(of.backward.values())).inputs
    gradient_to = {name: _gradient_names.gradient_to(name) for name in inputs}
    gradient_by = {name: _gradient_names.gradient_by(name) for name in outputs}
    kept = tuple([at for at, name in enumerate(inputs) if name in taken])
    kept_outputs = tuple([at for at, name in enumerate(outputs) if name in taken])
    # By the number of tensors: takes what is kept out of (*tensors, *outputs).
    keepers = [
        picker([*[at for at in kept if at < n], *[n + at for at in kept_outputs]])
        for n in range(len(inputs) + 1)
    ]
    # What the backward operation takes no gradient by has none.
    constant = tuple([at for at, name in enumerate(outputs) if gradient_by[name] not in taken])
    optional = tuple(sorted({name for names in of.backward for name in names}))
    backward_of = {
        ",".join(k): (op.invoke, _without_gradient(op), op.arguments, op.outputs)
        for k, op in of.backward.items()
    }
    padding = tuple([(None,) * (len(inputs) - n) for n in range(len(inputs) + 1)])
    plans: dict[Any, _Plan] = {}

    def plan_of(needed: tuple[bool, ...], present: tuple[bool, ...]) -> _Plan:
        """needed: of each input; present: of each output's gradient."""
        saved = [inputs[at] for at in kept if at < len(needed)]
        saved += [outputs[at] for at in kept_outputs]
        by = [gradient_by[n] if is_there else "" for n, is_there in zip(outputs, present)]
        pool = ["", *saved, *options, *by, "do"]
        wanted = [n for n, is_needed in zip(inputs, needed) if is_needed and n in saved]
        to = [gradient_to[n] for n in wanted]
        call, refusing, its_arguments, its_outputs = backward_of[
            ",".join([n for n in optional if n in to])
        ]
        # The rules' o is not saved, and has v's shape and the queries' type.
        like = outputs[0] if outputs[0] in saved else "v"
        found = ["", *its_outputs]
        return _Plan(
            call,
            refusing,
            tuple([pool.index(n) if n in pool else 0 for n in its_arguments]),
            0 if present[0] else pool.index(like),
            tuple([found.index(d) if d in to and d in found else 0 for d in gradient_to.values()]),
        )

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(options: Any, *tensors: Any) -> Any:
            return overload(*tensors, *padding[len(tensors)], *options[:count])

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            options, *tensors = inputs
            results = output if isinstance(output, tuple) else (output,)
            saved = [tensors[at] for at in kept if at < len(tensors)]
            ctx.save_for_backward(*saved, *[results[at] for at in kept_outputs])
            ctx.options = options
            if constant:
                ctx.mark_non_differentiable(*[results[at] for at in constant])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            needed = ctx.needs_input_grad[1:]
            present = tuple([g is not None for g in gradients])
            plan = plans.get((needed, present))
            compiling = torch.compiler.is_compiling()
            if plan is None:
                plan = plan_of(needed, present)
                if not compiling:
                    plans[needed, present] = plan
            pool = (None, *ctx.saved_tensors, *ctx.options, *gradients)
            if plan.zeros_like:  # only another output has a gradient
                pool = (*pool, torch.zeros_like(pool[plan.zeros_like]))
            values = [pool[at] for at in plan.places]
            if torch.is_grad_enabled() and not compiling:
                results = plan.refusing.apply(*values)
            else:
                results = plan.operation(*values)
            found = (None, *results) if isinstance(results, tuple) else (None, results)
            return (None, *[found[at] for at in plan.results[: len(needed)]])

    Function.__name__ = Function.__qualname__ = f"kiln_{of.forward.name}"

    def forward_of(gives_all: bool) -> Callable[..., Any]:
        def forward(ctx: Any, options: Any, *tensors: Any) -> Any:
            output = direct(*tensors, *padding[len(tensors)], *options[:count])
            results = output if isinstance(output, tuple) else (output,)
            ctx.save_for_backward(*keepers[len(tensors)]((*tensors, *results)))
            ctx.options = options
            ctx.set_materialize_grads(False)
            if not gives_all:
                return results[0]
            if constant:
                ctx.mark_non_differentiable(*[results[at] for at in constant])
            return output

        return forward

    return Function, _eager(Function, forward_of(True)), _eager(Function, forward_of(False))


def _without_gradient(operation: TorchOperation) -> type[torch.autograd.Function]:
    """The operation, with a gradient that is an error: a second derivative must not silently be 0.

    torch's once_differentiable looks at the incoming gradients only, which may be constants.
    """
    overload, name = operation.invoke, operation.name

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
