"""Numbers that a layer is called with, in the place of tensors: positions to add, initial states, masks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import numpy as np

from nnbuild.frontend.builder import GraphBuilder
from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_layers.base import Wire, wires
from nnbuild.model.graph import Array
from nnbuild.ops.known import Known

TYPES = {"b": np.int8, "i": np.int32, "f": np.float32}


def with_known(
    builder: GraphBuilder, config: Config, path: tuple[str, ...], arguments: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with known tensors for arrays, which stand beside the first tensor."""
    beside, numbers = next(wires((arguments, named)), None), count()

    def known(value: Any) -> Any:
        found = _array(value) if beside is not None else None
        several = found is not None and found.ndim > 2 and found.shape[:2] != (1, 1) and found.shape[1] == 1
        if found is not None and beside is not None and not several:
            return Wire(_known(builder, config, (*path, f"argument {next(numbers)}"), found, beside))
        if isinstance(value, (list, tuple)):
            return tuple(known(item) for item in value)
        return value

    return tuple(known(value) for value in arguments), {key: known(value) for key, value in named.items()}


def _array(value: Any) -> Array | None:
    """Nested lists of numbers as an array; None for all else."""
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(x, int | float) for x in _leaves(value)):
        return None
    try:
        found = np.array(value)
    except ValueError:
        return None
    return found if found.dtype.kind in TYPES else None


def _leaves(value: Any) -> Iterator[Any]:
    for item in value:
        if isinstance(item, (list, tuple)):
            yield from _leaves(item)
        else:
            yield item


def _known(builder: GraphBuilder, config: Config, key: tuple[str, ...], values: Array, beside: str) -> str:
    if len(values) != 1 or values.ndim < 2:
        cause = f"it is called with a constant of the shape {values.shape}, which differs between samples."
        raise config.error(cause, "Give it a first axis of 1.")
    with np.errstate(over="ignore"):
        kept = np.ascontiguousarray(values[0], TYPES[values.dtype.kind])
    if not np.isfinite(kept).all():
        raise config.error("it is called with numbers that are not finite.")
    return builder.one(Known(), (beside,), {"values": builder.constant(key, lambda: kept)})
