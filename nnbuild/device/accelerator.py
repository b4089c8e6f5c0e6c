"""What a program says of the device beside its processor: how often it failed, and what it counted."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields, replace

from nnbuild.device.link import Link, Region

COUNT = 12


@dataclass(frozen=True)
class DeviceLayer:
    """Of a layer that the device computes: its tasks, the cycles that the device's own file says they take, and bytes
    that the processor copies for it."""

    layer: str
    tasks: int
    cycles: float
    macs: int = 0
    copied: int = 0


@dataclass(frozen=True)
class AcceleratorUse:
    """Of all runs together. estimated: cycles of the device in one run, as the plan has them."""

    name: str
    estimated: float
    runs: int
    layers: tuple[DeviceLayer, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    """Layers that the device cannot take, and why."""
    peak: int = 0
    """The most multiplications that it does in a cycle; 0 where its table does not say."""
    resets: int = 0
    late: int = 0
    faults: int = 0
    rescued: int = 0
    """Steps that the processor computed in the device's stead."""
    cycles: int = 0
    busy: int = 0
    idle: int = 0
    """Between the first task and the last."""
    stall: int = 0
    macs: int = 0
    read: int = 0
    written: int = 0
    tasks: int = 0

    @property
    def measured(self) -> float:
        """Cycles of a run in which tasks were under way, as the device counts them; 0 where it counts none. What it is
        idle is also between runs, where its clock goes on."""
        return self.busy / self.runs if self.runs else 0.0

    @property
    def use(self) -> float:
        """The share of its multipliers' cycles that went into the model, in percent; 0 where that is not known."""
        cycles = (self.measured or self.estimated) * self.peak
        return 100 * sum(layer.macs for layer in self.layers) / cycles if cycles else 0.0

    @property
    def off(self) -> float:
        """By so many percent the estimate is above what was measured."""
        return 100 * (self.estimated / self.measured - 1) if self.measured else 0.0


def read_counters(link: Link, planned: AcceleratorUse, runs: int) -> AcceleratorUse:
    """What was planned, with what the program counted in so many runs."""
    names = [each.name for each in fields(AcceleratorUse)][-COUNT:]
    found = struct.unpack(f"<{COUNT}Q", link.read(Region.DEVICE, 0, 8 * COUNT))
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
    """A row of words for each of its layers: tasks, cycles, use, bytes copied."""
    rows = []
    for each in found.layers:
        most = each.cycles * found.peak
        use = f"{100 * each.macs / most:.1f} %" if most and each.macs else ""
        rows.append([each.layer, f"{each.tasks:,}", f"{each.cycles:,.0f}", use, f"{each.copied:,}"])
    return rows
