"""What the modules of FlashAttention's generations share: refusals, head dimensions that are padded,
and the cache.

Their functions differ by generation in names, order and defaults of arguments; none is guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import pad

from kiln.torch.decode import attention_decode

__all__ = ["decode", "refuse", "refuse_given", "run"]

_MULTIPLE = 8  # of which Kiln's head dimensions are multiples


def refuse(function: str, argument: str, value: Any, remedy: str) -> None:
    """Raises NotImplementedError that names the argument."""
    raise NotImplementedError(
        f"{function}: argument '{argument}' = {value} is not supported by Kiln; {remedy}"
    )


def refuse_given(function: str, **arguments: Any) -> None:
    """Refuses the first of these that is not what leaves it out: None, False or 0."""
    for name, value in arguments.items():
        if isinstance(value, (bool, int, float)) and not value:
            continue
        if value is not None:
            refuse(function, name, _short(value), "leave it out")


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return repr(value) if isinstance(value, (bool, int, float, str)) else type(value).__name__


def run(
    call: Callable[..., Any],
    tensors: tuple[torch.Tensor, ...],
    offsets: tuple[Any, ...] = (),
    *,
    scale: float | None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """attention or attention_varlen of q, k and v with any head dimension: o and lse."""
    columns, width = tensors[0].shape[-1], tensors[2].shape[-1]
    scale = columns**-0.5 if scale is None else scale
    if columns % _MULTIPLE or width % _MULTIPLE:
        tensors = tuple(pad(t, (0, -t.shape[-1] % _MULTIPLE)) for t in tensors)
    o, lse = call(*tensors, *offsets, scale=scale, return_lse=True, **options)
    return o if o.shape[-1] == width else o[..., :width], lse


def decode(
    function: str,
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: torch.Tensor | None,
    v: torch.Tensor | None,
    *,
    cache_seqlens: int | torch.Tensor | None,
    cache_leftpad: torch.Tensor | None,
    rotary_cos: torch.Tensor | None,
    rotary_sin: torch.Tensor | None,
    window: tuple[Any, Any],
    causal: bool,
    num_splits: int,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """flash_attn_with_kvcache: o and lse.  The caches get the new rows, and nothing a gradient."""
    if isinstance(cache_seqlens, int):
        cache_seqlens = torch.full((q.shape[0],), cache_seqlens, dtype=torch.int32, device=q.device)
    if cache_leftpad is not None:
        if rotary_cos is not None:  # positions count the rows before the first key there, not here
            refuse(function, "cache_leftpad", "a tensor, together with rotary_cos", "rotate before")
        if cache_seqlens is not None:  # so do lengths
            cache_seqlens = cache_seqlens - cache_leftpad
    window = (-1, -1) if window is None else tuple(-1 if w is None else int(w) for w in window)
    if rotary_cos is not None and rotary_sin is not None and k is not None:
        # Queries before the first new token have positions of their own, which a mask may need.
        more = q.shape[1] - k.shape[1] if causal or window != (-1, -1) else 0
        if more > 0:
            rotary_cos, rotary_sin = (pad(t, (0, 0, 0, more)) for t in (rotary_cos, rotary_sin))
    columns, width = q.shape[-1], v_cache.shape[-1]
    options.update(
        cache_seqlens=cache_seqlens,
        leftpad_k=cache_leftpad,
        rotary_cos=rotary_cos,
        rotary_sin=rotary_sin,
        window=window,
        causal=causal,
        splits=min(num_splits, 256),
        return_lse=True,
    )
    if options["scale"] is None:
        options["scale"] = columns**-0.5
    tensors = [q, k_cache, v_cache, k, v]
    if columns % _MULTIPLE or width % _MULTIPLE:
        tensors = [None if t is None else pad(t, (0, -t.shape[-1] % _MULTIPLE)) for t in tensors]
    with torch.no_grad():
        o, lse = attention_decode(*tensors, **options)
        if tensors[1] is not k_cache and k is not None:
            k_cache.copy_(tensors[1][..., :columns])
            v_cache.copy_(tensors[2][..., :width])
    return o if o.shape[-1] == width else o[..., :width], lse
