"""nnbuild compile: generates C from a model."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from nnbuild.base.depfile import write_depfile
from nnbuild.base.errors import UsageError
from nnbuild.base.files import write_whole
from nnbuild.cli.arguments import (
    add_build_options,
    add_max_instructions,
    announce,
    options_of,
    print_json,
    progress,
    say_notes,
    say_weights,
)
from nnbuild.emit.artifact import Artifact
from nnbuild.emit.emit import digest
from nnbuild.emit.files import file_names
from nnbuild.emit.weights import weights_bytes
from nnbuild.jobs.accelerator import device_facts
from nnbuild.jobs.application import sample_header
from nnbuild.jobs.options import Options, prefix_of
from nnbuild.jobs.pipeline import Compiled, board_for, compile_model, faster_here, inputs_of, weights_form
from nnbuild.jobs.program_files import program_files
from nnbuild.jobs.stream import stream_facts
from nnbuild.outputs.packages import PACKAGES, REFUSALS, Package

_BOUNDED = "print only kernels whose instructions can be bounded, for a program with this limit"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    parser.set_defaults(board=None)
    parser.add_argument("-o", dest="folder", type=Path, metavar="DIR", help="the folder for the files")
    parser.add_argument("--output", choices=PACKAGES, default="c", help="form of the output (default: %(default)s)")
    parser.add_argument("--single-file", action="store_true", help="the same as --output single-file")
    parser.add_argument("--link", action="store_true", help="also write the code that serves the model to a host")
    add_max_instructions(parser, _BOUNDED)
    parser.add_argument("--layers", action="store_true", help="do not fuse layers, so that each can be inspected")
    parser.add_argument("--depfile", type=Path, metavar="FILE", help="write the files' dependencies, for make")
    parser.add_argument(
        "--stamp", type=Path, metavar="FILE", help="a file to create and to name as the target in --depfile"
    )
    parser.add_argument("--dry-run", action="store_true", help="write nothing; list what would be written")
    parser.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="the written files and their sizes, as JSON"
    )


def _remove_other_form(folder: Path, prefix: str, names: set[str]) -> None:
    """Removes weights written earlier in the other form, which a build of *.c and *.S would define twice."""
    written = {folder / name for name in names}
    forms = {*file_names(prefix, "array"), *file_names(prefix, "binary")}
    for path in {path.with_name(name) for path in written for name in forms} - written:
        path.unlink(missing_ok=True)


def run(arguments: argparse.Namespace) -> int:
    options, kind = _checked(arguments)
    package = PACKAGES[kind]
    # The model must fit the memories only of a board that the user named.
    named = arguments.board is not None
    compiled = compile_model(options, progress("calibration sample"), announce, to_run=named)
    whole = program_files(compiled) if arguments.link or named else {}
    files = whole if arguments.link else _package_files(package, compiled)
    made: list[str] = []
    if not arguments.dry_run:
        Artifact(files).refuse_strangers(arguments.folder)
        if kind in REFUSALS:
            REFUSALS[kind](compiled.board, compiled.plan, arguments.folder)
        Artifact(files).write(arguments.folder)
        _remove_other_form(arguments.folder, compiled.plan.prefix, {*files})
        made = package.finish(compiled.board, compiled.plan, arguments.folder)
        _for_the_build(arguments, options)
    say_notes((*compiled.graph.notes, *faster_here(compiled)))
    say_weights(compiled)
    if arguments.json is not None:
        print_json(facts(compiled, sorted([*files, *made])), arguments.json)
    if arguments.json != "-":
        print(_said(compiled, arguments.folder, [*files, *made]))
    return 0


def _package_files(package: Package, compiled: Compiled) -> dict[str, bytes]:
    """Includes the sample for the package's example."""
    files = package.files(compiled.board, compiled.plan, compiled.artifact)
    if package.EXAMPLE is None:
        return files
    folder = package.EXAMPLE.format(prefix=compiled.plan.prefix)
    return {**files, f"{folder}/{compiled.plan.prefix}_sample.h": sample_header(compiled).encode()}


WITH_FEATURES = ("c", "arduino", "rtthread", "zephyr", "espidf", "meson", "cubeide")
"""Outputs that accept additional C files unchanged."""


def _checked(arguments: argparse.Namespace) -> tuple[Options, str]:
    """Returns the options, with the constants' form that the output requires, and the output's name."""
    kind = "single-file" if arguments.single_file else arguments.output
    if arguments.single_file and arguments.output not in ("c", "single-file"):
        raise UsageError(
            "--single-file", f"it cannot be combined with --output {arguments.output}.", "Leave one of them out."
        )
    if arguments.features is not None and kind not in WITH_FEATURES:
        told = ", ".join(WITH_FEATURES)
        raise UsageError("--features", f"its files cannot be used with --output {kind}.", f"Take one of {told}.")
    if arguments.link and kind != "c":
        raise UsageError("--link", f"it cannot be combined with --output {kind}.", "Leave one of them out.")
    if arguments.device is not None and kind != "c":
        cause = f"code for a device cannot be used with --output {kind}."
        raise UsageError(f"--device {arguments.device}", cause, "Leave one of the two out.")
    if arguments.folder is None and not arguments.dry_run:
        raise UsageError("nnbuild compile", "no output folder was given.", "Give a folder: -o DIR")
    if arguments.board is None:
        arguments.isa = arguments.isa or PACKAGES[kind].ISA
    form = PACKAGES[kind].WEIGHTS
    if form is not None and arguments.weights not in ("auto", form):
        cause = f"--output {kind} cannot hold it."
        raise UsageError(f"--weights {arguments.weights}", cause, f"Leave it out, or give --weights {form}.")
    options = replace(options_of(arguments, layers=arguments.layers), board=arguments.board or board_for(arguments.isa))
    return (replace(options, weights=form) if form is not None else options), kind


def _for_the_build(arguments: argparse.Namespace, options: Options) -> None:
    """Writes files for build systems. The stamp is newer than all dependencies even when no C had to be written."""
    if arguments.stamp is not None:
        write_whole(arguments.stamp, b"")
    if arguments.depfile is not None:
        target = arguments.stamp or arguments.folder / f"{prefix_of(options)}.h"
        write_depfile(arguments.depfile, str(target), inputs_of(options))


def facts(compiled: Compiled, files: list[str]) -> dict[str, Any]:
    plan = compiled.plan
    return {
        "name": plan.prefix,
        "hash": digest(plan.graph),
        "files": files,
        "arena": plan.arena,
        "state": plan.state,
        "weights": weights_bytes(plan),
        "form": weights_form(compiled.options, compiled.imported),
        "peak": asdict(plan.peak) if plan.peak is not None else None,
        "device": device_facts(plan),
        "stream": stream_facts(compiled.streamed) if compiled.streamed is not None else None,
    }


def _said(compiled: Compiled, folder: Path | None, files: list[str]) -> str:
    plan = compiled.plan
    first = (
        f"{folder if folder is not None else 'nothing written'}: {', '.join(files)}; {len(plan.steps)} steps, "
        f"{weights_bytes(plan):,} bytes of weights, {plan.arena:,} of arena, {plan.state:,} of state"
    )
    if plan.peak is None:
        return first
    alive = ", ".join(f"{name} {size:,}" for name, size in plan.peak.alive)
    return f"{first}\nthe arena is fullest in {plan.peak.layer}, {plan.peak.size:,} bytes: {alive}"
