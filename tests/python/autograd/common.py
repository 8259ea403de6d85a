"""What the tests share: tensors, and references in float64 that torch differentiates."""

import torch

from kiln._library import library
from kiln.torch._operation import InPython

BF16 = torch.bfloat16


def normal(*shape, dtype=BF16, grad=True):
    return torch.randn(*shape, dtype=dtype).requires_grad_(grad)


def doubles(*tensors):
    return [
        None if t is None else t.detach().double().requires_grad_(t.requires_grad) for t in tensors
    ]


def gradients(output, by, direction):
    return torch.autograd.grad(output, by, direction)


def attention(
    q,
    k,
    v,
    *,
    scale=None,
    causal=False,
    window=(-1, -1),
    softcap=0.0,
    sink=None,
    alibi=None,
    bias=None,
    alignment="bottom_right"
):
    """Attention in the tensors' own type: o [B, S, H, D] and lse [B, H, S]."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    s = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    i = torch.arange(s.shape[-2])[:, None] + (
        s.shape[-1] - s.shape[-2] if alignment == "bottom_right" else 0
    )
    j = torch.arange(s.shape[-1])[None]
    if alibi is not None:
        s = s - alibi.reshape(-1, s.shape[1], 1, 1) * (i - j).abs()
    if bias is not None:
        s = s + bias
    hidden = torch.zeros_like(i - j, dtype=torch.bool)
    if causal:
        hidden |= j > i
    if window[0] >= 0:
        hidden |= j < i - window[0]
    if window[1] >= 0:
        hidden |= j > i + window[1]
    s = s.masked_fill(hidden, float("-inf"))
    if sink is not None:
        s = torch.cat([s, sink.reshape(1, -1, 1, 1).to(s.dtype).expand(*s.shape[:-1], 1)], -1)
    lse = torch.logsumexp(s, -1)
    p = torch.exp(s - lse[..., None])
    return (p[..., : v.shape[-2]] @ v).transpose(1, 2), lse


def assert_as_good(got, wanted, rounded, factor=2.0):
    """The specification's section 10: at most `factor` times as far from float64 as the same
    formula in got's type."""
    assert got.shape == wanted.shape
    unit = {torch.bfloat16: 2.0**-9, torch.float16: 2.0**-12, torch.float32: 2.0**-25}[
        rounded.dtype
    ]
    allowed = (
        factor * (rounded.double() - wanted).abs().max() + 2 * unit * wanted.abs().max() + 1e-5
    )
    assert (got.double() - wanted).abs().max() <= allowed, (
        (got.double() - wanted).abs().max(),
        allowed,
    )


def rule(name, q, k, v, a=None, b=None, g=None, beta=None, *, scale=None, state=None):
    """The recurrences of kernels/dplr, token by token, of [B, T, H, ..] in float64: o and the last
    state."""
    scale = (1.0 if name == "rwkv7" else q.shape[-1] ** -0.5) if scale is None else scale
    S = (
        torch.zeros(*q.shape[::2], q.shape[3], v.shape[3], dtype=q.dtype)
        if state is None
        else state
    )
    out = []
    for t in range(q.shape[1]):
        kt, vt, before = k[:, t], v[:, t], S
        if g is not None:
            S = (g[:, t] if g.dim() == 4 else g[:, t, :, None]).exp()[..., None] * S
        if a is not None:  # a reads the state before it decays
            S = (
                S
                + b[:, t, ..., None] * torch.einsum("bhkv,bhk->bhv", before, a[:, t])[..., None, :]
            )
        if beta is None:
            S = S + kt[..., None] * vt[..., None, :]
        else:
            read = torch.einsum("bhkv,bhk->bhv", S, kt)
            S = S + beta[:, t, :, None, None] * kt[..., None] * (vt - read)[..., None, :]
        out.append(scale * torch.einsum("bhkv,bhk->bhv", S, q[:, t]))
    return torch.stack(out, 1), S


class Counted:
    """How often the forward operation of attention runs."""

    def __enter__(self):
        self.calls, self.table = 0, library().operations["attention"]
        self.function, self.mode = self.table.function, InPython()

        def function(*arguments):
            self.calls += 1
            return self.function(*arguments)

        self.table.replace(function)
        self.mode.__enter__()
        return self

    def __exit__(self, *error):
        self.mode.__exit__(*error)
        self.table.replace(self.function)
