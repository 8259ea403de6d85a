"""Several GPUs of one process: a call runs on the device of its tensors, whichever is current."""

import threading

import pytest
import torch
from common import normal
from test_linear import inputs_of

import kiln.torch as kt

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")

ROWS, HEADS, DIM = 256, 2, 64
FIRST, SECOND = "cuda:0", "cuda:1"


def attention_inputs():
    return [normal(1, ROWS, HEADS, DIM, grad=False) for _ in range(4)]


def rwkv7_inputs():
    inputs = inputs_of("rwkv7")
    return [*inputs.values(), torch.randn_like(inputs["v"])]


CALLS = {
    "attention": (attention_inputs, lambda *x: kt.attention(*x, causal=True, deterministic=True)),
    "rwkv7": (rwkv7_inputs, kt.rwkv7),
    "matmul": (lambda: [normal(1, 128, 128, grad=False) for _ in range(3)], kt.matmul),
}


def results(call, tensors, device):
    """The call's output and gradients on the device; the last tensor is the output's direction."""
    *inputs, direction = (t.detach().to(device) for t in tensors)
    for t in inputs:
        t.requires_grad_()
    out = call(*inputs)
    got = (out.detach(), *torch.autograd.grad(out, inputs, direction))
    assert {str(t.device) for t in got} == {device}
    return [t.cpu() for t in got]


def assert_equal(got, wanted):
    for g, w in zip(got, wanted, strict=True):
        assert torch.equal(g, w)


@pytest.mark.parametrize("name", CALLS)
def test_of_a_device_that_is_not_current(name):
    inputs, call = CALLS[name]
    inputs = inputs()
    torch.cuda.set_device(0)
    wanted = results(call, inputs, FIRST)
    assert_equal(results(call, inputs, SECOND), wanted)
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        assert_equal(results(call, inputs, FIRST), wanted)
        assert torch.cuda.current_device() == 1


def test_in_turn_and_from_threads():
    inputs, call = CALLS["attention"]
    cases = [inputs() for _ in range(4)]
    wanted = [results(call, c, FIRST) for c in cases]
    failures = []

    def rounds(begin):
        for at in range(begin, begin + 40):
            try:
                assert_equal(
                    results(call, cases[at % 4], (FIRST, SECOND)[(at + at // 4) % 2]),
                    wanted[at % 4],
                )
            except BaseException as error:  # of the thread, told below
                failures.append(error)
                return

    threads = [threading.Thread(target=rounds, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures[0]


def test_streams_of_the_tensors_device():
    """Inputs that a slow side stream of the second GPU makes, and results that are read there."""
    inputs, call = CALLS["attention"]
    inputs = inputs()
    wanted = call(*(t.to(FIRST) for t in inputs[:3])).cpu()
    on = [torch.zeros_like(t, device=SECOND) for t in inputs[:3]]
    source = [t.to(SECOND) for t in inputs[:3]]
    torch.cuda.synchronize(1)
    side = torch.cuda.Stream(SECOND)
    for _ in range(5):
        for t in on:
            t.zero_()
        torch.cuda.synchronize(1)
        with torch.cuda.stream(side):  # makes the second GPU current
            torch.cuda._sleep(20_000_000)
            for to, of in zip(on, source):
                to.copy_(of)
            got = call(*on)
        side.synchronize()
        assert torch.equal(got.cpu(), wanted)


def test_a_graph_of_the_second_device():
    inputs, call = CALLS["attention"]
    first, second = inputs(), inputs()
    wanted = [call(*(t.to(FIRST) for t in of[:3])).cpu() for of in (first, second)]
    with torch.cuda.device(1):
        on = [t.to(SECOND) for t in first[:3]]
        call(*on)  # compiles
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = call(*on)
    for of, want in zip((first, second), wanted):
        for to, t in zip(on, of[:3]):
            to.copy_(t)
        got.zero_()
        torch.cuda.synchronize(1)
        graph.replay()
        torch.cuda.synchronize(1)
        assert torch.equal(got.cpu(), want)


def test_gradients_across_devices():
    """A model in two parts, one on each GPU: the gradient comes back through both."""
    q, k, v, do = (t.to(FIRST) for t in attention_inputs())

    def two_layers(second):
        x = [t.detach().clone().requires_grad_() for t in (q, k, v)]
        middle = kt.attention(*x, deterministic=True).to(second)
        keys, values = (t.to(second) for t in x[1:])
        out = kt.attention(middle, keys, values, causal=True, deterministic=True)
        return [g.cpu() for g in torch.autograd.grad(out, x, do.to(second))]

    assert_equal(two_layers(SECOND), two_layers(FIRST))


def test_tensors_of_two_devices_are_refused():
    q, k, v, _ = attention_inputs()
    with pytest.raises(ValueError, match=r"'k'.*cuda:1.*cuda:0"):
        kt.attention(q.to(FIRST), k.to(SECOND), v.to(FIRST))
