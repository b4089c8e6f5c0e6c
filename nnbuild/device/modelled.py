"""Cycles that a model of the part tells, where no device measured them, or beside those that one did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Modelled:
    """error: by how many percent the part may take less and more."""

    core: str
    cycles: int
    hertz: int
    error: tuple[float, float]

    @property
    def band(self) -> tuple[float, float]:
        """The fewest and the most cycles that the part may take."""
        return self.cycles * (1 + self.error[0] / 100), self.cycles * (1 + self.error[1] / 100)

    def milliseconds(self) -> str:
        """With what it may be off: `33.0 ms (31.4 to 38.0) at 168 MHz`."""
        whole, low, high = (1e3 * cycles / self.hertz for cycles in (self.cycles, *self.band))
        digits = 1 if whole >= 10 else 3
        return f"{whole:.{digits}f} ms ({low:.{digits}f} to {high:.{digits}f}) at {self.hertz / 1e6:g} MHz"

    def against(self, measured: float) -> str:
        """What is to be said where a device measured something else."""
        low, high = self.band
        if low <= measured <= high:
            return ""
        off = 100 * (measured / self.cycles - 1)
        fewest, most = self.error
        return f"the device took {off:+.0f} % more or less; the model may be off by {fewest:+g} to {most:+g} %"
