"""`kiln`: the command that lies in the wheel."""

import os
import pathlib
import sys

from kiln._library import offer_assemblers


def main() -> None:
    command = pathlib.Path(__file__).parent / "lib" / "kiln"
    if not command.is_file():
        sys.exit(f"kiln: {command} is missing: this package was not built as a wheel")
    offer_assemblers()  # what it keeps is found by Python's calls, whose assemblers are these
    os.execv(command, ["kiln", *sys.argv[1:]])
