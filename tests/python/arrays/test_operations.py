"""Operations on NumPy arrays, against float64."""

import ml_dtypes
import numpy as np
import pytest

import kiln

BF16 = np.dtype(ml_dtypes.bfloat16)
TYPES = [np.dtype(np.float32), np.dtype(np.float16), BF16]
#: Half the distance of neighbours, relative.
UNIT = {np.dtype(np.float32): 2.0**-24, np.dtype(np.float16): 2.0**-11, BF16: 2.0**-8}


def assert_near(got, wanted, dtype, sums=1):
    """Sums of f32 with so many terms, then one rounding to the type."""
    size = np.abs(wanted).max() if wanted.size else 0
    limit = size * (UNIT[dtype] + (sums + 4) * 2.0**-22) + 2.0**-24
    assert got.shape == wanted.shape
    assert np.abs(got.astype(np.float64) - wanted).max(initial=0) <= limit


def softmax64(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_softmax(random, dtype):
    x = random.standard_normal((5, 130)).astype(dtype)
    got = kiln.softmax(x)
    assert got.dtype == dtype
    assert_near(got, softmax64(x.astype(np.float64)), dtype, 130)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_layer_norm(random, dtype):
    x, w, b = (random.standard_normal(s).astype(dtype) for s in ((5, 130), 130, 130))
    d = x.astype(np.float64)
    wanted = (d - d.mean(-1, keepdims=True)) / np.sqrt(d.var(-1, keepdims=True) + 1e-3)
    wanted = wanted * w.astype(np.float64) + b.astype(np.float64)
    assert_near(kiln.layer_norm(x, w, b, eps=1e-3), wanted, dtype, 130)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_matmul(random, dtype):
    a, b = (random.standard_normal(s).astype(dtype) for s in ((33, 70), (40, 70)))
    wanted = 0.5 * (a.astype(np.float64) @ b.astype(np.float64).T)
    got = kiln.matmul(a, b, scale=0.5, transpose_b=True)
    limit = 71 * 2.0**-22 * (np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)).T).max()
    assert (
        np.abs(got.astype(np.float64) - wanted).max() <= limit + UNIT[dtype] * np.abs(wanted).max()
    )


def test_matmul_of_fp8_gives_f32(random):
    a = random.standard_normal((17, 32)).astype(ml_dtypes.float8_e4m3fn)
    got = kiln.matmul(a, a, transpose_b=True)
    d = a.astype(np.float64)
    assert got.dtype == np.float32
    assert np.abs(got - d @ d.T).max() <= 33 * 2.0**-13 * (np.abs(d) @ np.abs(d).T).max()


def test_small_operations(random):
    x, y = (random.standard_normal((6, 50)).astype(np.float32) for _ in range(2))
    assert (kiln.copy(x) == x).all()
    assert (kiln.add(x, y) == x + y).all()
    assert (kiln.transpose(x) == x.T).all()
    assert_near(kiln.cumsum(x), np.cumsum(x.astype(np.float64), -1), x.dtype, 50)
    total = kiln.reduce_sum(x)
    assert (
        abs(float(np.ravel(total)[0]) - x.astype(np.float64).sum())
        <= 300 * 2.0**-24 * np.abs(x).sum()
    )


def attention64(q, k, v, causal):
    q, k, v = (t.astype(np.float64).swapaxes(1, 2) for t in (q, k, v))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tri(*s.shape[-2:], s.shape[-1] - s.shape[-2], dtype=bool), s, -np.inf)
    top = s.max(-1, keepdims=True)
    return (softmax64(s) @ v).swapaxes(1, 2), (
        top + np.log(np.exp(s - top).sum(-1, keepdims=True))
    )[..., 0]


@pytest.mark.parametrize("causal", [False, True])
def test_attention(random, causal):
    q, k, v = (random.standard_normal((2, rows, 2, 32)).astype(BF16) for rows in (40, 70, 70))
    o, lse = kiln.attention(q, k, v, causal=causal, lse=True)
    wanted, wanted_lse = attention64(q, k, v, causal)
    assert o.dtype == BF16 and lse.dtype == np.float32
    # Probabilities are rounded to bf16 once, the sum once more; lse stays f32.
    assert np.abs(o.astype(np.float64) - wanted).max() <= 2 * 2.0**-8 * np.abs(wanted).max()
    assert np.abs(lse - wanted_lse).max() <= 1e-4


def test_kernels_of_every_family_can_be_called():
    assert {"softmax", "attention", "rwkv7", "matmul"} <= set(kiln.operations())
    assert set(kiln.operations()) <= set(dir(kiln))


class TestOutputs:
    def test_out_is_written_and_returned(self, random):
        x = random.standard_normal((4, 32)).astype(np.float32)
        out = np.full_like(x, 9)
        assert kiln.softmax(x, out=out) is out
        assert_near(out, softmax64(x.astype(np.float64)), x.dtype, 32)

    def test_a_strided_output_leaves_what_lies_between(self, random):
        x = random.standard_normal((4, 32)).astype(np.float32)
        whole = np.full((4, 64), 9, np.float32)
        kiln.copy(x, out=whole[:, ::2])
        assert (whole[:, ::2] == x).all() and (whole[:, 1::2] == 9).all()

    def test_outputs_of_one_buffer_do_not_overwrite_each_other(self, random):
        q, k, v = (random.standard_normal((1, 24, 1, 16)).astype(np.float16) for _ in range(3))
        o, lse = kiln.attention(q, k, v, lse=True)
        d = random.standard_normal(o.shape).astype(np.float16)
        apart = kiln.attention_backward(q, k, v, o, lse, d)
        whole = np.full((1, 24, 3, 1, 16), 9, np.float16)
        kiln.attention_backward(q, k, v, o, lse, d, out=tuple(whole[:, :, i] for i in range(3)))
        for i in range(3):
            assert (whole[:, :, i] == apart[i]).all()

    def test_an_optional_output_is_returned_if_asked_for(self, random):
        q = random.standard_normal((1, 8, 1, 16)).astype(np.float16)
        lse = np.zeros((1, 1, 8), np.float32)
        assert isinstance(kiln.attention(q, q, q), np.ndarray)
        assert kiln.attention(q, q, q, lse=lse)[1] is lse
        assert (lse != 0).all()

    def test_strided_inputs(self, random):
        x = random.standard_normal((64, 10)).astype(np.float32)
        assert (kiln.softmax(x[::2].T) == kiln.softmax(np.ascontiguousarray(x[::2].T))).all()

    def test_no_elements(self):
        assert kiln.copy(np.zeros((0, 4), np.float32)).shape == (0, 4)


def test_outputs_are_asked_for_once(random, monkeypatch):
    from kiln import _functions

    asked = []
    ask = _functions.outputs_of
    monkeypatch.setattr(
        _functions, "outputs_of", lambda *call: asked.append(call[0].name) or ask(*call)
    )
    monkeypatch.setattr(_functions, "_known", {})
    for rows in (3, 3, 4, 3):
        x = random.standard_normal((rows, 8)).astype(np.float32)
        assert kiln.softmax(x).shape == (rows, 8)
    assert asked == ["softmax"] * 2
    x = x.astype(np.float16)
    assert kiln.matmul(x, x, transpose_b=True).dtype == np.float16
    assert kiln.matmul(x, x, transpose_b=True, out_dtype="f32").dtype == np.float32
    assert asked == ["softmax"] * 2 + ["matmul"] * 2
    with pytest.raises(ValueError, match="matmul"):
        kiln.matmul(x, x)
    with pytest.raises(ValueError, match="matmul"):
        kiln.matmul(x, x)
    assert len(asked) == 6  # what is refused is not remembered
