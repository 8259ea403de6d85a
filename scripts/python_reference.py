#!/usr/bin/env python3
"""python_reference.py [--check]: makes docs/reference/python.md of libkiln's table and of the
package's docstrings.

It runs in the environment of scripts/python_env.sh, with KILN_LIBRARY set.  --check writes nothing and fails if the page is not what they say.
"""

import argparse
import difflib
import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "python.md"
COMMAND = (
    "KILN_LIBRARY=build/dev/bin/libkiln.so build/dev/python/bin/python scripts/python_reference.py"
)
HEAD = f"""<!-- Generated from libkiln's table and the docstrings. To write it anew: {COMMAND} -->

# Python

[From Python](../tutorial/from-python.md) shows the use, [drop-ins](../drop-ins.md) are functions of other packages' names.
"""


def signature(name, function):
    parameters = [
        re.sub(r"'([^']*)'", r"\1", str(p), count=1) if ": '" in str(p) else str(p)
        for p in inspect.signature(function).parameters.values()
    ]
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    for mark, kind, before in (
        ("*", inspect.Parameter.KEYWORD_ONLY, True),
        ("/", inspect.Parameter.POSITIONAL_ONLY, False),
    ):
        if kind in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
            at = kinds.index(kind) if before else len(kinds) - kinds[::-1].index(kind)
            parameters.insert(at, mark)
            kinds.insert(at, None)
    line = f"{name}({', '.join(parameters)})"
    if len(line) <= 100:
        return line
    return f"{name}(\n    " + ",\n    ".join(parameters) + "\n)"


def part(name, title, *text):
    return f"### `{name}`\n\n```text\n{title}\n\n" + "\n".join(text).strip() + "\n```\n"


def functions(module):
    names = [n for n in module.__all__ if not isinstance(getattr(module, n), type)]
    for name in sorted(names):
        full = f"{module.__name__}.{name}"
        function = getattr(module, name)
        yield part(full, signature(full, function), inspect.getdoc(function))


def operations(kiln):
    for name in kiln.operations():
        function = getattr(kiln, name)
        shown = [
            p
            for p in inspect.signature(function).parameters.values()
            if p.kind is p.POSITIONAL_OR_KEYWORD
        ]
        inputs = ", ".join(p.name if p.default is p.empty else f"{p.name}=None" for p in shown)
        yield part(name, f"kiln.{name}({inputs}, *, out=None, ..)", function.__doc__)


def failures(errors):
    for name in errors.__all__:
        text = " ".join(inspect.getdoc(getattr(errors, name)).split())
        yield f"| `kiln.{name}` | {text} |\n"


def page():
    sys.path.insert(0, str(ROOT / "runtime" / "python"))
    import kiln
    import kiln.torch
    from kiln import errors

    return "\n".join(
        [
            HEAD,
            "## kiln\n",
            *functions(kiln),
            "## Failures\n\n" + " ".join(errors.__doc__.split("\n\n", 1)[1].split()) + "\n",
            "| | |\n|---|---|\n" + "".join(failures(errors)),
            "## kiln.torch\n",
            inspect.getdoc(kiln.torch) + "\n",
            *functions(kiln.torch),
            "## Operations\n",
            "Functions of `kiln` on arrays of NumPy, CuPy and torch, without gradients, and of"
            " `kiln.jax`, with gradients where there is a backward operation. Options are given by"
            " name; `kiln.jax` has no `out`.\n",
            *operations(kiln),
        ]
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    args = parser.parse_args()
    text = page()
    if not args.check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    lines = [PAGE.read_text(encoding="utf-8").splitlines(), text.splitlines()]
    difference = list(difflib.unified_diff(*lines, str(PAGE), "generated now", lineterm=""))
    if difference:
        print("\n".join(difference[:40]))
        sys.exit(f"docs/reference/python.md is stale. Write it anew and commit it: {COMMAND}")
    print(f"{len(lines[0])} lines are what the table and the docstrings say")
    return 0


if __name__ == "__main__":
    sys.exit(main())
