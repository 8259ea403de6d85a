"""What a warm call costs on the host, without a clock: the functions of Python that it enters, the
operations of torch that it calls, and of operations in Python the tensors that they make and the
functions of libkiln that they call."""

import sys

import pytest
import torch
from common import normal
from torch.utils._python_dispatch import TorchDispatchMode

import kiln.torch as kt
from kiln._library import library
from kiln.torch._operation import InPython


class Counts:
    """Calls in `with`: of Python's functions, and of C's by name.  No kernel runs."""

    def __enter__(self):
        self.python, self.c, self.library = [], [], 0

        def nothing(*_):
            self.library += 1

        self.functions = {o: o.function for o in library().operations.values()}
        for operation in self.functions:
            operation.replace(nothing)
        sys.setprofile(self._count)
        return self

    def _count(self, frame, event, argument):
        if event == "call":
            self.python.append(frame.f_code.co_name)
        elif event == "c_call":
            self.c.append(argument.__name__)

    def __exit__(self, *_):
        sys.setprofile(None)
        for operation, function in self.functions.items():
            operation.replace(function)
        # Our own; list comprehensions have no frame from Python 3.12 on.
        own = ("nothing", "__exit__", "<lambda>", "<listcomp>")
        self.python = [name for name in self.python if name not in own]
        self.made = sum(self.c.count(name) for name in ("new_empty", "empty_like", "empty"))


def attention(grad):
    q, k, v = (normal(1, 8, 1, 16, grad=grad) for _ in range(3))
    return lambda: kt.attention(q, k, v, causal=True)


def rwkv7(grad):
    r, w, k, v, a, b = (normal(1, 16, 1, 16, grad=grad) for _ in range(6))
    return lambda: kt.rwkv7(r, w, k, v, a, b)


def matmul(grad):
    a = normal(8, 8, grad=grad)
    return lambda: kt.matmul(a, a)


#: Of a call: functions of Python without and with gradients.
COSTS = {attention: (3, 8), rwkv7: (4, 9), matmul: (4, 11)}


@pytest.fixture
def no_default_device():
    """The mode of torch.set_default_device, which conftest.py sets, costs calls."""
    before = torch.get_default_device()
    torch.set_default_device(None)
    yield
    torch.set_default_device(before)


@pytest.mark.usefixtures("no_default_device")
@pytest.mark.parametrize("call", COSTS)
@pytest.mark.parametrize("grad", [False, True])
def test_a_warm_call(call, grad):
    run = call(grad)
    run()
    with Counts() as counts:
        run()
    plain, with_gradient = COSTS[call]
    assert len(counts.python) <= (with_gradient if grad else plain), counts.python
    # libkiln makes the outputs; Python is not entered again from the dispatcher.
    assert (counts.library, counts.made) == (0, 0)


@pytest.mark.usefixtures("no_default_device")
@pytest.mark.parametrize("call", COSTS)
@pytest.mark.parametrize("grad", [False, True])
def test_a_warm_call_in_python(call, grad):
    run = call(grad)
    with InPython():
        run()
        with Counts() as counts:
            run()
    # Attention's second output is for its gradient.
    assert (counts.library, counts.made) == (1, 2 if grad and call is attention else 1)
    # Nothing asks libkiln for shapes, reads signatures or makes types again.
    assert not {"signature", "bind", "loads"} & set(counts.c)


@pytest.mark.usefixtures("no_default_device")
def test_a_warm_backward_call():
    q, k, v = (normal(1, 8, 1, 16) for _ in range(3))
    o = kt.attention(q, k, v)
    direction = torch.ones_like(o)

    def run():
        torch.autograd.grad(o, (q, k, v), direction, retain_graph=True)

    run()
    with Counts() as counts:
        run()
    assert (counts.library, counts.made) == (0, 0)
    with InPython(), Counts() as counts:
        run()
    assert (counts.library, counts.made) == (1, 3)


class Operations(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.name())
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("grad", [False, True])
def test_one_operation_of_torch_a_call(grad):
    call = attention(grad)
    with Operations() as mode:
        call()
    assert [n for n in mode.names if n != "aten::detach"] == [
        "kiln::attention_with_lse" if grad else "kiln::attention"
    ]


def test_what_only_the_gradient_takes_is_no_output():
    # Each output costs a place in the graph.
    out = attention(True)()
    counts = []
    out.grad_fn.register_hook(lambda _, of_outputs: counts.append(len(of_outputs)))
    out.sum().backward()
    assert counts == [1]
    assert out.grad_fn.name() == "kiln_attention_with_lseBackward"
