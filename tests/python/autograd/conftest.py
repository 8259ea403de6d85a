import os

import pytest
import torch

#: Where the tests' tensors are made: "cuda" on a machine with a GPU, by hand.
torch.set_default_device(os.environ.get("KILN_TEST_DEVICE", "cpu"))


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(7)
