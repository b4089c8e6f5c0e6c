"""Spectrograms, mel bands and cepstra as a front end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.features.frontend import Array, Framing, FrontEnd, Member
from nnbuild.features.spectral import SpectralTables, rows
from nnbuild.features.spectral_c import print_frame
from nnbuild.features.spectral_tables import Spectral
from nnbuild.features.tables import Tables


@dataclass(frozen=True)
class SpectralFrontEnd(FrontEnd):
    settings: Spectral

    @cached_property
    def tables(self) -> SpectralTables:
        return SpectralTables(self.settings)

    @property
    def framing(self) -> Framing:
        return Framing(self.settings.rate, self.settings.window, self.settings.step)

    @property
    def row(self) -> tuple[str, int]:
        return "float32", self.settings.coefficients or self.settings.values

    @property
    def members(self) -> tuple[Member, ...]:
        s = self.settings
        before = (Member("before", "int16", 1, kept=True),) if s.emphasis else ()
        bands = s.points // 2 + 1 + s.values if s.coefficients else 0
        return (*before, Member("values", "float32", max(s.points, bands)))

    @property
    def told(self) -> str:
        s = self.settings
        what = f"{s.bands} bands from {s.low:g} to {s.top:g} Hz" if s.bands else f"{s.values} bins"
        last = f", {s.coefficients} coefficients of their cosines" if s.coefficients else ""
        return f"{what}{last}, of {s.window} samples each {s.step} at {s.rate} Hz, in floats"

    def rows_and_kept(self, samples: Array) -> tuple[Array, dict[str, Array]]:
        found, before = rows(self.tables, np.asarray(samples))
        return found, {"before": before.astype(np.int16)[:, None]} if self.settings.emphasis else {}

    def print_frame(self, w: Writer, tables: Tables) -> None:
        print_frame(w, tables, self.tables)
