"""Calls that are compiled ahead, or explained, and do not run."""

import threading

import numpy as np
import pytest
import torch
from common import normal
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor

import kiln
import kiln.torch as kt
from kiln._library import library


def test_warm_up_compiles_and_runs_nothing():
    x, out = np.ones((3, 72), np.float32), np.full((3, 72), 7, np.float32)
    q = normal(1, 24, 1, 48)
    kiln.warm_up(
        [
            lambda: kiln.softmax(x, out=out),
            lambda: kt.attention(q, q, q, causal=True).sum().backward(),
        ]
    )
    assert (out == 7).all()
    prepare = library().function("prepare")
    assert prepare("softmax", False, x, out)  # it is there, and nobody has waited
    assert q.grad is not None
    told = kiln.explain(lambda: kt.attention(q, q, q, causal=True).sum().backward())
    # On a GPU torch computes gradients in a thread of its own, where calls are not caught.
    backward = ["attention_backward"] if q.is_cpu else []
    assert [c["operation"] for c in told.calls] == ["attention", *backward]
    assert (kiln.softmax(x, out=out) == np.float32(1 / 72)).all()


def test_fake_tensors_and_subclasses_come_before_kiln_sees_a_call():
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.randn(4, 32))
        assert kiln.explain(kt.softmax, fake).calls == []
    assert kiln.explain(kt.softmax, torch.randn(4, 32, device="meta")).calls == []
    pair = TwoTensor(torch.randn(8, 8), torch.randn(8, 8))
    told = kiln.explain(kt.matmul, pair, pair).calls
    assert [call["operation"] for call in told] == ["matmul", "matmul"]


def test_explain_says_what_is_launched():
    x = np.ones((3, 72), np.float32)
    told = kiln.explain(kiln.softmax, x)
    (call,) = told.calls
    assert call["device"].startswith("emulator") and call["workspace"] == []
    (launch,) = call["launches"]
    assert launch["kernel"] in str(told) and f"{launch['threads']} threads" in str(told)
    assert launch["grid"][0] >= 1 and launch["code"] in ("memory", "disk", "shared", "compiled")
    assert "no operation" in str(kiln.explain(lambda: None))


def test_calls_run_again_afterwards():
    x = torch.randn(4, 32)
    with pytest.raises(ZeroDivisionError):
        kiln.warm_up([lambda: 1 / 0])
    assert torch.allclose(kt.softmax(x), x.softmax(-1))


def test_other_threads_are_left_alone():
    x, results = torch.randn(4, 32), []

    def other():
        results.append(kt.softmax(x))

    def mine():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    assert kiln.explain(mine).calls == []
    assert torch.allclose(results[0], x.softmax(-1))


def test_wrong_calls_are_refused():
    with pytest.raises(ValueError, match="matmul: argument 'b'"):
        kiln.warm_up([lambda: kt.matmul(torch.ones(2, 3), torch.ones(2, 3), out=torch.ones(2, 3))])
    with pytest.raises(TypeError, match="3 is no function"):
        kiln.warm_up([3])
    with pytest.raises(ValueError, match="device = 'cuda:0'"):
        kiln.warm_up([], device="cuda:0")


def test_a_file_of_calls(tmp_path, monkeypatch):
    monkeypatch.setenv("KILN_CACHE_DIR", str(tmp_path))
    calls = tmp_path / "calls.txt"
    calls.write_text("add --dtype f32\n")
    kiln.warm_up(calls, device="offline:sm_90a")
    assert any(path.suffix for path in tmp_path.rglob("*") if path != calls)
    calls.write_text("sotfmax\n")
    with pytest.raises(kiln.KilnError, match="sotfmax"):
        kiln.warm_up(str(calls), device="offline:sm_90a")
    with pytest.raises(FileNotFoundError, match="nowhere.txt"):
        kiln.warm_up(tmp_path / "nowhere.txt")
