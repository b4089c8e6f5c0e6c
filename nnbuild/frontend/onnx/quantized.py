"""Quantized models: operators between DequantizeLinear and QuantizeLinear computed on the integers themselves.

A DequantizeLinear of a tensor adds no operation: its result is a float value whose tensor contains integers. An
operator with an integer rule, whose result goes only to a QuantizeLinear, uses that rule; every other operator gets
real floats, as ONNX defines it. `quantize.integer_stretches` later finds more of them that integers can compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from nnbuild.frontend.builder import Form
from nnbuild.frontend.onnx.call import FLOAT, WIDTHS, Call
from nnbuild.frontend.onnx.records import HALVES, Node
from nnbuild.frontend.onnx.scope import Scaled, Scope
from nnbuild.frontend.onnx.type_numbers import TYPE_NAMES
from nnbuild.model.graph import WHOLE, Array, Quant, Tensor
from nnbuild.numeric import edge
from nnbuild.numeric.multiplier import SMALLEST_SCALE
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import NO_CLAMP, Clamp
from nnbuild.ops.convert import Convert
from nnbuild.ops.integer import scale_and_limits
from nnbuild.ops.layout import Value

SHIFTS = {"uint8": ("int8", 128), "int8": ("int8", 0), "int16": ("int16", 0), "uint16": ("int16", 32768)}
"""Type in the file -> computed type, and the offset subtracted from its integers and its zero point."""
LARGEST_SCALE = 2.0**28
MASKED = "A mask of huge numbers causes this: give the float model to --quantize, or make the mask -10,000 before."
VARIED_SAMPLES = "Calibrate the model with samples that make its tensors vary, and quantize it again."
OFF_CENTRE = (
    "16-bit tensors have zero points beside the middle of their range: what is next to them is computed in floats, "
    "which is slow on a microcontroller. Quantize activations symmetrically (onnxruntime: ActivationSymmetric in its "
    "extra_options)."
)


def form_by(dtype: str, scale: Array, zero: Array) -> Form | None:
    """The format for ONNX's quantization of a tensor; None if there is no equivalent."""
    if dtype not in SHIFTS or scale.size != 1 or zero.size != 1 or zero.dtype.name in set(SHIFTS) - {dtype}:
        return None
    own, shift = SHIFTS[dtype]
    value, point = float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]) - shift
    if not SMALLEST_SCALE <= value <= LARGEST_SCALE or (own == "int16" and point) or not -32768 <= point <= 32767:
        return None
    return own, Quant((value,), point)


def _form_of(node: Node, scope: Scope, dtype: str = "", place: int = 0) -> Form | None:
    """The format of the integers that a node produces or reads at a position, from its scale and zero point; `dtype`
    is their type if known."""
    _, scaled, shifted, *_ = (*node.inputs[place:], "", "", "")
    scale = scope.get(scaled)
    zero = scope.get(shifted) if shifted else np.zeros((), dtype or np.uint8)
    if not isinstance(scale, np.ndarray) or not isinstance(zero, np.ndarray) or dtype not in ("", zero.dtype.name):
        return None
    return form_by(zero.dtype.name, scale, zero)


def edge_form(name: str, dtype: str, readers: Sequence[Node], scope: Scope) -> Form | None:
    """The format of an integer input, from the nodes that read it."""
    if dtype not in SHIFTS:
        return None
    for node in readers:
        if node.kind.startswith(("DequantizeLinear", "QLinear", "QGemm")):
            found = _form_of(node, scope, dtype, node.inputs.index(name))
            if found is not None and found[1] is not None:
                kind, quant = found[0], found[1]
                return ("uint8", Quant(quant.scales, quant.zero_point + 128)) if dtype == "uint8" else (kind, quant)
    return None


@dataclass(frozen=True, eq=False)
class Ahead:
    """The consumers of a node's result: its quantized format, bounds before that, and the nodes of both."""

    form: Form
    clamp: Clamp
    nodes: tuple[Node, ...]


def ahead(call: Call, *, clamps: bool) -> Ahead | None:
    if call.target is not None:
        return Ahead(call.target, NO_CLAMP, ())
    name, clamp = call.node.outputs[0], NO_CLAMP
    nodes: list[Node] = []
    while name not in call.scope.ends:
        readers = call.scope.readers.get(name, [])
        if not readers or any(r.inputs[0] != name or r.domain not in ("", "com.microsoft") for r in readers):
            return None
        node = readers[0]
        if all(reader.kind == "QuantizeLinear" for reader in readers):
            forms = {_form_of(reader, call.scope) for reader in readers}
            form = forms.pop()
            if form is None or forms:
                return None
            narrowed = _narrowed(node, form, call.scope) if clamps and len(readers) == 1 else None
            if narrowed is not None:
                return Ahead(form, clamp.merged(narrowed[0]), (*nodes, narrowed[1]))
            return Ahead(form, clamp, tuple(nodes))
        bounds = clamp_of(node, call.scope) if clamps and len(readers) == 1 else None
        if bounds is None:
            return None
        clamp = clamp.merged(bounds)
        nodes.append(node)
        name = node.outputs[0]
    return None


def _narrowed(node: Node, form: Form, scope: Scope) -> tuple[Clamp, Node] | None:
    """The bounds of a Clip that is the only reader of a QuantizeLinear, as quantization-aware training with few bits
    writes it."""
    name = node.outputs[0]
    readers = scope.readers.get(name, [])
    if name in scope.ends or len(readers) != 1 or readers[0].domain or readers[0].inputs[0] != name:
        return None
    bounds = clamp_of(readers[0], scope) if readers[0].kind == "Clip" else None
    zero = scope.get(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else np.zeros((), np.uint8)
    if bounds is None or form[1] is None or not isinstance(zero, np.ndarray):
        return None
    return in_reals(bounds, form[1], zero.dtype.name), readers[0]


def in_reals(bounds: Clamp, quant: Quant, dtype: str) -> Clamp:
    """Bounds of the file's integers as real numbers; none where the type implies them."""
    least, most = WIDTHS[dtype]
    low = None if bounds.low is None or bounds.low <= least else in_real(bounds.low, quant, dtype)
    high = None if bounds.high is None or bounds.high >= most else in_real(bounds.high, quant, dtype)
    return Clamp(low, high)


def in_real(number: float, quant: Quant, dtype: str) -> float:
    """What one of the file's integers stands for."""
    return (number - SHIFTS[dtype][1] - quant.zero_point) * quant.scale


def narrowed(call: Call, x: Value, bounds: Clamp) -> Value:
    """Limits a QuantizeLinear's result to a range of the file's integers."""
    quant = call.form(x)[1]
    assert quant is not None
    reals = in_reals(bounds, quant, x.dtype)
    if reals == NO_CLAMP:
        return x
    return replace(x, name=call.add(Activation("clamp", reals.ends), [x.name], form=call.form(x)))


def clamp_of(node: Node, scope: Scope) -> Clamp | None:
    """The bounds of a Relu, or of a Clip with constants."""
    if node.kind == "Relu":
        return Clamp(0.0, None)
    if node.kind != "Clip":
        return None
    bounds: list[float | None] = []
    for index, name in enumerate(("min", "max"), 1):
        if index < len(node.inputs) and node.inputs[index]:
            found = scope.get(node.inputs[index])
            if not isinstance(found, np.ndarray) or found.size != 1:
                return None
            bounds.append(float(found.reshape(-1)[0]))
        else:
            option = node.attributes.get(name)
            bounds.append(option.number if option is not None and not option.refers_to else None)
    low, high = (None if b is not None and abs(b) == inf else b for b in bounds)
    return Clamp(low, high)


def is_scaled(call: Call, value: Value) -> bool:
    tensor = call.tensor(value.name)
    return value.is_number and tensor.quant is not None and tensor.dtype in ("int8", "int16")


def holds(call: Call, value: Value, number: float) -> bool:
    """Whether a number is one of those that the scaled integers mean."""
    tensor = call.tensor(value.name)
    step, point, *limits = scale_and_limits(tensor)
    return float(edge.dequantize(edge.quantize(number, step, point, *limits), step, point)) == number


@dataclass(frozen=True, eq=False)
class Mode:
    """An operator's number format: its converted inputs, the format of its result, and the nodes it absorbs."""

    inputs: tuple[Value, ...]
    form: Form
    clamp: Clamp = NO_CLAMP
    absorbed: tuple[Node, ...] = ()
    weights: Array = field(default_factory=lambda: np.zeros(0))
    bias: Array | None = None
    scales: Array | None = None
    zero: int = 0

    @property
    def is_integer(self) -> bool:
        return self.form != FLOAT

    def constants(self, kernel: Array, channels: Array, axis: int) -> dict[str, Array | tuple[Array, Quant | None]]:
        """The operation's kernel, transposed so that `axis` has its scales, and its bias; `channels` gives the
        output of each."""
        found: dict[str, Array | tuple[Array, Quant | None]] = {}
        if self.scales is None:
            found["kernel"] = kernel
        else:
            several = len(self.scales) > 1
            scales = self.scales[channels] if several else self.scales
            found["kernel"] = (kernel, Quant(tuple(map(float, scales)), self.zero, axis if several else None))
        if self.bias is not None:
            bias = self.bias[channels]
            found["bias"] = bias if self.scales is None else (bias, None)
        return found

    def finish(self, call: Call, value: Value) -> None:
        call.importer.absorbed.update(id(node) for node in self.absorbed)
        call.put(value)


def along(values: Array, rank: int, axis: int) -> Array:
    if values.size == 1:
        return values.reshape(())
    return values.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def formed(call: Call, *indices: int, clamps: bool = False, same: bool = False) -> Mode:
    """The mode of an operator without weights. `same`: it keeps its input's format and needs no QuantizeLinear."""
    values = [call.value(i) for i in indices]
    if all(is_scaled(call, v) for v in values):
        forms = [call.form(v) for v in values]
        if same and len(set(forms)) == 1:
            return Mode(tuple(values), forms[0])
        following = None if same else ahead(call, clamps=clamps)
        if following is not None and {following.form[0]} == {dtype for dtype, _ in forms}:
            return Mode(tuple(values), following.form, following.clamp, following.nodes)
    if same and all(not v.is_number for v in values):
        return Mode(tuple(values), call.form(values[0]))
    return Mode(tuple(call.as_real(v) if v.is_number else v for v in values), FLOAT)


# The conversions.


def dequantize(call: Call) -> None:
    item, scale = call.item(0), call.constant(1)
    zero = call.constant(2) if call.given(2) else np.zeros((1,), np.int32)
    axis = call.integer("axis", 1)
    if call.node.inputs[0] in call.scope.stepped and isinstance(item, Value):
        call.put(item)
        return
    if isinstance(item, np.ndarray):
        call.put(dequantized(call, item, scale, zero, axis))
        blocks = scale.size > 1 and call.integer("block_size", 0) > 0
        call.scope.scaled[call.node.outputs[0]] = Scaled(item, scale, np.asarray(zero), axis, blocks)
        return
    call.put(as_scaled(call, item, scale, zero, axis))


def as_scaled(call: Call, item: Value, scale: Array, zero: Array, axis: int) -> Value:
    """Integers as real numbers, by a scale and a zero point."""
    wanted = form_by(item.dtype, scale, zero)
    if wanted is not None and call.form(item) == wanted:
        return replace(item, dtype="float32")
    tensor = call.tensor(item.name)
    if wanted is not None and tensor.dtype == "uint8" and _is_shifted(tensor, wanted):
        return replace(item, name=call.add(Convert(), [item.name], form=wanted), dtype="float32")
    if tensor.quant != WHOLE:
        raise call.unsupported("its scale differs from that of its input")
    from nnbuild.frontend.onnx.arithmetic import combined

    floats = call.converted(item, FLOAT, "float32")
    rank = len(item.shape)
    shifted = combined(call, "subtract", floats, along(zero.astype(np.float32), rank, axis))
    return combined(call, "multiply", shifted, along(scale.astype(np.float32), rank, axis))


def _is_shifted(tensor: Tensor, form: Form) -> bool:
    """Whether bytes from 0 to 255 represent the format's -128 to 127."""
    if tensor.quant is None or form[1] is None:
        return False
    return (tensor.quant.scales, tensor.quant.zero_point - 128) == (form[1].scales, form[1].zero_point)


def dequantized(call: Call, values: Array, scale: Array, zero: Array, axis: int) -> Array:
    """Dequantizes in float32, as ONNX defines it; blocks of a given size share a scale."""
    scale, zero = _spread(call, values.shape, scale, zero, axis)
    with np.errstate(over="ignore"):
        return np.asarray(
            (values.astype(np.float64) - zero.astype(np.float64)).astype(np.float32) * scale.astype(np.float32)
        )


def _quantized(call: Call, values: Array, scale: Array, zero: Array) -> Array:
    """Quantizes constants, such as weights after quantization-aware training; rounds halves to even, as ONNX defines
    it."""
    call.asked.update(("saturate", "precision"))
    low, high = WIDTHS[zero.dtype.name]
    scale, point = _spread(call, values.shape, scale, zero, call.integer("axis", 1))
    with np.errstate(all="ignore"):
        steps = np.rint(values.astype(np.float32) / scale.astype(np.float32))
        return np.asarray(np.clip(np.nan_to_num(steps) + point.astype(np.float32), low, high).astype(zero.dtype))


def _spread(call: Call, shape: tuple[int, ...], scale: Array, zero: Array, axis: int) -> tuple[Array, Array]:
    """Scales and zero points expanded to each element: one for all, along an axis, or per block of it."""
    block, rank = call.integer("block_size", 0), len(shape)
    if scale.size > 1 and scale.ndim == rank and block > 0:
        call.expect(block <= shape[call.axis(axis, rank)], f"its blocks have the size {block}.")
        scale, zero = (np.repeat(v, block, axis) if v.size > 1 else v for v in (scale, zero))
        cut = tuple(slice(n) for n in shape)
        return scale[cut], zero[cut] if zero.ndim == rank else zero
    if scale.size > 1 or zero.size > 1:
        axis = call.axis(axis, rank)
        call.expect({scale.size, zero.size} <= {1, shape[axis]}, "its scales do not match its input.")
    return along(scale.reshape(-1), rank, axis), along(zero.reshape(-1), rank, axis)


def quantize(call: Call) -> None:
    item, scale = call.item(0), call.constant(1)
    dtype = TYPE_NAMES.get(call.integer("output_dtype", 0) or 2, "uint8")
    zero = call.constant(2) if call.given(2) else np.zeros((), dtype)
    dtype = zero.dtype.name
    if (zero.dtype.metadata or {}) == HALVES:
        raise call.unsupported("it quantizes to 4 bits")
    if isinstance(item, np.ndarray) and dtype in SHIFTS:
        call.put(_quantized(call, item, scale, zero))
        return
    call.asked.update(("axis", "saturate", "precision", "block_size"))  # they have no effect with a single scale
    wanted = form_by(dtype, scale, zero)
    value = call.value(0)
    if not value.is_number:
        value = call.converted(value, FLOAT, "float32")
    if wanted is not None:
        call.put(call.converted(value, wanted, dtype))
    elif dtype in SHIFTS and scale.size == zero.size == 1 and _is_undone(call):
        step = float(scale.reshape(-1)[0])
        ends = ((float(end) - float(zero.reshape(-1)[0])) * step for end in WIDTHS[dtype])
        expect_scale(call, scale, 0.0)
        if SHIFTS[dtype][0] == "int16":
            call.assembly.note(OFF_CENTRE)
        call.scope.stepped.add(call.node.outputs[0])
        call.put(call.activated(call.as_real(value), "steps", (*ends, step)))
    else:
        expect_scale(call, scale)
        point = f", its zero point at {zero.reshape(-1)[0]}" if zero.size == 1 else ""
        raise call.unsupported(f"it quantizes to {dtype} with {scale.size} scales{point}")


def expect_scale(call: Call, scale: Array, least: float = SMALLEST_SCALE) -> None:
    """Refuses a single scale out of bounds, with what causes it."""
    size = float(scale.reshape(-1)[0])
    fits = scale.size != 1 or (size > 0 and least <= size <= LARGEST_SCALE)
    cause = f"its scale is {size:.6g}, outside 2^-28 to 2^28."
    call.expect(fits, cause, MASKED if size > LARGEST_SCALE else VARIED_SAMPLES)


def _is_undone(call: Call) -> bool:
    """Whether every reader converts the integers back to the same numbers: then they may stay floats, in steps."""
    name = call.node.outputs[0]
    readers = call.scope.readers.get(name, [])
    undone = all(n.kind == "DequantizeLinear" and n.inputs[1:3] == call.node.inputs[1:3] for n in readers)
    return bool(readers) and undone and name not in call.scope.ends


OPERATORS: dict[str, Callable[[Call], None]] = {"DequantizeLinear": dequantize, "QuantizeLinear": quantize}
