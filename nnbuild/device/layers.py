"""Single layers: their costs, and whether their outputs are right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from nnbuild.device.descriptor import ModelInfo, TensorInfo
from nnbuild.device.metrics import Statistics, compare, statistics
from nnbuild.numeric.edge import dequantize
from nnbuild.numeric.nearness import near

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class LayerCost:
    """The cost of one step, in the device's unit."""

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
    """One layer's output against the reference's. `detail` describes the difference."""

    layer: str
    op: str
    agrees: bool
    max_error: float
    detail: str
    statistics: Statistics  # of the device's values, in real units


def shares(layers: Sequence[LayerCost]) -> list[tuple[float, float]]:
    """For each layer its percentage of the total cost, and the running sum."""
    total = sum(layer.cost for layer in layers)
    so_far = accumulate(layer.cost for layer in layers)
    return [
        (100 * layer.cost / total if total else 0.0, 100 * reached / total if total else 0.0)
        for layer, reached in zip(layers, so_far, strict=True)
    ]


def layer_costs(model: ModelInfo, ticks: Iterable[int]) -> tuple[LayerCost, ...]:
    """A device's profile, with the layers' names."""
    pairs = zip(model.steps, ticks, strict=True)
    return tuple(LayerCost(step.layer, step.op, step.kernel, step.macs, cost) for step, cost in pairs)


def compare_layers(
    model: ModelInfo, found: Iterable[tuple[int, Array]], reference: Mapping[str, tuple[Array, float]]
) -> tuple[LayerDifference, ...]:
    """Compares dumped layers with the reference's tensors, by the name of each step's output.

    `reference` gives each tensor's values and tolerance. Other tensors are skipped.
    """
    differences = []
    for index, values in found:
        step = model.steps[index]
        if step.output is not None and step.output.name in reference:
            agrees, error, detail = _difference(*reference[step.output.name], values)
            real = statistics(_in_real_units(step.output, values))
            differences.append(LayerDifference(step.layer, step.op, agrees, error, detail, real))
    return tuple(differences)


def _in_real_units(tensor: TensorInfo, values: Array) -> Array:
    return values if tensor.scale is None else dequantize(values, tensor.scale, tensor.zero_point)


def _difference(expected: Array, tolerance: float, found: Array) -> tuple[bool, float, str]:
    if expected.shape != found.shape:
        return False, float("inf"), f"shape {found.shape} instead of {expected.shape}"
    largest = compare(expected, found).max_error
    right = near(expected, found, tolerance)
    if found.dtype.kind not in "iu" and tolerance:
        return bool(right.all()), largest, f"largest error {largest:.4g}, {tolerance:.4g} allowed"
    unit = "integers" if found.dtype.kind in "iu" else "numbers"
    more = f" by more than {steps(tolerance)}" if tolerance else ""
    detail = f"{np.count_nonzero(~right)} of {found.size} {unit} differ{more}"
    if not right.all():
        place = tuple(int(index) for index in np.argwhere(~right)[0])
        detail += f", the first at index {list(place)}: {found[place]} instead of {expected[place]}"
    return bool(right.all()), largest, detail


def steps(tolerance: float) -> str:
    return "a step" if tolerance == 1 else f"{tolerance:g} steps"
