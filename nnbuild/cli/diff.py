"""nnbuild diff: compares two builds. Each is a report's JSON file, or the arguments to make a report now."""

from __future__ import annotations

import argparse
import json
import math
import shlex
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.cli.arguments import options_to_run, print_json
from nnbuild.cli.places import add_place, place_of
from nnbuild.cli.report import add_what, run_of
from nnbuild.jobs.report_data import gather_report
from nnbuild.report.diff import Difference, as_object, as_text, difference, worst
from nnbuild.report.facts import Facts, from_object

_BUILD = 'a file from nnbuild report --json, or, in quotes, the arguments to make one: "MODEL --board B …"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help=_BUILD)
    parser.add_argument("b", metavar="B", help="the other build, likewise")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the comparison as JSON")
    parser.add_argument(
        "--max-worse", type=_percent, metavar="PERCENT", help="fail when a figure of B is worse by more than this"
    )


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage")
    return value


def run(arguments: argparse.Namespace) -> int:
    found = difference(build(arguments.a), build(arguments.b))
    if arguments.json is not None:
        print_json(as_object(found), arguments.json)
    verdict = _verdict(found, arguments.max_worse)
    if arguments.json != "-":
        print(as_text(found) + (f"\n\n{verdict}" if verdict else ""))
    return 1 if verdict.startswith("FAIL") else 0


def _verdict(found: Difference, most: float | None) -> str:
    if most is None:
        return ""
    figure = worst(found)
    if 100 * figure.worse <= most:
        return f"PASS: no figure is worse by more than {most:g} %"
    return f"FAIL: {figure.name} is worse by {100 * figure.worse:.2f} %, at most {most:g} allowed"


def build(text: str) -> Facts:
    """Reads a report, or makes one."""
    path = Path(text)
    if path.suffix.lower() == ".json":
        return read(path)
    parser = argparse.ArgumentParser(prog=f"nnbuild diff {shlex.quote(text)}", usage=argparse.SUPPRESS, add_help=False)
    add_what(parser)
    add_place(parser)
    try:
        words = [text] if path.is_file() else shlex.split(text)  # a model's path may contain spaces
    except ValueError as error:
        raise UsageError(text, f"Its quoting is wrong ({error}).", "Fix its quotes.") from None
    arguments = parser.parse_intermixed_args(words)
    with place_of(arguments) as where:
        return gather_report(options_to_run(arguments), run_of(arguments), where)


def read(path: Path) -> Facts:
    advice = "Write one with nnbuild report MODEL --json FILE."
    try:
        return from_object(json.loads(path.read_bytes()))
    except FileNotFoundError:
        raise UsageError(str(path), "There is no such file.", advice) from None
    except OSError as error:
        raise UsageError(str(path), f"It cannot be read ({error.strerror or error}).", "Check the file.") from None
    except (ValueError, RecursionError) as error:
        cause = "it is not JSON" if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)) else str(error)
        raise UsageError(str(path), f"It cannot be used: {cause}.", advice) from None
