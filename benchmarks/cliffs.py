"""Looks for cliffs: steps of trained-like networks that cost much more than others of their class.

    python benchmarks/cliffs.py [--update] [--short] [TARGET ...]

Every step of the networks in `trained.py` is priced for every target in int8, and in int16 (`m4/int16`), a multiply-add
(where there are some) or an element each. A class is the operations of a step with what decides their price: window,
stride, channels a group, and how large they are. Printed are the steps beyond 1.6 times the best known of their class,
and what dead and near-dead channels add to each network. benchmarks/cliffs.json holds the best of each class, which
`--update` renews, and the known exceptions with their causes. It fails on a new cliff, where exceptions are more than
3 % of the steps, and where dead channels cost more than 5 %. `--short` is for continuous integration.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import log2, prod
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.nets import planned, quantized
from benchmarks.trained import NETS, trained
from nnbuild.model.graph import Graph
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.plan.plan import Plan, Step

TABLE = Path(__file__).with_name("cliffs.json")
STEEP = 1.6
EXCEPTIONS = 0.03
DEAD = 1.05
FARTHEST = 12
"""Steps of the ranking that are shown."""
SMALL = 2000
"""Cycles below which a step is too small to matter: its beginning and end are most of it."""
BOARDS = {
    **{"m0": "microbit", "m4": "mps2-an386", "m7": "mps2-an500", "m55": "mps3-an547"},
    **{"rv32": "rv32", "zve32x": "rv32-zve32x", "neon": "linux-arm64"},
}
SETS = ("sse2", "avx2_fma", "avx512_vnni")
FORMS = {"": "int8", "/int16": "int16"}
PLACES: dict[str, tuple[str, str | None]] = {
    **{name: (board, None) for name, board in BOARDS.items()},
    **{name: ("linux", name) for name in SETS},
}
TARGETS = {f"{name}{suffix}": (*place, form) for suffix, form in FORMS.items() for name, place in PLACES.items()}
"""Board, instruction set and format."""
SHORT = (("m4", "avx2_fma", "avx2_fma/int16"), ("separable", "residual", "excited"))


@dataclass(frozen=True)
class Cost:
    """What a step takes: `key` names the class, `each` is of one multiply-add or element."""

    net: str
    layer: str
    kernel: str
    key: str
    each: float
    cycles: float


@cache
def graph_of(net: str, form: str, spared: bool) -> Graph:
    return quantized(trained(net, spared), form)


@cache
def plan_of(net: str, target: str, spared: bool = False) -> Plan:
    board, isa, form = TARGETS[target]
    return planned(graph_of(net, form, spared), board, isa)


def steps(net: str, target: str) -> Iterator[Cost]:
    for step in plan_of(net, target).steps:
        work = step.macs or prod(step.site.inputs[0].shape)
        cycles = step.choice.price.cycles
        if cycles >= SMALL:
            yield Cost(net, step.layer, step.kernel_name, f"{target} {class_of(step, work)}", cycles / work, cycles)


def class_of(step: Step, work: int) -> str:
    """The class of a step's shape."""
    attributes, inputs = step.site.attributes, step.site.inputs[0].shape
    shape = []
    if isinstance(attributes, Conv2D | DepthwiseConv2D):
        window = step.site.constant("kernel").shape[:2]
        deep = (
            window[0] * window[1] * inputs[-1] // (attributes.groups if isinstance(attributes, Conv2D) else inputs[-1])
        )
        rest = step.site.output_shape()[-1] % 4
        shape = [f"{window[0]}x{window[1]}/{attributes.strides[0]}", f"deep{_size(deep)}", f"over{int(rest > 0)}"]
    elif isinstance(attributes, Pool2D):
        shape = [attributes.function, f"{attributes.window[0]}x{attributes.window[1]}"]
    elif step.kind == "dense":
        shape = [f"deep{_size(inputs[-1])}", f"rows{_size(prod(inputs) // inputs[-1])}"]
    elif isinstance(attributes, Reduce):
        shape = [attributes.function, f"of{_size(prod(inputs) // prod(step.site.output_shape()))}"]
    elif hasattr(attributes, "function"):
        shape = [str(attributes.function)]
    return " ".join([step.kind, *shape, f"work{_size(work)}"])


def _size(number: int) -> int:
    """The power of four near by."""
    return round(log2(max(number, 1)) / 2)


def dead_costs(net: str, target: str) -> float:
    """What a network with dead and near-dead channels takes of the same one without."""
    total, spared = (sum(s.choice.price.cycles for s in plan_of(net, target, way).steps) for way in (False, True))
    return total / spared


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--short", action="store_true")
    wished = parser.parse_args(words)
    targets, nets = SHORT if wished.short else (tuple(wished.targets or TARGETS), tuple(NETS))
    known = json.loads(TABLE.read_text()) if TABLE.is_file() else {"best": {}, "exceptions": {}}
    found = [cost for target in targets for net in nets for cost in steps(net, target)]
    dead = {f"{net} {target}": dead_costs(net, target) for target in targets for net in nets}
    if wished.update:
        keep(known, found)
    return report(known, found, dead)


def keep(known: dict[str, dict[str, float]], found: list[Cost]) -> None:
    """The best of every class that was met; others stay as they are."""
    best: dict[str, float] = {}
    for cost in found:
        best[cost.key] = min(best.get(cost.key, cost.each), cost.each)
    known["best"] |= {key: round(each, 4) for key, each in best.items()}
    known["best"] = dict(sorted(known["best"].items()))
    TABLE.write_text(json.dumps(known, indent=1) + "\n")


def ranked(found: list[Cost]) -> list[tuple[float, Cost]]:
    """Steps by how far they are above the median of their operation on their target, the farthest first."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for cost in found:
        groups.setdefault(tuple(cost.key.split()[:2]), []).append(cost.each)
    ratios = [(cost.each / median(groups[tuple(cost.key.split()[:2])]), cost) for cost in found]
    return sorted(ratios, key=lambda entry: -entry[0])


def report(known: dict[str, dict[str, float]], found: list[Cost], dead: dict[str, float]) -> int:
    steep = [cost for cost in found if cost.each > STEEP * known["best"].get(cost.key, 0) * 1.0001]
    new = []
    for cost in sorted(steep, key=lambda cost: -cost.cycles):
        best, name = known["best"].get(cost.key), f"{cost.key.split()[0]} {cost.net} {cost.layer}"
        cause = known["exceptions"].get(name)
        ratio = f"{cost.each / best:.2f} times the best" if best else "no other of its class is known"
        print(f"{name}: {cost.key}, {cost.kernel}, {cost.each:.3f}, {ratio}{f'; {cause}' if cause else ''}")
        new += [name] if cause is None else []
    affected = {name: ratio for name, ratio in dead.items() if ratio > DEAD}
    for name, ratio in affected.items():
        print(f"{name}: dead and near-dead channels cost {100 * (ratio - 1):.1f} %")
    print("the farthest above the median of their operation, which need be no cliff:")
    for ratio, cost in ranked(found)[:FARTHEST]:
        print(f"  {ratio:.1f} times: {cost.key.split()[0]} {cost.net} {cost.layer}, {cost.kernel}, {cost.each:.3f}")
    print(f"{len(found)} steps, {len(steep)} beyond {STEEP} times the best of their class, {len(new)} of them new")
    print(f"dead and near-dead channels: at most {100 * (max(dead.values()) - 1):+.1f} %")
    return int(bool(new) or bool(affected) or len(steep) > EXCEPTIONS * len(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
