#!/usr/bin/env python3
"""page.py PAGE.md ..: runs the Python of a page as a reader would type it, and compares what it
prints.

The examples are doctest's: ">>> " before a line, the output below it, "..." for any text.
"""

import doctest
import os
import pathlib
import re
import sys


def main() -> int:
    failed = 0
    pages = [pathlib.Path(page).resolve() for page in sys.argv[1:]]
    os.chdir(pathlib.Path(__file__).resolve().parents[2])  # pages name files of the source tree
    for page in pages:
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n.*?^```$", text, flags=re.M | re.S)
        # Blank lines in place of the fences and of what is no Python: the numbers of lines stay.
        parts = re.split(r"(^```python\n.*?^```$)", text, flags=re.M | re.S)
        source = "".join(
            re.sub(r"^```.*$", "", part, flags=re.M) if at % 2 else "\n" * part.count("\n")
            for at, part in enumerate(parts)
        )
        test = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(test)
        failed += runner.failures
        if not blocks or not test.examples:
            print(f"{page}: no Python on this page", file=sys.stderr)
            failed += 1
        print(f"{page}: {runner.tries} examples, {runner.failures} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
