#!/usr/bin/env python3
"""record_benchmarks.py KILN OUT.json [--device cuda:0] [--commit C] [--no-peers] [--only ID ..]: times all that the
performance page shows, Kiln and its peers in one run, and writes one record.  performance.py makes the page of it.

Peers need torch (see bench_peers.py); without it their columns stay empty.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from benchmarks import ALL

HERE = pathlib.Path(__file__).resolve().parent


def clocks():
    """Clocks and temperature of the GPU now; empty where nvidia-smi is missing."""
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu",
                               "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def peer_rows(process, name):
    """What bench_peers.py says of one benchmark."""
    rows = []
    try:
        process.stdin.write(name + "\n")
        process.stdin.flush()
    except BrokenPipeError:  # no torch: it said so
        return rows
    for line in process.stdout:
        row = json.loads(line) if line.startswith("{") else {}
        if row.get("done"):
            break
        if row:
            rows.append(row)
    return rows


def bench_row(answer):
    """Of what `kiln bench` says: the last row is the call's."""
    return answer["results"][-1]


def sweep_row(answer):
    """Of what `kiln tune` says: how much was measured, and what was found.  Each result was compared with float64."""
    sweep = answer["sweep"]
    return {"kernel": answer["kernel"], "call": answer["call"], "measured": sweep["measured"], "check": "good",
            "failures": sweep["failures"], "best": sweep["best"][0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("out")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--commit", default="")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", dest="ids", help="of scripts/benchmarks.py")
    words = parser.parse_args()
    chosen = [b for b in ALL if b.command and (not words.ids or b.id in words.ids)]
    out = pathlib.Path(words.out)
    record = {"date": datetime.date.today().isoformat(), "commit": words.commit, "before": clocks(), "kiln": {},
              "peers": []}

    def save():  # after every figure: a run that is cut off keeps what it has
        out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    peers = None
    if not words.no_peers:
        peers = subprocess.Popen([sys.executable, str(HERE / "bench_peers.py")], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
    folder = tempfile.TemporaryDirectory()
    answers = {}  # by command: of one that answers two benchmarks
    for number, benchmark in enumerate(chosen):
        print(f"[{number + 1}/{len(chosen)}] {benchmark.title}", file=sys.stderr, flush=True)
        command = [benchmark.command, *benchmark.words(folder.name), "--device", words.device, "--json"]
        row_of = bench_row
        if benchmark.command == "tune":
            command += ["--journal", f"{folder.name}/{benchmark.id}.jsonl"]
            row_of = sweep_row
        begin = time.monotonic()
        run = answers.get(tuple(command)) or subprocess.run(
            [words.kiln, *command], capture_output=True, text=True,
            env=os.environ | ({"KILN_CACHE_DIR": f"{folder.name}/{benchmark.id}"} if benchmark.command == "tune" else {}))
        wall = 1000 * (time.monotonic() - begin)
        answers[tuple(command)] = run
        try:
            answer = json.loads(run.stdout)
            record.setdefault("device", answer.get("description") or answer["device"])
            if "driver" in answer:
                record.setdefault("driver", answer["driver"])
            row = row_of(answer) | {"wallMs": wall}
            record["kiln"][benchmark.id] = row | {"medianMs": row[benchmark.measure]}
        except (json.JSONDecodeError, KeyError, IndexError):
            record["kiln"][benchmark.id] = {"error": run.stderr.strip()[-300:]}
            print(run.stderr, file=sys.stderr)
        save()
        if peers and peers.poll() is None:  # in turn, so that clocks and heat are the same
            record["peers"] += peer_rows(peers, benchmark.id)
            save()
    if peers:
        peers.stdin.close()
        peers.wait()
    record["after"] = clocks()
    save()


if __name__ == "__main__":
    main()
