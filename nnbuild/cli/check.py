"""nnbuild check: build a model for a board, run samples there, compare with the reference."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.base.files import write_whole
from nnbuild.base.shown import printable
from nnbuild.cli.arguments import (
    add_build_options,
    add_max_instructions,
    add_place,
    heard,
    options_to_run,
    place_of,
    print_json,
    progress,
    say_notes,
)
from nnbuild.device.check import Gates
from nnbuild.jobs.farm import check_on
from nnbuild.jobs.job import check_job, samples_for
from nnbuild.jobs.pipeline import compile_model
from nnbuild.report.farm import farm_junit, farm_object, farm_text
from nnbuild.report.json_report import as_object
from nnbuild.report.junit import to_junit
from nnbuild.report.text import to_text

NOWHERE = Path("-")
"""A farm's own checks are told so that they are no farm."""
GATES = {
    "agreement": "top-1 agreement with the float model, at least",
    "float-tolerance": "error of floats against the reference, at most (default: what rounding can do)",
    "golden-tolerance": "error of floats against the golden outputs, at most (default: twice what rounding can do)",
    "max-rmse": "rmse against the float model, at most",
    "max-mae": "mean absolute error against the float model, at most",
    "max-l2r": "relative l2 error against the float model, at most",
    "min-nse": "Nash-Sutcliffe efficiency against the float model, at least",
    "min-cosine": "cosine with the float model, at least",
    "min-accuracy": "accuracy on the labels, at least",
    "max-accuracy-drop": "accuracy lost against the float model, at most",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    parser.add_argument("--inputs", type=Path, metavar="X.npz", help="samples (default: random ones)")
    parser.add_argument("--reset-each", action="store_true", help="begin a new sequence with every sample")
    parser.add_argument("--layers", action="store_true", help="compare every layer's output, built without fusing")
    add_place(parser)
    parser.add_argument("--on", type=Path, metavar="FARM.toml", help="check on all boards of a farm at once")
    add_max_instructions(parser)
    add_gates(parser)
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the report as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="the report as JUnit XML")


def add_gates(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("gates")
    for gate, meaning in GATES.items():
        group.add_argument(f"--{gate}", type=_number, metavar="X", help=meaning)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no finite number")
    return value


def run(arguments: argparse.Namespace) -> int:
    return _one(arguments) if arguments.on in (None, NOWHERE) else _farm(arguments)


def _farm(arguments: argparse.Namespace) -> int:
    if arguments.port is not None or arguments.program is not None:
        raise UsageError("--on", "a farm names the ports of its boards.", "Leave out --port and --program.")
    rows = check_on(arguments.on, [*arguments.words, "--on", str(NOWHERE)], _say)
    if arguments.junit is not None:
        write_whole(arguments.junit, farm_junit(rows).encode())
    if arguments.json is not None:
        print_json(farm_object(rows), arguments.json)
    if arguments.json != "-":
        print(farm_text(rows), end="")
    return 0 if all(row.verdict == "PASS" for row in rows) else 1


def _say(name: str, verdict: str) -> None:
    print(f"nnbuild: {printable(name)}: {verdict}", file=sys.stderr, flush=True)


def _one(arguments: argparse.Namespace) -> int:
    compiled = compile_model(options_to_run(arguments, layers=arguments.layers), progress("calibration sample"), heard)
    samples = samples_for(compiled, arguments.inputs)
    say_notes((*compiled.graph.notes, *samples.notes))
    gates = gates_of(arguments)
    with place_of(arguments) as where:
        moving = progress("sample")
        report = check_job(compiled, samples, where, gates, reset_each=arguments.reset_each, progress=moving)
    if arguments.junit is not None:
        write_whole(arguments.junit, to_junit(report).encode())
    if arguments.json is not None:
        print_json(as_object(report), arguments.json)
    if arguments.json != "-":
        print(to_text(report), end="")
    return 0 if report.passed else 1


def gates_of(arguments: argparse.Namespace) -> Gates:
    names = [gate.replace("-", "_") for gate in GATES]
    return Gates(**{n: getattr(arguments, n) for n in names if getattr(arguments, n) is not None})
