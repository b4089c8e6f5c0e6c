"""One operator while it is read: its inputs as tensors and constants, its options, its outputs.

A model computes one sample at a time, so tensors lose their batch axis. In a model of batch 1 this is a leading axis of
size 1 where a tensor has one; a reshape restores it where an operator needs it. In a model of a larger batch every
tensor must have it, and operators that mix samples are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, prod
from typing import Any

import numpy as np

from nnbuild.base.errors import ModelError
from nnbuild.frontend.assembly import CALIBRATE, Assembly
from nnbuild.frontend.other_arithmetic import EXPANDED
from nnbuild.frontend.tflite.records import CONVERT_AGAIN, DAMAGED, Operator, Quantization, finite
from nnbuild.frontend.tflite.records import Tensor as Stored
from nnbuild.model.graph import WHOLE, Array, Quant, Shape, Tensor
from nnbuild.numeric.multiplier import SMALLEST_SCALE
from nnbuild.ops.base import NO_CLAMP, Attributes, Clamp
from nnbuild.ops.convert import Convert
from nnbuild.ops.known import Known
from nnbuild.ops.pick import Pick
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose

MASKED = "A mask of huge numbers causes this and loses the values it is added to: give the .h5 or .keras file instead."

CARRIERS = (Convert, Known, Pick, Repeat, Reshape, Slice, Transpose)
"""Operations that may process raw bytes; constants only stand beside them."""
BATCH_ONE = "Convert the model with a batch size of 1."
LARGEST_SCALE = 2.0**28
CONVERSIONS = ("QUANTIZE", "DEQUANTIZE")
CLAMPS = {0: NO_CLAMP, 1: Clamp(0.0, None), 2: Clamp(-1.0, 1.0), 3: Clamp(0.0, 6.0)}
RANGES = {"int8": (-128, 127), "int16": (-32768, 32767), "uint8": (0, 255)}
TYPES = {name: name for name in ("float32", "int8", "int16", "uint8", "int32")} | {
    "int64": "int32",
    "uint32": "int32",
    "bool": "int8",
}
"""Run-time types of the file's types: integers in 32 bits, booleans in 8."""
WHOLE_TYPES = ("int32", "int64", "uint32", "bool")
PLAIN_TYPES = ("uint8", "int16")
"""Without a scale these stand for themselves: raw bytes and samples."""


def form(stored: Stored, batch: int) -> Tensor:
    """The run-time tensor for a tensor of the file."""
    dtype = TYPES.get(stored.dtype)
    if dtype is None:
        raise stored.error(f"it is computed as {stored.dtype}, which nnbuild does not support.", CONVERT_AGAIN)
    return Tensor(stored.name, sample_shape(stored, batch), dtype, activation_quant(stored), stored.name)


def sample_shape(stored: Stored, batch: int) -> Shape:
    shape = stored.shape
    if 0 in shape:
        raise stored.error(f"its shape {list(shape)} is empty.", CONVERT_AGAIN)
    if batch > 1:
        if shape[:1] != (batch,):
            raise stored.error(
                f"its shape {list(shape)} does not start with the batch of {batch}, so the model mixes samples.",
                BATCH_ONE,
            )
        return shape[1:] or (1,)
    return (shape[1:] if shape[:1] == (1,) else shape) or (1,)


def activation_quant(stored: Stored) -> Quant | None:
    """One scale and zero point, both in the range of every rule."""
    if stored.dtype == "float32":
        return None
    known = stored.quantization
    if stored.dtype in WHOLE_TYPES or (stored.dtype in PLAIN_TYPES and known is None):
        return WHOLE
    if known is None:
        raise stored.error(f"it is of type {stored.dtype}, but has no scale.", CONVERT_AGAIN)
    if len(known.scales) != 1:
        raise stored.error(f"it has {len(known.scales)} scales, but only weights may have several.")
    scale, zero = known.scales[0], known.zero_points[0]
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise stored.error(
            f"its scale is {scale:.6g}, outside 2^-28 to 2^28.",
            CALIBRATE if scale < 1 else MASKED,
        )
    low, high = RANGES[stored.dtype] if stored.dtype != "int16" else (0, 0)
    if not low <= zero <= high:
        raise stored.error(f"its zero point is {zero}, which {stored.dtype} tensors cannot have.")
    return Quant((scale,), zero)


class Call:
    """`known` maps every tensor computed so far to its name in the graph.

    `found` contains results from earlier operators: constants, and shapes that the file leaves open.
    """

    def __init__(
        self, assembly: Assembly, operator: Operator, known: dict[int, str], found: dict[int, Stored], batch: int
    ) -> None:
        self.assembly = assembly
        self.operator = operator
        self.batch = batch
        self._known = known
        self._found = found

    # Options.

    def error(self, cause: str, next_step: str = DAMAGED) -> ModelError:
        return self.operator.error(cause, next_step)

    def expect(self, condition: bool, cause: str, next_step: str = DAMAGED) -> None:
        if not condition:
            raise self.error(cause, next_step)

    def options(self, kind: str) -> Any:
        """The options table, or None where the operator uses the defaults."""
        if self.operator.options is None:
            return None
        self.expect(self.operator.options_kind == kind, f"its options are {self.operator.options_kind}, not {kind}.")
        return self.operator.options

    def option(self, kind: str, name: str, default: Any) -> Any:
        options = self.options(kind)
        return default if options is None else vars(type(options))[name](options)

    def number(self, kind: str, name: str, default: float) -> float:
        value = float(self.option(kind, name, default))
        self.expect(isfinite(value), f"its {name} is {value}.")
        return value

    def clamp(self, kind: str) -> Clamp:
        code = int(self.option(kind, "FusedActivationFunction", 0))
        if code not in CLAMPS:
            raise self.error(f"its fused activation is number {code}, which nnbuild does not support.", CONVERT_AGAIN)
        return CLAMPS[code]

    # Inputs.

    def given(self, index: int) -> bool:
        return index < len(self.operator.inputs) and self.operator.inputs[index] is not None

    def stored(self, index: int) -> Stored:
        tensor = self.operator.inputs[index] if index < len(self.operator.inputs) else None
        if tensor is None:
            raise self.error(f"its input {index} is missing.")
        return self._found.get(tensor.index, tensor)

    def output(self, index: int = 0) -> Stored:
        if index >= len(self.operator.outputs):
            raise self.error(f"its output {index} is missing.")
        stored, given = self.operator.outputs[index], self.operator.inputs[:1]
        if self.operator.kind in CONVERSIONS and given and given[0] is not None and given[0].shape == stored.shape:
            return replace(stored, open=given[0].open)  # quantizers add such a tensor without marking open axes
        return stored

    def is_constant(self, index: int) -> bool:
        stored = self.stored(index)
        return stored.index not in self._known and stored.data is not None

    def value(self, index: int, shape: Shape | None = None) -> str:
        """A run-time input, optionally reshaped."""
        stored = self.stored(index)
        if stored.index in self._known:
            name = self._known[stored.index]
            return name if shape is None else self.seen(name, shape)
        if stored.data is None:
            raise self.error(f"its input {stored.name!r} is not computed by an earlier operator.", CONVERT_AGAIN)
        like = form(replace(stored, dtype="float32") if stored.dtype == "float16" else stored, self.batch)
        values = stored.values()
        self.expect(values.size == prod(like.shape), f"its constant {stored.name!r} has another batch size.")
        held = self.constant(index, values.astype(like.dtype).reshape(like.shape), like.quant)
        name = self.add(Known(), self.assembly.first(), {"values": held}, like=like)
        self._known[stored.index] = name
        return name if shape is None else self.seen(name, shape)

    def seen(self, name: str, shape: Shape) -> str:
        tensor = self.assembly.tensors[name]
        return name if tensor.shape == shape else self.add(Reshape(shape), [name], like=tensor)

    def tensor(self, name: str) -> Tensor:
        return self.assembly.tensors[name]

    def shape(self, name: str) -> Shape:
        return self.assembly.tensors[name].shape

    def whole(self, index: int) -> Shape:
        """An input's shape in the file, including the batch."""
        return self.stored(index).shape

    def target_shape(self) -> Shape:
        """The new shape for RESHAPE and similar operators: the output's own, or from the arguments."""
        out, kind = self.output(), self.operator.kind
        if not out.open:
            return out.shape
        whole = self.whole(0)
        if kind == "RESHAPE":
            wanted = self.integers(1) if self.given(1) else self._new_shape()
            return self._filled_in(wanted, whole)
        if kind == "EXPAND_DIMS":
            (axis,) = self.integers(1) or (0,)
            place = self.axis(axis, len(whole) + 1)
            return (*whole[:place], 1, *whole[place:])
        options = self.options("SqueezeOptions")
        listed = options is not None and options.SqueezeDimsLength()
        axes = {self.axis(int(a), len(whole)) for a in options.SqueezeDimsAsNumpy()} if listed else range(len(whole))
        return tuple(n for i, n in enumerate(whole) if not (n == 1 and i in axes))

    def _new_shape(self) -> Shape:
        options = self.options("ReshapeOptions")
        self.expect(options is not None and options.NewShapeLength() > 0, "its new shape is missing.")
        return tuple(int(n) for n in options.NewShapeAsNumpy()[:64])

    def _filled_in(self, wanted: Shape, whole: Shape) -> Shape:
        """The shape with its single -1 replaced."""
        known, places = prod(n for n in wanted if n != -1), wanted.count(-1)
        fits = places <= 1 and known > 0 and min(wanted, default=1) >= -1 and prod(whole) % known == 0
        self.expect(fits, f"{list(whole)} cannot be reshaped to {list(wanted)}.")
        return tuple(prod(whole) // known if n == -1 else n for n in wanted)

    def view(self, index: int, first: bool, mixed: bool = False) -> tuple[str, int]:
        """An input for an operator that names axes, and the number of the file's axes that it lacks.

        `first`: whether the operator uses the first axis, which is the batch if there are several samples; `mixed`:
        whether its output may have another type.
        """
        name = self.value(index)
        if not mixed:
            self.same_type([name])
        whole = self.whole(index)
        if self.batch > 1:
            self.expect(not first, "it works along the batch axis, so it mixes samples.", BATCH_ONE)
            return name, 1
        if not first and whole[:1] == (1,) and len(whole) > 1:
            return name, 1
        return self.seen(name, whole or (1,)), 0

    def axis(self, value: int, rank: int) -> int:
        self.expect(-rank <= value < rank, f"its axis {value} does not exist in a tensor of {rank} axes.")
        return value % rank

    def integers(self, index: int) -> tuple[int, ...]:
        """An integer constant, as a flat list."""
        stored = self.stored(index)
        if not self.is_constant(index):
            raise self.error(
                f"its input {stored.name!r} is computed at run time, but must be a constant.", CONVERT_AGAIN
            )
        self.expect(stored.dtype in ("int32", "int64"), f"its input {stored.name!r} is of type {stored.dtype}.")
        self.expect(prod(stored.shape) <= 64, f"its input {stored.name!r} is too long.")
        return tuple(int(v) for v in stored.values().reshape(-1))

    def integer(self, index: int) -> int:
        """A single integer constant."""
        values = self.integers(index)
        self.expect(len(values) == 1, f"its input {self.stored(index).name!r} holds {len(values)} numbers, not one.")
        return values[0]

    def weights(self, index: int, *, bounds: bool = False) -> Array:
        """A constant's numbers; integers or half precision become float for a float operator.

        For `bounds` and masks, infinity becomes the largest number.
        """
        stored = self.stored(index)
        if not self.is_constant(index):
            raise self.error(
                f"its input {stored.name!r} is computed at run time, but nnbuild accepts only a constant there.",
                CONVERT_AGAIN,
            )
        values = stored.values()
        if self.is_float():
            values = finite(stored, bounds)
            if stored.dtype == "int8":
                self.assembly.note(EXPANDED)
        return values

    def is_float(self) -> bool:
        return self.output().dtype == "float32"

    def data_inputs(self, *indices: int) -> list[str]:
        """Run-time inputs, all of the output's type."""
        names = [self.value(index) for index in indices]
        self.same_type(names)
        return names

    def same_type(self, names: Sequence[str]) -> None:
        wanted = TYPES.get(self.output().dtype, self.output().dtype)
        if wanted != "uint8":
            self._refuse_bytes(names)
        for name in names:
            tensor = self.tensor(name)
            self.expect(
                tensor.dtype == wanted,
                f"its input {tensor.name!r} is {tensor.dtype}, but its output {wanted}.",
                CONVERT_AGAIN,
            )

    def _refuse_bytes(self, names: Sequence[str]) -> None:
        for name in names:
            self.expect(
                self.tensor(name).dtype != "uint8",
                f"its input {name!r} is uint8; nnbuild supports that only for model inputs and outputs.",
                "Convert the model again: converters since 2019 use int8.",
            )

    def same_quant(self, *names: str) -> None:
        """Requires equal scales: TFLite computes these operators on the integers directly."""
        out = self.like(0)
        for name in names:
            self.expect(
                self.tensor(name).quant == out.quant,
                f"its input {name!r} and its output have different scales or zero points.",
                CONVERT_AGAIN,
            )

    # Outputs.

    @property
    def layer(self) -> str:
        return self.output().name

    def like(self, index: int = 0) -> Tensor:
        """The file's description of an output."""
        return form(self.output(index), self.batch)

    @property
    def truth(self) -> Tensor:
        """The format of an inner comparison's result."""
        return replace(self.like(), dtype="int8", quant=WHOLE)

    @property
    def plain(self) -> Tensor:
        """The format of an inner float."""
        return replace(self.like(), dtype="float32", quant=None)

    def known(self, values: Array, like: Tensor) -> str:
        """A constant as a tensor."""
        held = self.assembly.constant(self.operator, f"{self.layer}/known", values, like.quant)
        return self.add(Known(), self.assembly.first(), {"values": held}, like=like)

    def constant(self, index: int, data: Array, quant: Quant | None = None) -> str:
        return self.assembly.constant(self.operator, self.stored(index).name, np.ascontiguousarray(data), quant)

    def adds(
        self,
        attributes: Attributes,
        inputs: Sequence[str],
        like: Sequence[Tensor],
        constants: Mapping[str, str] | None = None,
        outer: Shape = (),
    ) -> tuple[str, ...]:
        if not isinstance(attributes, CARRIERS):
            self._refuse_bytes(inputs)
        return self.assembly.add(self.operator, self.layer, attributes, inputs, like, constants, outer)

    def add(
        self,
        attributes: Attributes,
        inputs: Sequence[str],
        constants: Mapping[str, str] | None = None,
        like: Tensor | None = None,
        outer: Shape = (),
    ) -> str:
        """Like `adds`, for an operation with a single output, by default in the format of the operator's first
        output."""
        (output,) = self.adds(attributes, inputs, [self.like() if like is None else like], constants, outer)
        return output

    def done(self, made: str, index: int = 0) -> None:
        """Makes `made` the operator's output, in the file's shape."""
        if self.output(index).open:
            self.reshaped(made, index, self._followed(made, index))
            return
        wanted = self.like(index)
        found = self.shape(made)
        if without_ones(found) != without_ones(wanted.shape):
            raise self.error(
                f"the file says that its output is {list(wanted.shape)}, but {list(found)} is what its inputs give."
            )
        self.reshaped(made, index)

    def _followed(self, made: str, index: int) -> Shape:
        """The computed shape, as in the file, of an output that the file leaves open."""
        stored, found = self.output(index), self.shape(made)
        whole = found if len(found) == len(stored.shape) else (self.batch, *found)
        fits = len(whole) == len(stored.shape) and all(
            n == m or i in stored.open for i, (n, m) in enumerate(zip(whole, stored.shape, strict=True))
        )
        self.expect(fits, f"the file says that its output is {list(stored.shape)}, not {list(whole)}.")
        return whole

    def reshaped(self, made: str, index: int = 0, whole: Shape | None = None) -> str:
        """Like `done`, for operators that reshape: `whole` is the shape where the file leaves it open. Returns the
        output's name, which `made` itself may have got."""
        stored = self.output(index)
        if stored.open:
            whole = self._followed(made, index) if whole is None else whole
            stored = replace(stored, shape=whole, open=())
            self._found[stored.index] = stored
        wanted = form(stored, self.batch)
        tensor = self.tensor(made)
        self.expect(
            prod(tensor.shape) == prod(wanted.shape),
            f"{list(tensor.shape)} cannot be reshaped to its output {list(wanted.shape)}.",
        )
        self.expect(stored.index not in self._known, f"its output {stored.name!r} is already computed.")
        if tensor.shape != wanted.shape or (tensor.dtype, tensor.quant) != (wanted.dtype, wanted.quant):
            self.expect(tensor.dtype == wanted.dtype, f"it changes {tensor.dtype} to {wanted.dtype}.", CONVERT_AGAIN)
            made = self.add(Reshape(wanted.shape), [made], like=wanted)
        fresh = made not in self._known.values()
        name = self._known[stored.index] = self.assembly.call(made, stored.name) if fresh else made
        return name

    def passes(self, name: str, seen: Stored) -> None:
        """Makes an existing tensor the operator's output; `seen` is the file's description of it."""
        self.expect(seen.index not in self._known, f"its output {seen.name!r} is already computed.")
        self._found[seen.index] = seen
        self._known[seen.index] = name

    def fold(self, values: Array, index: int = 0, quantization: Quantization | None = None) -> None:
        """Makes a constant the operator's output."""
        out = self.output(index)
        fits = values.shape == out.shape or bool(out.open) or 0 in (len(out.shape), values.ndim)  # or unknown
        self.expect(fits, f"its output has the shape {list(out.shape)}, not {list(values.shape)}.")
        self.expect(out.index not in self._known, f"its output {out.name!r} is already computed.")
        self.assembly.count(self.operator, values.size)
        data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        kind = values.dtype.name
        self._found[out.index] = replace(
            out, shape=values.shape, dtype=kind, data=data, quantization=quantization, is_sparse=False, open=()
        )

    def ratio(self, real: float, limit: float) -> None:
        """Refuses scales whose ratio would overflow the accumulator."""
        if not real < limit:
            raise self.error(
                f"its scales are too far apart: sums would be scaled by {real:.4g}, and {limit:g} is the limit.",
                CALIBRATE,
            )


def without_ones(shape: Shape) -> Shape:
    return tuple(n for n in shape if n != 1)
