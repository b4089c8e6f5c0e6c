"""The cost of one inference on a device: in total and by layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnbuild.device.accelerator import AcceleratorUse
from nnbuild.device.descriptor import ModelInfo
from nnbuild.device.gates import Stack
from nnbuild.device.layers import LayerCost, layer_costs
from nnbuild.device.link import Link
from nnbuild.device.metrics import Statistics, statistics
from nnbuild.device.run_time import Modelled
from nnbuild.device.session import Sample, profile_sample, write_sample

RUNS = 8
BEGINS = 3


@dataclass(frozen=True)
class Estimate:
    """The plan's estimate for a run on several cores: cycles of each core, of distributing steps, of the critical
    path, and of copying."""

    cores: tuple[float, ...]
    forks: float
    critical_path: float
    copies: float = 0


@dataclass(frozen=True)
class Profile:
    """`total` is one whole run: less than the sum of its layers, which are timed separately."""

    board: str
    model: str
    quantize: str
    unit: str
    hertz: int
    duration: Statistics
    init_ticks: int
    layers: tuple[LayerCost, ...]
    stack: Stack
    memory: Mapping[str, int]
    modelled: Modelled | None = None
    beside: AcceleratorUse | None = None
    """The accelerator's counters."""
    cores: tuple[int, ...] = ()
    """Instructions of each core in a run, where counted."""
    waiting: tuple[int, ...] = ()
    """Instructions that each core spent waiting for others."""
    copying: tuple[int, ...] = ()
    """The part of each core's work that copied data to and from its own memory."""
    critical_path: int | None = None
    estimate: Estimate | None = None

    @property
    def total(self) -> int:
        return round(self.duration.mean)

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    @property
    def cost_per_mac(self) -> float | None:
        return self.duration.mean / self.macs if self.macs else None


@dataclass(frozen=True)
class Costs:
    """Measurements with one sample: layers at the start of a sequence, and `duration` of consecutive runs from
    there, so that every phase of a stream is included."""

    duration: Statistics
    init_ticks: int
    layers: tuple[LayerCost, ...]
    stack: tuple[int, int]


def measure_costs(link: Link, model: ModelInfo, sample: Sample, before: int = 0, runs: int = RUNS) -> Costs:
    """The first measurement only warms up caches, if any. `before`: steps that a front end takes until it has enough
    rows for the network."""
    profile_sample(link, model, sample)
    layers = layer_costs(model, profile_sample(link, model, sample))
    ticks, begins = [], [link.init() for _ in range(BEGINS)]
    for _ in range(before + runs):
        write_sample(link, model, sample)
        ticks.append(link.run())
    stack = link.stack()
    return Costs(statistics(np.array(ticks[before:])), min(begins), layers, (stack.used, stack.size))
