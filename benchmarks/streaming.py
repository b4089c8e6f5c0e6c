#!/usr/bin/env python3
"""What a step of a stream takes: python benchmarks/streaming.py [--json]. Emulated instructions, checked in every bit.

Networks of the shapes that are used in the field, with drawn weights, and the published keyword spotter if it is there.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nnbuild.device.gates import Gates
from nnbuild.jobs.job import check_job, place, profile_job, samples_for
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from tests.frontend.tflite_files import File, to_bytes
from tests.support.streaming_files import Net, wake_word

KWS = Path(__file__).resolve().parents[2] / "shared" / "models" / "kws_ref_model.tflite"


@dataclass(frozen=True)
class Row:
    """`most`: instructions that a step may take; `longest` is the one that takes most, where rings have spare rows;
    `ram`: bytes of state and arena."""

    name: str
    board: str
    instructions: float
    longest: float
    most: int
    ram: int
    exact: bool

    @property
    def kept(self) -> bool:
        return self.exact and self.longest <= self.most


def windowed_wake_word() -> File:
    """30 by 40, depthwise along time over 3, 5, 10 and 15 rows without padding, 128 channels, 3 classes."""
    net = Net(3)
    x = net.tensor("input", (1, 30, 40))
    out = net.reshape(x, (1, 30, 1, 40))
    for rows, filters in ((3, 128), (5, 128), (10, 128), (15, 32)):
        out = net.conv(net.depthwise(out, rows), filters)
    k, b = net.weights((3, 32), 0, 32)
    flat = net.reshape(out, (1, 32))
    return net.file([x], [net.layer(net.add("FULLY_CONNECTED", [flat, k, b], (1, 3), "FullyConnectedOptions"))])


def cases(folder: Path) -> Iterator[tuple[str, Path, str | None, str, int]]:
    """(name, file, what is streamed, board, most instructions)."""
    for name, file in (("windowed", windowed_wake_word()), ("rings", wake_word())):
        (folder / f"{name}.tflite").write_bytes(to_bytes(file))
    yield "wake word, windows of 30", folder / "windowed.tflite", "auto", "stm32", 60_000
    yield "wake word, windows of 30", folder / "windowed.tflite", "auto", "microbit", 230_000
    yield "wake word, six rings", folder / "rings.tflite", None, "stm32", 45_000
    if KWS.is_file():
        yield "keyword spotter, 2 rows", KWS, "auto", "stm32", 1_100_000


def measured(name: str, file: Path, stream: str | None, board: str, most: int) -> Row:
    compiled = compile_model(Options(file, board=board, stream=stream, price="instructions"))
    with place(None) as where:
        ticks = profile_job(compiled, where).duration
    with place(None) as where:
        exact = check_job(compiled, samples_for(compiled, None), where, Gates()).passed
    return Row(name, board, ticks.mean, ticks.max, most, compiled.plan.arena + compiled.plan.state, exact)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for case in cases(Path(folder)):
            row = measured(*case)
            rows.append(row)
            verdict = "kept" if row.kept else "not kept" if row.exact else "wrong bits"
            figures = f"{row.instructions:>12,.0f}, at most {row.longest:,.0f}, of {row.most:>9,}  RAM {row.ram:>7,}"
            if not arguments.json:
                print(f"{row.name:26} {row.board:9} {figures}  {verdict}", flush=True)
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    return 0 if all(row.kept for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
