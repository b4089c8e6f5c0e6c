"""What models take on microcontrollers: instructions, code, weights, memory and stack, from the emulator, and cycles.

    python benchmarks/footprint.py [--update] [--json FILE] [NAME ...]

Prints the table and compares it with benchmarks/footprint.json; fails where a figure has grown by more than 2 %.
The figures are counts, so they are the same on every machine with the same compiler. `--update` keeps the new ones.
A NAME (such as kws or resnet8) measures the rows of that model alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.models import path_of
from nnbuild.jobs.job import place, profile_job
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.report.table import render

BASELINE = Path(__file__).with_name("footprint.json")
TOLERANCE = 1.02
FIGURES = ("total", "flash_code", "flash_weights", "arena", "stack")
CYCLES = "cycles"
"""Of the same program on the part, modelled; they are held where a model has the core."""
HEADS = ("cycles", "instructions", "per MAC", "code", "weights", "arena", "stack")


@dataclass(frozen=True)
class Row:
    model: str
    board: str
    quantize: str
    optimize: str

    @property
    def key(self) -> str:
        return f"{self.model} {self.quantize} {self.board} {self.optimize}"


def rows() -> Iterator[Row]:
    for model in ("resnet8", "kws", "mnist", "vww", "autoencoder"):
        for optimize in ("speed", "size", "ram"):
            yield Row(model, "mps2-an386", "int8", optimize)
    yield Row("resnet8", "mps2-an386", "float", "speed")
    yield Row("kws", "mps2-an386", "int16", "speed")
    yield Row("mnist", "microbit", "int8", "speed")
    yield Row("layers", "mps2-an386", "int8", "speed")
    for model in ("resnet8", "kws", "vww", "autoencoder"):
        yield Row(model, "mps3-an547", "int8", "speed")
    for quantize in ("int16", "float"):
        yield Row("resnet8", "mps3-an547", quantize, "speed")


def measure(row: Row, path: Path) -> dict[str, Any]:
    compiled = compile_model(
        Options(path, row.board, row.quantize, optimize=row.optimize, price="instructions", name=row.model)
    )
    with place(None, None) as where:
        profile = profile_job(compiled, where)
    layers = {cost.name: [cost.kernel, cost.cost, cost.macs] for cost in profile.layers}
    return {
        "total": profile.total,
        CYCLES: found.cycles if (found := profile.modelled) is not None and not found.at_least else None,
        "macs": profile.macs,
        **{name: profile.memory[name] for name in FIGURES[1:]},
        "layers": layers,
    }


def grown(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The figures that have grown by more than is tolerated."""
    held = [*FIGURES, *([CYCLES] if before.get(CYCLES) and now[CYCLES] else [])]
    figures = [(name, before[name], now[name]) for name in held if now[name] > before[name] * TOLERANCE]
    for layer, (_, cost, _) in now["layers"].items():
        known = before["layers"].get(layer)
        if known is not None and cost > known[1] * TOLERANCE and cost - known[1] > 1000:
            figures.append((layer, known[1], cost))
    return [f"{name} from {old:,} to {new:,}" for name, old, new in figures]


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    for key, figures in found.items():
        total, macs = figures["total"], figures["macs"]
        cycles = f"{figures[CYCLES]:,}" if figures[CYCLES] else ""
        counts = [cycles, f"{total:,}", f"{total / macs:.2f}", *(f"{figures[name]:,}" for name in FIGURES[1:])]
        lines.append([*key.split(), *counts])
    return render(["model", "format", "board", "optimize", *HEADS], lines, 4)


def layer_table(layers: Mapping[str, list[Any]]) -> str:
    lines = [
        [name, kernel, f"{cost:,}", f"{macs:,}", f"{cost / macs:.2f}" if macs else ""]
        for name, (kernel, cost, macs) in layers.items()
    ]
    return render(["layer", "kernel", "instructions", "MACs", "per MAC"], lines, 2)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--update", action="store_true", help="keep the figures as the new baseline")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the figures as JSON")
    arguments = parser.parse_args()
    known = json.loads(BASELINE.read_text()) if BASELINE.is_file() else {}
    found: dict[str, Any] = {}
    for row in rows():
        if arguments.names and row.model not in arguments.names:
            continue
        path = path_of(row.model)
        if path is None:
            print(f"{row.key}: skipped, the model is not there")
            continue
        found[row.key] = measure(row, path)
    print(table(found))
    for key, figures in found.items():
        if key.startswith("layers"):
            print(layer_table(figures["layers"]))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.update:
        BASELINE.write_text(json.dumps({**known, **found}, indent=1) + "\n")
        return 0
    worse = [f"{key}: {what}" for key, now in found.items() if key in known for what in grown(known[key], now)]
    print("\n".join(worse) if worse else "nothing has grown by more than 2 %")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
