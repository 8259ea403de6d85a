"""flash-linear-attention's functions (fla 0.6.0), computed by Kiln.

    import kiln.compat.fla
    kiln.compat.fla.enable()  # FLA's models and layers run Kiln from now on, unchanged

or, without FLA, with no break in a compiled graph, and with an error for what Kiln does not do:

    from kiln.compat.fla import chunk_rwkv7, chunk_kda

Signatures, shapes and results are FLA's: tensors are [B, T, H, ..], a call returns (o, final_state),
final_state None unless it is asked for, states are f32.  Enabled, Kiln stands in FLA's registry of
backends; a call that it does not take goes on to FLA's own kernels.  `calls()` and `refusals()` say
which calls Kiln took, and why it did not take others.

Not supported, and named by a NotImplementedError: activations that are no bf16 or f16 (under
autocast they are cast), more than 256 columns of K or V, cp_context, use_graph,
return_intermediate_states, reverse, chunk sizes but 16, 32 and 64.  Hints have no effect: disable_recompute,
cu_seqlens_cpu, chunk_indices.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import softplus

import kiln
from kiln.compat import _fla_layer, _fla_registry
from kiln.compat._fla_checks import STEPS, checked, dtype_of
from kiln.torch import linear

__all__ = [
    "calls",
    "chunk_delta_rule",
    "chunk_dplr_delta_rule",
    "chunk_gated_delta_rule",
    "chunk_gla",
    "chunk_iplr_delta_rule",
    "chunk_kda",
    "chunk_rwkv7",
    "chunk_simple_gla",
    "disable",
    "enable",
    "fused_mul_recurrent_rwkv7",
    "refusals",
]


def _alike(*tensors: torch.Tensor) -> list[torch.Tensor]:
    dtype = dtype_of(tensors[0])
    return [t.to(dtype) for t in tensors]


def _queries_and_keys(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, normed: bool
) -> list[torch.Tensor]:
    """q, k, v of one type, with as many heads of q and k as of v (grouped values)."""
    q, k, v = _alike(q, k, v)
    if normed:
        q, k = _fla_layer.l2norm(q), _fla_layer.l2norm(k)
    heads, wanted = q.shape[2], v.shape[2]
    if heads != wanted and heads and wanted % heads == 0:
        q, k = (t.repeat_interleave(wanted // heads, 2) for t in (q, k))
    return [q, k, v]


def _gate_or_beta(t: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Gates and beta are f32 or of the activations' type."""
    return t if t.dtype in (torch.float32, like.dtype) else t.float()


def _beta(beta: torch.Tensor, like: torch.Tensor, sigmoid: bool, negative: bool) -> torch.Tensor:
    if sigmoid:
        beta = beta.float().sigmoid() * (2.0 if negative else 1.0)
    return _gate_or_beta(beta, like)


def _made_gate(g: Any, A_log: Any, dt_bias: Any, lower_bound: float | None = None) -> torch.Tensor:
    """The log decays of raw gates g, [B, T, H] or [B, T, H, K]; A_log: [H]; dt_bias: [H] or
    [H K]."""
    g = g.float()
    if dt_bias is not None:
        g = g + dt_bias.float().view(g.shape[2:])
    rate = None if A_log is None else A_log.float().exp().view(-1, *[1] * (g.dim() - 3))
    if lower_bound is not None:
        return lower_bound * (g if rate is None else rate * g).sigmoid()
    return -rate * softplus(g)


def _finish(
    rule: str,
    tensors: tuple[Any, ...],
    initial_state: torch.Tensor | None,
    output_final_state: bool,
    state_v_first: bool = False,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    if initial_state is not None:
        initial_state = initial_state.float()
        if state_v_first:
            initial_state = initial_state.transpose(-1, -2)
    result = getattr(linear, rule)(
        *tensors, initial_state=initial_state, output_final_state=output_final_state, **options
    )
    o, state = result if output_final_state else (result, None)
    if state is not None and state_v_first:
        state = state.transpose(-1, -2).contiguous()
    return o, state


@checked()
def chunk_dplr_delta_rule(
    q,
    k,
    v,
    a,
    b,
    gk,
    scale=None,
    initial_state=None,
    output_final_state=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    safe_gate=False,
    chunk_size=None,
    disable_recompute=False,
    cp_context=None,
    lower_bound=None,
    **kwargs,
):
    """kiln.torch.dplr, with log decays gk.  q, k, a, b, gk: [B, T, H, K]; v: [B, T, H, V].

    safe_gate and lower_bound promise that no log decay is below -5, or this."""
    q, k, v, a, b = _alike(q, k, v, a, b)
    return _finish(
        "dplr",
        (q, k, v, a, b, _gate_or_beta(gk, q)),
        initial_state,
        output_final_state,
        scale=scale,
        cu_seqlens=cu_seqlens,
        safe_gate=safe_gate,
        lower_bound=lower_bound,
        chunk_size=chunk_size,
    )


@checked()
def chunk_rwkv7(
    r,
    w,
    k,
    v,
    a,
    b,
    scale=1.0,
    initial_state=None,
    output_final_state=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    safe_gate=False,
    chunk_size=None,
    disable_recompute=False,
    cp_context=None,
    lower_bound=None,
):
    """chunk_dplr_delta_rule with RWKV7's names: r for q, log decays w.  No scale: 1 / sqrt(K), as
    FLA does."""
    return chunk_dplr_delta_rule(
        r,
        k,
        v,
        a,
        b,
        w,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        cu_seqlens=cu_seqlens,
        safe_gate=safe_gate,
        chunk_size=chunk_size,
        cp_context=cp_context,
        lower_bound=lower_bound,
    )


@checked(dtypes=STEPS)
def fused_mul_recurrent_rwkv7(
    r,
    w,
    k,
    v,
    kk,
    a,
    scale=1.0,
    initial_state=None,
    output_final_state=False,
    reverse=False,
    cu_seqlens=None,
):
    """RWKV7 token by token, for generation: kiln.rwkv7_step with a = -kk and b = kk a.  f32 too; no
    gradient, as FLA's."""
    with torch.no_grad():
        r, k, v, kk, a = (t.contiguous() for t in _alike(r, k, v, kk, a))
        sequences = r.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
        o, state = torch.empty_like(v), None
        if output_final_state:
            shape = (sequences, v.shape[2], r.shape[3], v.shape[3])
            state = v.new_empty(shape, dtype=torch.float32)
        kiln.rwkv7_step(
            *(t.detach() for t in (r, k, v, -kk, kk * a, _gate_or_beta(w, r).contiguous())),
            None if initial_state is None else initial_state.detach().contiguous(),
            cu_seqlens,
            out=o,
            final_state=state,
            scale=r.shape[-1] ** -0.5 if scale is None else scale,
        )
    return o, state


@checked("chunk_size")
def chunk_iplr_delta_rule(
    q,
    k,
    v,
    a,
    b,
    scale=None,
    initial_state=None,
    output_final_state=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    **kwargs,
):
    """kiln.torch.iplr.  q, k, a, b: [B, T, H, K]; v: [B, T, H, V]."""
    return _finish(
        "iplr",
        tuple(_alike(q, k, v, a, b)),
        initial_state,
        output_final_state,
        scale=scale,
        cu_seqlens=cu_seqlens,
        chunk_size=kwargs.get("chunk_size"),
    )


@checked("chunk_size", "use_gate_in_kernel", "A_log", "dt_bias")
def chunk_gated_delta_rule(
    q,
    k,
    v,
    g,
    beta,
    scale=None,
    initial_state=None,
    output_final_state=False,
    use_qk_l2norm_in_kernel=False,
    use_beta_sigmoid_in_kernel=False,
    allow_neg_eigval=False,
    state_v_first=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    chunk_indices=None,
    cp_context=None,
    **kwargs,
):
    """kiln.torch.gated_delta_rule.  q, k: [B, T, H, K]; v: [B, T, HV, V], HV a multiple of H; g,
    beta: [B, T, HV].

    What FLA does in its kernels (l2 norm, sigmoid, gate of A_log [HV] and dt_bias [HV]) is torch's
    here."""
    q, k, v = _queries_and_keys(q, k, v, use_qk_l2norm_in_kernel)
    if kwargs.get("use_gate_in_kernel"):
        g = _made_gate(g, kwargs["A_log"], kwargs.get("dt_bias"))
    return _finish(
        "gated_delta_rule",
        (
            q,
            k,
            v,
            _gate_or_beta(g, q),
            _beta(beta, q, use_beta_sigmoid_in_kernel, allow_neg_eigval),
        ),
        initial_state,
        output_final_state,
        state_v_first,
        scale=scale,
        cu_seqlens=cu_seqlens,
        chunk_size=kwargs.get("chunk_size"),
    )


@checked("chunk_size", "A_log", "dt_bias")
def chunk_kda(
    q,
    k,
    v,
    g,
    beta,
    scale=None,
    initial_state=None,
    output_final_state=False,
    use_qk_l2norm_in_kernel=False,
    use_gate_in_kernel=False,
    use_beta_sigmoid_in_kernel=False,
    allow_neg_eigval=False,
    safe_gate=False,
    lower_bound=None,
    disable_recompute=False,
    return_intermediate_states=False,
    state_v_first=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    cp_context=None,
    use_graph=False,
    max_num_seqs=None,
    **kwargs,
):
    """kiln.torch.kda.  q, k: [B, T, H, K]; v: [B, T, HV, V], HV a multiple of H; g: [B, T, HV, K];
    beta: [B, T, HV].

    What FLA does in its kernels (l2 norm, sigmoid, gate of A_log [HV] and dt_bias [HV K]) is
    torch's here."""
    q, k, v = _queries_and_keys(q, k, v, use_qk_l2norm_in_kernel)
    if use_gate_in_kernel:
        g = _made_gate(g, kwargs.get("A_log"), kwargs.get("dt_bias"), lower_bound)
    else:
        lower_bound = None  # of the gate alone
    return _finish(
        "kda",
        (
            q,
            k,
            v,
            _gate_or_beta(g, q),
            _beta(beta, q, use_beta_sigmoid_in_kernel, allow_neg_eigval),
        ),
        initial_state,
        output_final_state,
        state_v_first,
        scale=scale,
        cu_seqlens=cu_seqlens,
        safe_gate=safe_gate and not use_gate_in_kernel,
        lower_bound=lower_bound,
        chunk_size=kwargs.get("chunk_size"),
    )


@checked("chunk_size")
def chunk_delta_rule(
    q,
    k,
    v,
    beta,
    scale=None,
    initial_state=None,
    output_final_state=False,
    use_qk_l2norm_in_kernel=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    **kwargs,
):
    """kiln.torch.delta_rule.  q, k: [B, T, H, K]; v: [B, T, H, V]; beta: [B, T, H]."""
    q, k, v = _queries_and_keys(q, k, v, use_qk_l2norm_in_kernel)
    return _finish(
        "delta_rule",
        (q, k, v, _gate_or_beta(beta, q)),
        initial_state,
        output_final_state,
        scale=scale,
        cu_seqlens=cu_seqlens,
        chunk_size=kwargs.get("chunk_size"),
    )


@checked()
def chunk_gla(
    q,
    k,
    v,
    g,
    scale=None,
    initial_state=None,
    output_final_state=False,
    state_v_first=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
):
    """kiln.torch.gla.  q, k, g: [B, T, H, K]; v: [B, T, H, V]."""
    q, k, v = _alike(q, k, v)
    return _finish(
        "gla",
        (q, k, v, _gate_or_beta(g, q)),
        initial_state,
        output_final_state,
        state_v_first,
        scale=scale,
        cu_seqlens=cu_seqlens,
    )


@checked("chunk_size")
def chunk_simple_gla(
    q,
    k,
    v,
    g=None,
    g_gamma=None,
    scale=None,
    initial_state=None,
    output_final_state=False,
    state_v_first=False,
    cu_seqlens=None,
    cu_seqlens_cpu=None,
    **kwargs,
):
    """kiln.torch.simple_gla.  q, k: [B, T, H, K]; v: [B, T, H, V]; log decays g: [B, T, H], and the
    same for every token g_gamma: [H]; they add up, and none is no decay."""
    q, k, v = _alike(q, k, v)
    if g_gamma is not None or g is None:
        fixed = q.new_zeros(q.shape[2], dtype=torch.float32) if g_gamma is None else g_gamma
        fixed = fixed.float().expand(q.shape[:3])
        g = fixed if g is None else g.float() + fixed
    return _finish(
        "simple_gla",
        (q, k, v, _gate_or_beta(g, q)),
        initial_state,
        output_final_state,
        state_v_first,
        scale=scale,
        cu_seqlens=cu_seqlens,
        chunk_size=kwargs.get("chunk_size"),
    )


#: FLA's functions that Kiln computes when it is enabled, by the module that defines each.
#: chunk_rwkv7 calls chunk_dplr_delta_rule.
_registry = _fla_registry.Registry(
    {
        "fla.ops.generalized_delta_rule.dplr.chunk": chunk_dplr_delta_rule,
        "fla.ops.gated_delta_rule.chunk": chunk_gated_delta_rule,
        "fla.ops.kda.chunk": chunk_kda,
        "fla.ops.generalized_delta_rule.iplr.chunk": chunk_iplr_delta_rule,
        "fla.ops.delta_rule.chunk": chunk_delta_rule,
        "fla.ops.gla.chunk": chunk_gla,
        "fla.ops.simple_gla.chunk": chunk_simple_gla,
        "fla.ops.rwkv7.fused_recurrent": fused_mul_recurrent_rwkv7,
    }
)


#: What the RWKV7 layer has besides.
_layer = _fla_registry.Registry(_fla_layer.TABLE)


def enable(layers: str = "torch") -> None:
    """From now on FLA's functions, and its layers and models, run Kiln where it takes the call.

    layers: who computes what the RWKV7 layer has around its recurrence (token shift, norms, gates):
    "torch", at once, or "fla", FLA's Triton kernels, which take a minute to tune at the first call.
    Raises ImportError where fla is not installed or older than 0.6, RuntimeError where FLA's
    registry is switched off.
    """
    if layers not in ("fla", "torch"):
        raise ValueError(f"enable: argument 'layers' is {layers!r}; give 'fla' or 'torch'")
    disable()
    for registry in (_registry, _layer)[: 2 if layers == "torch" else 1]:
        try:
            registry.enable()
        except (ImportError, RuntimeError):
            disable()  # all or nothing
            raise


def disable() -> None:
    """Gives FLA its own kernels back.  Nothing happens if Kiln is not enabled."""
    _registry.disable()
    _layer.disable()


def calls() -> dict[str, int]:
    """How many calls of each function of FLA's Kiln took."""
    return dict(_registry.calls)


def refusals() -> dict[str, int]:
    """Why Kiln left calls to FLA, and how many."""
    return dict(_registry.refusals)
