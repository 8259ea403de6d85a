#!/usr/bin/env python3
"""operations.py SOURCE-TREE: what passes must know of asynchronous operations they ask by interfaces.

No file of compiler/passes and its folders names an operation of AsyncOps.td or BulkOps.td, but one that makes it (X::create). What an operation does
to memory it states itself (compiler/tile/MemoryInterfaces.h): a list by name would miss the next one.
"""
import pathlib
import re
import sys


def operations(definitions):
    """C++ classes of the operations of a .td file."""
    return re.findall(r"^def TileGpu_(\w+Op) :", definitions, re.M)


def code(text):
    """Without comments."""
    return re.sub(r"//.*", "", text)


def named(text, names):
    """The operations that a source names and does not make."""
    text = code(text)
    return [n for n in names if re.search(rf"\b{n}\b", text) and not re.search(rf"\b{n}::create\(", text)]


def check_itself():
    assert operations('def TileGpu_AsyncWaitOp : TileGpu_Op<"async_wait",\ndef TileGpu_Token : TypeDef<') == ["AsyncWaitOp"]
    assert named("if (isa<AsyncWaitOp>(op))", ["AsyncWaitOp"]) == ["AsyncWaitOp"]
    assert named("AsyncWaitOp::create(b, loc); isa<AsyncWaitOp>(op)", ["AsyncWaitOp"]) == []
    assert named("// as AsyncWaitOp does", ["AsyncWaitOp"]) == []


def main():
    check_itself()
    root = pathlib.Path(sys.argv[1])
    names = [n for f in ("AsyncOps.td", "BulkOps.td") for n in operations((root / "compiler/tile_gpu" / f).read_text(encoding="utf-8"))]
    sources = sorted(p for p in (root / "compiler/passes").rglob("*") if p.suffix in (".cpp", ".h"))
    if len(names) < 4 or len(sources) < 30:
        sys.exit(f"found {len(names)} operations and {len(sources)} sources: the lint looks in the wrong place")
    wrong = [f"{p.relative_to(root)} names {n}" for p in sources for n in named(p.read_text(encoding="utf-8"), names)]
    if wrong:
        sys.exit("\n".join(wrong) + "\nask its interfaces instead: compiler/tile/MemoryInterfaces.h")
    print(f"{len(sources)} sources name none of {', '.join(names)}, but where they make one")


if __name__ == "__main__":
    main()
