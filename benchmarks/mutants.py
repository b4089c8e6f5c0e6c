"""The mutation campaign: small mistakes in many programs, and whether the samples that a check draws notice them.

    python benchmarks/mutants.py LEDGER [--board linux] [--formats float int8 int16 mixed] [--models NAME ...]
                                 [--mutants 32] [--search 10000] [--seed 0] [--minutes M]
    python benchmarks/mutants.py LEDGER --summary

Every line of the ledger is one program and what became of its mutants. A program that is in the ledger already, at the
same seed and search, is not run again, so a campaign may be stopped and taken up later. The models are the networks of
tests/zoo. `--summary` prints the table of docs/mutation-campaign.md, and fails where the bar is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.ledger import append, commit, rows
from benchmarks.spread import spread
from nnbuild import passes
from nnbuild.base.errors import NnbuildError
from nnbuild.frontend import load
from nnbuild.jobs.job import place, samples_for
from nnbuild.jobs.mutants import KINDS
from nnbuild.jobs.mutate import mutate_job
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.report.table import render
from tests.zoo import KERAS3, names, zoo

FORMATS = ("float", "int8", "int16", "mixed")
NOTICED = 0.97
"""The share of mutants that the drawn samples must kill, of those that some input tells from the original."""


@dataclass(frozen=True)
class Unit:
    """One program."""

    model: str
    format: str
    board: str
    mutants: int
    search: int
    seed: int


def networks() -> list[str]:
    return [name for name in names(KERAS3) if name.startswith("net_")]


def options_of(unit: Unit, folder: Path) -> Options:
    """Calibrated with normal numbers. Mixed is int8 with its second layer in float."""
    model = zoo(KERAS3) / f"{unit.model}.h5"
    options = Options(model, board=unit.board, name="net")
    if unit.format == "float":
        return options
    graph, chance = passes.run(load(model)), np.random.default_rng(5)
    shapes = {name: (64, *graph.tensors[name].shape) for name in graph.inputs}
    samples = folder / "calibration.npz"
    np.savez(samples, **{name: chance.normal(size=shape).astype(np.float32) for name, shape in shapes.items()})
    layers = list(dict.fromkeys(op.layer for op in graph.ops if op.layer is not None))
    keep = ((layers[min(1, len(layers) - 1)], "float"),) if unit.format == "mixed" else ()
    form = "int8" if unit.format == "mixed" else unit.format
    return Options(model, board=unit.board, name="net", quantize=form, calibrate=samples, keep=keep)


def measured(unit: Unit) -> dict:
    begun = time.monotonic()
    facts: dict = {"unit": asdict(unit), "commit": commit()}
    try:
        with tempfile.TemporaryDirectory() as folder, place(None) as where:
            compiled = compile_model(options_of(unit, Path(folder)))
            samples = samples_for(compiled, None, judged=True)
            report = mutate_job(compiled, samples, where, count=unit.mutants, search=unit.search, seed=unit.seed)
    except NnbuildError as error:
        return facts | {"refused": str(error)[:400]}
    fates = [[f.mutant.kind, f.killed, f.told] for f in report.fates]
    survived = [f"{f.mutant.kind} of {f.mutant.where}: {f.mutant.change}; {f.how}" for f in report.survived]
    return facts | {"fates": fates, "survived": survived, "seconds": round(time.monotonic() - begun, 1)}


def summary(rows: list[dict]) -> tuple[str, bool]:
    """Two tables, and whether the bar is kept."""
    ran = [row for row in rows if "fates" in row]
    tables = []
    for what, heads in (
        (lambda u, f: (u["board"], u["format"]), ["board", "format"]),
        (lambda u, f: (f[0],), ["kind"]),
    ):
        sums: dict[tuple, list[int]] = {}
        for row in ran:
            for fate in row["fates"]:
                counts = sums.setdefault(what(row["unit"], fate), [0, 0, 0])
                counts[0 if fate[1] else 1 if fate[2] else 2] += 1
        order = sorted(sums, key=lambda key: KINDS.index(key[0]) if key[0] in KINDS else 0)
        lines = [[*key, *map(str, sums[key]), f"{_share(sums[key]):.2%}"] for key in order]
        total = [sum(counts[i] for counts in sums.values()) for i in range(3)]
        foot = ["all", *[""] * (len(heads) - 1), *map(str, total), f"{_share(total):.2%}"]
        tables.append(render([*heads, "killed", "survived", "alike", "noticed"], lines, len(heads), foot))
    refused = sorted(
        {f"{row['unit']['model']} {row['unit']['format']}: {row['refused']}" for row in rows if "refused" in row}
    )
    models = len({row["unit"]["model"] for row in ran})
    said = f"{sum(total)} mutants of {len(ran)} programs of {models} models; {len(refused)} programs refused"
    return "\n\n".join([said, *tables, *refused]), _share(total) >= NOTICED


def _share(counts: list[int]) -> float:
    return counts[0] / max(1, counts[0] + counts[1])


def units(arguments: argparse.Namespace) -> Iterator[Unit]:
    for form in arguments.formats:
        for model in arguments.models or networks():
            yield Unit(model, form, arguments.board, arguments.mutants, arguments.search, arguments.seed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--board", default="linux")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--mutants", type=int, default=32)
    parser.add_argument("--search", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no program after so long")
    parser.add_argument("--workers", default="1", help="so many processes, or a dask scheduler, tcp://HOST:8786")
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args()
    if arguments.summary:
        text, kept = summary(rows(arguments.ledger))
        print(text)
        return 0 if kept else 1
    known = {json.dumps(row["unit"], sort_keys=True) for row in rows(arguments.ledger)}
    end = time.monotonic() + 60 * arguments.minutes
    new = (unit for unit in units(arguments) if json.dumps(asdict(unit), sort_keys=True) not in known)
    for row in spread(measured, new, arguments.workers, end):
        append(arguments.ledger, row)
        fates = row.get("fates", [])
        killed, survived = sum(f[1] for f in fates), sum(not f[1] and f[2] for f in fates)
        said = row.get("refused") or f"{killed} of {len(fates)} killed, {survived} survived, {row['seconds']} s"
        print(row["unit"]["model"], row["unit"]["format"], said, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
