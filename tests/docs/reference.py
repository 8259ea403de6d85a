#!/usr/bin/env python3
"""reference.py COMMITTED GENERATED: the pages of docs/reference are what the .td files say now."""
import difflib
import pathlib
import sys

COMMAND = "cmake --build build/dev --target kiln-reference"


def main():
    committed, generated = map(pathlib.Path, sys.argv[1:])
    pages = sorted({p.name for folder in (committed, generated) for p in folder.glob("*.md")
                    if ".td files" in p.read_text(encoding="utf-8").partition("\n")[0]})
    wrong = []
    for name in pages:
        texts = [(folder / name).read_text(encoding="utf-8").splitlines() if (folder / name).exists() else []
                 for folder in (committed, generated)]
        difference = list(difflib.unified_diff(*texts, f"docs/reference/{name}", "generated now", lineterm=""))
        if difference:
            wrong.append(name)
            print("\n".join(difference[:40]))
    if len(pages) < 3:
        sys.exit(f"only {len(pages)} pages: the build makes tile.md, tile_gpu.md and passes.md")
    if wrong:
        sys.exit(f"{', '.join(wrong)} differ from the .td files. Write the pages anew and commit them: {COMMAND}")
    print(f"{len(pages)} pages are what the .td files say")


if __name__ == "__main__":
    main()
