"""Threads, the interpreter's lock, fork, and what import costs."""

import os
import subprocess
import sys
import threading
import time

import numpy as np

import kiln

ROWS = np.random.default_rng(3).standard_normal((4, 64)).astype(np.float32)


def python(program):
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )


def test_threads_get_the_results_of_one():
    wanted = kiln.softmax(ROWS)
    results = [None] * 6

    def work(at):
        results[at] = all((kiln.softmax(ROWS) == wanted).all() for _ in range(5))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * len(results)


def test_other_threads_run_during_a_call():
    q = np.ones((1, 512, 2, 64), np.float16)
    kiln.attention(q, q, q)
    ended, ticks = threading.Event(), []

    def count():
        while not ended.wait(0.0005):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.perf_counter()
    kiln.attention(q, q, q)
    end = time.perf_counter()
    ended.set()
    thread.join()
    during = sum(begin < t < end for t in ticks)
    # With the lock held there would be none, or one at each end.
    assert during > 5, (during, end - begin)


def test_a_call_after_a_fork_is_refused():
    program = """
import os, sys, numpy as np, kiln
x = np.ones((2, 32), np.float32)
kiln.softmax(x)
child = os.fork()
if child == 0:
    try:
        kiln.softmax(x)
        os._exit(0)
    except NotImplementedError as e:
        os._exit(3 if "forked" in str(e) else 4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), kiln.softmax(x)[0, 0])
"""
    ran = python(program)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["3", str(1 / 32)]


def test_import_opens_nothing():
    program = (
        "import sys, kiln; print([m for m in ('numpy', 'tvm_ffi', 'torch') if m in sys.modules])"
    )
    assert python(program).stdout.strip() == "[]"


def test_a_library_that_is_not_there_is_named():
    program = """
import os
os.environ["KILN_LIBRARY"] = "/nowhere/libkiln.so"
import kiln
try:
    kiln.operations()
except FileNotFoundError as e:
    print(e)
"""
    assert "/nowhere/libkiln.so" in python(program).stdout


def test_assemblers_of_wheels_are_offered(tmp_path):
    """CUDA's wheels, torch's and Triton's bring libnvJitLink and ptxas: their paths become the
    knobs' values, unless the user gave some, or the machine has a ptxas of its own."""
    library = tmp_path / "nvidia" / "cu13" / "lib" / "libnvJitLink.so.13"
    cuda = tmp_path / "nvidia" / "cu13" / "bin" / "ptxas"
    torch = tmp_path / "torch" / "bin" / "ptxas"
    triton = tmp_path / "triton" / "backends" / "nvidia" / "bin" / "ptxas"
    own = tmp_path / "own" / "ptxas"
    for file in (library, cuda, torch, triton, own):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    (tmp_path / "nvidia" / "__init__.py").write_text("")
    for package in ("torch", "triton"):
        (tmp_path / package / "__init__.py").write_text("raise ImportError('this imports it')")

    def offered(path=tmp_path / "empty", machine="/nowhere/ptxas", before="", **given):
        return python(f"""
import os, sys
sys.path.insert(0, {str(tmp_path)!r})
import kiln._library as l
{before}
for knob in ("KILN_NVJITLINK", "KILN_PTXAS"):
    os.environ.pop(knob, None)
os.environ.update({given!r})
os.environ["PATH"] = {str(path)!r}
l._CUDA_PTXAS = {str(machine)!r}
l.offer_assemblers()
print(os.environ.get("KILN_NVJITLINK"), os.environ.get("KILN_PTXAS"))
""").stdout.split()

    assert offered() == [str(library), str(cuda)]
    assert offered(KILN_NVJITLINK="none") == ["none", str(cuda)]
    assert offered(KILN_PTXAS="none") == [str(library), "none"]
    assert offered(path=own.parent) == [str(library), "None"]
    assert offered(machine=own) == [str(library), "None"]
    cuda.unlink()
    assert offered() == [str(library), str(torch)]
    stand_in = "import types; sys.modules['torch'] = types.ModuleType('torch')"
    assert offered(before=stand_in) == [str(library), str(triton)]
    torch.chmod(0o644)  # no program
    assert offered() == [str(library), str(triton)]
    triton.unlink()
    triton.mkdir()
    assert offered() == [str(library), "None"]


def test_knobs_are_set_before_the_first_call():
    program = """
import os, kiln, numpy as np
with kiln.config(cache_dir="/elsewhere", tuned=False):
    print(os.environ["KILN_CACHE_DIR"], os.environ["KILN_TUNED"])
print(os.environ["KILN_CACHE_DIR"] != "/elsewhere", "KILN_TUNED" in os.environ)
try:
    kiln.config(cache_dri="/x")
except TypeError as e:
    print(e)
kiln.config(checks="wrong")
try:
    kiln.softmax(np.ones((2, 8), np.float32))
except ValueError as e:
    print(e)
kiln.config(checks="fail")
kiln.softmax(np.ones((2, 8), np.float32))
try:
    kiln.config(checks="off")
except RuntimeError as e:
    print(e)
"""
    ran = python(program)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0] == "/elsewhere 0" and lines[1] == "True False"
    assert "'cache_dri'" in lines[2] and "'cache_dir'" in lines[2]
    assert "KILN_CHECKS" in lines[3] and "wrong" in lines[3]
    assert "before the first" in lines[4]


def test_devices_are_listed():
    assert "emulator:sm_90a" in [device["name"] for device in kiln.devices()]
