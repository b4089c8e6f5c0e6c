"""nnbuild compile: print a model as C."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from nnbuild.commands.common import add_build_options, options_of, print_json, progress, say_notes
from nnbuild.emit.artifact import Artifact
from nnbuild.emit.emit import digest
from nnbuild.emit.files import file_names
from nnbuild.emit.weights import weights_bytes
from nnbuild.fit import program_files
from nnbuild.pipeline import compile_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the folder for the files")
    parser.add_argument("--link", action="store_true", help="also print what serves the model to a host")
    parser.add_argument("--layers", action="store_true", help="keep every layer apart, to be looked at one by one")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _remove_other_form(folder: Path, prefix: str, artifact: Artifact) -> None:
    """Weights printed earlier in the other form would be defined twice in a build of *.c and *.S."""
    for name in {*file_names(prefix, "array"), *file_names(prefix, "binary")} - artifact.files.keys():
        (folder / name).unlink(missing_ok=True)


def run(arguments: argparse.Namespace) -> int:
    compiled = compile_model(options_of(arguments, layers=arguments.layers), progress("calibration sample"))
    plan, whole = compiled.plan, program_files(compiled)
    artifact = Artifact(whole) if arguments.link else compiled.artifact
    artifact.write(arguments.output)
    _remove_other_form(arguments.output, plan.prefix, artifact)
    say_notes(compiled.graph.notes)
    if arguments.json:
        print_json(
            {
                "name": plan.prefix,
                "hash": digest(plan.graph),
                "files": sorted(artifact.files),
                "arena": plan.arena,
                "state": plan.state,
                "weights": weights_bytes(plan),
                "peak": asdict(plan.peak) if plan.peak is not None else None,
            }
        )
    else:
        print(
            f"{arguments.output}: {', '.join(artifact.files)}; {len(plan.steps)} steps, "
            f"{weights_bytes(plan):,} bytes of weights, {plan.arena:,} of arena, {plan.state:,} of state"
        )
        if plan.peak is not None:
            alive = ", ".join(f"{name} {size:,}" for name, size in plan.peak.alive)
            print(f"the arena is fullest in {plan.peak.layer}, {plan.peak.size:,} bytes: {alive}")
    return 0
