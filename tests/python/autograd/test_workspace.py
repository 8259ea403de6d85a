"""Workspaces from torch, of operations in Python.  Without a GPU the library is made to want them;
the calls are real.  tests/door has those of libkiln's own operations of torch."""

import pytest
import torch
from common import normal

import kiln.torch as kt
from kiln._library import library
from kiln.torch import _workspace
from kiln.torch._operation import InPython
from kiln.torch.attention import _alone
from kiln.torch.rows import _softmax


@pytest.fixture
def wanted(monkeypatch):
    """What calls need, by operation; how often it was asked for; the workspaces that calls got."""

    class Wanted:
        bytes, asked, given = {}, [], []

    class Library:
        def function(self, name):
            if name != "workspace":
                return library().function(name)

            def workspace(operation, *arguments):
                # The library's own check of the call, which needs nothing on the host.
                assert library().function("workspace")(operation, *arguments) == 0
                Wanted.asked.append(operation)
                return Wanted.bytes.get(operation, 0)

            return workspace

    def wrap(operation, function):
        def call(*arguments):
            workspace = arguments[-1]
            needed = Wanted.bytes.get(operation.name, 0)
            assert workspace.dtype == torch.uint8 and workspace.dim() == 1
            if workspace.numel() < needed:
                raise ValueError(
                    f"the workspace has {workspace.numel()} bytes, {needed} are needed"
                )
            Wanted.given.append(workspace)
            return function(*arguments)

        return call

    monkeypatch.setattr(_workspace, "library", Library)
    functions = [(o.table, o.table.function) for o in (_alone, _softmax)]
    for operation, (table, function) in zip((_alone, _softmax), functions):
        table.replace(wrap(table, function))
        monkeypatch.setattr(operation, "call", operation._call_on_gpu)
        monkeypatch.setattr(operation, "_workspaces", _workspace.Workspaces(table))
    with InPython():
        yield Wanted
    for table, function in functions:
        table.replace(function)


def qkv(rows=16, dtype=torch.bfloat16):
    return [normal(1, rows, 2, 32, dtype=dtype, grad=False) for _ in range(3)]


def test_bytes_are_asked_for_once(wanted):
    wanted.bytes["attention"] = 4096
    for _ in range(3):
        kt.attention(*qkv(), causal=True)
    assert wanted.asked == ["attention"]
    assert [w.numel() for w in wanted.given] == [4096] * 3
    # Each has its own: torch's allocator knows the stream and the graph.
    assert len({id(w) for w in wanted.given}) == 3


@pytest.mark.parametrize(
    "other",
    [
        lambda: kt.attention(*qkv(24), causal=True),
        lambda: kt.attention(*qkv(dtype=torch.float16), causal=True),
        lambda: kt.attention(*qkv()),
        lambda: kt.attention(*qkv(), causal=True, sink=torch.zeros(2)),
    ],
    ids=["shape", "type", "option", "input"],
)
def test_other_calls_ask_again(wanted, other):
    kt.attention(*qkv(), causal=True)
    other()
    assert wanted.asked == ["attention"] * 2


@pytest.mark.parametrize("before", [0, 100])
def test_what_became_too_small_is_asked_for_once_more(wanted, before):
    x = torch.randn(4, 32)
    wanted.bytes["softmax"] = before
    kt.softmax(x)
    wanted.bytes["softmax"] = 5000
    for _ in range(3):
        assert torch.equal(kt.softmax(x).argmax(-1), x.argmax(-1))
    assert wanted.asked == ["softmax"] * 2
    assert [w.numel() for w in wanted.given] == [before, 5000, 5000, 5000]


def test_calls_that_need_none_allocate_none(wanted):
    for _ in range(2):
        kt.softmax(torch.randn(4, 32))
    assert wanted.given[0] is wanted.given[1] and wanted.given[0].numel() == 0


def test_other_errors_pass(wanted):
    x = torch.randn(4, 32)
    kt.softmax(x)
    with pytest.raises(ValueError, match="softmax: argument 'out'"):
        kt.softmax(x, out=torch.zeros(4, 31))
    assert wanted.asked == ["softmax"]


def test_what_is_remembered_is_bounded(wanted, monkeypatch):
    monkeypatch.setattr(_workspace, "_LIMIT", 2)
    for rows in (1, 2, 3, 4):
        kt.softmax(torch.randn(rows, 32))
    assert len(_softmax._workspaces._bytes) <= 2
