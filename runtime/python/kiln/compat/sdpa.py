"""torch's scaled_dot_product_attention, computed by Kiln.

    import kiln.compat.sdpa
    kiln.compat.sdpa.enable()  # or torch.nn.attention.activate_flash_attention_impl("KILN")
    torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

Kiln stands in torch's registry of implementations of its flash attention, next to FA3 and FA4.  On
a GPU torch still chooses between its backends; sdpa_kernel(SDPBackend.FLASH_ATTENTION) insists on
this one.  On the CPU, torch's one fused kernel becomes Kiln's, on the emulator: for tests.  Causal
masks are aligned as torch's are: top left, and bottom right of torch.nn.attention.bias's
causal_lower_right.  After torch.use_deterministic_algorithms(True) gradients have the same bits in
every run.

On a GPU torch gives this one bf16 and f16 alone.  On the CPU other types, and heads whose columns
are no multiple of 8 up to 256, stay torch's own kernel's.  With dropout torch takes another
implementation than this one; asked for it all the same, it is refused.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import (
    activate_flash_attention_impl,
    current_flash_attention_impl,
    register_flash_attention_impl,
    restore_flash_attention_impl,
)

from kiln.torch.attention import _backward, _forward

__all__ = ["disable", "enable"]

NAME = "KILN"


def _values(
    q: Any,
    k: Any,
    v: Any,
    dropout_p: float,
    is_causal: bool,
    scale: Any,
    mask: Any = None,
    align: str = "top_left",
) -> dict[str, Any]:
    if dropout_p:
        raise NotImplementedError(
            f"scaled_dot_product_attention: dropout_p = {dropout_p} is not supported by Kiln; give"
            " 0.0, or call kiln.compat.sdpa.disable()"
        )
    if mask is not None:
        if mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, float("-inf"))
        mask = mask.reshape((1,) * (4 - mask.dim()) + tuple(mask.shape))
    return {
        "q": q.transpose(1, 2),
        "k": k.transpose(1, 2),
        "v": v.transpose(1, 2),
        "bias": mask,
        "causal": is_causal,
        "align": align,
        "scale": scale,
    }


def _run(values: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """o, [B, H, S, Dv], with its dimensions in memory as q's, which torch's tracing expects; lse,
    [B, H, S]."""
    q, v = values["q"], values["v"]
    query = q.transpose(1, 2)
    o = (
        torch.empty_like(query)
        if v.shape[-1] == q.shape[-1]
        else query.new_empty((*query.shape[:-1], v.shape[-1]))
    )
    lse = query.new_empty(query.shape[:-1], dtype=torch.float32)
    _forward.call(tuple(values.get(name) for name in _forward.arguments), (o.transpose(1, 2), lse))
    return o, lse


def _gradients(values: dict[str, Any], out: Any, lse: Any, by: Any) -> tuple[torch.Tensor, ...]:
    values = {**values, "o": out.transpose(1, 2), "lse": lse, "do": by.transpose(1, 2)}
    values["deterministic"] = torch.are_deterministic_algorithms_enabled()
    return tuple(d.transpose(1, 2) for d in _backward[()](values))


#: Of its own causal calls torch gives this kernel the square ones alone; others are causal_lower_right.
_ALIGN_ON_GPU = "bottom_right"


def _of_gpu(
    query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None
):
    o, lse = _run(_values(query, key, value, dropout_p, is_causal, scale, align=_ALIGN_ON_GPU))
    seed, offset = (torch.zeros(n, dtype=torch.uint64, device=query.device) for n in ((2,), ()))
    return o, lse, None, None, query.shape[2], key.shape[2], seed, offset, query.new_empty(0)


def _of_gpu_backward(
    grad_out,
    query,
    key,
    value,
    out,
    logsumexp,
    cum_seq_q,
    cum_seq_k,
    max_q,
    max_k,
    dropout_p,
    is_causal,
    philox_seed,
    philox_offset,
    *,
    scale=None,
):
    values = _values(query, key, value, dropout_p, is_causal, scale, align=_ALIGN_ON_GPU)
    return _gradients(values, out, logsumexp, grad_out)


def _is_ours(*tensors: torch.Tensor) -> bool:
    return all(
        t.dtype in (torch.bfloat16, torch.float16) and t.shape[-1] % 8 == 0 and t.shape[-1] <= 256
        for t in tensors
    )


def _else_torchs(
    function: Callable[..., Any], own: Callable[..., Any], tensors: slice
) -> Callable[..., Any]:
    """`function`, and torch's own kernel for what Kiln has none for.

    tensors: the places of query, key and value among the arguments."""

    def call(*arguments: Any, **named: Any) -> Any:
        return (function if _is_ours(*arguments[tensors]) else own)(*arguments, **named)

    return call


def _of_cpu(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    return _run(_values(query, key, value, dropout_p, is_causal, scale, attn_mask))


def _of_cpu_backward(
    grad_out,
    query,
    key,
    value,
    out,
    logsumexp,
    dropout_p,
    is_causal,
    *,
    attn_mask=None,
    scale=None,
):
    return _gradients(
        _values(query, key, value, dropout_p, is_causal, scale, attn_mask), out, logsumexp, grad_out
    )


_OPERATIONS = {
    ("_scaled_dot_product_flash_attention", "CUDA"): _of_gpu,
    ("_scaled_dot_product_flash_attention_backward", "CUDA"): _of_gpu_backward,
    ("_scaled_dot_product_flash_attention_for_cpu", "CPU"): _of_cpu,
    ("_scaled_dot_product_flash_attention_for_cpu_backward", "CPU"): _of_cpu_backward,
}


class _Handle:
    """The operations of torch's, overridden while it lives."""

    def __init__(self) -> None:
        self.libraries = []
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*[Oo]verrid.*")  # it is what is wanted
            for (name, key), function in _OPERATIONS.items():
                if key == "CPU" and hasattr(torch.library, "get_kernel"):
                    # Older versions of torch do not give their own kernel away.
                    kernel = torch.library.get_kernel(f"aten::{name}", key)
                    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
                    own = functools.partial(kernel.call_boxed, keys)
                    first = 1 if name.endswith("_backward") else 0  # after the gradient
                    function = _else_torchs(function, own, slice(first, first + 3))
                library = torch.library.Library("aten", "IMPL")
                library.impl(name, function, key)
                self.libraries.append(library)

    def remove(self) -> None:
        for library in self.libraries:
            library._destroy()
        self.libraries.clear()


register_flash_attention_impl(NAME, register_fn=_Handle)


def enable() -> None:
    """From now on scaled_dot_product_attention runs Kiln wherever torch chooses flash attention.

    On a GPU torch may prefer cuDNN: torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION)
    leaves it no choice.
    """
    activate_flash_attention_impl(NAME)


def disable() -> None:
    """Gives torch its own implementation back.  Nothing happens if Kiln's is not active."""
    if current_flash_attention_impl() == NAME:
        restore_flash_attention_impl()
