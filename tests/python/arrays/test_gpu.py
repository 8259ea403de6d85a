"""Tensors on a GPU, over the driver of tests/runtime that has none: memory is the host's.

That driver knows one kernel, and not with these parameters: a call gets as far as loading its code
on cuda:0.
"""

import os
import pathlib
import subprocess
import sys

import pytest

FAKE = pathlib.Path(os.environ["KILN_LIBRARY"]).parents[1] / "tests" / "libkiln-fake-cuda.so"
PROGRAM = """
import numpy as np, tvm_ffi
import kiln
from kiln import _arrays
from kiln._library import library

class Gpu(_arrays._Exported):
    def __init__(self, array):
        super().__init__(array, 2, 32)
        self.managed.device.type, self.managed.device.id = 2, 0
    def __dlpack_device__(self):
        return 2, 0

x = np.ones((4, 64), np.float32)
add = library().operations["add"].function

def refused(call):
    try:
        call()
    except Exception as e:
        print(type(e).__name__, e)

refused(lambda: add(Gpu(x), Gpu(x), Gpu(x.copy())))
refused(lambda: add(Gpu(x), Gpu(x), x.copy()))
refused(lambda: add(Gpu(x), Gpu(x), Gpu(x.copy()), x.copy()))
refused(lambda: add(Gpu(x), Gpu(x), Gpu(np.ones((4, 63), np.float32))))
print(kiln.devices()[0]["name"])
"""


@pytest.mark.skipif(not FAKE.exists(), reason=f"{FAKE} is not built")
def test_calls_on_a_gpu(tmp_path):
    (tmp_path / "libcuda.so.1").symlink_to(FAKE)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(tmp_path),
        "KILN_NVJITLINK": "none",
        "KILN_PTXAS": "none",
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0].startswith(
        "InternalError add: kernel 'add': the compiled code and its metadata disagree"
    )
    assert (
        lines[1].startswith("ValueError add: argument 'out' is on the host's memory")
        and "cuda:0" in lines[1]
    )
    assert lines[2].startswith("ValueError add: argument 'workspace' is on the host's memory")
    assert lines[3].startswith("ValueError add: argument 'out' is f32[4x63]")
    assert lines[4] == "cuda:0"
