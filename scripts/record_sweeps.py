#!/usr/bin/env python3
"""record_sweeps.py KILN OUT.json [--device cuda:0] [--commit C]: how often sweeps find the best, for the performance page.

With a GPU: a whole sweep of one call, then twenty searches of a part of it, each measured anew.  Everywhere: searches
that replay the spaces in docs/records/spaces, which an H200 measured.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from record_benchmarks import clocks

ROOT = pathlib.Path(__file__).resolve().parent.parent
CALL = ["attention", "--dtype", "bf16", *(word for name in "qkv" for word in ("--with", f"{name}=2x4096x16x128"))]
SEEDS, PART = range(1, 21), 24


class Tuner:
    def __init__(self, kiln, device, folder):
        self.kiln, self.device, self.folder, self.journals = kiln, device, folder, 0

    def __call__(self, *words):
        run = subprocess.run([self.kiln, "tune", *map(str, words), "--json"], capture_output=True, text=True,
                             env=os.environ | {"KILN_CACHE_DIR": str(self.folder / "cache")})
        if run.returncode:
            sys.exit(f"kiln tune {' '.join(map(str, words))}: {run.stderr.strip()[-500:]}")
        return json.loads(run.stdout)

    def sweep(self, *words):
        self.journals += 1
        print(f"sweep {self.journals}", file=sys.stderr, flush=True)
        return self(*CALL, "--device", self.device, "--no-save", "--journal", self.folder / f"{self.journals}.jsonl",
                    *words)


def percent(found, tried):
    return {"figure": 100 * found / tried, "found": found, "tried": tried}


def winner_of(report):
    """After the best few were measured again."""
    return (report["sweep"].get("confirmed") or report["sweep"]["best"])[0]["configuration"]


def measured(tuner):
    whole = tuner.sweep("--budget", 0)
    times = {json.dumps(e["configuration"], sort_keys=True): e["ms"] for e in entries(tuner.folder / "1.jsonl")
             if e["outcome"] == "good"}
    best = min(times.values())
    parts = [tuner.sweep("--budget", PART, "--seed", seed, "--search", "model") for seed in SEEDS]
    winners = [json.dumps(winner_of(p), sort_keys=True) for p in parts]
    near = [w for w in winners if times.get(w, float("inf")) <= 1.02 * best]
    failures = [e for e in entries(tuner.folder / "1.jsonl") if e["outcome"] not in ("good", "refused", "compile")]
    return {"sweep-repeats": percent(len(near), len(parts)) | {"winners": winners, "bestMs": best},
            "sweep-failures": {"figure": len(failures), "failures": failures},
            "sweep-rejection": {"figure": whole["space"]["slowestRejectionMs"]}}


def entries(journal):
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()[1:]]


def replayed(tuner):
    spaces = sorted((ROOT / "docs/records/spaces").glob("*.jsonl"))
    five = near = 0
    for space in spaces:
        all_good = [e for e in entries(space) if e["outcome"] == "good"]
        best = min(all_good, key=lambda e: e["ms"])
        found = tuner("--replay", space, "--search", "model", "--budget", 5)["sweep"]["best"]
        five += bool(found) and found[0]["ms"] <= best["maxMs"]
        for seed in SEEDS:
            found = tuner("--replay", space, "--search", "model", "--seed", seed, "--budget", 20)["sweep"]["best"]
            near += bool(found) and found[0]["ms"] <= 1.02 * best["ms"]
    return {"sweep-five": percent(five, len(spaces)), "sweep-replays": percent(near, len(spaces) * len(SEEDS))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("out")
    parser.add_argument("--device", default="cuda:0", help='"none": what needs no GPU')
    parser.add_argument("--commit", default="")
    words = parser.parse_args()
    record = {"date": datetime.date.today().isoformat(), "commit": words.commit, "before": clocks(), "kiln": {},
              "peers": []}
    with tempfile.TemporaryDirectory() as folder:
        tuner = Tuner(words.kiln, words.device, pathlib.Path(folder))
        if words.device != "none":
            record["kiln"] |= measured(tuner)
        record["kiln"] |= replayed(tuner)
    record["device"] = record["before"].split(",")[0] or "no GPU"
    record["after"] = clocks()
    pathlib.Path(words.out).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
