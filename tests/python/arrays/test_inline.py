"""Kernels in C++ inside a Python program."""

import shutil

import numpy as np
import pytest

import kiln
from kiln import _inline

LEAKY = r"""
Kernel leaky(float slope) {
  return kernel("leaky", {.warps = 4}, [=](Arg<Pointer<f32>, "x"> x, Arg<Pointer<f32>, "out"> out, Arg<i64, "n"> n) {
    auto i = cast<i64>(programId()) * 512 + cast<i64>(range(0, 512));
    auto value = load(x + i, i < n);
    store(out + i, select(value > 0, value, value * slope), i < n);
  });
}
Kernel fill(int block, bool negative, const char *name) {
  return kernel(name, {.warps = 1}, [=](Arg<Pointer<i32>, "out"> out, Arg<i32, "value"> value) {
    store(out + range(0, block), negative ? -value : value);
  });
}
Kernel thrown() { throw std::runtime_error("no such thing"); }
Kernel failed() { return kernel("bad name", {}, [](Arg<Pointer<f32>, "x"> x) { store(x, 0.0f); }); }
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    if not shutil.which("g++"):
        pytest.skip("there is no g++")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KILN_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("CXX", raising=False)
        yield kiln.load_inline(LEAKY, ["leaky", "fill", "thrown", "failed"])


def test_a_kernel_runs(module, random):
    x = random.standard_normal(1000).astype(np.float32)
    out = np.zeros_like(x)
    module.leaky(0.5)[2](x, out, 1000)
    assert (out == np.where(x > 0, x, x * np.float32(0.5))).all()
    module.leaky(np.float32(2))[2](x, out, 1000)
    assert (out == np.where(x > 0, x, x * np.float32(2))).all()


def test_parameters_of_each_kind(module):
    out = np.zeros(64, np.int32)
    module.fill(32, True, "some_name")[1](out, 7)
    assert (out[:32] == -7).all() and (out[32:] == 0).all()


def test_kernels_are_recorded_once(module):
    assert module.leaky(0.25) is module.leaky(0.25)
    assert module.leaky(0.25) is not module.leaky(0.75)
    assert module.leaky(0.25).name == "leaky"


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda m: m.leaky(), "leaky: it has 1 parameters, the call has 0"),
        (lambda m: m.leaky("a"), "leaky: parameter 0 is a number"),
        (lambda m: m.fill(2**40, True, "a"), "fill: parameter 0 is a whole number that fits"),
        (lambda m: m.fill(0.5, True, "a"), "fill: parameter 0 is a whole number"),
        (lambda m: m.fill(2**80, True, "a"), "fill: parameter 0 = .* has more than 64 bits"),
        (lambda m: m.fill(32, 1, "a"), "fill: parameter 1 is a flag"),
        (lambda m: m.fill(32, True, 1), "fill: parameter 2 is a text"),
        (lambda m: m.thrown(), "thrown: it threw: no such thing"),
        (lambda m: m.failed(), "failed: .*name"),
    ],
)
def test_wrong_parameters(module, call, words):
    with pytest.raises(ValueError, match=words):
        call(module)


def test_arrays_are_no_parameters(module):
    with pytest.raises(TypeError, match="leaky: parameter 0 is of type list.*after the grid"):
        module.leaky([0.5])


def test_wrong_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path))
    with pytest.raises(kiln.CompileError, match=r"(?s)inline.cpp:1.*nonsense"):
        kiln.load_inline("nonsense f();", "f")
    with pytest.raises(ValueError, match="functions has 'a::b'"):
        kiln.load_inline(LEAKY, "a::b")
    with pytest.raises(ValueError, match="functions is empty"):
        kiln.load_inline(LEAKY, [])
    with pytest.raises(FileNotFoundError, match="no C\\+\\+ compiler no-such-compiler"):
        kiln.load_inline(LEAKY, "leaky", compiler="no-such-compiler")
    monkeypatch.setattr(_inline, "_OWN", tmp_path / "a" / "b" / "c" / "d")
    monkeypatch.setattr(_inline, "library", lambda: type("L", (), {"path": "/nowhere/b/l.so"}))
    with pytest.raises(
        FileNotFoundError, match="libkiln-language.a and its headers.*kiln-language"
    ):
        kiln.load_inline(LEAKY, "leaky")


def test_what_was_compiled_is_found(module, monkeypatch):
    """By another process too: it knows the folder alone."""
    monkeypatch.setenv("KILN_CACHE_DIR", str(module._file.parents[2]))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(_inline.subprocess, "run", None)  # no compiler is called
    again = kiln.load_inline(LEAKY, ["leaky", "fill", "thrown", "failed"])
    assert again.leaky(0.5).file == module.leaky(0.5).file
    with pytest.raises(TypeError, match="NoneType"):
        kiln.load_inline(LEAKY + " ", "leaky")
