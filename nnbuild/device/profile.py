"""What one inference takes on a device: as a whole, and each of its layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnbuild.device.accelerator import AcceleratorUse
from nnbuild.device.check import Stack
from nnbuild.device.descriptor import ModelInfo
from nnbuild.device.layers import LayerCost, layer_costs
from nnbuild.device.link import Link
from nnbuild.device.metrics import Statistics, statistics
from nnbuild.device.run_time import Modelled
from nnbuild.device.session import Sample, profile_sample, write_sample

RUNS = 8
BEGINS = 3


@dataclass(frozen=True)
class Estimate:
    """Of a run on several cores, from what the plan knows: cycles of each, of what handing steps out takes, until the
    last is done, and what of that is copying."""

    cores: tuple[float, ...]
    forks: float
    critical_path: float
    copies: float = 0


@dataclass(frozen=True)
class Profile:
    """`total` is one run as a whole: less than its layers together, each of which is timed by itself."""

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
    """What the device beside the processor says of itself."""
    cores: tuple[int, ...] = ()
    """What each core executed in a run, where they are counted."""
    waiting: tuple[int, ...] = ()
    """What each executed besides, only to wait for others."""
    copying: tuple[int, ...] = ()
    """What of their own shares were copies to their own memories and back."""
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
    """What was measured of a model with one sample: layers at the beginning of a sequence, `duration` of runs that
    follow one another from there on, so that all that take turns are among them."""

    duration: Statistics
    init_ticks: int
    layers: tuple[LayerCost, ...]
    stack: tuple[int, int]


def measure_costs(link: Link, model: ModelInfo, sample: Sample) -> Costs:
    """The first turn only warms up caches, where there are any."""
    profile_sample(link, model, sample)
    layers = layer_costs(model, profile_sample(link, model, sample))
    ticks, begins = [], [link.init() for _ in range(BEGINS)]
    for _ in range(RUNS):
        write_sample(link, model, sample)
        ticks.append(link.run())
    stack = link.stack()
    return Costs(statistics(np.array(ticks)), min(begins), layers, (stack.used, stack.size))
