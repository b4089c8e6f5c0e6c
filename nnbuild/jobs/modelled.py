"""The cycles of a program on the part behind its board, by the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nnbuild.base.errors import NnbuildError
from nnbuild.cycles.part import part_of
from nnbuild.cycles.run import Cycles, time_run
from nnbuild.device.modelled import Modelled
from nnbuild.jobs.pipeline import Compiled


def timed_program(compiled: Compiled, program: Path) -> Cycles:
    """With random inputs."""
    numbers = np.random.default_rng(0)
    graph = compiled.graph
    types = [graph.tensors[name].dtype for name in graph.inputs]

    def content(index: int, size: int) -> bytes:
        if types[index] == "float32":
            return numbers.normal(size=size // 4).astype(np.float32).tobytes()
        return numbers.bytes(size)

    return time_run(program, part_of(compiled.board), content)


def modelled(compiled: Compiled, program: Path) -> Modelled | None:
    """None where no model has the board's part, or it cannot be run here."""
    try:
        found = timed_program(compiled, program)
    except NnbuildError:
        return None
    return Modelled(found.core, found.whole.cycles, found.hertz, found.error)
