"""Models the cycles of a program on the board's processor."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np

from nnbuild.base.errors import NnbuildError
from nnbuild.base.progress import phase
from nnbuild.board.clocks import clock_of
from nnbuild.cycles.part import part_of
from nnbuild.cycles.run import Cycles, time_run
from nnbuild.device.run_time import Modelled
from nnbuild.jobs.pipeline import Compiled


def timed_program(compiled: Compiled, program: Path, only: Collection[int] | None = None) -> Cycles:
    """Times a run with random inputs; `only` limits it to some steps."""
    numbers = np.random.default_rng(0)
    graph = compiled.graph
    types = [graph.tensors[name].dtype for name in graph.inputs]

    def content(index: int, size: int) -> bytes:
        if types[index] == "float32":
            return numbers.normal(size=size // 4).astype(np.float32).tobytes()
        return numbers.bytes(size)

    part = part_of(compiled.board)
    with phase("estimating the processor's cycles"):
        return time_run(program, part, content, only)


def modelled(compiled: Compiled, program: Path, unit: str, run: float | None) -> Modelled | None:
    """The modelled run time. Where no model covers the processor, or the program cannot run here, assumes one cycle
    per counted instruction. None where the clock is unknown."""
    board = compiled.board
    try:
        found = timed_program(compiled, program)
        return Modelled(found.core, found.whole.cycles, found.hertz, found.error)
    except NnbuildError:
        clock = clock_of(board)
        if not clock or unit != "instructions" or run is None:
            return None
        return Modelled(board.core or board.architecture, round(run), clock, (0, 0), at_least=True)
