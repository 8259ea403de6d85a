"""Kiln's operations for torch, with gradients.

They work under torch.compile (fullgraph), torch.export, checkpointing, autocast and
torch.func.grad.  Tensors on a GPU run on torch's current stream; tensors on the CPU run on Kiln's
emulator, which is for tests.  A call of `torch.ops.kiln.*` itself has no gradient: call these
functions.
"""

from kiln.torch.attention import attention, attention_varlen
from kiln.torch.decode import attention_decode
from kiln.torch.linear import delta_rule, dplr, gated_delta_rule, gla, iplr, kda, rwkv7, simple_gla
from kiln.torch.matmul import matmul
from kiln.torch.rows import layer_norm, softmax

__all__ = [
    "attention",
    "attention_decode",
    "attention_varlen",
    "delta_rule",
    "dplr",
    "gated_delta_rule",
    "gla",
    "iplr",
    "kda",
    "layer_norm",
    "matmul",
    "rwkv7",
    "simple_gla",
    "softmax",
]
