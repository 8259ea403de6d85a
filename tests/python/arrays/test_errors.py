"""What is refused: the class of the error, and what it names."""

import ml_dtypes
import numpy as np
import pytest

import kiln

X = np.ones((4, 32), np.float32)


def refuses(kind, call, *words):
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    "value", [[1.0, 2.0], 3, "x", object()], ids=["list", "int", "text", "object"]
)
def test_what_is_no_array(value):
    refuses(TypeError, lambda: kiln.softmax(value), "softmax", "'x'", type(value).__name__)


def test_missing_argument():
    refuses(TypeError, lambda: kiln.softmax(), "softmax", "'x'", "missing")
    refuses(TypeError, lambda: kiln.softmax(None), "softmax", "'x'", "missing")
    refuses(ValueError, lambda: kiln.attention(X, X), "attention", "k")


def test_unknown_argument_names_the_nearest():
    refuses(TypeError, lambda: kiln.attention(X, X, X, casual=True), "'casual'", "'causal'")
    refuses(AttributeError, lambda: kiln.sofmax, "sofmax", "operations()")


def test_too_many_and_twice():
    refuses(TypeError, lambda: kiln.softmax(X, X), "softmax", "2 arrays")
    refuses(TypeError, lambda: kiln.softmax(X, x=X), "'x'", "twice")
    refuses(TypeError, lambda: kiln.softmax(X, out=(X, X)), "'out'", "2 arrays")


@pytest.mark.parametrize(
    "option, value, words",
    [
        ("causal", 3, "True or False"),
        ("scale", "a", "number"),
        ("window_left", 1.5, "whole"),
        ("align", 1, "top_left"),
    ],
)
def test_options_of_another_type(option, value, words):
    refuses(
        TypeError,
        lambda: kiln.attention(X, X, X, **{option: value}),
        "attention",
        option,
        repr(value),
        words,
    )


def test_a_choice_that_is_none():
    q = np.ones((1, 8, 1, 16), np.float16)
    refuses(
        ValueError, lambda: kiln.attention(q, q, q, align="middle"), "align", "middle", "top_left"
    )


def test_numbers_of_numpy_are_numbers():
    q = np.ones((1, 8, 1, 16), np.float16)
    plain = kiln.attention(q, q, q, window_left=2, scale=0.5, causal=True)
    assert (
        kiln.attention(q, q, q, window_left=np.int64(2), scale=np.float32(0.5), causal=np.True_)
        == plain
    ).all()


@pytest.mark.parametrize("dtype", ["complex64", ">f4", "datetime64[s]", "U3"])
def test_types_that_no_kernel_takes(dtype):
    refuses(ValueError, lambda: kiln.softmax(np.zeros((2, 8), dtype)), "softmax", "'x'")


def test_shapes():
    refuses(ValueError, lambda: kiln.matmul(X, X), "matmul", "'b'", "4x32")
    refuses(
        ValueError, lambda: kiln.softmax(X, out=np.zeros((4, 31), np.float32)), "softmax", "'out'"
    )
    refuses(
        ValueError, lambda: kiln.softmax(X, out=np.zeros((4, 32), np.float16)), "softmax", "'out'"
    )
    refuses(ValueError, lambda: kiln.copy(np.zeros((1,) * 9, np.float32)), "copy", "'x'", "9", "8")


class TestMemory:
    def test_read_only_inputs_are_taken(self):
        x = X.copy()
        x.flags.writeable = False
        assert (kiln.softmax(x) == kiln.softmax(X)).all()

    def test_read_only_outputs_are_refused(self):
        out = X.copy()
        out.flags.writeable = False
        refuses(ValueError, lambda: kiln.softmax(X, out=out), "softmax", "'out'", "read-only")

    def test_small_floats_are_taken_and_written(self):
        x = X.astype(ml_dtypes.bfloat16)
        out = np.zeros_like(x)
        assert kiln.softmax(x, out=out) is out
        assert (out.astype(np.float32) == 1 / 32).all()

    def test_strides_that_are_no_multiples(self):
        odd = np.zeros((4, 33), np.uint8)[:, :32].view(np.float32)  # rows of 33 bytes
        refuses(ValueError, lambda: kiln.softmax(odd), "strides")

    def test_negative_strides(self):
        refuses(ValueError, lambda: kiln.softmax(X[::-1]), "softmax", "'x'", "stride")

    def test_outputs_that_overlap_are_refused(self):
        q = np.ones((1, 8, 1, 16), np.float16)
        o, lse = kiln.attention(q, q, q, lse=True)
        dq = np.zeros_like(q)
        refuses(
            ValueError,
            lambda: kiln.attention_backward(q, q, q, o, lse, o, out=(dq, dq, np.zeros_like(q))),
            "dk",
            "dq",
        )


def test_errors_are_the_documented_classes():
    for name in ("CompileError", "DeviceError", "NotReady", "Finding", "InternalError"):
        cls = getattr(kiln, name)
        assert issubclass(cls, kiln.KilnError) and issubclass(cls, RuntimeError)
