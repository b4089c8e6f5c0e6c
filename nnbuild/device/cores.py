"""Instruction counts for each core of an emulated board, from the file of QEMU's counting plugin."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

PHASES = 8192
"""As in firmware/platform/counted/nn_core_counter.c."""
CORES = 64
KINDS = 3
"""Counts per core: work, waiting, and the copying part of work."""
ROW = 1 + KINDS * PHASES


@dataclass(frozen=True)
class StepCost:
    """Instructions of a step on each participating core: work, waiting for others, and the part of the work that
    copied data to or from the core's own memory."""

    work: tuple[int, ...]
    waiting: tuple[int, ...]
    copying: tuple[int, ...] = ()

    @property
    def critical(self) -> int:
        """Instructions of the busiest core."""
        return max(self.work)


@dataclass(frozen=True)
class CoreCosts:
    """Costs of a run."""

    steps: tuple[StepCost, ...]

    @property
    def critical_path(self) -> int:
        return sum(step.critical for step in self.steps)

    def totals(self, of: str) -> tuple[int, ...]:
        """Work, waiting or copying of each core."""
        counts = [getattr(step, of) for step in self.steps]
        width = max(map(len, counts), default=0)
        return tuple(sum(each[core] for each in counts if core < len(each)) for core in range(width))

    def idle(self) -> tuple[int, ...]:
        """For each core, the critical path minus its own work, which it spends waiting."""
        return tuple(self.critical_path - own for own in self.totals("work"))


class CoreMeter:
    """Counters of one emulator. The first core ends a phase before and after each request, the others after each of
    their parts. `parts` gives the number of cores of every step."""

    def __init__(self) -> None:
        self.parts: Sequence[int] = ()
        self.last: CoreCosts | None = None
        self._file = tempfile.NamedTemporaryFile(prefix="nnbuild-cores-")  # noqa: SIM115 - closed with the line
        self._file.truncate(CORES * ROW * 8)
        self._begin: npt.NDArray[np.uint64] = np.zeros(CORES, np.uint64)
        self._rows: npt.NDArray[np.uint64] = np.memmap(self._file.name, np.uint64, "r", shape=(CORES, ROW))

    @property
    def path(self) -> Path:
        return Path(self._file.name)

    def begin(self) -> None:
        self._begin = self._rows[:, 0].copy()

    def alone(self) -> int:
        """Instructions of the first core since `begin` for one request."""
        return self._count(0, int(self._begin[0]) + 1)[0]

    def steps(self, first: int, end: int) -> list[int]:
        """Costs of the steps since `begin`: for each step, up to the end of its last core."""
        done = [0] * CORES
        found = []
        for index, parts in enumerate(self.parts[first:end]):
            counts = [self._count(0, int(self._begin[0]) + 1 + 2 * index)]
            for core in range(1, parts):
                counts.append(self._count(core, int(self._begin[core]) + done[core]))
                done[core] += 1
            found.append(StepCost(*zip(*counts, strict=True)))
        self.last = CoreCosts(tuple(found))
        return [step.critical for step in found]

    def _count(self, core: int, phase: int) -> tuple[int, ...]:
        at = 1 + KINDS * (phase % PHASES)
        return tuple(map(int, self._rows[core, at : at + KINDS]))

    def close(self) -> None:
        self._file.close()
