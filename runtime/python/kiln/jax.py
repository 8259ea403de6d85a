"""Kiln's operations on arrays of JAX, with gradients, inside jax.jit.

    import kiln.jax
    o = kiln.jax.attention(q, k, v, causal=True)
    dq = jax.grad(lambda q: kiln.jax.attention(q, k, v).astype(jnp.float32).sum())(q)

Every operation of the library is a function here, with the arguments that kiln's have; those with
a backward operation have gradients of the first order.  Arrays on a GPU run on XLA's stream there;
arrays on the CPU run on Kiln's emulator, which is for tests.  Calls go through XLA's FFI by the
package jax-tvm-ffi.

An optional output is returned if its name is given True.  Inputs that a backward operation gives
no gradient by (alibi, descales) have the gradient 0.  vmap runs a call for each element.  Calls on
a GPU use workspaces of Kiln's own, so XLA does not put them into command buffers.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kiln import _gradient_names
from kiln._arrays import argument, numpy_dtype
from kiln._functions import document, option_value, outputs_of, unknown_argument
from kiln._library import Operation, library

try:
    import jax_tvm_ffi
except ImportError as error:
    raise ImportError("kiln.jax needs the package jax-tvm-ffi; pip install jax-tvm-ffi") from error

__all__: list[str] = []  # the operations, made when they are first asked for


@dataclasses.dataclass(frozen=True)
class _Call:
    """A call but for its arrays."""

    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    options: tuple[tuple[str, Any], ...]

    @property
    def table(self) -> Operation:
        return library().operations[self.operation]


@functools.cache
def _target(call: _Call) -> str:
    """The name of a call as XLA knows it.  It says all of the call: XLA keeps compiled programs on
    disk by such names."""
    options = dict(call.options)
    names = " ".join((*call.inputs, *call.outputs)), " ".join(options)
    bound = library().function("bind")(call.operation, *names, *options.values())
    name = f"kiln.{call.operation}({names[0]}; {call.options})"
    for platform in ("cpu", "gpu"):
        jax_tvm_ffi.register_ffi_target(name, bound, ["args", "rets"], platform=platform)
    return name


def _types(call: _Call, arrays: tuple[Any, ...]) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Of the outputs.  libkiln is asked with arrays that have shapes and no elements."""
    values: dict[str, Any] = dict(call.options)
    for name, array in zip(call.inputs, arrays):
        like = np.broadcast_to(np.zeros((), array.dtype), array.shape)
        values[name] = argument(f"{call.operation}: argument '{name}'", like, written=False)
    values.update({n: True for n in call.outputs if call.table.outputs[n].optional})
    types = outputs_of(call.table, values)
    return tuple(
        jax.ShapeDtypeStruct(shape, numpy_dtype(dtype))
        for shape, dtype in (types[name] for name in call.outputs)
    )


def _run(call: _Call, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    run = jax.ffi.ffi_call(_target(call), _types(call, arrays), vmap_method="sequential")
    return tuple(run(*arrays))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _differentiable(call: _Call, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    return _run(call, arrays)


def _forward(call: _Call, arrays: tuple[Any, ...]) -> tuple[Any, Any]:
    """Also makes the outputs that the backward operation takes (attention's lse)."""
    taken = library().operations[_gradient_names.backward_of(call.operation)].inputs
    more = tuple(n for n in call.table.outputs if n in taken and n not in call.outputs)
    results = _run(dataclasses.replace(call, outputs=(*call.outputs, *more)), arrays)
    outputs = dict(zip((*call.outputs, *more), results))
    kept = {name: value for name, value in outputs.items() if name in taken}
    return results[: len(call.outputs)], (arrays, kept)


def _backward(call: _Call, residuals: Any, by: tuple[Any, ...]) -> tuple[tuple[Any, ...]]:
    arrays, kept = residuals
    table = library().operations[_gradient_names.backward_of(call.operation)]
    inputs = dict(zip(call.inputs, arrays))
    values = {**inputs, **kept}
    gradients = {_gradient_names.gradient_by(n): d for n, d in zip(call.outputs, by)}
    values.update({name: d for name, d in gradients.items() if name in table.inputs})
    to = {n: _gradient_names.gradient_to(n) for n in inputs}
    given = {n: value for n, value in values.items() if n in table.inputs}
    outputs = tuple(n for n, p in table.outputs.items() if not p.optional or n in to.values())
    options = tuple((n, value) for n, value in call.options if n in table.option)
    found = dict(
        zip(outputs, _run(_Call(table.name, tuple(given), outputs, options), tuple(given.values())))
    )
    return (tuple(_gradient(found.get(to[n]), array) for n, array in inputs.items()),)


def _gradient(found: Any, array: Any) -> Any:
    """Of the array's type; None: there is none."""
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return np.zeros(array.shape, jax.dtypes.float0)
    return jnp.zeros_like(array) if found is None else found.astype(array.dtype)


_differentiable.defvjp(_forward, _backward)


def _function(operation: Operation) -> Callable[..., Any]:
    name = operation.name
    has_gradient = _gradient_names.backward_of(name) in library().operations
    if any(p.in_place for p in operation.tensors):
        raise NotImplementedError(
            f"kiln.jax: {name} writes into its inputs, and arrays of JAX are not written; use"
            f" kiln.{name} on other arrays"
        )

    def call(*given: Any, **named: Any) -> Any:
        if len(given) > len(operation.inputs):
            raise TypeError(
                f"{name}: {len(given)} arrays by position; it has {len(operation.inputs)}:"
                f" {', '.join(operation.inputs)}"
            )
        arrays = {n: a for n, a in zip(operation.inputs, given) if a is not None}
        options: dict[str, Any] = {}
        asked = {n for n, p in operation.outputs.items() if not p.optional}
        for key, value in named.items():
            where = f"{name}: argument '{key}'"
            if key in arrays:
                raise TypeError(f"{where} is given twice")
            if value is None or value is False and key in operation.outputs:
                continue
            if key in operation.inputs:
                arrays[key] = value
            elif key in operation.option:
                options[key] = option_value(where, operation.option[key], value)
            elif key in operation.outputs and value is True:
                asked.add(key)
            elif key in operation.outputs:
                raise TypeError(f"{where} is an output; give True to have it returned")
            else:
                raise unknown_argument(operation, key)
        for key, parameter in operation.inputs.items():
            if not parameter.optional and key not in arrays:
                raise TypeError(f"{name}: argument '{key}' is missing: {parameter.description}")
        arrays = {n: jnp.asarray(arrays[n]) for n in operation.inputs if n in arrays}
        outputs = tuple(n for n in operation.outputs if n in asked)
        what = _Call(name, tuple(arrays), outputs, tuple(sorted(options.items())))
        run = _differentiable if has_gradient else _run
        results = run(what, tuple(arrays.values()))
        return results[0] if len(results) == 1 else results

    return document(call, operation, out=False)


def __getattr__(name: str) -> Any:
    operation = None if name.startswith("_") else library().operations.get(name)
    if operation is None:
        raise AttributeError(f"kiln.jax has no operation '{name}'; kiln.operations() lists them")
    globals()[name] = made = _function(operation)
    return made


def __dir__() -> list[str]:
    return sorted([*globals(), *library().operations])
