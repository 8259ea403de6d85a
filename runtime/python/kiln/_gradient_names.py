"""How libkiln's backward operations name gradients.

The backward operation of `f` is `f_backward`.  It takes inputs and outputs of `f` under their
names, the gradient by an output `o` as `do`, and gives the gradient by an input `q` as `dq`.
"""

from __future__ import annotations

__all__ = ["backward_of", "gradient_by", "gradient_to"]

#: The names of states' gradients in the linear attention literature, which libkiln follows.
_BY = {"final_state": "dht"}
_TO = {"initial_state": "dh0"}


def backward_of(operation: str) -> str:
    return f"{operation}_backward"


def gradient_by(output: str) -> str:
    return _BY.get(output, f"d{output}")


def gradient_to(input: str) -> str:
    return _TO.get(input, f"d{input}")
