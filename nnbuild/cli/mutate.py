"""nnbuild mutate: measures how many injected mistakes the samples detect."""

from __future__ import annotations

import argparse
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.base.files import write_whole
from nnbuild.cli.arguments import add_build_options, announce, options_of, print_json, progress, say_notes
from nnbuild.cli.places import add_place, place_of
from nnbuild.jobs.job import refuse_to_run, samples_for
from nnbuild.jobs.mutate import Fate, MutationReport, mutate_job
from nnbuild.jobs.pipeline import compile_model
from nnbuild.report.table import render

SHOWN = 20
"""Maximum number of survivors to list."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    parser.add_argument("--inputs", type=Path, metavar="FILE", help="samples, .npz or .npy (default: random, extreme)")
    parser.add_argument(
        "--mutants", type=_count, default=200, metavar="N", help="number of mutants (default: %(default)s)"
    )
    parser.add_argument(
        "--search",
        type=_count,
        default=1000,
        metavar="N",
        help="inputs to try on surviving mutants (default: %(default)s)",
    )
    parser.add_argument("--seed", type=_count, default=0, metavar="N", help="seed for choosing mutants and inputs")
    parser.add_argument("--killers", type=Path, metavar="FILE.npz", help="write inputs that would kill survivors")
    parser.add_argument("--min-rate", type=_share, metavar="X", help="fail if a smaller share is killed")
    add_place(parser)
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the report as JSON")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) > 10**6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number up to 1000000")
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1")
    return value


def run(arguments: argparse.Namespace) -> int:
    if not arguments.mutants:
        raise UsageError("--mutants 0", "without mutants there is nothing to measure.", "Give at least 1.")
    options = options_of(arguments)
    refuse_to_run(options, None)
    compiled = compile_model(options, progress("calibration sample"), announce)
    samples = samples_for(compiled, arguments.inputs, judged=True)
    say_notes((*compiled.graph.notes, *samples.notes))
    with place_of(arguments) as where:
        numbers = {"count": arguments.mutants, "search": arguments.search, "seed": arguments.seed}
        report = mutate_job(compiled, samples, where, **numbers, progress=progress("mutant"))
    if arguments.killers is not None:
        _write_killers(arguments.killers, report.killers)
    if arguments.json is not None:
        print_json(as_object(report), arguments.json)
    if (made := len(report.fates)) < arguments.mutants:
        say_notes((f"{made} mutants instead of {arguments.mutants}: no other number of the program can be changed.",))
    passed = arguments.min_rate is None or report.rate >= arguments.min_rate
    if arguments.json != "-":
        print(as_text(report), end="")
        if arguments.min_rate is not None:
            print(f"{'PASS' if passed else 'FAIL'}: {report.rate:.2%} killed, at least {arguments.min_rate:.2%} wanted")
    return 0 if passed else 1


def _write_killers(path: Path, killers: Mapping[str, np.ndarray]) -> None:
    content = io.BytesIO()
    np.savez(content, **killers)  # type: ignore[arg-type]  # numpy's stub takes the names for its own options
    write_whole(path, content.getvalue())


def as_text(report: MutationReport) -> str:
    title = f"mutants of {report.model} on {report.board}, {report.quantize}, with {report.samples} samples"
    rows = [[kind, *(str(count) for count in counts)] for kind, *counts in report.by_kind()]
    sums = [str(sum(row[i] for row in report.by_kind())) for i in (1, 2, 3)]  # type: ignore[misc]
    parts = [title, render(["changed", "killed", "survived", "alike"], rows, 1, ["all", *sums])]
    survived = [_line(fate) for fate in report.survived[:SHOWN]]
    if survived:
        more = len(report.survived) - len(survived)
        parts.append("\n".join(["survived:", *survived, *([f"  and {more} more"] if more else [])]))
    wrong = report.killed + len(report.survived)
    parts.append(
        f"{report.killed} of {wrong} mutants killed: {report.rate:.2%}. {len(report.alike)} more equal the original "
        f"on {report.searched:,} searched inputs."
    )
    return "\n\n".join(parts) + "\n"


def _line(fate: Fate) -> str:
    return f"  {fate.mutant.kind} of {fate.mutant.where}: {fate.mutant.change}; {fate.how}"


def as_object(report: MutationReport) -> dict[str, Any]:
    return {
        "model": report.model,
        "board": report.board,
        "quantize": report.quantize,
        "samples": report.samples,
        "searched": report.searched,
        "rate": report.rate,
        "killed": report.killed,
        "survived": len(report.survived),
        "alike": len(report.alike),
        "kinds": [
            {"kind": kind, "killed": killed, "survived": survived, "alike": alike}
            for kind, killed, survived, alike in report.by_kind()
        ],
        "mutants": [
            {
                "kind": fate.mutant.kind,
                "layer": fate.mutant.where,
                "change": fate.mutant.change,
                "killed": fate.killed,
                "told": fate.told,
                "how": fate.how,
                "witness": fate.witness,
            }
            for fate in report.fates
        ],
    }
