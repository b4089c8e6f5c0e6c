"""nnbuild profile: what each layer costs on a board."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from nnbuild.commands.common import add_build_options, add_place, options_of, place_of, print_json, progress
from nnbuild.job import profile_job
from nnbuild.pipeline import compile_model, precision
from nnbuild.report.text import layer_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    add_place(parser)
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the profile as JSON")


def run(arguments: argparse.Namespace) -> int:
    compiled = compile_model(options_of(arguments), progress("calibration sample"))
    with place_of(arguments) as where:
        unit, costs, memory = profile_job(compiled, where)
    if arguments.json is not None:
        report = {
            "board": compiled.board.name,
            "model": compiled.plan.prefix,
            "quantize": precision(compiled.graph),
            "unit": unit,
            "total": sum(cost.cost for cost in costs),
            "layers": [asdict(cost) for cost in costs],
            "memory": memory,
        }
        print_json(report, arguments.json)
    if arguments.json != "-":
        print(layer_table(costs, unit))
        print("bytes: " + ", ".join(f"{name} {size:,}" for name, size in memory.items()))
    return 0
