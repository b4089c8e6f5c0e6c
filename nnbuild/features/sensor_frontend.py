"""Sensor features as a front end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nnbuild.base.writer import Writer
from nnbuild.features.frontend import Array, Framing, FrontEnd, Member
from nnbuild.features.sensor import STATISTICS, Sensor, rows
from nnbuild.features.sensor_c import print_frame
from nnbuild.features.settings import Table
from nnbuild.features.tables import Tables

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "accelerometer": {},
    "vibration": {"rate": 3200, "window": 1024, "step": 512},
}


@dataclass(frozen=True)
class SensorFrontEnd(FrontEnd):
    sensor: Sensor

    @property
    def framing(self) -> Framing:
        s = self.sensor
        return Framing(s.rate, s.window, s.step, s.axes)

    @property
    def row(self) -> tuple[str, int]:
        return "float32", self.sensor.axes * self.sensor.of_axis

    @property
    def members(self) -> tuple[Member, ...]:
        return (Member("values", "float32", self.sensor.points),) if self.sensor.spectrum else ()

    @property
    def told(self) -> str:
        s = self.sensor
        what = [*s.values, *([f"{s.bands} bands"] if s.bands else []), *([f"{s.peaks} peaks"] if s.peaks else [])]
        return f"{', '.join(what)} of {s.axes} axes, {s.window} samples each {s.step} at {s.rate} Hz"

    def rows_and_kept(self, samples: Array) -> tuple[Array, dict[str, Array]]:
        return rows(self.sensor, samples), {}

    def print_frame(self, w: Writer, tables: Tables) -> None:
        print_frame(w, tables, self.sensor)


def sensor(table: Table, preset: Mapping[str, Any], aside: tuple[str, ...]) -> FrontEnd:
    s = table.read(Sensor, aside, preset)
    table.between("rate", s.rate, 1, 192000)
    table.between("window", s.window, 8, 8192)
    table.between("step", s.step, 1, 1 << 20)
    table.between("axes", s.axes, 1, 16)
    table.between("gain", s.gain, 1e-9, 1e9)
    table.between("bands", s.bands, 0, s.points // 2)
    table.between("peaks", s.peaks, 0, 32)
    table.between("least", s.least, 1e-30, 1e30)
    for each in s.values:
        if each not in STATISTICS:
            table.refuse("values", f"there is no {each!r}.", f"There are: {', '.join(STATISTICS)}.")
    if s.of_axis == 0:
        table.refuse("values", "nothing is asked for.", "Ask for values, bands or peaks.")
    return SensorFrontEnd(s)
