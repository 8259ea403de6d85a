#!/usr/bin/env python3
"""predictions.py KILN [--only ID ..] | --check: makes docs/performance-model.md: each benchmark of the performance page as the performance
model predicts it, next to what its newest record in docs/records says.  KILN is the program; takes half an hour, no GPU.
With --only the other rows stay as they are.

--check writes and runs nothing, and fails if a row is missing or its measured figure is not the newest record's.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from benchmarks import ALL
from performance import ROOT, figure, newest

PAGE = ROOT / "docs/performance-model.md"
TARGET = "sm_90a"
HEAD = """# The performance model

`kiln bench --predict` says what a GPU would take, without one. The emulator runs a sample of each launch's blocks at the sizes of the GPU and
counts; the model ([`runtime/model`](../runtime/model/README.md)) makes milliseconds of the counts, and says what limits each launch.

    build/dev/bin/kiln bench attention --dtype bf16 --target sm_90a --predict
    build/dev/bin/kiln explain attention --target sm_90a --predict

The table is made by `scripts/predictions.py`; do not edit it. *Measured* is the newest record of the performance page, *off* how much longer (+) or
shorter (-) the prediction is. The limiter is that of the call's longest launch. Some numbers of the model are fitted to rows of this table, so that
these prove less: how much units overlap, the rate of L2, the clock of products, the share of the matrix unit's rate that mma.sync reaches
(`Hardware.def`, `Prediction.h`), and that bytes overlap whole with work only where asynchronous copies bring them. Calls to which nothing
was fitted: [the diary](lab/2026-11.md). What the model leaves out:

- latency of instructions that wait for each other, so recurrences take longer than it says;
- programs that wait for each other (`deterministic` in one pass): they have no row;
- registers: it takes the blocks that shared memory and warps allow;
- L1, and what L2 keeps from one launch for the next;
- how the clock moves under load: the same product is measured at 666 and at up to 771 TFLOP/s on one GPU, as the power limit goes.

Kernels whose blocks may see what others did (results of atomics, strong loads) run whole, for four minutes at most.

"""


def predict(kiln, benchmark):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([kiln, "bench", *benchmark.words(folder), "--target", TARGET, "--predict", "--json"],
                             capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"{benchmark.id}: {run.stderr.strip()}")
    return json.loads(run.stdout)["results"][-1]


def measured():
    """benchmark, milliseconds of its newest record, begin of its row; of all that have one and that the model has."""
    records = newest()
    for b in ALL:
        if b.modelled and b.id in records and "error" not in records[b.id][1]:
            was = records[b.id][1]["medianMs"]
            yield b, was, f"| {b.title} | {b.unit} | {figure(b, was)} |"


def check():
    page = PAGE.read_text(encoding="utf-8")
    wrong = [begin for _, _, begin in measured() if begin not in page]
    if wrong:
        sys.exit(f"{PAGE.relative_to(ROOT)} does not have, run scripts/predictions.py:\n" + "\n".join(wrong))
    return 0


def rows(kiln, chosen):
    """The table's lines: of the chosen benchmarks made anew, the others as they are on the page."""
    page = PAGE.read_text(encoding="utf-8").splitlines() if chosen else []
    for b, was, begin in measured():
        old = next((line for line in page if line.startswith(begin)), None)
        if chosen and b.id not in chosen:
            if not old:
                sys.exit(f"{b.id} was measured anew: name it after --only, too")
            yield old
            continue
        print(b.title, file=sys.stderr, flush=True)
        p = predict(kiln, b)
        longest = max(p["launches"], key=lambda launch: launch["predictedMs"])
        error = p["predictedMs"] / was - 1
        yield f"{begin} {figure(b, p['predictedMs'])} | {100 * error:+.0f} % | {longest['limiter']} |"


def main():
    if sys.argv[1:] == ["--check"]:
        return check()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="of scripts/benchmarks.py")
    words = parser.parse_args()
    unknown = set(words.only) - {b.id for b in ALL}
    if unknown:
        sys.exit(f"no benchmarks: {' '.join(sorted(unknown))} (scripts/benchmarks.py has them)")
    lines = list(rows(str(pathlib.Path(words.kiln).resolve()), words.only))
    errors = [abs(int(line.split(" | ")[4].split()[0])) for line in lines]
    good = sum(e <= 20 for e in errors)
    text = HEAD + f"""Of {len(errors)} benchmarks {good} are predicted within 20 %; the median is {sorted(errors)[len(errors) // 2]} % off.

| what | unit | measured | predicted | time off | limiter |
|---|---|---|---|---|---|
""" + "\n".join(lines) + "\n"
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {good} of {len(errors)} within 20 %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
