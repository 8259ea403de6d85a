"""`kiln`: the command that lies in the wheel."""

import os
import pathlib
import sys


def main() -> None:
    command = pathlib.Path(__file__).parent / "lib" / "kiln"
    if not command.is_file():
        sys.exit(f"kiln: {command} is missing: this package was not built as a wheel")
    os.execv(command, ["kiln", *sys.argv[1:]])
