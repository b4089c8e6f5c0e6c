"""What sparse and narrow weights take on a Cortex-M4 beside dense ones: instructions and bytes, against bars. And what
few values take on a Cortex-M0 whose multiplications take 32 cycles: modelled cycles.

    python benchmarks/sparse.py [NAME ...]

Layers have drawn weights in the patterns of the title; instructions are those of the emulator, bytes those of the
layer's constants. Fails where a bar is exceeded.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.nets import Net, compiled_for, layer_costs_on, planned, quantized
from nnbuild.jobs.cycles import cycles_of
from nnbuild.jobs.job import build_program, place
from nnbuild.model.graph import Array, Graph
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.lstm import LSTM
from nnbuild.report.table import render

BOARD = "mps2-an386"
UNITS, STEPS = 64, 8
SLOW = 32
MATRIX = re.compile(r"(kernel|recurrent)(_steps|_counts|_table|_codes)?|steps|starts")


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
    kernel: str = ""
    step: int = 0

    @property
    def name(self) -> str:
        p = self.pattern
        if self.step:
            return f"{self.layer} {'4 bits' if self.step == 1 else '16 values'}"
        return f"{self.layer} {1 - p.kept:.0%} {f'{p.rows}x{p.depth}' if p.rows * p.depth > 1 else 'anywhere'}"


WHOLE = Pattern(1, 1, 1.0)
CONVOLUTIONS = {
    "1x1 64-64 at 25x5": ((25, 5, 64), 1, 64),
    "3x3 32-32 at 16x16": ((16, 16, 32), 3, 32),
    "3x3 64-64 at 8x8": ((8, 8, 64), 3, 64),
}
SMALL = "1x1 64-64 at 25x5"
"""Codes of a byte for two weights want a table of half a KB, an eighth of what it has; prefix codes hardly any."""


def bars() -> Iterator[Bar]:
    for layer, dense in (("dense", "patches_packed"), ("lstm", "pairs")):
        for rows, depth in ((4, 2), (4, 1)):
            yield Bar(layer, Pattern(rows, depth, 0.1), dense, 0.45, 0.2)
            yield Bar(layer, Pattern(rows, depth, 0.2), dense, 0.8, 0.35)
        yield Bar(layer, Pattern(1, 1, 0.1), dense, 0.6, 0.25)
        yield Bar(layer, Pattern(1, 1, 0.2), dense, 1.0, 2.1)


def bars_of_few_bits() -> Iterator[Bar]:
    for layer, dense, most in (("dense", "patches_packed", 1.8), ("lstm", "pairs", 1.8)):
        for step, kernel in ((1, "int4"), (15, "codebook")):
            yield Bar(layer, WHOLE, dense, most, 0.55, kernel, step)
    for layer in CONVOLUTIONS:
        kernel = f"patches_packed_{'prefixed' if layer == SMALL else 'unpacked'}"
        yield Bar(layer, WHOLE, "patches_packed", 1.15, 0.55, kernel, 15)


def of_few_bits(graph: Graph, step: int) -> Graph:
    """With sixteen different weights, `step` apart."""
    constants = {
        name: replace(held, data=(np.clip(np.round(held.data / 16), -8, 7) * step).astype(np.int8))
        for name, held in graph.constants.items()
        if held.data.dtype == np.int8
    }
    return replace(graph, constants={**graph.constants, **constants})


def network(layer: str, pattern: Pattern) -> Graph:
    net = Net(f"of_{layer}_{pattern.rows}x{pattern.depth}_{round(100 * pattern.kept)}")
    chance = net.chance
    if layer in CONVOLUTIONS:
        shape, taps, filters = CONVOLUTIONS[layer]
        around = taps // 2
        kernel = chance.normal(size=(taps, taps, shape[2], filters)) / 8
        attributes = Conv2D(padding=((around, around), (around, around)))
        constants = {"kernel": kernel, "bias": chance.normal(size=filters)}
        return quantized(net.graph(net.add(attributes, [net.input(*shape)], constants, "layer")), "int8")
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
    found = {name: step.versions[0].names.packed[name] for name in step.demand.packed if MATRIX.fullmatch(name)}
    parts = {found[role]: step.demand.packed[role].nbytes for role in found}  # what is the same is there once
    return cost.kernel, cost.cost, sum(parts.values())


def slow_products(folder: Path) -> Path:
    """A Cortex-M0 with the small multiplier."""
    table = folder / "slow_products.toml"
    told = f'summary = "a Cortex-M0 whose products take {SLOW} cycles"\ntested_on = "nothing"'
    table.write_text(f'extends = "microbit"\n{told}\n\n[cpu]\nmultiplier = {SLOW}\n')
    return table


def print_buckets(names: Sequence[str]) -> int:
    """How many bars are missed: sums by weight must take fewer cycles than dense int8 from 16 values down."""
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        board = str(slow_products(Path(folder)))
        for values in (16, 8, 4):
            name = f"dense {values} values on Cortex-M0"
            if names and not any(each in name for each in names):
                continue
            graph = of_few_values(network("dense", WHOLE), values)
            cycles, sizes = {}, {}
            for kernel in ("two_products", "buckets", ""):
                compiled = compiled_for(graph, board, {"layer": kernel} if kernel else {})
                with place(None, None) as where:
                    found = cycles_of(compiled, build_program(compiled, where))
                cycles[kernel] = found.cycles.whole.cycles
                sizes[kernel] = compiled.plan.steps[0].choice.price.weights
            chosen = compiled.plan.steps[0].kernel_name
            share = cycles["buckets"] / cycles["two_products"]
            failed += share >= 1 or chosen != "buckets"
            rows.append(
                [
                    name,
                    f"{cycles['two_products']:,.0f}",
                    f"{cycles['buckets']:,.0f}",
                    f"{share:.3f}",
                    f"{sizes['buckets']:,}",
                    f"{sizes['buckets'] / sizes['two_products']:.3f}",
                    chosen,
                ]
            )
    if rows:
        print(render(("layer", "dense, cycles", "by weight", "of dense", "bytes", "of dense", "chosen"), rows, 1))
    return failed


def of_few_values(graph: Graph, count: int) -> Graph:
    step = 256 // count
    constants = {
        name: replace(held, data=(held.data // step * step + step // 2).astype(np.int8))
        for name, held in graph.constants.items()
        if held.data.dtype == np.int8
    }
    return replace(graph, constants={**graph.constants, **constants})


def main(names: Sequence[str]) -> int:
    return print_bars(names) + print_buckets(names) > 0


def print_bars(names: Sequence[str]) -> int:
    rows, failed = [], 0
    for bar in (*bars(), *bars_of_few_bits()):
        if names and not any(name in bar.name for name in names):
            continue
        graph = network(bar.layer, bar.pattern)
        graph = of_few_bits(graph, bar.step) if bar.step else graph
        _, dense, _ = measured(graph, {"layer": bar.dense})
        kernel, cost, size = measured(graph, {"layer": bar.kernel} if bar.kernel else {})
        weights = sum(held.data.size for held in graph.constants.values() if held.data.dtype == np.int8)
        shares = cost / dense, size / weights
        missed = shares[0] > bar.instructions or shares[1] > bar.bytes
        failed += missed
        figures = [f"{cost:,}", f"{shares[0]:.3f}", f"{bar.instructions:.2f}", f"{size:,}", f"{shares[1]:.3f}"]
        rows.append([bar.name, kernel, *figures, f"{bar.bytes:.2f}", "missed" if missed else ""])
    if rows:
        print(render(("layer", "kernel", "instr", "of dense", "bar", "bytes", "of 1 each", "bar", ""), rows, 2))
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
