#!/usr/bin/env python3
"""predictions.py KILN: makes docs/performance-model.md: each benchmark of the performance page as the performance model
predicts it, next to what its newest record in docs/records says.  KILN is the program; takes some minutes, no GPU.
"""
import json
import pathlib
import subprocess
import sys

from benchmarks import ALL
from performance import ROOT, figure, newest

PAGE = ROOT / "docs/performance-model.md"
TARGET = "sm_90a"
HEAD = """# The performance model

`kiln bench --predict` says what a GPU would take, without one. The emulator runs 32 blocks of each launch at the sizes of the GPU, spread over
the grid, and counts; the model ([`runtime/model`](../runtime/model/README.md)) makes milliseconds of the counts, and says what limits each launch.

    build/dev/bin/kiln bench attention --dtype bf16 --target sm_90a --predict

The table is made by `scripts/predictions.py`; do not edit it. *Measured* is the newest record of the performance page, *off* how much longer (+) or
shorter (-) the prediction is. The limiter is that of the call's longest launch. Fitted to rows of this table, so that they prove less: how much units overlap (an exponent for wgmma, one for
all others), 9 TB/s of L2, and that bytes overlap whole with work only where asynchronous copies bring them. What the model leaves out:

- latency of instructions that wait for each other, so recurrences and scans take longer than it says;
- registers: it takes the blocks that shared memory and warps allow;
- L2 that keeps what one launch writes for the next;
- the clock under load: the same product is measured at 666 and at up to 771 TFLOP/s on one GPU, as the power limit goes.

"""


def predict(kiln, benchmark):
    words, skip = [], False
    for word in benchmark.kiln:  # what only a measurement takes
        if not skip and word in ("--samples", "--batch"):
            skip = True
        elif skip:
            skip = False
        else:
            words.append(word)
    run = subprocess.run([kiln, "bench", *words, "--target", TARGET, "--predict", "--json"], capture_output=True,
                         text=True, check=False)
    if run.returncode:
        sys.exit(f"{benchmark.id}: {run.stderr.strip()}")
    return json.loads(run.stdout)["results"][-1]


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if "--help" in sys.argv or "-h" in sys.argv else 2
    kiln, measured = str(pathlib.Path(sys.argv[1]).resolve()), newest()
    lines, errors = [], []
    for number, b in enumerate(ALL):
        print(f"[{number + 1}/{len(ALL)}] {b.title}", file=sys.stderr, flush=True)
        if b.id not in measured or "error" in measured[b.id][1]:
            continue
        was, p = measured[b.id][1]["medianMs"], predict(kiln, b)
        error = p["predictedMs"] / was - 1
        errors.append(abs(error))
        longest = max(p["launches"], key=lambda launch: launch["predictedMs"])
        lines.append(f"| {b.title} | {b.unit} | {figure(b, was)} | {figure(b, p['predictedMs'])} | {100 * error:+.0f} % | "
                     f"{longest['limiter']} |")
    good = sum(e <= 0.2 for e in errors)
    text = HEAD + f"""Of {len(errors)} benchmarks {good} are predicted within 20 %; the median is {100 * sorted(errors)[len(errors) // 2]:.0f} % off.

| what | unit | measured | predicted | time off | limiter |
|---|---|---|---|---|---|
""" + "\n".join(lines) + "\n"
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {good} of {len(errors)} within 20 %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
