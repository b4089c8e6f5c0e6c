"""nnbuild profile: measures each layer's cost on a board."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from nnbuild.base.errors import UsageError
from nnbuild.cli.arguments import add_build_options, announce, options_to_run, print_json, progress
from nnbuild.cli.places import add_place, place_of
from nnbuild.device.profile import Profile
from nnbuild.jobs.alternatives import Measurement, measure, save
from nnbuild.jobs.cycles import cycles_job
from nnbuild.jobs.job import profile_job, refuse_to_run
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.report.cycles import cycles_object, cycles_text
from nnbuild.report.json_report import profile_object
from nnbuild.report.table import render
from nnbuild.report.text import profile_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_build_options(parser)
    add_place(parser)
    parser.add_argument(
        "--cycles", action="store_true", help="modelled cycles of the board's processor, and their causes"
    )
    parser.add_argument(
        "--alternatives", action="store_true", help="measure every kernel that could compute each layer"
    )
    parser.add_argument(
        "--save", action="store_true", help="save the measurements of --alternatives or --port, for kernel selection"
    )
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the profile as JSON")


def run(arguments: argparse.Namespace) -> int:
    if arguments.alternatives:
        return _alternatives(arguments)
    if arguments.save and arguments.port is None:
        cause = "it saves the measurements of --alternatives or of a device at a port."
        raise UsageError("--save", cause, "Also give --alternatives or --port.")
    options = options_to_run(arguments)
    if not arguments.cycles:
        refuse_to_run(options, arguments.port)
    compiled = compile_model(options, progress("calibration sample"), announce)
    if arguments.cycles:
        return _cycles(arguments, compiled)
    with place_of(arguments) as where:
        profile = profile_job(compiled, where)
    if arguments.json is not None:
        print_json(profile_object(profile), arguments.json)
    if arguments.json != "-":
        print(profile_text(profile), end="")
    if arguments.save:
        _keep(compiled, profile)
    return 0


def _keep(compiled: Compiled, profile: Profile) -> None:
    """Saves cycles measured by a device, which from now on select the kernels for its board."""
    if profile.unit != "cycles":
        raise UsageError("--save", f"the device counts {profile.unit}, not cycles.", "Leave it out.")
    costs = {(layer.name, layer.kernel): layer.cost for layer in profile.layers}
    print(f"saved in {save(compiled, costs)}")


def _cycles(arguments: argparse.Namespace, compiled: Compiled) -> int:
    with place_of(arguments) as where:
        profile = cycles_job(compiled, where)
    if arguments.json is not None:
        print_json(cycles_object(profile), arguments.json)
    if arguments.json != "-":
        print(cycles_text(profile), end="")
    return 0


def _alternatives(arguments: argparse.Namespace) -> int:
    if arguments.port is not None or arguments.program is not None:
        raise UsageError("--alternatives", "it builds a program for every kernel.", "Leave out --port and --program.")
    options = options_to_run(arguments)
    refuse_to_run(options, None)
    unit, measurements = measure(options)
    if arguments.json is not None:
        print_json({"unit": unit, "alternatives": [asdict(each) for each in measurements]}, arguments.json)
    if arguments.json != "-":
        print(_table(measurements, unit))
    if arguments.save:
        costs = {(each.layer, each.kernel): each.cost for each in measurements}
        print(f"saved in {save(compile_model(options), costs)}")
    return 0


def _table(measurements: list[Measurement], unit: str) -> str:
    """Estimates are no times, so they are compared with counts only."""
    rows, estimated = [], unit != "ns"
    for each in measurements:
        cost = "not measured" if each.cost is None else f"{each.cost:,}"
        off = [f"{100 * (each.estimate / each.cost - 1):+.0f}" if each.cost else ""] * estimated
        sizes = [f"{each.weights:,}", f"{each.scratch:,}"]
        rows.append([each.layer, each.op, each.kernel, "*" if each.taken else "", cost, *off, *sizes])
    compared = ["estimate off by %"] * estimated
    return render(["layer", "op", "kernel", "taken", unit, *compared, "weight bytes", "scratch bytes"], rows, 4)
