"""The fixed-point microfrontend as a front end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.features.frontend import Array, Framing, FrontEnd, Member
from nnbuild.features.micro import rows
from nnbuild.features.micro_c import print_frame
from nnbuild.features.micro_tables import Micro, MicroTables, micro_tables
from nnbuild.features.tables import Tables


@dataclass(frozen=True)
class MicroFrontEnd(FrontEnd):
    micro: Micro

    @cached_property
    def tables(self) -> MicroTables:
        return micro_tables(self.micro)

    @property
    def framing(self) -> Framing:
        return Framing(self.micro.rate, self.micro.window, self.micro.step)

    @property
    def row(self) -> tuple[str, int]:
        return "uint16", self.micro.channels

    @property
    def members(self) -> tuple[Member, ...]:
        points = self.tables.points // 2
        return (
            Member("noise", "uint32", self.micro.channels, kept=True),
            Member("pairs", "int32", points + 1),
            Member("values", "int32", points),
        )

    @property
    def told(self) -> str:
        m = self.micro
        return (
            f"{m.channels} channels from {m.low:g} to {m.high:g} Hz of {m.window_ms} ms each {m.step_ms} ms, "
            "in fixed point"
        )

    def rows_and_kept(self, samples: Array) -> tuple[Array, dict[str, Array]]:
        found, noise = rows(self.tables, np.asarray(samples, np.int64), self.micro.step)
        return found.astype(np.uint16), {"noise": noise.astype(np.uint32)}

    def print_frame(self, w: Writer, tables: Tables) -> None:
        print_frame(w, tables, self.tables)
