"""Single layers: what each costs, and whether its output is right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from nnbuild.device.description import ModelInfo, TensorInfo
from nnbuild.device.metrics import Statistics, compare, first_mismatch, mismatches, statistics
from nnbuild.numeric.edge import dequantize

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class LayerCost:
    """What one step takes, in the device's unit."""

    name: str
    op: str
    kernel: str
    macs: int
    cost: int

    @property
    def cost_per_mac(self) -> float | None:
        return self.cost / self.macs if self.macs else None


@dataclass(frozen=True)
class LayerDifference:
    """One layer's output against the reference's. `detail` puts it into words."""

    layer: str
    op: str
    agrees: bool
    max_error: float
    detail: str
    statistics: Statistics  # of the device's values, in real units


def shares(layers: Sequence[LayerCost]) -> list[tuple[float, float]]:
    """For each layer its percentage of all layers' cost, and the sum of the percentages so far."""
    total = sum(layer.cost for layer in layers)
    so_far = accumulate(layer.cost for layer in layers)
    return [
        (100 * layer.cost / total if total else 0.0, 100 * reached / total if total else 0.0)
        for layer, reached in zip(layers, so_far, strict=True)
    ]


def layer_costs(model: ModelInfo, ticks: Iterable[int]) -> tuple[LayerCost, ...]:
    """A profile of the device, with the names of the layers."""
    pairs = zip(model.steps, ticks, strict=True)
    return tuple(LayerCost(step.layer, step.op, step.kernel, step.macs, cost) for step, cost in pairs)


def compare_layers(
    model: ModelInfo, found: Iterable[tuple[int, Array]], reference: Mapping[str, Array], tolerance: float = 1e-5
) -> tuple[LayerDifference, ...]:
    """Holds dumped layers against the reference's tensors, by the name of each step's output.

    Integers must be equal, floats within `tolerance`, absolute plus relative. Tensors the reference does not have
    are left out.
    """
    differences = []
    for index, values in found:
        step = model.steps[index]
        if step.output is not None and step.output.name in reference:
            expected = reference[step.output.name]
            agrees, error, detail = _difference(expected, values, tolerance)
            real = statistics(_in_real_units(step.output, values))
            differences.append(LayerDifference(step.layer, step.op, agrees, error, detail, real))
    return tuple(differences)


def _in_real_units(tensor: TensorInfo, values: Array) -> Array:
    return values if tensor.scale is None else dequantize(values, tensor.scale, tensor.zero_point)


def _difference(expected: Array, found: Array, tolerance: float) -> tuple[bool, float, str]:
    if expected.shape != found.shape:
        return False, float("inf"), f"shape {found.shape} instead of {expected.shape}"
    metrics = compare(expected, found)
    if found.dtype.kind not in "iu":
        agrees = metrics.worst <= tolerance
        return agrees, metrics.max_error, f"largest error {metrics.max_error:.4g}, {tolerance:g} allowed"
    count, place = mismatches(expected, found), first_mismatch(expected, found)
    detail = f"{count} of {found.size} integers differ"
    if place is not None:
        detail += f", the first at index {list(place)}: {found[place]} instead of {np.asarray(expected)[place]}"
    return count == 0, metrics.max_error, detail
