"""Linear attention with a state: DPLR with RWKV7, the delta rules, GLA.

Every rule takes [B, T, H, K] and [B, T, H, V] tensors, bf16 or f16, log decays at most 0 in f32 or
that type, and states [N, H, K, V] in f32; N is B, or with cu_seqlens ([N + 1], int32 or int64; B is
1) the number of sequences.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from kiln._library import library
from kiln.torch._gradients import Differentiable
from kiln.torch._operation import TorchOperation, empty_like

__all__ = ["delta_rule", "dplr", "gated_delta_rule", "gla", "iplr", "kda", "rwkv7", "simple_gla"]

_OPTIONS = ("scale", "chunk_size", "safe_gate", "lower_bound")
Tensor = torch.Tensor
_NOT_CAST = ("g", "w", "beta", "initial_state", "cu_seqlens")


def _new_state(k: Tensor, v: Tensor, cu_seqlens: Tensor | None) -> Tensor:
    sequences = k.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
    return k.new_empty((sequences, *k.shape[2:], v.shape[3]), dtype=torch.float32)


_OUTPUTS = {"o": empty_like("v"), "final_state": _new_state, "dh0": _new_state}


class _Rule:
    """A rule's operations: with and without the last state, and with and without the first one's
    gradient.

    function: the public one; its tensors by position are the rule's.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        forward, backward = library().operations[name], library().operations[f"{name}_backward"]
        options = tuple(o for o in _OPTIONS if o in forward.option)

        def inputs(operation: Any) -> tuple[str, ...]:
            # `saved` is of the C++ and C callers: here the backward call makes again what it needs.
            return tuple(n + "?" * p.optional for n, p in operation.inputs.items() if n != "saved")

        rules = {f"d{n}": empty_like(n) for n in forward.inputs} | _OUTPUTS
        gradients = {
            extra: TorchOperation(
                f"{name}_backward", inputs(backward), options, rules, with_outputs=extra
            )
            for extra in ((), ("dh0",))
        }
        cast = tuple(n for n in forward.inputs if n not in _NOT_CAST)
        self.plain, self.with_state = (
            Differentiable(
                TorchOperation(name, inputs(forward), options, rules, with_outputs=extra),
                gradients,
                cast,
            )
            for extra in ((), ("final_state",))
        )
        by_position = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.kind is p.POSITIONAL_OR_KEYWORD
        ]
        given = [*by_position, "initial_state", "cu_seqlens"]
        given += _OPTIONS
        self._places = tuple(given.index(n) for n in self.plain.forward.arguments)

    def __call__(
        self,
        tensors: tuple[Tensor | None, ...],
        output_final_state: bool,
        out: Tensor | None,
        *options: Any,
    ) -> Any:
        """tensors: in the function's order, then the first state and the offsets; options: as
        _OPTIONS."""
        operation = self.with_state if output_final_state else self.plain
        given = (*tensors, *options)
        values = tuple([given[at] for at in self._places])
        if out is None:
            return operation.run(values)
        results = operation.forward.into(values, o=out)
        return results if output_final_state else out


def rwkv7(
    r: Tensor,
    w: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    safe_gate: bool = False,
    lower_bound: float | None = None,
    chunk_size: int | None = None,
    out: Tensor | None = None,
) -> Any:
    """RWKV7: dplr with q = r and the log decays g = w, and scale 1 if none is given."""
    return _rules["rwkv7"](
        (r, w, k, v, a, b, initial_state, cu_seqlens),
        output_final_state,
        out,
        scale,
        chunk_size,
        safe_gate,
        lower_bound,
    )


def dplr(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    g: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    safe_gate: bool = False,
    lower_bound: float | None = None,
    chunk_size: int | None = None,
    out: Tensor | None = None,
) -> Any:
    """The DPLR delta rule: S_t = diag(e^g_t) S_{t-1} + b_t (S_{t-1}^T a_t)^T + k_t v_t^T, o_t =
    scale S_t^T q_t.

    q, k, a, b: [B, T, H, K]; v: [B, T, H, V]; g: [B, T, H, K], log decays at most 0.
    scale: default 1 / sqrt(K).  safe_gate, lower_bound: promise that no log decay is below -5, or
    this.
    chunk_size: 16, 32 or 64; only rounding depends on it.
    out: written in place of a new o, without torch's dispatcher and without gradients.

    Returns o, [B, T, H, V]; with output_final_state also S_T, [N, H, K, V], f32.  Gradients by all
    tensors but cu_seqlens.  Raises ValueError for shapes and types that do not fit.
    """
    return _rules["dplr"](
        (q, k, v, a, b, g, initial_state, cu_seqlens),
        output_final_state,
        out,
        scale,
        chunk_size,
        safe_gate,
        lower_bound,
    )


def iplr(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    chunk_size: int | None = None,
    out: Tensor | None = None,
) -> Any:
    """dplr whose state does not decay."""
    return _rules["iplr"](
        (q, k, v, a, b, initial_state, cu_seqlens),
        output_final_state,
        out,
        scale,
        chunk_size,
        None,
        None,
    )


def kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    safe_gate: bool = False,
    lower_bound: float | None = None,
    chunk_size: int | None = None,
    out: Tensor | None = None,
) -> Any:
    """The delta rule with a gate for each channel: g is [B, T, H, K].  The rest is as of
    gated_delta_rule."""
    return _rules["kda"](
        (q, k, v, g, beta, initial_state, cu_seqlens),
        output_final_state,
        out,
        scale,
        chunk_size,
        safe_gate,
        lower_bound,
    )


def gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    safe_gate: bool = False,
    lower_bound: float | None = None,
    chunk_size: int | None = None,
    out: Tensor | None = None,
) -> Any:
    """With D = diag(e^g_t) S_{t-1}: S_t = D + beta_t k_t (v_t - D^T k_t)^T, o_t = scale S_t^T q_t.

    g: [B, T, H], log decays at most 0; beta: [B, T, H].  k is taken as it is: the rule is stable
    where beta |k|^2 is at most 2.  The rest is as of dplr.
    """
    return _rules["gated_delta_rule"](
        (q, k, v, g, beta, initial_state, cu_seqlens),
        output_final_state,
        out,
        scale,
        chunk_size,
        safe_gate,
        lower_bound,
    )


def delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    chunk_size: int | None = None,
    out: Tensor | None = None,
) -> Any:
    """gated_delta_rule without a gate."""
    return _rules["delta_rule"](
        (q, k, v, beta, initial_state, cu_seqlens),
        output_final_state,
        out,
        scale,
        chunk_size,
        None,
        None,
    )


def gla(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    safe_gate: bool = False,
    lower_bound: float | None = None,
    chunk_size: int | None = None,
    out: Tensor | None = None,
) -> Any:
    """S_t = diag(e^g_t) S_{t-1} + k_t v_t^T, o_t = scale S_t^T q_t; g is [B, T, H, K].  The rest is as
    of dplr."""
    return _rules["gla"](
        (q, k, v, g, initial_state, cu_seqlens),
        output_final_state,
        out,
        scale,
        chunk_size,
        safe_gate,
        lower_bound,
    )


def simple_gla(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    safe_gate: bool = False,
    lower_bound: float | None = None,
    chunk_size: int | None = None,
    out: Tensor | None = None,
) -> Any:
    """gla with a gate for each head (the SSD of Mamba 2): g is [B, T, H]."""
    return _rules["simple_gla"](
        (q, k, v, g, initial_state, cu_seqlens),
        output_final_state,
        out,
        scale,
        chunk_size,
        safe_gate,
        lower_bound,
    )


#: Made of the functions above, which are what is listed.
_rules: dict[str, _Rule] = {name: _Rule(name, globals()[name]) for name in __all__}
