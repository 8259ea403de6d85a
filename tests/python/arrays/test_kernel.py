"""Text kernels of the user's own."""

import pathlib

import numpy as np
import pytest

import kiln

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "docs" / "examples"
SCALE = EXAMPLES / "scale.mlir"


@pytest.fixture
def x(random):
    return random.standard_normal(1000).astype(np.float32)


def test_a_kernel_runs(x):
    out = np.full_like(x, 9)
    assert kiln.kernel(SCALE)[2](x, out, 0.5, 1000) is None
    assert (out == x * np.float32(0.5)).all()
    kiln.kernel(SCALE, "scale")[(2, 1)](x, out, np.float32(2), np.int64(10))
    assert (out[:10] == 2 * x[:10]).all() and (out[10:] == x[10:] * np.float32(0.5)).all()


def test_what_the_emulator_finds_is_raised(x):
    with pytest.raises((kiln.Finding, kiln.KilnError), match="scale|bounds|memory"):
        kiln.kernel(SCALE)[2](x, np.zeros(10, np.float32), 0.5, 1000)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (lambda x: (x, x.copy(), 0.5), "4 parameters, the call has 3"),
        (lambda x: (x, x.copy(), 0.5, 2**40), "'n'.*does not fit"),
        (lambda x: (x, x.copy(), 0.5, 1.5), "'n'.*no whole number"),
        (lambda x: (x, x.copy(), "a", 10), "'factor'.*no number"),
        (lambda x: (x, 3, 0.5, 10), "'out'.*no tensor"),
        (lambda x: (x, x.astype(np.float16), 0.5, 10), "'out'.*holds f16"),
        (lambda x: (x, x, 0.5, 10), "'out'.*overlaps.*'x'"),
    ],
)
def test_arguments_that_do_not_fit(x, arguments, words):
    with pytest.raises(ValueError, match=words):
        kiln.kernel(SCALE)[2](*arguments(x))


def test_other_failures(x, tmp_path):
    out = x.copy()
    with pytest.raises(FileNotFoundError, match="nowhere.mlir"):
        kiln.kernel(tmp_path / "nowhere.mlir")[1](x)
    broken = tmp_path / "broken.mlir"
    broken.write_text("func.func @f( {")
    with pytest.raises(ValueError, match="broken.mlir:1:14: error"):
        kiln.kernel(broken)[1](x)
    with pytest.raises(ValueError, match="extent 0"):
        kiln.kernel(SCALE)[0](x, out, 0.5, 10)
    with pytest.raises(ValueError, match="4 dimensions"):
        kiln.kernel(SCALE)[(1, 1, 1, 1)]
    with pytest.raises(NotImplementedError, match="'x'.*not dense"):
        kiln.kernel(SCALE)[1](x[::2], out, 0.5, 10)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="argument 1 is read-only"):
        kiln.kernel(SCALE)[1](x, out, 0.5, 10)
