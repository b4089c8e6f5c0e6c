"""Random models with random options through `nnbuild check`, on every board that is emulated, and in kernels.

    python benchmarks/board_campaign.py LEDGER [--boards NAME ...] [--trials N] [--minutes M] [--from SEED]
    python benchmarks/board_campaign.py LEDGER --summary

Each line of the ledger is one command: right, refused in words, wrong, or crashed, which is a traceback, a program that
dies or no answer. A seed always gives the same command. One that is in the ledger is not run again unless it was wrong
or crashed and the commit is another. Exit code 1 where one was wrong or crashed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.ledger import append, commit, rows

ROOT = Path(__file__).resolve().parents[1]
DEVICE = str(ROOT / "examples" / "made-up-device")
BARE = (
    *("rv32", "rv32-zve32x", "rv32e", "stm32", "stm32f100", "microbit", "mps2-an386", "mps2-an500", "mps2-an505"),
    "mps3-an547",
)
CORES = {"linux": 4, "rv32-smp": 8, "mps2-an521": 2, "mps2-an521-mixed": 2, "arm64": 4, "rv64": 4, "rv64v": 4}
KERNELS = ("kmod", "kmod-arm64")
BOARDS = (*BARE, *CORES, *KERNELS)
SETS = {
    "linux": ("avx2_fma,sse2", "avx512_vnni,avx2_fma,sse2", "avx_vnni,ssse3", "c99", "avx512_vbmi,c99"),
    "kmod": ("c99", "sse2", "avx2_fma", "avx2_fma,sse2"),
}
LONGEST = 500
"""Seconds of a command."""
RIGHT = "right"
CODES = (0, 1, 2)
"""Of a command that ended by itself: passed, a gate was missed, refused."""


@dataclass(frozen=True)
class Trial:
    """One command: a random model of a tool and the words behind it."""

    seed: int
    tool: str
    board: str
    options: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.tool} {self.seed} --board {self.board} {' '.join(self.options).replace(str(ROOT), '.')}"


def trial(seed: int) -> Trial:
    chance = np.random.default_rng([seed, 40])
    board = _one(chance, *BOARDS)
    form = _one(chance, "float", "int8", "int8", "int16")
    words = [("--quantize", form), *_everywhere(chance), *_on(chance, board)]
    words += _integers(chance, form) if form != "float" else []
    return Trial(seed, _one(chance, "keras", "onnx"), board, tuple(chain.from_iterable(words)))


def _one(chance: np.random.Generator, *values: str) -> str:
    return values[int(chance.integers(len(values)))]


def _everywhere(chance: np.random.Generator) -> Iterator[tuple[str, ...]]:
    if chance.random() < 0.4:
        yield "--optimize", _one(chance, "size", "ram", "speed")
    if chance.random() < 0.15:
        yield "--stream", _one(chance, "auto", "0", "1", "auto,hop=2", "auto,meaning=stream")
    if chance.random() < 0.15:
        yield "--prune", _one(chance, "0.5", "0.9", "by-layer")
    if chance.random() < 0.15:
        yield "--share", _one(chance, "2", "16", "100")
    if chance.random() < 0.1:
        yield ("--layers",)
    if chance.random() < 0.15:
        yield "--price", _one(chance, "cycles", "instructions")
    if chance.random() < 0.1:
        yield "--weights", _one(chance, "array", "binary")
    if chance.random() < 0.15:
        yield "--name", _one(chance, "x", "conv2d", "Net", "a_very_long_name_" * 3)


def _on(chance: np.random.Generator, board: str) -> Iterator[tuple[str, ...]]:
    """What this board has."""
    if board in CORES and chance.random() < 0.6:
        yield "--cores", str(chance.integers(2, CORES[board] + 1))
        if board == "rv32-smp" and chance.random() < 0.7:
            yield "--local", _one(chance, "on", "checked")
    if board in BARE and chance.random() < 0.3:
        yield "--device", DEVICE
        if chance.random() < 0.6:
            yield "--place", "*=device"
    if board in SETS and chance.random() < 0.6:
        yield "--isa", _one(chance, *SETS[board])
    if board in KERNELS and chance.random() < 0.5:
        yield ("--swappable",)


def _integers(chance: np.random.Generator, form: str) -> Iterator[tuple[str, ...]]:
    if chance.random() < 0.25:
        yield "--io", "float"
    if chance.random() < 0.15:
        yield "--weights-bits", _one(chance, "2", "3", "4", "4.5", "7", "auto")
    if chance.random() < 0.15:
        yield "--calibration", _one(chance, "percentile", "mse")
    if chance.random() < 0.1:
        yield ("--no-bias-correction",)


def write_model(tool: str, seed: int, folder: Path) -> Path:
    if tool == "onnx":
        import onnx

        from benchmarks.random_onnx import random_model as random_onnx

        onnx.save(random_onnx(seed), folder / "model.onnx")
        return folder / "model.onnx"
    import keras

    from benchmarks.random_keras import random_model as random_keras

    keras.backend.clear_session()
    random_keras(keras, seed).save(folder / "model.keras")
    return folder / "model.keras"


def run(this: Trial) -> dict[str, Any]:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        model = write_model(this.tool, this.seed, Path(name))
        command = [sys.executable, "-m", "nnbuild", "check", str(model), "--board", this.board, *this.options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, cwd=ROOT)
            said = judged(done.returncode, done.stdout, done.stderr)
        except subprocess.TimeoutExpired:
            said = f"crashed: no answer in {LONGEST} s"
    took = round(time.monotonic() - begun, 1)
    return {"seed": this.seed, "trial": str(this), "said": said, "seconds": took, "commit": commit()}


def judged(code: int, out: str, err: str) -> str:
    """A limit may also be missed before there is a program to check, which is a refusal."""
    if "Traceback" in err or "Please report" in err or code not in CODES:
        return f"crashed: {(out + err).strip()[-900:]}"
    if code == 0:
        return RIGHT
    return f"wrong: {out.strip()[-900:]}" if "FAIL" in out else f"refused: {err.strip()[-900:]}"


def is_fault(row: dict[str, Any]) -> bool:
    return str(row["said"]).startswith(("wrong", "crashed"))


def summary(found: Sequence[dict[str, Any]]) -> str:
    counts = Counter(str(row["said"]).split(":")[0] for row in found)
    refused = Counter(row["said"].splitlines()[-1][:150] for row in found if row["said"].startswith("refused"))
    lines = [f"{len(found)} commands: " + ", ".join(f"{n} {word}" for word, n in counts.most_common())]
    lines += [f"{n} {said}" for said, n in refused.most_common(10)]
    return "\n".join([*lines, *(f"{row['seed']}: {row['trial']}: {row['said']}" for row in found if is_fault(row))])


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--boards", nargs="+", choices=BOARDS, default=list(BOARDS))
    parser.add_argument("--trials", type=int, default=10**9)
    parser.add_argument("--minutes", type=float, default=10**6)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args(words)
    end = time.monotonic() + 60 * arguments.minutes
    known = {row["seed"]: row for row in rows(arguments.ledger)}
    if not arguments.summary:
        again = [seed for seed, row in known.items() if is_fault(row) and row["commit"] != commit()]
        new = (seed for seed in count(arguments.first) if seed not in known)
        trials = (each for each in map(trial, chain(again, new)) if each.board in arguments.boards)
        for each in takewhile(lambda _: time.monotonic() < end, islice(trials, arguments.trials)):
            known[each.seed] = run(each)
            append(arguments.ledger, known[each.seed])
    print(summary(list(known.values())))
    return 1 if any(map(is_fault, known.values())) else 0


if __name__ == "__main__":
    raise SystemExit(main())
