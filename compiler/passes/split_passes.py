"""Writes one header a pass from the header that mlir-tblgen makes of all passes.

    split_passes.py Passes.h.inc FOLDER

FOLDER/NAME.inc holds the options, the base class and the creating function of pass NAME.  A file whose content is what
it was is not written, so that a new record in Passes.td rebuilds no pass but its own.
"""

import pathlib
import re
import sys


def main(source, folder):
    text = pathlib.Path(source).read_text()
    # "//===---===//\n// NAME\n//===---===//\n" opens the section of a pass; the last one, of registrations, has none.
    bar = r"//===-+===//\n"
    parts = re.split(bar + r"// (\w+)\n" + bar, text)
    for name, section in zip(parts[1::2], parts[2::2]):
        end = section.find(f"#endif // GEN_PASS_DEF_{name.upper()}\n")
        if end < 0:
            continue
        section = section[: section.index("\n", end) + 1]
        content = (
            f"// Made from compiler/passes/Passes.td by split_passes.py: include it once, inside namespace kiln.\n"
            f"#define GEN_PASS_DECL_{name.upper()}\n#define GEN_PASS_DEF_{name.upper()}\n{section}"
        )
        file = pathlib.Path(folder) / f"{name}.inc"
        if not file.exists() or file.read_text() != content:
            file.write_text(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
