"""The processor of a board: core, flash, clock, and the accuracy of each model."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.errors import UsageError
from nnbuild.board.board import Board, FlashSpeed
from nnbuild.board.clocks import clocks_of
from nnbuild.cycles.blocks import RAM, Core
from nnbuild.cycles.pipeline import Classic, Small
from nnbuild.cycles.scoreboard import Scoreboard

M3 = Classic(accumulate=2, long_multiply=4, long_accumulate=5, divide=7)
M4 = Classic(accumulate=1, long_multiply=1, long_accumulate=1, divide=7)


SHARED = 15
"""Percent by which a run may take longer where code and data share a bus: its arbitration is undocumented."""


@dataclass(frozen=True)
class Kind:
    """A core: its timing rules, the largest observed error of its model in percent, and its emulator."""

    name: str
    core: Core
    error: float
    emulated: str


@dataclass(frozen=True)
class Part:
    kind: Kind
    flash: FlashSpeed
    hertz: int
    spans: tuple[tuple[int, int], ...]
    """The address ranges of its flash."""
    shared: bool = False
    """Whether the model's code is fetched over the data bus."""

    def error(self, waits: bool) -> tuple[float, float]:
        """Percent by which the true cycles may be fewer and more; `waits`: whether the run waited for flash."""
        low, high = self.flash.error if waits else (0, 0)
        high += SHARED if self.shared else 0
        return min(low, -self.kind.error), max(high, self.kind.error)


def kind_of(core: str, multiplier: int) -> Kind | None:
    kinds = {
        "cortex-m0": Kind("Cortex-M0", Small(multiplier, refill=2, call=3), 3, "CORTEX_M0"),
        "cortex-m0plus": Kind("Cortex-M0+", Small(multiplier, refill=1, call=2), 10, "CORTEX_M0"),
        "cortex-m3": Kind("Cortex-M3", M3, 3, "CORTEX_M3"),
        "cortex-m4": Kind("Cortex-M4", M4, 3, "CORTEX_M4"),
        "cortex-m33": Kind("Cortex-M33", Scoreboard(), 3, "CORTEX_M33"),
        "cortex-m7": Kind("Cortex-M7", Scoreboard(width=2, double=2, predicted=True), 25, "CORTEX_M7"),
    }
    return kinds.get(core)


def part_of(board: Board) -> Part:
    found = kind_of(board.core or "", board.multiplier)
    clocks = clocks_of(board.firmware.soc, board.firmware.defines) if board.firmware is not None else None
    if found is None or clocks is None:
        cause = "cycles are modelled only for boards with a Cortex-M0, M3, M4, M33 or M7 and a known clock."
        raise UsageError(f"board {board.name!r}", cause, "Choose such a board; `nnbuild boards` lists all.")
    flash = board.memory("flash")
    spans = ((flash.origin, flash.origin + flash.length),)
    shared = found.core.one_bus and any(m.name == board.code_memory and m.origin >= RAM for m in board.memories)
    return Part(found, board.flash_speed, clocks.cpu, spans, shared)
