"""nnbuild profile: what each layer costs on a board."""

from __future__ import annotations

import argparse

from nnbuild.commands.common import add_build_options, add_place, options_of, print_json, progress
from nnbuild.job import place, profile_job
from nnbuild.pipeline import compile_model
from nnbuild.report import profile_object, profile_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    add_place(parser)
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the profile as JSON")


def run(arguments: argparse.Namespace) -> int:
    compiled = compile_model(options_of(arguments), progress("calibration sample"))
    with place(arguments.program, arguments.port) as where:
        profile = profile_job(compiled, where)
    if arguments.json is not None:
        print_json(profile_object(profile), arguments.json)
    if arguments.json != "-":
        print(profile_text(profile), end="")
    return 0
