"""The random campaign: networks at random by formats by instruction sets by compilers by what is optimized for.

    python benchmarks/campaign.py LEDGER [--cases N] [--minutes M] [--from SEED]
    python benchmarks/campaign.py LEDGER --summary

Each line of the ledger is one program of many cases, built by one compiler and run: how many were right, and every case
that was wrong, refused or ended in a traceback. A seed that is in the ledger is not run again, so a campaign can be
stopped and taken up at will. Integers must be equal in every bit, floats within the check's tolerance. `--summary`
prints the tables of docs/random-campaign.md. Exit code 1 where a case was wrong or crashed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count as count_from
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.random_graphs import random_graph
from benchmarks.spread import spread
from nnbuild import passes
from nnbuild.base.errors import NnbuildError
from nnbuild.isa.registry import cpu_flags, isas
from nnbuild.jobs.drawn import drawn_samples
from nnbuild.model.graph import Graph
from nnbuild.numeric.nearness import near
from nnbuild.ops import interpret
from nnbuild.ops.tolerance import standards
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with
from nnbuild.report.table import render
from tests.support.batch import Entry, run_batch

FORMATS = ("float", "int8", "int16", "mixed")
OPTIMIZE = ("speed", "size", "ram")
TOOLS = {
    "gcc, sanitizers": ("gcc", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "gcc -O2": ("gcc", "-O2"),
    "gcc -O3": ("gcc", "-O3"),
    "clang -O0": ("clang", "-O0"),
    "clang -O2": ("clang", "-O2"),
}
TOGETHER = 24
"""Cases of one program."""
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
    for number in range(TOGETHER):
        form, optimize = (values[int(chance.integers(len(values)))] for values in (FORMATS, OPTIMIZE))
        yield Case(batch * TOGETHER + number, form, isa, optimize)


def tool_of(batch: int) -> str:
    return list(TOOLS)[int(np.random.default_rng([batch, 2]).integers(len(TOOLS)))]


def graph_of(case: Case) -> Graph:
    """Quantized after normal numbers; of a mixed one some operations stay in float, or have 16 bits."""
    graph = passes.run(random_graph(case.seed))
    if case.format == "float":
        return graph
    chance = np.random.default_rng([case.seed, 3])
    samples = chance.normal(size=(24, *graph.tensors["x"].shape)).astype(np.float32)
    keep = {}
    if case.format == "mixed":
        layers = sorted({op.layer for op in graph.ops if op.layer})
        keep = {layer: ("float", "int16")[int(chance.integers(2))] for layer in layers if chance.random() < 0.3}
    form = "int8" if case.format == "mixed" else case.format
    recipe = Recipe(form=form, keep=keep, float_edge=bool(chance.integers(2)))
    ranges = calibrate(graph, lambda: iter([{"x": samples}]), "minmax", 16 if form == "int16" else 8)
    return quantize_with(graph, recipe, ranges)


def entry_of(case: Case, number: int) -> Entry:
    isa = isas()[case.isa]
    graph = graph_of(case)
    target = Target(isa, features=FEATURES, alignment=64, optimize=case.optimize)
    return Entry(make_plan(graph, f"m{number}", target), drawn_inputs(graph))


def drawn_inputs(graph: Graph) -> dict[str, Any]:
    """A few random ones and the extremes, as the program takes them."""
    samples = drawn_samples(graph).inputs
    picked = {name: np.concatenate([values[:4], values[16:]]) for name, values in samples.items()}
    return {name: interpret.as_input(graph.tensors[name], values, "float32") for name, values in picked.items()}


def run(batch: int) -> dict[str, Any]:
    """One line of the ledger."""
    entries: list[tuple[Case, Entry]] = []
    refused: Counter[str] = Counter()
    crashed: list[str] = []
    for number, case in enumerate(cases(batch)):
        try:
            entries.append((case, entry_of(case, number)))
        except NnbuildError as error:
            refused[error.cause] += 1
        except Exception:
            crashed.append(f"{case}: {traceback.format_exc().strip().splitlines()[-1]}, {_place()}")
    tool, wrong = tool_of(batch), compared(entries, tool_of(batch))
    counts = Counter(f"{case.format}, {case.isa}, {case.optimize}" for case, _ in entries)
    found = {"batch": batch, "tool": tool, "native": native(batch), "cases": len(entries), "wrong": wrong}
    return found | {"crashed": crashed, "refused": dict(refused), "kinds": dict(counts)}


def _place() -> str:
    frame = traceback.extract_tb(sys.exc_info()[2])[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def native(batch: int) -> bool:
    """Whether the set's own instructions run here; else their meanings in portable C do."""
    isa = isas()[next(cases(batch)).isa]
    return bool(isa.cpu_flags) and cpu_flags() >= set(isa.cpu_flags) and batch % 2 == 0


def compared(entries: Sequence[tuple[Case, Entry]], tool: str, alone: bool = False) -> list[str]:
    """The cases that are wrong. Where a program does not compile or run, each of its cases is tried by itself."""
    if not entries:
        return []
    batch = entries[0][0].seed // TOGETHER
    command = [*TOOLS[tool], *([] if native(batch) else ["-DNN_PORTABLE"])]
    with tempfile.TemporaryDirectory() as folder:
        try:
            outputs = run_batch([entry for _, entry in entries], Path(folder), command)
        except AssertionError as error:
            if alone:
                return [f"{entries[0][0]}: {str(error).strip()[:600]}"]
            return [each for pair in entries for each in compared([pair], tool, True)]
    return [
        f"{case}: {said}"
        for (case, entry), found in zip(entries, outputs, strict=True)
        if (said := judged(entry, found))
    ]


def judged(entry: Entry, found: dict[str, Any]) -> str:
    graph = entry.plan.graph
    wanted = standards(graph, entry.inputs, graph.outputs)
    for name in graph.outputs:
        right = near(wanted[name].values, found[name], wanted[name].tolerance)
        if not right.all():
            return f"{int((~right).sum())} of {right.size} numbers of {name} are wrong"
    return ""


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    return done.stdout.strip()


def summary(lines: Sequence[dict[str, Any]]) -> str:
    total, wrong, crashed = (sum(_size(line[key]) for line in lines) for key in ("cases", "wrong", "crashed"))
    refused: Counter[str] = Counter()
    for line in lines:
        refused.update(line["refused"])
    parts = [
        f"{total:,} compiled cases of {len(lines):,} programs: {wrong} wrong, {crashed} crashes, "
        f"{sum(refused.values())} refused in words; commits {', '.join(sorted({line['commit'] for line in lines}))}, "
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
        tools[f"{line['tool']}{', own instructions' if line['native'] else ', portable C'}"] += line["cases"]
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
    parser.add_argument("--workers", default="1", help="so many processes, or a dask scheduler, tcp://HOST:8786")
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args(words)
    lines = (
        [json.loads(line) for line in arguments.ledger.read_text().splitlines()] if arguments.ledger.exists() else []
    )
    if not arguments.summary:
        done, end = {line["batch"] for line in lines}, time.monotonic() + 60 * arguments.minutes
        wanted, made = arguments.cases, commit()
        batches = takewhile(lambda _: wanted > 0, (batch for batch in count_from(arguments.first) if batch not in done))
        for row in spread(run, batches, arguments.workers, end):
            line = row | {"commit": made}
            with arguments.ledger.open("a") as ledger:
                ledger.write(json.dumps(line) + "\n")
            lines.append(line)
            wanted -= line["cases"]
    print(summary(lines))
    return 1 if any(line["wrong"] or line["crashed"] for line in lines) else 0


if __name__ == "__main__":
    raise SystemExit(main())
