"""Attention of few queries over a cache of keys and values, which new rows are written into.

Two operations of torch: `kiln::attention_decode` reads a cache; `kiln::attention_decode_append`
also writes new rows into it, in place, which its schema says (`Tensor(a!) k_cache`), so that
torch.compile keeps the order.  None has a gradient.
"""

from __future__ import annotations

import operator
import time
from typing import Any

import torch

from kiln._library import library
from kiln.torch._operation import _TYPES, NAMESPACE, _warn_of_emulator, implement, invoking
from kiln.torch._workspace import Workspaces

__all__ = ["attention_decode"]

_TABLE = library().operations["attention_decode"]
_OPTIONS = (
    "causal",
    "window_left",
    "window_right",
    "softcap",
    "scale",
    "rotary_interleaved",
    "max_keys",
    "splits",
)
_CACHES = ("k_cache", "v_cache")
_NEW = ("k_new", "v_new", "rotary_cos", "rotary_sin")
_COPIED = ("q", "k_new", "v_new")  # where the last dimension has another stride than 1
_EIGHTH = (torch.float8_e4m3fn, torch.float8_e5m2)


def _new_outputs(q: torch.Tensor, v_cache: torch.Tensor, with_lse: bool) -> list[torch.Tensor]:
    """o, [B, Sq, H, Dv], and lse, [B, H, Sq]."""
    dtype = torch.bfloat16 if q.dtype in _EIGHTH else q.dtype
    made = [q.new_empty((*q.shape[:-1], v_cache.shape[-1]), dtype=dtype)]
    if with_lse:
        made.append(q.new_empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32))
    return made


#: Of a call of attention_decode, as `given` there.
_GIVEN = (*_TABLE.inputs, *_OPTIONS)


class _Decode:
    """One of the operations.  Its arguments are those of libkiln's table, in its order; without
    `appends` those of new rows are left out."""

    def __init__(self, appends: bool, with_lse: bool) -> None:
        self.name = "attention_decode" + "_append" * appends + "_with_lse" * with_lse
        inputs = {n: p for n, p in _TABLE.inputs.items() if appends or n not in _NEW}
        options = tuple(o for o in _OPTIONS if appends or o != "rotary_interleaved")
        arguments = (*inputs, *options)
        self._with_lse = with_lse
        self._places = tuple([_GIVEN.index(n) for n in arguments])
        # (None, arguments, outputs, caches) -> the arguments of libkiln's function
        outputs = ["o"] + ["lse"] * with_lse
        after = [f"{n}_after" for n in _CACHES] if appends else []  # their new state: themselves
        places = [0] * _TABLE.positions["workspace"]
        for at, n in enumerate([*arguments, *outputs, *after]):
            places[_TABLE.positions[n]] = 1 + at
        self._arrange = operator.itemgetter(*places)
        self._workspaces = Workspaces(_TABLE)
        self._copied = [arguments.index(n) for n in _COPIED if n in arguments]
        self._written = slice(1, 3 if appends else 1)  # of (q, k_cache, v_cache, ..)
        written = {"k_cache": "(a!)", "v_cache": "(b!)"} if appends else {}
        words = [f"Tensor{written.get(n, '')}{'?' * p.optional} {n}" for n, p in inputs.items()] + [
            f"{_TYPES[_TABLE.option[o].kind]}? {o}" for o in options
        ]
        results = "(Tensor, Tensor)" if with_lse else "Tensor"
        NAMESPACE.define(f"{self.name}({', '.join(words)}) -> {results}")
        torch.library.register_fake(f"kiln::{self.name}", self._fake, lib=NAMESPACE)
        marks = [n + "!" * (n not in _COPIED) + "?" * p.optional for n, p in inputs.items()]
        told = outputs + [f"{n}={cache}" for n, cache in zip(after, _CACHES)]
        overload = implement(
            self.name, _TABLE, " ".join(marks), " ".join(options), " ".join(told), self._run
        )
        self.invoke = invoking(overload)

    def pick(self, given: tuple[Any, ...]) -> list[Any]:
        """Its arguments of those of `_GIVEN`, as Dynamo traces it."""
        return [given[at] for at in self._places]

    def _fake(self, q: Any, k_cache: Any, v_cache: Any, *values: Any) -> Any:
        made = _new_outputs(q, v_cache, self._with_lse)
        return tuple(made) if self._with_lse else made[0]

    def _run(self, *values: Any) -> Any:
        made = _new_outputs(values[0], values[2], self._with_lse)
        self.call(values, made)
        return tuple(made) if self._with_lse else made[0]

    def call(self, values: tuple[Any, ...], outputs: list[torch.Tensor]) -> None:
        """Runs it into its outputs, past torch's dispatcher.  values: in the order of its
        arguments."""
        caches = values[self._written]
        for at in self._copied:
            tensor = values[at]
            if tensor is not None and tensor.stride(-1) != 1:
                values = (*values[:at], tensor.contiguous(), *values[at + 1 :])
        o = outputs[0]
        if not o.is_cpu:
            key = tuple([(v.shape, v.dtype) if isinstance(v, torch.Tensor) else v for v in values])
            arguments = self._arrange((None, *values, *outputs, *caches))
            return self._workspaces.call(arguments, key, o.device)
        begin = time.perf_counter()
        _TABLE.function(*self._arrange((None, *values, *outputs, *caches)))
        _warn_of_emulator(self.name, time.perf_counter() - begin)


#: By whether new rows come, and whether lse is asked for.
_OPERATIONS = {
    (appends, with_lse): _Decode(appends, with_lse)
    for appends in (False, True)
    for with_lse in (False, True)
}


def attention_decode(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k_new: torch.Tensor | None = None,
    v_new: torch.Tensor | None = None,
    *,
    cache_seqlens: torch.Tensor | None = None,
    page_table: torch.Tensor | None = None,
    cache_batch_idx: torch.Tensor | None = None,
    leftpad_k: torch.Tensor | None = None,
    rotary_cos: torch.Tensor | None = None,
    rotary_sin: torch.Tensor | None = None,
    rotary_interleaved: bool = False,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    sink: torch.Tensor | None = None,
    alibi: torch.Tensor | None = None,
    q_descale: torch.Tensor | None = None,
    k_descale: torch.Tensor | None = None,
    v_descale: torch.Tensor | None = None,
    max_keys: int | None = None,
    splits: int | None = None,
    return_lse: bool = False,
    out: torch.Tensor | None = None,
) -> Any:
    """Attention of each sequence's last tokens, q, over the keys and values in a cache.

    q: [B, Sq, H, D]; bf16, f16 or fp8 e4m3, D a multiple of 8 (16) up to 256.
    k_cache: [B or more, capacity, Hk, D]; v_cache: [.., Dv]; with a page_table ([B, pages], int32)
    [pages, rows, Hk, D].
    cache_seqlens: [B], int32, how many keys each sequence has in the cache; default: the room.
    k_new, v_new: [B, Snew, Hk, D] and [.., Dv], rows that come after those.  They are written into
    the caches, which are changed in place, and attended to; cache_seqlens is not changed.
    cache_batch_idx: [B], int32, where each sequence lies.  leftpad_k: [B], int32, rows before its
    first key.
    rotary_cos, rotary_sin: [n, r / 2], rotate r columns of k_new and q by their positions;
    rotary_interleaved: columns 2 t and 2 t + 1 together, else t and t + r / 2.
    max_keys: an upper bound of a sequence's keys.  splits: programs that share a row's keys.
    causal: the last query stands at the last key.  window, softcap, sink, alibi, scale and the
    descales are as of attention.
    out: written in place of a new o, without torch's dispatcher.

    Returns o, [B, Sq, H, Dv]; with return_lse also lse, [B, H, Sq], f32.  There is no gradient:
    raises RuntimeError where one is wanted, ValueError for shapes and types that do not fit.
    """
    # In the order of _GIVEN.
    tensors = (
        *(q, k_cache, v_cache, cache_seqlens, k_new, v_new, rotary_cos, rotary_sin, page_table),
        *(cache_batch_idx, leftpad_k, sink, alibi, q_descale, k_descale, v_descale),
    )
    options = (causal, window[0], window[1], softcap, scale, rotary_interleaved, max_keys, splits)
    if torch.is_grad_enabled():
        for value in tensors:
            if value is not None and getattr(value, "requires_grad", False):
                _refuse_gradient(tensors, value)
    appends = not (k_new is v_new is rotary_cos is rotary_sin is None)
    operation = _OPERATIONS[appends, return_lse]
    if out is None:
        return operation.invoke(*operation.pick((*tensors, *options)))
    outputs = [out, *_new_outputs(q, v_cache, return_lse)[1:]]
    operation.call(tuple(operation.pick((*tensors, *options))), outputs)
    return tuple(outputs) if return_lse else out


def _refuse_gradient(tensors: tuple[Any, ...], bad: torch.Tensor) -> None:
    name = next(name for name, value in zip(_GIVEN, tensors) if value is bad)
    raise RuntimeError(
        f"attention_decode: argument '{name}' requires a gradient, which this operation has not;"
        " call it under torch.no_grad(), or use attention"
    )
