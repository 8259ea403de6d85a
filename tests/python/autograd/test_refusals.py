"""Tensors that look like others and hold something else: each is refused by name, or comes out
right."""

import os
import subprocess
import sys
import threading
import warnings

import pytest
import torch
from common import normal
from torch._subclasses.fake_tensor import FakeTensorMode

import kiln
import kiln.torch as kt
from kiln.torch import _operation

X = torch.randn(4, 32)


class Wrapper(torch.Tensor):
    """Like a DTensor: it has a shape and no memory."""

    @staticmethod
    def __new__(cls, like):
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise NotImplementedError(f"Wrapper has no {function}")


def test_fake_tensors_trace_and_never_run():
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(X)
        assert kt.softmax(fake).shape == X.shape
    with pytest.raises(ValueError, match="'x'.*fake tensor"):
        kiln.softmax(fake, out=X.clone())


def test_wrappers_are_refused():
    with pytest.raises(ValueError, match="'x'.*wrapper subclass"):
        kiln.softmax(Wrapper(X), out=X.clone())
    with pytest.raises(NotImplementedError, match="Wrapper has no kiln.softmax"):
        kt.softmax(Wrapper(X))


def test_meta_tensors_give_meta_tensors():
    assert kt.softmax(X.to("meta")).is_meta


def test_negated_views_are_read_as_they_are():
    assert torch.equal(kt.softmax(torch._neg_view(X)), kt.softmax(-X))
    with pytest.raises(ValueError, match="'x'.*neg"):
        kt.softmax(torch._neg_view(X), out=X.clone())
    with pytest.raises(ValueError, match="'x'.*neg"):
        kiln.softmax(torch._neg_view(X))


def test_out_has_no_gradient():
    x = X.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="'x' requires a gradient"):
        kt.softmax(x, out=X.clone())
    with torch.no_grad():
        assert torch.equal(kt.softmax(x, out=X.clone()), kt.softmax(X))


def test_out_is_written_and_returned():
    q, k, v = (normal(1, 16, 2, 32, grad=False) for _ in range(3))
    out = torch.zeros_like(q)
    assert kt.attention(q, k, v, out=out) is out and torch.equal(out, kt.attention(q, k, v))
    a = normal(8, 8, grad=False)
    assert torch.equal(kt.matmul(a, a, out=torch.zeros_like(a)), kt.matmul(a, a))
    assert torch.equal(kt.gla(q, k, v, -q.abs(), out=out), kt.gla(q, k, v, -q.abs()))
    x, w = normal(4, 32, grad=False), normal(32, grad=False)
    assert torch.equal(kt.layer_norm(x, w, w, out=torch.zeros_like(x)), kt.layer_norm(x, w, w))


def test_outputs_that_overlap_are_refused():
    q = normal(1, 8, 1, 16, grad=False)
    o, lse = kt.attention(q, q, q, return_lse=True)
    dq = torch.zeros_like(q)
    with pytest.raises(ValueError, match="overlap"):
        kiln.attention_backward(q, q, q, o, lse, o, out=(dq, dq, torch.zeros_like(q)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int32, torch.complex64])
def test_types_are_refused(dtype):
    q = torch.ones(1, 8, 1, 16).to(dtype)
    with pytest.raises((ValueError, NotImplementedError), match="attention.*q|q.*attention|'q'"):
        kt.attention(q, q, q)


def test_ranks_and_shapes_are_refused():
    q = normal(1, 8, 2, 16, grad=False)
    with pytest.raises(ValueError):
        kt.attention(q[0], q[0], q[0])
    with pytest.raises(ValueError, match="'?k'?"):
        kt.attention(q, q[..., :8], q)
    with pytest.raises(ValueError, match="matmul: argument 'b'"):
        kt.matmul(X, X)
    with pytest.raises(ValueError, match="out_dtype"):
        kt.matmul(X, X.T, out_dtype=torch.int64)


def test_what_is_no_tensor_is_refused():
    q = normal(1, 8, 2, 16, grad=False)
    with pytest.raises(RuntimeError, match="argument 'k'"):
        kt.attention(q, q.float().cpu().numpy(), q)
    with pytest.raises(RuntimeError, match="argument 'q'"):
        kt.attention(q.float().cpu().numpy(), q, q)


def test_none_for_a_tensor_is_named():
    q = normal(1, 8, 2, 16, grad=False)
    with pytest.raises(TypeError, match="attention: argument 'k' is missing"):
        kt.attention(q, None, q)


def test_sparse_and_nested_tensors_are_refused():
    with pytest.raises((NotImplementedError, RuntimeError)):
        kt.softmax(X.to_sparse())
    with pytest.raises((NotImplementedError, RuntimeError)):
        kt.softmax(torch.nested.nested_tensor([torch.zeros(2, 3)], layout=torch.jagged))


def test_parameters_and_leaves_pass():
    assert torch.equal(kt.softmax(torch.nn.Parameter(X)), kt.softmax(X))
    assert torch.equal(kt.softmax(X[:, ::2].T), kt.softmax(X[:, ::2].T.contiguous()))


SLOW = """
import torch, warnings, kiln.torch
warnings.simplefilter("always")
for rows in (4, 30000, 30000):
    with warnings.catch_warnings(record=True) as told:
        kiln.torch.softmax(torch.randn(rows, 1024, device='cpu'))
    print([str(w.message) for w in told])
"""


def test_the_emulator_is_named_once_when_it_is_slow():
    told = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, text=True)
    # Some versions of torch write what is no error of Python's to stderr.
    assert (told.stdout + told.stderr).count("kiln::softmax took ") == 1, told
    first, _, again = told.stdout.splitlines()
    assert (first, again) == ("[]", "[]"), told


def test_the_emulator_is_named_once_by_operations_in_python(monkeypatch):
    monkeypatch.setattr(_operation, "_SLOW", 0.0)
    with _operation.InPython():
        with pytest.warns(UserWarning, match="kiln::softmax took .* emulator"):
            kt.softmax(X.cpu())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kt.softmax(X.cpu())


OTHER_PATH = """
import sys, torch, kiln.torch
x = torch.randn(4, 32, requires_grad=True)
y = kiln.torch.softmax(x)
(gradient,) = torch.autograd.grad(y.sum(), x)
assert torch.allclose(y, x.softmax(-1), atol=1e-6) and gradient.abs().max() < 1e-6
from kiln._library import library
library().operations["softmax"].replace(lambda *_: print("in Python"))
kiln.torch.softmax(x.detach())
"""


def test_operations_run_in_python_where_torch_is_older():
    """As with a torch that has not the functions that libkiln needs."""
    environment = {**os.environ, "KILN_TORCH_PYTHON": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", OTHER_PATH], env=environment, capture_output=True, text=True
    )
    assert ran.stdout == "in Python\n", ran.stderr


def test_an_operation_called_past_the_functions_names_the_error_and_its_kind():
    with pytest.raises(RuntimeError, match="^kiln.ValueError: softmax: argument 'x' has dtype"):
        torch.ops.kiln.softmax(X.long())
    with pytest.raises(ValueError, match="^softmax: argument 'x' has dtype"):
        kt.softmax(X.long())


def test_threads_have_their_own_results_and_errors():
    inputs = [torch.randn(4 + i, 32) for i in range(4)]
    good = []

    def work(start):
        for i in range(start, start + 12):
            x = inputs[i % 4]
            is_right = torch.allclose(kt.softmax(x), x.softmax(-1), atol=1e-6)
            with pytest.raises(ValueError, match="argument 'x' has dtype i64"):
                kt.softmax(x.long())
            good.append(is_right)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(good) == 48 and all(good)
