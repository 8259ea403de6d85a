import os

import pytest
import torch

#: Where the tests' tensors are made: "cuda" on a machine with a GPU, by hand.
torch.set_default_device(os.environ.get("KILN_TEST_DEVICE", "cpu"))


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(7)


def pytest_terminal_summary(terminalreporter):
    """Skipped cases, as scripts/summarise_tests.py counts them."""
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"kiln-skipped: {str(reason).removeprefix('Skipped: ')}")
