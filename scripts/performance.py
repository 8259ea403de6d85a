#!/usr/bin/env python3
"""performance.py [--check]: makes docs/performance.md, and the figures in README.md, of the records in docs/records
(record_benchmarks.py writes them).

Of each benchmark the newest record counts, by its date and then its name.  --check writes nothing and fails if a page
is not what the records say.
"""
import json
import os
import pathlib
import re
import sys

from benchmarks import ALL

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/performance.md"
README = ROOT / "README.md"
MOST_LINES = 102
HEAD = """# Performance

Made by `scripts/performance.py` from the records in [docs/records](records); do not edit. A row is a benchmark or more: Kiln and its peers in one run, medians of batches between two events.
Higher is better for GB/s and TFLOP/s, lower for ms and us; of decoding k, v, q and o count. `x` is how many times as fast as the best peer Kiln is. What was tried, and what did not help: [the diary](lab/2026-11.md).

A row again, with its peers (they need PyTorch, and flash-linear-attention for recurrences), but for the last rows, of `scripts/record_sweeps.py` and `scripts/record_calls.py`:

    cmake --preset release && cmake --build --preset release --target kiln kiln-compiler
    python3 scripts/record_benchmarks.py build/release/bin/kiln record.json --only attention-128-causal

What Kiln timed was compared with float64 in the same run, but for the rows with a star; of these the kernels' tests compare every rule and shape class. Forward calls with a state keep what the backward call takes.
First calls: the host's time from making the Jit until all kernels are loaded, by new processes. Sweeps: `kiln tune` from its start to its end, compiles included, with an empty cache, on a host of 16 cores.
"""


def newest():
    """benchmark -> (record, Kiln's row, peers' rows)."""
    rows = {}
    files = sorted((ROOT / "docs/records").glob("*.json"))
    for record in sorted((json.loads(f.read_text(encoding="utf-8")) for f in files), key=lambda r: r["date"]):
        for name, row in record["kiln"].items():
            rows[name] = (record, row, [p for p in record["peers"] if p["id"] == name])
    return rows


def figure(benchmark, milliseconds):
    if benchmark.unit in ("%", ""):
        return f"{milliseconds:g} {benchmark.unit}".strip()
    if benchmark.unit == "us":
        return f"{1000 * milliseconds:.1f}"
    if benchmark.unit == "ms":
        return f"{milliseconds:.3g}" if milliseconds < 1 else f"{milliseconds:.2f}"
    rate = benchmark.work / milliseconds / (1e6 if benchmark.unit == "GB/s" else 1e9)
    return f"{rate:,.0f}"


def name(peer, benchmark):
    """Without what the row says itself."""
    return peer.removesuffix(" " + benchmark.kiln[0].removesuffix("_backward")).replace("torch", "PyTorch")


def peers_of(b, rows):
    """peer -> its figure."""
    return {name(p["peer"], b): figure(b, p["ms"]) if "ms" in p else "refuses" for p in rows[b.id][2]}


def cells(benchmarks, rows):
    """Of the benchmarks of one row: Kiln's figures, those of the peers, and how many times as fast as the best of them
    Kiln is."""
    kiln, ratios = [], []
    for b in benchmarks:
        _, row, peers = rows[b.id]
        kiln.append("refused" if "error" in row else figure(b, row.get("figure", row.get("medianMs"))))
        best = min((p["ms"] for p in peers if "ms" in p), default=None)
        ratios.append(f"{best / row['medianMs']:.2f}" if best and "error" not in row else "")
    found = [peers_of(b, rows) for b in benchmarks]
    told = ", ".join(f"{peer} " + " / ".join(of.get(peer, "-") for of in found)
                     for peer in dict.fromkeys(p for of in found for p in of))
    return " / ".join(kiln), told, " / ".join(ratios) if any(ratios) else ""


def together(benchmarks):
    """The rows: lists of benchmarks."""
    rows = {}
    for b in benchmarks:
        rows.setdefault((b.group, b.row), []).append(b)
    return list(rows.values())


def ids(benchmarks):
    """As a shell takes them: a-{b,c}-d, or a-{b-,}c where one has no word there."""
    if len(benchmarks) == 1:
        return benchmarks[0].id
    words = [b.id.split("-") for b in benchmarks]
    head = os.path.commonprefix(words)
    rest = [w[len(head):] for w in words]
    tail = os.path.commonprefix([w[::-1] for w in rest])[::-1]
    middles = ["-".join(w[:len(w) - len(tail)]) for w in rest]
    if all(middles):
        return "-".join([*head, "{" + ",".join(middles) + "}", *tail])
    return "-".join(head) + "-{" + ",".join(m and m + "-" for m in middles) + "}" + "-".join(tail)


def excerpt(wanted, rows):
    """The figures of these benchmarks, for the first screen of the README."""
    out = ["| | Kiln | peers | x |", "|---|---|---|---|"]
    for mine in together(b for one in wanted for b in ALL if b.id == one):
        kiln, told, ratio = cells(mine, rows)
        out.append(f"| {title(mine)} | {kiln} {mine[0].unit} | {told} | {ratio} |")
    return "\n".join(out) + "\n"


def title(benchmarks):
    """The row and its parts; what these begin with, up to an equals sign, stands there once."""
    parts = [b.part for b in benchmarks]
    begin = os.path.commonprefix(parts)
    begin = begin[:begin.rfind("= ") + 2] if "= " in begin else ""
    told = begin + " / ".join(part[len(begin):] for part in parts)
    return f"{benchmarks[0].row}, {told}" if told else benchmarks[0].row


def page(rows):
    out = [HEAD]
    for group in dict.fromkeys(b.group for b in ALL):
        mine = [b for b in ALL if b.group == group and b.id in rows]
        if not mine:
            continue
        about = {(rows[b.id][0]["date"], rows[b.id][0]["device"], rows[b.id][0]["commit"]) for b in mine}
        where = "; ".join(f"{date}, {device}, commit {commit}" for date, device, commit in sorted(about))
        unit = "/".join(dict.fromkeys(b.unit for b in mine if b.unit)) if len({b.unit for b in mine}) > 1 else mine[0].unit
        out.append(f"## {group}\n\n{where}\n\n| `--only` | what | {unit} | peers | x |\n|---|---|---|---|---|")
        for row in together(mine):
            kiln, told, ratio = cells(row, rows)
            star = "" if all(rows[b.id][1].get("check") == "good" for b in row) else "*"
            out.append(f"| {ids(row)} | {title(row)}{star} | {kiln} | {told} | {ratio} |")
        out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


def main():
    rows = newest()
    text = page(rows)
    if text.count("\n") > MOST_LINES:
        sys.exit(f"the page has {text.count(chr(10))} lines: at most {MOST_LINES}")
    readme = README.read_text(encoding="utf-8")
    figures = re.compile(r"(<!-- figures (.*?) -->\n).*?(<!-- end of figures -->\n)", re.S)
    if not figures.search(readme):
        sys.exit("README.md has no figures: <!-- figures ID .. --> and <!-- end of figures -->")
    pages = {PAGE: text, README: figures.sub(lambda m: m[1] + excerpt(m[2].split(), rows) + m[3], readme)}
    for file, wanted in pages.items():
        if "--check" not in sys.argv[1:]:
            file.write_text(wanted, encoding="utf-8")
        elif file.read_text(encoding="utf-8") != wanted:
            sys.exit(f"{file.name} is not what docs/records say: run scripts/performance.py")
    print(f"{text.count(chr(10))} lines, as the records say")


if __name__ == "__main__":
    main()
