"""Times one run of a model's program, step by step."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from nnbuild.bound.image import read_image
from nnbuild.cycles.clock import Clock, Time
from nnbuild.cycles.part import Part

INPUT = 0
"""A kind of memory that the program describes (firmware/link/nn_target.h)."""
Content = Callable[[int, int], bytes]
"""(input number, bytes) -> contents."""


@dataclass(frozen=True)
class Cycles:
    """error: the percentages by which the processor may take less and more."""

    steps: tuple[Time, ...]
    core: str
    hertz: int
    error: tuple[float, float]

    @property
    def whole(self) -> Time:
        return reduce(Time.plus, self.steps, Time())

    @property
    def milliseconds(self) -> float:
        return self.whole.cycles / self.hertz * 1e3


def time_run(program: Path, part: Part, content: Content, only: Collection[int] | None = None) -> Cycles:
    """`only`: the steps to run; others take no time."""
    clock = Clock(read_image(program), part.kind.core, part.flash, part.spans, part.kind.emulated)
    clock.call("nn_target_init")
    size_at = clock.stack - 64
    for number in range(clock.call("nn_target_steps") + 64):
        clock.cpu.mem_write(size_at, bytes(4))
        address = clock.call("nn_target_region", INPUT, number, size_at, below=128)
        if not address:
            break
        clock.cpu.mem_write(address, content(number, int.from_bytes(clock.cpu.mem_read(size_at, 4), "little")))
    numbers = range(clock.call("nn_target_steps"))
    steps = tuple(clock.time("nn_target_step", step) if only is None or step in only else Time() for step in numbers)
    waits = any(step.flash_code + step.flash_data for step in steps)
    return Cycles(steps, part.kind.name, part.hertz, part.error(waits))
