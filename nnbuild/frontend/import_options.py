"""User options for what a model file leaves open."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import isfinite, prod

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.model.graph import Array, Shape

LAYOUTS = ("model", "nhwc")
Numbers = tuple[float, ...]


@dataclass(frozen=True)
class ImportOptions:
    """`shapes` are complete input shapes by name; `layout` is the order of image axes at inputs and outputs; `fixed`
    are the numbers of inputs that are always the same."""

    shapes: Mapping[str, Shape] = field(default_factory=dict)
    layout: str = "model"
    fixed: Mapping[str, Numbers] = field(default_factory=dict)


DEFAULTS = ImportOptions()


def expect_inputs(options: ImportOptions, inputs: Collection[str], file: str) -> None:
    """Refuses sizes or numbers of an input that the model does not have, and numbers for all."""
    for option, names in (("--shape", options.shapes), ("--fix", options.fixed)):
        for asked in names:
            if asked not in inputs:
                cause = f"the inputs of {file} are {', '.join(sorted(inputs))}."
                raise UsageError(f"{option} {asked}", cause, "Name one.")
    if inputs and all(name in options.fixed for name in inputs):
        raise UsageError("--fix", f"no input of {file} is left.", "Leave it out for one of them.")


def fixed_values(name: str, numbers: Numbers, shape: Shape, dtype: str) -> Array:
    """The constant in the place of an input: one number for all elements, or one for each."""
    size = prod(shape)
    if len(numbers) not in (1, size):
        cause = f"it has {len(numbers)} numbers, but the input is {list(shape)}."
        raise UsageError(f"--fix {name}", cause, f"Give one number for all elements, or {size:,}.")
    low, high = _limits(name, dtype)
    for number in numbers:
        whole = np.dtype(dtype).kind == "f" or float(number).is_integer()
        if not isfinite(number) or not whole or not low <= number <= high:
            cause = f"the input is of type {dtype}, which does not hold {number:g}."
            raise UsageError(f"--fix {name}", cause, "Give a number that it holds.")
    return np.array(np.broadcast_to(np.asarray(numbers, np.float64), (size,)), dtype).reshape(shape)


def _limits(name: str, dtype: str) -> tuple[float, float]:
    """The smallest and largest number of a type, and of the floats that are computed with."""
    try:
        kind: str = np.dtype(dtype).kind
    except TypeError:
        kind = ""
    if kind == "b":
        return 0, 1
    if kind == "f":
        most = float(min(np.finfo(dtype).max, np.finfo(np.float32).max))
        return -most, most
    if kind in ("i", "u"):
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    raise UsageError(f"--fix {name}", f"the input is of type {dtype}, which nnbuild does not read.", "Leave it out.")
