"""nnbuild report: writes one page about a model on a board."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.base.files import write_whole
from nnbuild.cli.arguments import add_build_options, announce, options_to_run, print_json, progress, say_notes
from nnbuild.cli.check import add_gates, gates_of
from nnbuild.cli.places import add_place, place_of
from nnbuild.jobs.report_data import Run, gather_report
from nnbuild.report.facts import Facts, as_object
from nnbuild.report.page import page, verdict
from nnbuild.report.png import require, write_pictures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_what(parser)
    add_place(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the page (default: MODEL's name with .html)")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="all data as JSON, also for nnbuild diff")
    parser.add_argument("--png", type=Path, metavar="DIR", help="only the pictures, as PNG files in this folder")


def add_what(parser: argparse.ArgumentParser) -> None:
    """Options for the build and the run."""
    add_build_options(parser)
    parser.add_argument("--inputs", type=Path, metavar="FILE", help="samples, .npz or .npy (default: random ones)")
    parser.add_argument("--reset-each", action="store_true", help="start a new sequence with every sample")
    parser.add_argument("--no-run", action="store_true", help="build but do not run: costs are estimates")
    add_gates(parser)


@dataclass(frozen=True)
class Wanted:
    """The files to write."""

    page: Path | None
    json: str | None
    png: Path | None


def run_of(arguments: argparse.Namespace) -> Run:
    return Run(
        inputs=arguments.inputs,
        reset_each=arguments.reset_each,
        gates=gates_of(arguments),
        wanted=not arguments.no_run,
    )


def run(arguments: argparse.Namespace) -> int:
    wanted = _wanted(arguments)
    with place_of(arguments) as where:
        facts = gather_report(options_to_run(arguments), run_of(arguments), where, progress("sample"), announce)
    say_notes(facts.notes)
    if wanted.png is not None:
        write_pictures(facts, wanted.png)
    if wanted.page is not None:
        write_whole(wanted.page, page(facts).encode())
    if wanted.json is not None:
        print_json(as_object(facts), wanted.json)
    if wanted.json != "-":
        print(_said(facts, wanted))
    return 0 if facts.passed else 1


def _wanted(arguments: argparse.Namespace) -> Wanted:
    """A page, unless another output was requested. Refuses impossible outputs before anything is built."""
    other = arguments.json is not None or arguments.png is not None
    chosen = arguments.output if other else arguments.output or Path(f"{arguments.model.stem}.html")
    if chosen is not None and chosen.suffix.lower() not in (".html", ".htm"):
        raise UsageError(str(chosen), "the report is an HTML page.", "Give it a name that ends in .html.")
    if arguments.png is not None:
        require()
    return Wanted(chosen, arguments.json, arguments.png)


def _said(facts: Facts, wanted: Wanted) -> str:
    made = [str(path) for path in (wanted.page, wanted.json, wanted.png) if path is not None]
    word, _ = verdict(facts)
    missing = f" ({facts.check_missing})" if facts.check is None else ""
    return f"{', '.join(made)}: {facts.name} on {facts.board}, {facts.precision}; check: {word}{missing}"
