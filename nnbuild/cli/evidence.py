"""nnbuild evidence: writes proofs, traces, comparisons and coverage that a short script can re-check."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.base.sanitize import printable
from nnbuild.board.tables import find
from nnbuild.cli.arguments import add_build_options, announce, options_of, print_json, progress, say_notes
from nnbuild.evidence import pack
from nnbuild.jobs.job import refuse_sound, samples_for
from nnbuild.jobs.pipeline import compile_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    parser.add_argument("-o", dest="folder", type=Path, metavar="DIR", required=True, help="a new folder for the pack")
    parser.add_argument("--inputs", type=Path, metavar="FILE", help="vectors, .npz or .npy (default: random, extreme)")
    parser.add_argument(
        "--also", action="append", metavar="BOARD", help="also compare with this board; may be given several times"
    )
    parser.add_argument("--no-other-boards", action="store_true", help="do not compare with other boards")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the pack's contents, as JSON")


def run(arguments: argparse.Namespace) -> int:
    pack.refuse_folder(arguments.folder)
    if arguments.also and arguments.no_other_boards:
        raise UsageError("--also and --no-other-boards", "they contradict each other.", "Give one of them.")
    if arguments.device is not None:
        cause = "a pack compares boards and compilers, and a device's driver is for one."
        raise UsageError(f"--device {arguments.device}", cause, "Leave it out, or check the program: nnbuild check.")
    others = {find(name).name for name in arguments.also or ()}

    def wanted(name: str) -> bool:
        return name in others if arguments.also else not arguments.no_other_boards

    compiled = compile_model(options_of(arguments), progress("calibration sample"), announce)
    refuse_sound(compiled)
    samples = samples_for(compiled, arguments.inputs) if arguments.inputs is not None else None
    say_notes((*compiled.graph.notes, *(samples.notes if samples is not None else ())))
    with tempfile.TemporaryDirectory(prefix="nnbuild-") as folder:
        made = pack.make(compiled, samples, Path(folder).resolve(), wanted, _say)
    pack.write(made, arguments.folder)
    _say("checking the pack")
    left = [*made.open, *pack.refusal(arguments.folder)]
    if arguments.json is not None:
        print_json({name: value for name, value in made.facts.items() if name != "values"}, arguments.json)
    if arguments.json != "-":
        print(printable(_text(made, arguments.folder, left)))
    return 1 if left else 0


def _say(what: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="\r", file=sys.stderr, flush=True)


def _text(made: pack.Pack, folder: Path, left: Sequence[str]) -> str:
    facts = made.facts
    same = sum(row["same_bits"] for row in facts["replicas"])
    covered, rules = facts["coverage"], facts["misra"]["rules"]
    lines = [
        f"{folder}: evidence for {facts['name']} on {facts['board']}, {facts['precision']}",
        f"the same bits on {same} of {len(facts['replicas'])} targets, for {facts['vectors']} vectors",
        f"{covered['lines_reached']:,} of {covered['lines']:,} lines, {covered['branches_reached']:,} of "
        f"{covered['branches']:,} branches reached; {sum(not gap['reason'] for gap in covered['gaps'])} unexplained",
        f"MISRA C:2012: {len(rules)} rules deviated from, {sum(not rule['why'] for rule in rules)} not justified",
        *(f"open: {each}" for each in left),
        f"{'FAIL' if left else 'PASS'}: re-check it with python {folder / pack.SCRIPT}",
    ]
    return "\n".join(lines)
