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
    kind = np.dtype(dtype).kind
    low, high = {"b": (0, 1), "f": (-np.inf, np.inf)}.get(kind) or (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for number in numbers:
        whole = kind == "f" or float(number).is_integer()
        if not isfinite(number) or not whole or not low <= number <= high:
            cause = f"the input is of type {dtype}, which does not hold {number:g}."
            raise UsageError(f"--fix {name}", cause, "Give a number that it holds.")
    return np.array(np.broadcast_to(np.asarray(numbers, np.float64), (size,)), dtype).reshape(shape)
