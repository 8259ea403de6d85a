"""The operations of libkiln as functions on arrays, made from its table."""

from __future__ import annotations

import difflib
import inspect
import json
import operator
from collections.abc import Callable
from typing import Any

from kiln._arrays import argument, empty, is_array
from kiln._library import Operation, Option, library

__all__ = ["document", "function", "option_value", "outputs_of", "unknown_argument"]


def option_value(where: str, option: Option, value: Any) -> Any:
    """The value as the option's type; NumPy's numbers are numbers."""
    try:
        if option.kind == "flag":
            if value not in (True, False):
                raise TypeError
            return bool(value)
        if option.kind == "whole":
            return operator.index(value)
        if option.kind == "float":
            return float(value)
        if not isinstance(value, str):
            raise TypeError
    except (TypeError, ValueError):
        words = {
            "flag": "True or False",
            "whole": "a whole number",
            "float": "a number",
            "text": "a text",
        }
        wanted = words.get(option.kind) or "one of " + ", ".join(option.choices)
        raise TypeError(f"{where} is {value!r}; give {wanted}") from None
    if option.choices and value not in option.choices:
        raise ValueError(f"{where} is {value!r}; give one of {', '.join(option.choices)}")
    return value


#: What libkiln said of calls' outputs, by operation, types and options.
_known: dict[Any, dict[str, tuple[tuple[int, ...], str]]] = {}
_MOST_KNOWN = 4096  # then it is forgotten


def _outputs_once(
    operation: Operation, arrays: dict[str, Any], values: dict[str, Any], asked: tuple[str, ...]
) -> dict[str, tuple[tuple[int, ...], str]]:
    """outputs_of a call with these arrays, of which libkiln is asked once for each set of types.

    values: the arrays as libkiln takes them, and the options; asked: optional outputs.
    """
    types = tuple([(name, tuple(a.shape), a.dtype) for name, a in arrays.items()])
    options = tuple([(n, v) for n, v in values.items() if n in operation.option])
    key = (operation.name, types, options, asked)
    found = _known.get(key)
    if found is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        found = outputs_of(operation, {**values, **{name: True for name in asked}})
        _known[key] = found
    return found


def outputs_of(
    operation: Operation, values: dict[str, Any]
) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and type of each output of a call.  An optional one is asked for by True."""
    found = library().function("outputs")(operation.name, *operation.arguments(values))
    return {row["name"]: (tuple(row["shape"]), row["dtype"]) for row in json.loads(found)}


def unknown_argument(operation: Operation, key: str) -> TypeError:
    near = difflib.get_close_matches(key, operation.positions, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(operation.positions)}"
    return TypeError(f"{operation.name}: there is no argument '{key}'; {hint}")


def _call(operation: Operation, given: tuple[Any, ...], out: Any, named: dict[str, Any]) -> Any:
    name = operation.name
    inputs, outputs, options = operation.inputs, operation.outputs, operation.option
    if len(given) > len(inputs):
        raise TypeError(
            f"{name}: {len(given)} arrays by position; it has {len(inputs)}: {', '.join(inputs)}"
        )
    arrays = dict(zip(inputs, given))
    asked: dict[str, Any] = {}  # outputs: an array, or True
    values: dict[str, Any] = {}
    for key, value in named.items():
        where = f"{name}: argument '{key}'"
        if key in arrays:
            raise TypeError(f"{where} is given twice")
        if value is None:
            continue
        if key in inputs:
            arrays[key] = value
        elif key in outputs:
            if value is not False:
                asked[key] = value
        elif key in options:
            values[key] = option_value(where, options[key], value)
        elif key == "workspace":
            values[key] = argument(where, value, written=True)
        else:
            raise unknown_argument(operation, key)
    arrays = {key: value for key, value in arrays.items() if value is not None}
    for key, parameter in inputs.items():
        if not parameter.optional and key not in arrays:
            raise TypeError(f"{name}: argument '{key}' is missing: {parameter.description}")
    required = [key for key, parameter in outputs.items() if not parameter.optional]
    if out is not None:
        given_out = out if isinstance(out, (tuple, list)) else (out,)
        if len(given_out) > len(required):
            raise TypeError(
                f"{name}: 'out' has {len(given_out)} arrays; it has {len(required)}:"
                f" {', '.join(required)}"
            )
        asked.update(zip(required, given_out))
    for key in required:
        asked.setdefault(key, True)
    for key, value in arrays.items():
        values[key] = argument(f"{name}: argument '{key}'", value, written=False)
    made = {key for key, value in asked.items() if value is True}
    if made:
        optional = tuple([key for key in asked if outputs[key].optional])
        types = _outputs_once(operation, arrays, values, optional)
        like = next(iter(arrays.values()))
        for key in made:
            asked[key] = empty(like, *types[key])
    for key, value in asked.items():
        values[key] = argument(f"{name}: argument '{key}'", value, written=True)
    operation.function(*operation.arguments(values))
    results = tuple(asked[key] for key in outputs if key in asked)
    return results[0] if len(results) == 1 else results


def _documentation(operation: Operation, out: bool) -> str:
    lines = [operation.summary, "", "Arrays:"]
    for p in operation.tensors:
        kind = ("output" if p.output else "input") + (", may be left out" if p.optional else "")
        lines.append(f"    {p.name} ({kind}): {p.description}")
    if operation.options:
        lines += ["", "Options:"]
    for o in operation.options:
        default = "" if o.default is None else f"; default {o.default}"
        choices = f" ({', '.join(o.choices)})" if o.choices else ""
        lines.append(f"    {o.name} ({o.kind}{default}): {o.description}{choices}")
    lines.append("")
    if out:
        lines.append(
            "out: the array, or arrays, that the outputs which are not optional are written to;"
            " made if it is None."
        )
    lines += [
        "An optional output is returned if its name is given True"
        + (", or an array to write to." if out else "."),
        f"Types: {', '.join(operation.dtypes)}.",
    ]
    return "\n".join(lines)


def document(call: Callable[..., Any], operation: Operation, *, out: bool) -> Callable[..., Any]:
    """Gives the function that calls the operation its name, signature and docstring.  out: whether
    outputs may be given."""
    either, only = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters, has_default = [], False
    for name, parameter in operation.inputs.items():
        has_default |= parameter.optional
        default = None if has_default else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, either, default=default))
    more = ["out"] if out else []
    more += [name for name, parameter in operation.outputs.items() if parameter.optional]
    more += [o.name for o in operation.options] + (["workspace"] if out else [])
    parameters += [inspect.Parameter(name, only, default=None) for name in more]
    call.__name__ = call.__qualname__ = operation.name
    call.__doc__ = _documentation(operation, out)
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def function(operation: Operation) -> Callable[..., Any]:
    """The operation as a Python function, with a signature and a docstring made from its table."""

    def call(*arrays: Any, out: Any = None, **named: Any) -> Any:
        return _call(operation, arrays, out, named)

    return document(call, operation, out=True)
