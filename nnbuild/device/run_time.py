"""The run time on the board's processor: measured, estimated by a model, or a lower bound."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Modelled:
    """error: the percentages by which the processor may take less and more. at_least: no model covers the core, and
    the cycles are counted instructions."""

    core: str
    cycles: int
    hertz: int
    error: tuple[float, float]
    at_least: bool = False

    @property
    def band(self) -> tuple[float, float]:
        """The minimum and maximum cycles."""
        return self.cycles * (1 + self.error[0] / 100), self.cycles * (1 + self.error[1] / 100)

    def milliseconds(self) -> str:
        """The time with its range: `33.0 ms (31.4 to 38.0) at 168 MHz`."""
        if self.at_least:
            least = in_milliseconds(1e3 * self.cycles / self.hertz)
            return f"at least {least} at {self.hertz / 1e6:g} MHz, at one cycle per instruction"
        whole, low, high = (1e3 * cycles / self.hertz for cycles in (self.cycles, *self.band))
        digits = 1 if whole >= 10 else 3
        return f"{whole:.{digits}f} ms ({low:.{digits}f} to {high:.{digits}f}) at {self.hertz / 1e6:g} MHz"

    def against(self, measured: float) -> str:
        """A note for a measurement outside the model's range."""
        if self.at_least:
            return ""
        low, high = self.band
        if low <= measured <= high:
            return ""
        off = 100 * (measured / self.cycles - 1)
        fewest, most = self.error
        return (
            f"the device took {off:+.0f} % compared with the estimate; the expected error is {fewest:+g} to {most:+g} %"
        )


@dataclass(frozen=True)
class Time:
    """Time of one run. kind: measured, estimated, or at least."""

    milliseconds: float
    kind: str

    @property
    def words(self) -> str:
        return f"{'≥ ' if self.kind == 'at least' else ''}{in_milliseconds(self.milliseconds)}"


def time_of(unit: str, mean: float | None, hertz: int, found: Modelled | None) -> Time | None:
    """The measured time, otherwise the estimate; None where the clock is unknown."""
    if mean is not None and unit != "instructions" and hertz:
        return Time(1e3 * mean / hertz, "measured")
    if found is None:
        return None
    return Time(1e3 * found.cycles / found.hertz, "at least" if found.at_least else "estimated")


def in_milliseconds(time: float) -> str:
    """Three significant figures: 12.3 ms, 0.0123 ms."""
    return f"{time:.{max(0, 2 - math.floor(math.log10(time)))}f} ms" if time > 0 else "0 ms"
