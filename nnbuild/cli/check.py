"""nnbuild check: builds a model for a board, runs samples there and compares the outputs with the reference."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.base.files import write_whole
from nnbuild.base.sanitize import printable
from nnbuild.cli.arguments import (
    add_build_options,
    announce,
    options_to_run,
    print_json,
    progress,
    say_cut,
    say_lost,
    say_notes,
    say_same,
    say_weights,
)
from nnbuild.cli.places import add_place, place_of
from nnbuild.cli.sound import sound_object, sound_text
from nnbuild.device.gates import Gates
from nnbuild.jobs.farm import check_on
from nnbuild.jobs.job import check_job, refuse_to_run, samples_for
from nnbuild.jobs.pipeline import Compiled, classes_for, compile_model
from nnbuild.jobs.sound import check_sound, hearing_for
from nnbuild.model.graph import Graph
from nnbuild.report.farm import farm_junit, farm_object, farm_text
from nnbuild.report.json_report import as_object
from nnbuild.report.junit import to_junit
from nnbuild.report.text import to_text

NOWHERE = Path("-")
"""The value of --on that marks a check started by a farm."""
GATES = {
    "agreement": "minimum top-1 agreement with the float model",
    "float-tolerance": "maximum error of floats against the reference (default: what rounding can cause)",
    "golden-tolerance": "maximum error against the golden outputs (default: for floats, twice what rounding can cause)",
    "max-rmse": "maximum rmse against the float model",
    "max-mae": "maximum mean absolute error against the float model",
    "max-l2r": "maximum relative l2 error against the float model",
    "min-nse": "minimum Nash-Sutcliffe efficiency against the float model",
    "min-cosine": "minimum cosine with the float model",
    "min-accuracy": "minimum accuracy on the labels",
    "max-accuracy-drop": "maximum loss of accuracy against the float model",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    parser.add_argument("--inputs", type=Path, metavar="FILE", help="samples, .npz or .npy (default: random ones)")
    parser.add_argument(
        "--wav", type=Path, metavar="FILE|DIR", help="sound for a model with --features (default: synthetic)"
    )
    parser.add_argument("--reset-each", action="store_true", help="start a new sequence with every sample")
    parser.add_argument("--layers", action="store_true", help="compare every layer's output; builds without fusing")
    add_place(parser)
    parser.add_argument("--on", type=Path, metavar="FARM.toml", help="check on all boards of a farm in parallel")
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
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def run(arguments: argparse.Namespace) -> int:
    return _one(arguments) if arguments.on in (None, NOWHERE) else _farm(arguments)


def _farm(arguments: argparse.Namespace) -> int:
    if arguments.port is not None or arguments.program is not None:
        raise UsageError(
            "--on", "the farm file already gives each board's port and program.", "Leave out --port and --program."
        )
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
    options, gates = options_to_run(arguments, layers=arguments.layers), gates_of(arguments)
    refuse_to_run(options, arguments.port)
    compiled = compile_model(options, progress("calibration sample"), announce)
    if compiled.hearing is not None or arguments.wav is not None:
        return _sound(arguments, compiled)
    samples = samples_for(compiled, arguments.inputs, judged=arguments.port is None)
    say_notes((*compiled.graph.notes, *samples.notes))
    say_weights(compiled)
    say_notes(tuple(_idle(arguments, compiled.graph)))
    with place_of(arguments) as where:
        moving = progress("sample")
        report = check_job(compiled, samples, where, gates, reset_each=arguments.reset_each, progress=moving)
    for each in report.outputs:
        say_same(each.name, each.same, report.samples)
    if arguments.inputs is not None:  # drawn samples are unlike the calibrated ones
        for each in report.outputs:
            say_cut(each.name, each.cut, report.samples)
            say_lost(each.name, () if each.cut else each.lost, each.values)
    if arguments.junit is not None:
        write_whole(arguments.junit, to_junit(report).encode())
    if arguments.json is not None:
        print_json(as_object(report), arguments.json)
    if arguments.json != "-":
        print(to_text(report), end="")
    return 0 if report.passed else 1


def _idle(arguments: argparse.Namespace, graph: Graph) -> Iterator[str]:
    """Notes on options that change nothing for this model."""
    if arguments.reset_each and not graph.states:
        yield "the model keeps nothing from one sample to the next: --reset-each has no effect"
    if arguments.float_tolerance is not None and all(graph.tensors[n].dtype != "float32" for n in graph.outputs):
        yield "all outputs are integers, which must equal the reference: --float-tolerance has no effect"


def _sound(arguments: argparse.Namespace, compiled: Compiled) -> int:
    hearing_for(compiled)
    own = {"--inputs": arguments.inputs, "--junit": arguments.junit, "--layers": arguments.layers or None}
    own |= {f"--{gate}": getattr(arguments, gate.replace("-", "_")) for gate in GATES}
    given = [name for name, value in own.items() if value is not None]
    if given or arguments.reset_each:
        what = given[0] if given else "--reset-each"
        cause = "a program with a front end takes sound, and every value must equal the reference."
        raise UsageError(what, cause, "Leave it out, or leave out --features to check the network alone.")
    say_notes(compiled.graph.notes)
    with place_of(arguments) as where:
        report = check_sound(compiled, arguments.wav, where, classes_for(compiled), progress("step"))
    if arguments.json is not None:
        print_json(sound_object(report), arguments.json)
    if arguments.json != "-":
        print(sound_text(report), end="")
    return 0 if report.passed else 1


def gates_of(arguments: argparse.Namespace) -> Gates:
    names = [gate.replace("-", "_") for gate in GATES]
    return Gates(**{n: getattr(arguments, n) for n in names if getattr(arguments, n) is not None})
