"""Long runs of the importers' fuzzers, part by part, in a ledger that goes on where it stopped.

    python -m tests.fuzz.campaign LEDGER [--cases 2000000] [--seed 1] [--minutes M] [--fuzzers onnx layers ...]
    python -m tests.fuzz.campaign LEDGER --summary

A part is 10,000 cases of one fuzzer at one seed, in a process of its own; every line of the ledger is one part and what
became of its cases. Parts that are in it are not run again. `--summary` counts, and fails where a bug was found.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.ledger import append, commit, rows

FUZZERS = {
    "tflite": ("tests.fuzz.tflite",),
    "layers": ("tests.fuzz.importer", "--layers"),
    "keras": ("tests.fuzz.importer",),
    "onnx": ("tests.fuzz.onnx_models",),
}
"""Their names in the ledger: `.tflite` of every operator, `.keras` of every layer, files written by hand, and the onnx
package's own cases."""
SHARES = (*("onnx", "tflite", "onnx", "layers", "onnx", "tflite") * 3, "onnx", "keras")
"""In turns, where --fuzzers names no others."""
PART = 10_000
LONGEST = 1800
REPORT = re.compile(r"seed \d+, \d+ cases: (\{.*\}), slowest ([\d.]+) s.*, at most (\d+) MB more")


def part(fuzzer: str, seed: int, first: int) -> dict[str, Any]:
    """What became of some cases; a crash or a hang of the whole process is a bug, too."""
    facts = {"fuzzer": fuzzer, "seed": seed, "first": first, "cases": PART, "commit": commit()}
    command = [sys.executable, "-m", *FUZZERS[fuzzer], "--seed", str(seed), "--first", str(first)]
    try:
        ran = subprocess.run([*command, "--cases", str(PART)], capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return facts | {"bugs": [f"it took longer than {LONGEST} s"]}
    bugs = [line for line in ran.stdout.splitlines() if line.startswith("case ")]
    found = REPORT.search(ran.stdout)
    if found is None:
        return facts | {"bugs": [*bugs, (ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"])[-1]]}
    if ran.returncode and not bugs:
        bugs = ["too few cases past the container"]
    counts = json.loads(found[1].replace("'", '"'))
    return facts | {"counts": counts, "slowest": float(found[2]), "megabytes": int(found[3]), "bugs": bugs}


def summary(rows: list[dict[str, Any]]) -> tuple[str, bool]:
    lines, bugs = [], [f"{row['fuzzer']}, seed {row['seed']}: {bug}" for row in rows for bug in row["bugs"]]
    for fuzzer in FUZZERS:
        mine = [row for row in rows if row["fuzzer"] == fuzzer and "counts" in row]
        counts: Counter[str] = Counter()
        for row in mine:
            counts.update(row["counts"])
        if mine:
            seeds = sorted({row["seed"] for row in mine})
            lines.append(
                f"{fuzzer}: {sum(row['cases'] for row in mine):,} cases of seed {', '.join(map(str, seeds))}; "
                + ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
                + f"; slowest {max(row['slowest'] for row in mine)} s, at most {max(r['megabytes'] for r in mine)} MB"
            )
    commits = list(dict.fromkeys(row["commit"] for row in rows))
    total = sum(row["cases"] for row in rows)
    said = f"{total:,} cases at commits {', '.join(commits)}; {len(bugs)} bugs"
    return "\n".join([said, *lines, *bugs]), not bugs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--cases", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fuzzers", nargs="+", choices=FUZZERS, default=SHARES, help="in turns, in place of all")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no part after so long")
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args()
    begun, firsts = time.monotonic(), Counter[str]()
    known = {(row["fuzzer"], row["seed"], row["first"]) for row in rows(arguments.ledger)}
    for turn in range(0 if arguments.summary else -(-arguments.cases // PART)):
        fuzzer = arguments.fuzzers[turn % len(arguments.fuzzers)]
        first = firsts[fuzzer]
        firsts[fuzzer] += PART
        if (fuzzer, arguments.seed, first) in known:
            continue
        if time.monotonic() - begun > 60 * arguments.minutes:
            break
        row = part(fuzzer, arguments.seed, first)
        append(arguments.ledger, row)
        for bug in row["bugs"]:
            print(f"{fuzzer}, seed {arguments.seed}: {bug}", flush=True)
    text, sound = summary(rows(arguments.ledger))
    print(text)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
