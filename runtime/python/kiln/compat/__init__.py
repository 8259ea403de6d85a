"""Kiln under the names of others: programs change an import, or a line, and nothing else.

flash_attn: FlashAttention 2's functions.  sdpa: torch's scaled_dot_product_attention.  fla:
flash-linear-attention's functions, and its models.
An argument that Kiln does not support raises NotImplementedError that names it.
"""
