"""A device's description of its model: the descriptor compiled into the firmware."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nnbuild.device.errors import WrongFirmware

DTYPES: Mapping[str, str] = {
    **{"float32": "<f4", "int8": "|i1", "int16": "<i2", "int32": "<i4", "uint8": "|u1"},
    **{"uint16": "<u2", "uint32": "<u4"},
}


@dataclass(frozen=True)
class TensorInfo:
    """An input, an output, or a tensor between two steps. `scale` is None for float32."""

    name: str
    shape: tuple[int, ...]
    type: str
    scale: float | None = None
    zero_point: int = 0

    @property
    def dtype(self) -> npt.DTypeLike:
        return np.dtype(DTYPES[self.type])

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class StepInfo:
    """One step of the model: its layer and its output."""

    layer: str
    op: str
    kernel: str
    macs: int
    output: TensorInfo | None


@dataclass(frozen=True)
class ModelInfo:
    """The parsed descriptor. `facts` is the whole JSON object, including additional entries."""

    name: str
    hash: str
    version: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    steps: tuple[StepInfo, ...]
    facts: Mapping[str, object]


def parse_descriptor(text: bytes) -> ModelInfo:
    """Parses a descriptor; one that cannot be parsed comes from another version's firmware."""
    try:
        facts = json.loads(text)
        return ModelInfo(
            name=str(facts["name"]),
            hash=str(facts["hash"]),
            version=str(facts.get("version", "")),
            inputs=tuple(_tensor(entry) for entry in facts["inputs"]),
            outputs=tuple(_tensor(entry) for entry in facts["outputs"]),
            steps=tuple(_step(entry) for entry in facts["steps"]),
            facts=facts,
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise WrongFirmware(
            "device",
            f"This version cannot read the firmware's model descriptor ({type(error).__name__}: {error}).",
            "Build and flash the firmware again with this version.",
        ) from None


def _tensor(entry: Mapping[str, object]) -> TensorInfo:
    kind = str(entry["type"])
    if kind not in DTYPES:
        raise ValueError(f"type {kind!r}")
    shape = entry["shape"]
    if not isinstance(shape, list) or not all(isinstance(size, int) and size > 0 for size in shape):
        raise ValueError(f"shape {shape!r}")
    scale, zero_point = entry.get("scale"), entry.get("zero_point")
    return TensorInfo(
        name=str(entry["name"]),
        shape=tuple(shape),
        type=kind,
        scale=float(scale) if isinstance(scale, (int, float)) else None,
        zero_point=zero_point if isinstance(zero_point, int) else 0,
    )


def _step(entry: Mapping[str, object]) -> StepInfo:
    output, macs = entry.get("output"), entry.get("macs", 0)
    return StepInfo(
        layer=str(entry["layer"]),
        op=str(entry["op"]),
        kernel=str(entry["kernel"]),
        macs=macs if isinstance(macs, int) else 0,
        output=_tensor(output) if isinstance(output, dict) else None,
    )
