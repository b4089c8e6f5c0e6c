"""nnbuild new: creates a project."""

from __future__ import annotations

import argparse
from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.cli.arguments import QUANTIZE, add_inputs
from nnbuild.emit.artifact import Artifact
from nnbuild.frontend.import_options import LAYOUTS
from nnbuild.jobs.project import BUILDS, Parts, project_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="the project's folder, which must not exist yet")
    parser.add_argument("--board", default="linux", help="the board to run on (default: %(default)s)")
    parser.add_argument("--build", choices=BUILDS, default="scons", help="build system (default: %(default)s)")
    parser.add_argument("--model", type=Path, metavar="FILE", help="your model (default: one that recognizes digits)")
    parser.add_argument("--quantize", choices=QUANTIZE, help="number format (default: int8; for your own model, float)")
    parser.add_argument("--calibrate", type=Path, metavar="FILE", help="your samples for calibration")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="file of your model's class names, one per line")
    parser.add_argument("--inputs", type=Path, metavar="FILE", help="your samples for the check")
    add_inputs(parser)


def run(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(str(folder), "it already exists and is not an empty folder.", "Name a new folder.")
    files = project_files(arguments.build, _parts(arguments))
    Artifact(files).write(folder)
    print(f"{folder}: {', '.join(sorted(files))}")
    print(f"Next steps: see {folder / 'README.md'}")
    return 0


def _parts(arguments: argparse.Namespace) -> Parts:
    if arguments.model is None:
        layout = {"--io-layout": arguments.io_layout != LAYOUTS[0]}
        own = {f"--{name}": getattr(arguments, name) for name in ("calibrate", "inputs", "labels", "shape", "fix")}
        given = [name for name, value in (own | layout).items() if value]
        if given:
            raise UsageError(", ".join(given), "this needs your own model.", "Give the model with --model.")
        return Parts(arguments.board, quantize=arguments.quantize or "int8")
    for path in (arguments.model, arguments.calibrate, arguments.inputs, arguments.labels):
        if path is not None and not path.is_file():
            raise UsageError(str(path), "there is no such file.", "Check its name.")
    return Parts(
        board=arguments.board,
        model=arguments.model,
        quantize=arguments.quantize or "float",
        calibrate=arguments.calibrate,
        inputs=arguments.inputs,
        labels=arguments.labels,
        shape=tuple(arguments.shape),
        fix=tuple(arguments.fix),
        io_layout=arguments.io_layout,
    )
