"""What sparse and narrow weights take on a Cortex-M4 beside dense ones: instructions and bytes, against bars.

    python benchmarks/sparse.py [NAME ...]

Layers have drawn weights in the patterns of the title; instructions are those of the emulator, bytes those of the
layer's constants. Fails where a bar is exceeded.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.nets import Net, layer_costs_on, planned, quantized
from nnbuild.model.graph import Array, Graph
from nnbuild.ops.dense import Dense
from nnbuild.ops.lstm import LSTM
from nnbuild.report.table import render

BOARD = "mps2-an386"
UNITS, STEPS = 64, 8
MATRIX = re.compile(r"(kernel|recurrent)(_steps|_counts)?|steps|starts")


@dataclass(frozen=True)
class Pattern:
    """Blocks of so many outputs by so many inputs, of which a share is kept."""

    rows: int
    depth: int
    kept: float

    def mask(self, chance: np.random.Generator, inputs: int, outputs: int) -> Array:
        there = chance.random((-(-inputs // self.depth), -(-outputs // self.rows))) < self.kept
        return np.repeat(np.repeat(there, self.depth, 0), self.rows, 1)[:inputs, :outputs]


@dataclass(frozen=True)
class Bar:
    """dense: the kernel that is compared with. Of its instructions and bytes, the shares that may be taken."""

    layer: str
    pattern: Pattern
    dense: str
    instructions: float
    bytes: float

    @property
    def name(self) -> str:
        p = self.pattern
        return f"{self.layer} {1 - p.kept:.0%} {f'{p.rows}x{p.depth}' if p.rows * p.depth > 1 else 'anywhere'}"


def bars() -> Iterator[Bar]:
    for layer, dense in (("dense", "patches_packed"), ("lstm", "pairs")):
        for rows, depth in ((4, 2), (4, 1)):
            yield Bar(layer, Pattern(rows, depth, 0.1), dense, 0.45, 0.2)
            yield Bar(layer, Pattern(rows, depth, 0.2), dense, 0.8, 0.35)
        yield Bar(layer, Pattern(1, 1, 0.1), dense, 0.6, 0.25)
        yield Bar(layer, Pattern(1, 1, 0.2), dense, 1.0, 2.1)


def network(layer: str, pattern: Pattern) -> Graph:
    net = Net(f"{layer}_{pattern.rows}x{pattern.depth}_{round(100 * pattern.kept)}")
    chance = net.chance
    if layer == "dense":
        kernel = chance.normal(size=(640, 128)) / 8 * pattern.mask(chance, 640, 128)
        out = net.add(Dense(), [net.input(640)], {"kernel": kernel, "bias": chance.normal(size=128)}, "layer")
        return quantized(net.graph(out), "int8")
    matrices = {}
    for role in ("kernel", "recurrent"):  # the gates of a unit are its block's outputs
        by_unit = pattern.mask(chance, UNITS, 4 * UNITS).reshape(UNITS, UNITS, 4)
        mask = by_unit.transpose(0, 2, 1).reshape(UNITS, 4 * UNITS)
        matrices[role] = chance.normal(size=mask.shape) / 8 * mask
    constants = {**matrices, "bias": chance.normal(size=4 * UNITS)}
    out = net.add(LSTM(UNITS), [net.input(STEPS, UNITS)], constants, "layer")
    return quantized(net.graph(out), "int8")


def measured(graph: Graph, kernels: Mapping[str, str]) -> tuple[str, int, int]:
    """The kernel of the layer, its instructions, and the bytes of its weights with what says where they are."""
    cost = next(cost for cost in layer_costs_on(graph, BOARD, kernels=kernels) if cost.name == "layer")
    step = next(step for step in planned(graph, BOARD, kernels=kernels).steps if step.layer == "layer")
    parts = [part for role, part in step.demand.packed.items() if MATRIX.fullmatch(role)]
    return cost.kernel, cost.cost, sum(part.nbytes for part in parts)


def main(names: Sequence[str]) -> int:
    rows, failed = [], 0
    for bar in bars():
        if names and not any(name in bar.name for name in names):
            continue
        graph = network(bar.layer, bar.pattern)
        _, dense, _ = measured(graph, {"layer": bar.dense})
        kernel, cost, size = measured(graph, {})
        shares = cost / dense, size / (640 * 128 if bar.layer == "dense" else 8 * UNITS * UNITS)
        missed = shares[0] > bar.instructions or shares[1] > bar.bytes
        failed += missed
        figures = [f"{cost:,}", f"{shares[0]:.3f}", f"{bar.instructions:.2f}", f"{size:,}", f"{shares[1]:.3f}"]
        rows.append([bar.name, kernel, *figures, f"{bar.bytes:.2f}", "missed" if missed else ""])
    print(render(("layer", "kernel", "instr", "of dense", "bar", "bytes", "of 1 each", "bar", ""), rows, 2))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
