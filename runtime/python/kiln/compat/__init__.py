"""Kiln under the names of others: programs change an import, or a line, and nothing else.

flash_attn, flash_attn_3, flash_attn_4: FlashAttention's functions, by generation.  sdpa: torch's
scaled_dot_product_attention.  fla: flash-linear-attention's functions, and its models.
An argument that Kiln does not support raises NotImplementedError that names it.
"""
