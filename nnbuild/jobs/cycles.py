"""Models the cycles of one run on the board's processor; needs no device."""

from __future__ import annotations

from pathlib import Path

from nnbuild.base.errors import UsageError
from nnbuild.cycles.part import part_of
from nnbuild.jobs.constant_sizes import constant_sizes
from nnbuild.jobs.cycle_model import timed_program
from nnbuild.jobs.job import Place, build_program
from nnbuild.jobs.pipeline import Compiled
from nnbuild.report.cycles import CycleProfile, LayerCycles


def cycles_job(compiled: Compiled, where: Place) -> CycleProfile:
    """Uses random inputs."""
    if where.port is not None:
        raise UsageError(
            "--cycles", "it models a processor; at a port, cycles are measured.", "Leave out one of the two."
        )
    part_of(compiled.board)  # refused before anything is compiled
    return cycles_of(compiled, build_program(compiled, where))


def cycles_of(compiled: Compiled, program: Path) -> CycleProfile:
    found = timed_program(compiled, program)
    steps = zip(compiled.plan.steps, found.steps, strict=True)
    layers = tuple(LayerCycles(s.layer, s.kind, s.kernel_name, s.macs, time) for s, time in steps)
    return CycleProfile(compiled.board.name, compiled.plan.prefix, layers, found, constant_sizes(compiled.plan))
