"""What one run takes on the part behind a board, in cycles of its clock: modelled, no device is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nnbuild.cycles.part import part_of
from nnbuild.cycles.run import Cycles, time_run
from nnbuild.jobs.job import Place, build_program
from nnbuild.jobs.pipeline import Compiled
from nnbuild.report.cycles import CycleProfile, LayerCycles


def cycles_job(compiled: Compiled, where: Place) -> CycleProfile:
    """With random inputs."""
    part_of(compiled.board)  # refused before anything is compiled
    return cycles_of(compiled, build_program(compiled, where))


def cycles_of(compiled: Compiled, program: Path) -> CycleProfile:
    found = timed_program(compiled, program)
    steps = zip(compiled.plan.steps, found.steps, strict=True)
    layers = tuple(LayerCycles(s.layer, s.kind, s.kernel_name, s.macs, time) for s, time in steps)
    return CycleProfile(compiled.board.name, compiled.plan.prefix, layers, found)


def timed_program(compiled: Compiled, program: Path) -> Cycles:
    numbers = np.random.default_rng(0)
    graph = compiled.graph
    types = [graph.tensors[name].dtype for name in graph.inputs]

    def content(index: int, size: int) -> bytes:
        if types[index] == "float32":
            return numbers.normal(size=size // 4).astype(np.float32).tobytes()
        return numbers.bytes(size)

    return time_run(program, part_of(compiled.board), content)
