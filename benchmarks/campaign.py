"""The random campaign: networks at random by formats by instruction sets by compilers by what is optimized for.

    python benchmarks/campaign.py LEDGER [--cases N] [--minutes M] [--from SEED] [--wide | --broad | --any | --even]
    python benchmarks/campaign.py LEDGER --summary

Each line of the ledger is one program of many networks, built in several ways and run: each network in each way is a
case. The line says how many were right, and each that was wrong, refused or ended in a traceback. A program that is in
the ledger is not run again, so a campaign can be stopped and taken up at will; one that was wrong is, first, once the
commit is another, and its last line counts. Integers must be equal in every bit, floats within the check's tolerance.
`--wide` begins where each network has a wide layer, `--broad` where they have every kind of operation, `--even`
where they look as published ones do, `--any` where each step takes any kernel that can do it, not the cheapest one.
`--summary` prints the tables of docs/random-campaign.md. Exit code 1 where a case was wrong or crashed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from itertools import count as count_from
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.broad_graphs import broad_graph
from benchmarks.even_graphs import even_graph
from benchmarks.ledger import append, commit, rows
from benchmarks.random_graphs import random_graph, wide_graph
from benchmarks.spread import spread
from nnbuild import passes
from nnbuild.base.errors import NnbuildError
from nnbuild.isa.registry import cpu_flags, isas
from nnbuild.jobs.generated_samples import generated_samples
from nnbuild.model.graph import Graph
from nnbuild.model.verify import REPORT
from nnbuild.numeric.nearness import near
from nnbuild.ops import interpret
from nnbuild.ops.drawn import drawn
from nnbuild.ops.tolerance import Standard, standards
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with
from nnbuild.report.table import render
from tests.support.batch import Entry, run_written, write_batch
from tests.support.emulators import ARM64, CROSS, IMAGE, NARROW, are_here, cortex_m
from tests.support.emulators import WIDE as WIDE_VECTORS

FORMATS = ("float", "int8", "int16", "mixed")
OPTIMIZE = ("speed", "size", "ram")
TOOLS = {
    "gcc, sanitizers": ("gcc", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "gcc -O2": ("gcc", "-O2"),
    "gcc -O3": ("gcc", "-O3"),
    "clang -O0": ("clang", "-O0"),
    "clang -O2": ("clang", "-O2"),
}
EMULATED = {
    **dict.fromkeys(("neon", "neon_dotprod", "neon_i8mm"), (ARM64, CROSS)),
    **dict.fromkeys(("zve32x", "rvv"), (NARROW, CROSS)),
    **dict.fromkeys(("zve32x_256", "rvv256"), (WIDE_VECTORS, CROSS)),
    "armv6m": (cortex_m("cortex-m0", "soft"), ("-O1", *IMAGE)),
    "armv7m": (cortex_m("cortex-m3", "soft"), ("-O1", *IMAGE)),
    "armv7em_dsp": (cortex_m("cortex-m4 -mfpu=fpv4-sp-d16"), ("-O1", *IMAGE)),
    "mve": (cortex_m("cortex-m55"), ("-O1", *IMAGE)),
}
"""Compiler and emulator, and the flags, of sets that other processors have."""
CHEAP = ("gcc, sanitizers", "clang -O0")
"""Every program is built by these, with its own instructions and with their meanings, and by one that optimizes."""
TOGETHER = 24
"""Networks of one program."""
WIDE, WIDE_TOGETHER = 10**7, 6
"""The first program of networks with wide layers, and how many of them it has."""
BROAD = 10**8
"""The first program of networks of every kind of operation."""
ANY = 2 * 10**8
"""The first program of networks of all kinds whose steps take any kernel."""
EVEN, EVEN_TOGETHER = 3 * 10**8, 12
"""The first program of networks as they are published, and how many of them it has."""
PLAINEST = "scalar"
FEATURES = frozenset({"arm_fpu"})


@dataclass(frozen=True)
class Case:
    """One network in one format for one set."""

    seed: int
    format: str
    isa: str
    optimize: str

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.format}, {self.isa}, {self.optimize}"


def cases(batch: int) -> Iterator[Case]:
    """Those of one program: one set, since a set's own spelling or its meaning is chosen for the whole program."""
    chance = np.random.default_rng([batch, 1])
    names = sorted(isas())
    isa = names[int(chance.integers(len(names)))]
    for number in range({wide_graph: WIDE_TOGETHER, even_graph: EVEN_TOGETHER}.get(_maker(batch), TOGETHER)):
        form, optimize = (values[int(chance.integers(len(values)))] for values in (FORMATS, OPTIMIZE))
        yield Case(batch * TOGETHER + number, form, isa, optimize)


@dataclass(frozen=True)
class Build:
    """One way to build a program: by which compiler, and whether with the set's own instructions."""

    tool: str
    own: bool

    def __str__(self) -> str:
        return f"{self.tool}, {'own instructions' if self.own else 'portable C'}"

    @property
    def command(self) -> list[str]:
        if self.tool in EMULATED:
            (compiler, _), flags = EMULATED[self.tool]
            return [*compiler.split(), *flags]
        return [*TOOLS[self.tool], *([] if self.own else ["-DNN_PORTABLE"])]

    @property
    def runner(self) -> list[str]:
        return EMULATED[self.tool][0][1].split() if self.tool in EMULATED else []


def builds(batch: int) -> list[Build]:
    """Own instructions where this processor or an emulator has them; else only their meanings in portable C run."""
    chance = np.random.default_rng([batch, 2])
    slow = [tool for tool in TOOLS if tool not in CHEAP]
    tool, own = slow[int(chance.integers(len(slow)))], bool(chance.integers(2))
    isa = isas()[next(cases(batch)).isa]
    if not (isa.cpu_flags and cpu_flags() >= set(isa.cpu_flags)):
        found = isa.name in EMULATED and are_here(EMULATED[isa.name][0])
        return [*(Build(each, False) for each in (*CHEAP, tool)), *([Build(isa.name, True)] if found else [])]
    return [*(Build(each, either) for each in CHEAP for either in (True, False)), Build(tool, own)]


def _maker(batch: int) -> Callable[[int], Graph]:
    """What draws the networks of a program."""
    if ANY <= batch < EVEN:
        return (random_graph, broad_graph, even_graph, wide_graph)[batch % 4]
    starts = ((EVEN, even_graph), (BROAD, broad_graph), (WIDE, wide_graph), (0, random_graph))
    return next(maker for first, maker in starts if batch >= first)


def drawn_graph(seed: int) -> Graph:
    return _maker(seed // TOGETHER)(seed)


def graph_of(case: Case) -> Graph:
    """Quantized after normal numbers; of a mixed one some operations stay in float, or have 16 bits."""
    graph = passes.run(drawn_graph(case.seed))
    if case.format == "float":
        return graph
    chance = np.random.default_rng([case.seed, 3])
    samples = {name: drawn(graph, name, chance, 24) for name in graph.inputs}
    keep = {}
    if case.format == "mixed":
        layers = sorted({op.layer for op in graph.ops if op.layer})
        keep = {layer: ("float", "int16")[int(chance.integers(2))] for layer in layers if chance.random() < 0.3}
    form = "int8" if case.format == "mixed" else case.format
    recipe = Recipe(form=form, keep=keep, float_edge=bool(chance.integers(2)))
    ranges = calibrate(graph, lambda: iter([samples]), "minmax", 16 if form == "int16" else 8)
    return quantize_with(graph, recipe, ranges)


def entry_of(case: Case, number: int) -> Entry:
    isa = isas()[case.isa]
    graph = graph_of(case)
    target = Target(isa, features=FEATURES, alignment=64, optimize=case.optimize, **_options(case.seed))
    plan = make_plan(graph, f"m{number}", target)
    if ANY <= case.seed // TOGETHER < EVEN:
        plan = make_plan(graph, f"m{number}", replace(target, forced_kernels=_any_kernels(plan, case.seed)))
    return Entry(plan, drawn_inputs(graph))


def _any_kernels(plan: Plan, seed: int) -> dict[str, str]:
    """For each step one of the kernels that can compute it, rarely the usual one or the plainest."""
    chance = np.random.default_rng([seed, 5])
    forced = {}
    for step in plan.steps:
        able = [offer.kernel.name for offer in step.choice.offers]
        others = [name for name in able if name not in (step.kernel_name, PLAINEST)]
        names = others if others and chance.random() < 0.8 else able
        forced[step.op.name] = names[int(chance.integers(len(names)))]
    return forced


def _options(seed: int) -> dict[str, bool]:
    """What else a plan of a network that is no plain or wide one may be made for."""
    chance = np.random.default_rng([seed, 4])
    known = {"chunked": BROAD, "keep_tensors": BROAD, "swappable": ANY}
    return {name: seed >= first * TOGETHER and chance.random() < 0.15 for name, first in known.items()}


def drawn_inputs(graph: Graph) -> dict[str, Any]:
    """Random ones and the extremes, as the program takes them."""
    samples = generated_samples(graph).inputs
    return {name: interpret.as_input(graph.tensors[name], values, "float32") for name, values in samples.items()}


def run(batch: int) -> dict[str, Any]:
    """One line of the ledger."""
    entries: list[tuple[Case, Entry]] = []
    refused: Counter[str] = Counter()
    crashed: list[str] = []
    for number, case in enumerate(cases(batch)):
        try:
            entries.append((case, entry_of(case, number)))
        except NnbuildError as error:
            if error.next_step == REPORT:
                crashed.append(f"{case}: {error}")
            else:
                refused[error.cause] += 1
        except Exception:
            crashed.append(f"{case}: {traceback.format_exc().strip().splitlines()[-1]}, {_place()}")
    ways = builds(batch)
    wrong = compared(entries, ways)
    kinds = Counter(f"{case.format}, {case.isa}, {case.optimize}" for case, _ in entries)
    found = {"batch": batch, "builds": {str(way): len(entries) for way in ways}, "networks": len(entries)}
    found |= {"kinds": {kind: count * len(ways) for kind, count in kinds.items()}, "cases": len(entries) * len(ways)}
    return found | {"wrong": wrong, "crashed": crashed, "refused": dict(refused)}


def _place() -> str:
    frame = traceback.extract_tb(sys.exc_info()[2])[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def compared(entries: Sequence[tuple[Case, Entry]], ways: Sequence[Build]) -> list[str]:
    """The cases that are wrong. Where a program does not compile or run, each of its networks is tried by itself."""
    if not entries:
        return []
    wrong, standard = [], [standards(entry.plan.graph, entry.inputs, entry.plan.graph.outputs) for _, entry in entries]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_batch([entry for _, entry in entries], folder)
        for way in ways:
            try:
                outputs = run_written([entry for _, entry in entries], folder, way.command, way.runner)
            except AssertionError as error:
                alone = [f"{entries[0][0]}, {way}: {str(error).strip()[:600]}"]
                wrong += alone if len(entries) == 1 else [each for pair in entries for each in compared([pair], [way])]
                continue
            for (case, entry), found, wanted in zip(entries, outputs, standard, strict=True):
                wrong += [f"{case}, {way}: {said}" for said in judged(entry, found, wanted)]
    return wrong


def judged(entry: Entry, found: dict[str, Any], wanted: Mapping[str, Standard]) -> Iterator[str]:
    for name in entry.plan.graph.outputs:
        right = near(wanted[name].values, found[name], wanted[name].tolerance)
        if not right.all():
            yield f"{int((~right).sum())} of {right.size} numbers of {name} are wrong"


def summary(lines: Sequence[dict[str, Any]]) -> str:
    keys = ("cases", "networks", "wrong", "crashed")
    total, networks, wrong, crashed = (sum(_size(line[key]) for line in lines) for key in keys)
    refused: Counter[str] = Counter()
    for line in lines:
        refused.update(line["refused"])
    parts = [
        f"{total:,} compiled cases of {networks:,} networks in {len(lines):,} programs: {wrong} wrong, "
        f"{crashed} crashes, {sum(refused.values())} refused in words; "
        f"commits {', '.join(sorted({line['commit'] for line in lines}))}, "
        f"batches {min(line['batch'] for line in lines)} to {max(line['batch'] for line in lines)}"
    ]
    for title, at in (("format", 0), ("instruction set", 1), ("optimized for", 2)):
        counts: Counter[str] = Counter()
        for line in lines:
            for kind, count in line["kinds"].items():
                counts[kind.split(", ")[at]] += count
        parts.append(render([title, "cases"], [[name, f"{count:,}"] for name, count in sorted(counts.items())], 1))
    tools: Counter[str] = Counter()
    for line in lines:
        tools.update(line["builds"])
    parts.append(render(["compiler", "cases"], [[name, f"{count:,}"] for name, count in sorted(tools.items())], 1))
    parts += [f"wrong: {each}" for line in lines for each in line["wrong"]]
    parts += [f"crashed: {each}" for line in lines for each in line["crashed"]]
    return "\n\n".join(parts)


def _size(value: Any) -> int:
    return value if isinstance(value, int) else len(value)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--cases", type=int, default=10**9, help="stop after so many more")
    parser.add_argument("--minutes", type=float, default=10**6, help="begin no program after so many minutes")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first program's seed")
    parser.add_argument("--wide", action="store_const", const=WIDE, dest="first", help="networks with wide layers")
    parser.add_argument(
        "--broad", action="store_const", const=BROAD, dest="first", help="networks of every kind of operation"
    )
    parser.add_argument("--even", action="store_const", const=EVEN, dest="first", help="networks as published ones")
    parser.add_argument("--any", action="store_const", const=ANY, dest="first", help="steps take any kernel")
    parser.add_argument("--workers", default="1", help="so many processes, or a dask scheduler, tcp://HOST:8786")
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args(words)
    known = {line["batch"]: line for line in rows(arguments.ledger)}
    if not arguments.summary:
        end, wanted, made = time.monotonic() + 60 * arguments.minutes, arguments.cases, commit()
        again = [line["batch"] for line in known.values() if _faults(line) and line["commit"] != made]
        new = (batch for batch in count_from(arguments.first) if batch not in known)
        batches = takewhile(lambda _: wanted > 0, chain(again, new))
        for row in spread(run, batches, arguments.workers, end):
            line = row | {"commit": made}
            append(arguments.ledger, line)
            known = known | {line["batch"]: line}
            wanted -= line["cases"]
    print(summary(list(known.values())))
    return 1 if any(map(_faults, known.values())) else 0


def _faults(line: dict[str, Any]) -> bool:
    return bool(line["wrong"] or line["crashed"])


if __name__ == "__main__":
    raise SystemExit(main())
