"""nnbuild run: builds a model for a board, runs samples there and writes the outputs."""

from __future__ import annotations

import argparse
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.cli.arguments import (
    add_build_options,
    announce,
    options_to_run,
    print_json,
    progress,
    say_notes,
    say_weights,
)
from nnbuild.cli.places import add_place, place_of
from nnbuild.jobs.job import refuse_to_run, run_job, samples_for
from nnbuild.jobs.pipeline import compile_model
from nnbuild.model.samples import save_outputs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    parser.add_argument("--inputs", type=Path, required=True, metavar="FILE", help="the samples, .npz or .npy")
    parser.add_argument("--outputs", type=Path, required=True, metavar="Y.npz", help="file for the outputs")
    parser.add_argument("--reset-each", action="store_true", help="start a new sequence with every sample")
    add_place(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    if arguments.outputs.suffix != ".npz":
        cause = "several arrays are written, so it must be an .npz file."
        raise UsageError(f"--outputs {arguments.outputs}", cause, f"Write {arguments.outputs.with_suffix('.npz')}.")
    options = options_to_run(arguments)
    refuse_to_run(options, arguments.port)
    compiled = compile_model(options, progress("calibration sample"), announce)
    samples = samples_for(compiled, arguments.inputs)
    say_notes((*compiled.graph.notes, *samples.notes))
    say_weights(compiled)
    with place_of(arguments) as where:
        runs = run_job(compiled, samples, where, reset_each=arguments.reset_each, progress=progress("sample"))
    quantized = [compiled.graph.tensors[name].quant is not None for name in compiled.graph.outputs]
    save_outputs(arguments.outputs, runs.y, [raw if q else None for raw, q in zip(runs.raw, quantized, strict=True)])
    if arguments.json:
        print_json({"samples": len(samples), "outputs": str(arguments.outputs)})
    else:
        print(f"{arguments.outputs}: the outputs of {len(samples)} samples on {compiled.board.name}")
    return 0
