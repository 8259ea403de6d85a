"""Linear attention with a state: DPLR with RWKV7, the delta rules, GLA.

Every rule takes [B, T, H, K] and [B, T, H, V] tensors, bf16 or f16, log decays at most 0 in f32 or
that type, and states [N, H, K, V] in f32; N is B, or with cu_seqlens ([N + 1], int32 or int64; B is
1) the number of sequences.
"""

from __future__ import annotations

from typing import Any

import torch

from kiln._library import library
from kiln.torch._gradients import Differentiable
from kiln.torch._operation import TorchOperation

__all__ = ["delta_rule", "dplr", "gated_delta_rule", "gla", "iplr", "kda", "rwkv7", "simple_gla"]

_OPTIONS = ("scale", "chunk_size", "safe_gate", "lower_bound")
_NOT_CAST = ("g", "w", "beta", "initial_state", "cu_seqlens")


def _states(a: dict[str, Any]) -> tuple[Any, ...]:
    k, v, offsets = a["k"], a["v"], a["cu_seqlens"]
    return (
        k.shape[0] if offsets is None else offsets.shape[0] - 1,
        k.shape[2],
        k.shape[3],
        v.shape[3],
    )


def _new_state(a: dict[str, Any]) -> torch.Tensor:
    return a["k"].new_empty(_states(a), dtype=torch.float32)


def _outputs(a: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {"o": a["v"].new_empty(a["v"].shape), "final_state": _new_state(a)}


def _gradients(a: dict[str, Any]) -> dict[str, torch.Tensor]:
    out = {f"d{name}": t.new_empty(t.shape) for name, t in a.items() if isinstance(t, torch.Tensor)}
    return {**out, "dh0": _new_state(a)}


class _Rule:
    """A rule's operations: with and without the last state, and with and without the first one's
    gradient."""

    def __init__(self, name: str) -> None:
        forward, backward = library().operations[name], library().operations[f"{name}_backward"]
        options = tuple(o for o in _OPTIONS if o in forward.option)

        def inputs(operation: Any) -> tuple[str, ...]:
            # `saved` is of the C++ and C callers: here the backward call makes again what it needs.
            return tuple(n + "?" * p.optional for n, p in operation.inputs.items() if n != "saved")

        gradients = {
            extra: TorchOperation(
                f"{name}_backward", inputs(backward), options, _gradients, with_outputs=extra
            )
            for extra in ((), ("dh0",))
        }
        cast = tuple(n for n in forward.inputs if n not in _NOT_CAST)
        self.plain, self.with_state = (
            Differentiable(
                TorchOperation(name, inputs(forward), options, _outputs, with_outputs=extra),
                gradients,
                cast,
            )
            for extra in ((), ("final_state",))
        )

    def __call__(
        self, values: dict[str, Any], output_final_state: bool, out: torch.Tensor | None
    ) -> Any:
        operation = self.with_state if output_final_state else self.plain
        if out is None:
            return operation(values)
        results = (out, _new_state(values)) if output_final_state else (out,)
        operation.forward.into(values, results)
        return results if output_final_state else out


_rules: dict[str, _Rule] = {name: _Rule(name) for name in __all__}
Tensor = torch.Tensor


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
    values = {"r": r, "w": w, "k": k, "v": v, "a": a, "b": b}
    given = (
        scale,
        initial_state,
        output_final_state,
        cu_seqlens,
        chunk_size,
        out,
        safe_gate,
        lower_bound,
    )
    return _call("rwkv7", values, *given)


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
    given = (
        scale,
        initial_state,
        output_final_state,
        cu_seqlens,
        chunk_size,
        out,
        safe_gate,
        lower_bound,
    )
    return _call("dplr", {"q": q, "k": k, "v": v, "a": a, "b": b, "g": g}, *given)


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
    given = (scale, initial_state, output_final_state, cu_seqlens, chunk_size, out)
    return _call("iplr", {"q": q, "k": k, "v": v, "a": a, "b": b}, *given)


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
    given = (
        scale,
        initial_state,
        output_final_state,
        cu_seqlens,
        chunk_size,
        out,
        safe_gate,
        lower_bound,
    )
    return _call("kda", {"q": q, "k": k, "v": v, "g": g, "beta": beta}, *given)


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
    given = (
        scale,
        initial_state,
        output_final_state,
        cu_seqlens,
        chunk_size,
        out,
        safe_gate,
        lower_bound,
    )
    return _call("gated_delta_rule", {"q": q, "k": k, "v": v, "g": g, "beta": beta}, *given)


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
    given = (scale, initial_state, output_final_state, cu_seqlens, chunk_size, out)
    return _call("delta_rule", {"q": q, "k": k, "v": v, "beta": beta}, *given)


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
    given = (
        scale,
        initial_state,
        output_final_state,
        cu_seqlens,
        chunk_size,
        out,
        safe_gate,
        lower_bound,
    )
    return _call("gla", {"q": q, "k": k, "v": v, "g": g}, *given)


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
    given = (
        scale,
        initial_state,
        output_final_state,
        cu_seqlens,
        chunk_size,
        out,
        safe_gate,
        lower_bound,
    )
    return _call("simple_gla", {"q": q, "k": k, "v": v, "g": g}, *given)


def _call(
    name: str,
    tensors: dict[str, Any],
    scale: Any,
    initial_state: Any,
    output_final_state: bool,
    cu_seqlens: Any,
    chunk_size: Any,
    out: Any,
    safe_gate: Any = None,
    lower_bound: Any = None,
) -> Any:
    states = {"initial_state": initial_state, "cu_seqlens": cu_seqlens}
    options = {
        "scale": scale,
        "safe_gate": safe_gate,
        "lower_bound": lower_bound,
        "chunk_size": chunk_size,
    }
    return _rules[name]({**tensors, **states, **options}, output_final_state, out)
