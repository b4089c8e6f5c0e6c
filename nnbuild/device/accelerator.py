"""A program's report on the accelerator beside its processor: failures and counters."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields, replace

from nnbuild.device.link import Link, Region

COUNT = 12


@dataclass(frozen=True)
class DeviceLayer:
    """A layer that the accelerator computes: its tasks, their cycles by the accelerator's table, and the bytes that
    the processor copies for it."""

    layer: str
    tasks: int
    cycles: float
    macs: int = 0
    copied: int = 0


@dataclass(frozen=True)
class AcceleratorUse:
    """Totals over all runs. estimated: the plan's estimate of the accelerator's cycles per run."""

    name: str
    estimated: float
    runs: int
    layers: tuple[DeviceLayer, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    """Layers that the accelerator cannot compute, with the reasons."""
    peak: int = 0
    """Its maximum multiplications per cycle; 0 where its table does not say."""
    resets: int = 0
    late: int = 0
    faults: int = 0
    rescued: int = 0
    """Steps that the processor computed instead after a failure."""
    cycles: int = 0
    busy: int = 0
    idle: int = 0
    """Idle cycles between the first and the last task."""
    stall: int = 0
    macs: int = 0
    read: int = 0
    written: int = 0
    tasks: int = 0

    @property
    def measured(self) -> float:
        """Busy cycles per run by the accelerator's counters; 0 where it has none. Its idle count includes the time
        between runs, so it is not used."""
        return self.busy / self.runs if self.runs else 0.0

    @property
    def use(self) -> float:
        """Utilization of its multipliers in percent; 0 where unknown."""
        cycles = (self.measured or self.estimated) * self.peak
        return 100 * sum(layer.macs for layer in self.layers) / cycles if cycles else 0.0

    @property
    def off(self) -> float:
        """The estimate's excess over the measured cycles, in percent."""
        return 100 * (self.estimated / self.measured - 1) if self.measured else 0.0


def read_counters(link: Link, planned: AcceleratorUse, runs: int) -> AcceleratorUse:
    """Adds the program's counters after this many runs to the plan's values."""
    names = [each.name for each in fields(AcceleratorUse)][-COUNT:]
    found = struct.unpack(f"{link.order}{COUNT}Q", link.read(Region.DEVICE, 0, 8 * COUNT))
    return replace(planned, runs=runs, **dict(zip(names, found, strict=True)))


def use_lines(found: AcceleratorUse) -> list[str]:
    """Lines for a report."""
    tasks = f"{found.tasks / found.runs:,.0f} tasks a run, " if found.runs and found.tasks else ""
    lines = [f"device     {found.name}: {tasks}estimated {found.estimated:,.0f} cycles"]
    if found.measured:
        share = 100 * found.idle / (found.busy + found.idle)
        lines[0] += f", measured {found.measured:,.0f} ({found.off:+.1f} %), idle {share:.1f} %"
    lines[0] += f", use of its multipliers {found.use:.1f} %" if found.use else ""
    if found.rescued or found.resets or found.late or found.faults:
        lines.append(
            f"           {found.late:,} missed deadlines, {found.faults:,} faults, {found.resets:,} resets; the "
            f"processor computed {found.rescued:,} steps instead"
        )
    return lines


def layer_cells(found: AcceleratorUse) -> list[list[str]]:
    """A table row for each of its layers: tasks, cycles, use, bytes copied."""
    rows = []
    for each in found.layers:
        most = each.cycles * found.peak
        use = f"{100 * each.macs / most:.1f} %" if most and each.macs else ""
        rows.append([each.layer, f"{each.tasks:,}", f"{each.cycles:,.0f}", use, f"{each.copied:,}"])
    return rows
