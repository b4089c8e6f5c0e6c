"""Computes on integers what a quantized file leaves in floats between its conversions.

Exporters put a conversion to floats before every operation and one back behind it. Where an operation has an integer
rule and its result's format is known from the conversions that follow, neither conversion is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from nnbuild.base.names import some_of
from nnbuild.model.graph import Constant, Graph, Op, Quant, Tensor
from nnbuild.numeric.multiplier import SMALLEST_SCALE
from nnbuild.numeric.rounding import INT8
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import NO_CLAMP, Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.convert import Convert
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.gather import Gather
from nnbuild.ops.known import Known
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.lookup import between_conversions
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.offset import Offset
from nnbuild.ops.pad import Pad
from nnbuild.ops.pick import Pick
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import Site
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose
from nnbuild.passes import is_quantized
from nnbuild.passes.fuse_norms import fuse_norms
from nnbuild.quantize.constants import integer_constants
from nnbuild.quantize.formats import FIXED
from nnbuild.quantize.rewrite import same_scale

Form = tuple[str, Quant]
FAR = 2.0**20
"""Operations whose scales are larger, or differ by more, stay in floats."""
MOST_SUMMED = 2**21
NAMED = 3
"""Layers of a note."""


@dataclass
class _Draft:
    graph: Graph
    readers: dict[str, list[Op]]
    integers: dict[str, str] = field(default_factory=dict)
    """Tensor of floats -> the tensor of integers that mean the same numbers."""
    held: dict[str, Op] = field(default_factory=dict)
    """Tensor -> the constant that it is."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)

    def form(self, name: str) -> Form:
        tensor = self.tensors[name]
        assert tensor.quant is not None
        return tensor.dtype, tensor.quant


def join_stretches(graph: Graph) -> Graph:
    """A quantized graph with such operations on integers. Behind each remains a conversion to floats, for those who
    still read them; usually nobody does."""
    if not is_quantized(graph):
        return graph
    graph, readers = fuse_norms(graph), dict[str, list[Op]]()
    for op in graph.ops:
        for name in op.inputs:
            readers.setdefault(name, []).append(op)
    draft = _Draft(graph, readers, tensors=dict(graph.tensors), constants=dict(graph.constants))
    for op in graph.ops:
        if not _take(draft, op):
            draft.ops.append(op)
    notes = (*graph.notes, *_left_in_floats(draft))
    return replace(graph, ops=tuple(draft.ops), tensors=draft.tensors, constants=draft.constants, notes=notes)


def _left_in_floats(draft: _Draft) -> Iterator[str]:
    """Of layers whose inputs are integers in the file."""
    left = [
        op.layer or op.name
        for op in draft.ops
        if isinstance(op.attributes, Conv2D | Conv2DTranspose | Dense | DepthwiseConv2D)
        and all(name in draft.integers for name in op.inputs)
        and _target(draft, op.outputs[0]) is None
    ]
    if left:
        yield (
            f"computed in floats, which is slow on a microcontroller: {some_of(left, NAMED)}. The file quantizes what "
            "they take, but not what they give. Quantize that, too, also where it is added to something; or, of "
            "convolutions and dense layers, the weights."
        )


def _take(draft: _Draft, op: Op) -> bool:
    """Adds the operation on integers; False where it stays as it is."""
    out = draft.graph.tensors[op.outputs[0]]
    if isinstance(op.attributes, Known):
        draft.held[out.name] = op
    if isinstance(op.attributes, Convert) and out.quant is None and is_scaled(draft.graph.tensors[op.inputs[0]]):
        draft.integers[out.name] = op.inputs[0]
        return False
    if isinstance(op.attributes, Gather) and "table" in op.constants and out.quant is None:
        target = _target(draft, out.name)
        return target is not None and _add(draft, op, op.inputs, target)
    if len(op.outputs) > 1 or not all(name in draft.integers or _joins(op, name, draft) for name in op.inputs):
        return False
    inputs = tuple(draft.integers[name] for name in op.inputs if name in draft.integers)
    if not inputs:
        return False
    match op.attributes:
        case Convert():
            return is_scaled(out) and _convert(draft, op, inputs[0])
        case Binary() | Activation() if _of_one_byte(draft, op, inputs):
            return _look_up(draft, op, inputs[0])
        case _ if _moves(op):
            return _add(draft, op, inputs, draft.form(inputs[0]))
        case Binary("multiply" | "divide") if _factor(draft, op) is not None:
            return _reread(draft, op, inputs[0])
        case _:
            return _compute(draft, op)


def _moves(op: Op) -> bool:
    """Whether it only moves values, and zeros: on integers it gives the same numbers."""
    match op.attributes:
        case Pad(value=0.0):
            return not op.constants
        case Pick() | Repeat() | Reshape() | Slice() | Transpose():
            return True
    return False


def is_scaled(tensor: Tensor) -> bool:
    return tensor.dtype in ("int8", "int16") and tensor.quant is not None and not tensor.is_whole


def _joins(op: Op, name: str, draft: _Draft) -> bool:
    return isinstance(op.attributes, Concatenate) and name in draft.held


def _target(draft: _Draft, name: str) -> Form | None:
    """The format to which everything that reads this tensor converts it, if there is one."""
    if name in draft.graph.outputs or any(name == state.after for state in draft.graph.states):
        return None
    found: set[Form | None] = set()
    for reader in draft.readers.get(name, []):
        out = draft.graph.tensors[reader.outputs[0]]
        if _moves(reader):
            found.add(_target(draft, out.name))
        elif isinstance(reader.attributes, Convert) and is_scaled(out) and out.quant is not None:
            found.add((out.dtype, out.quant))
        else:
            found.add(None)
    return found.pop() if len(found) == 1 else None


def _near(*scales: float) -> bool:
    return min(scales) >= SMALLEST_SCALE and max(scales) <= min(FAR, FAR * min(scales))


def _convert(draft: _Draft, op: Op, source: str) -> bool:
    quant = draft.tensors[op.outputs[0]].quant
    if quant is None or not _near(quant.scale, draft.form(source)[1].scale):
        return False
    draft.ops.append(replace(op, attributes=Convert(once=True), inputs=(source,)))
    return True


def _factor(draft: _Draft, op: Op) -> float | None:
    """The number above zero by which an operation multiplies everything, if it does only that."""
    attributes, held = op.attributes, {role: draft.constants[name].data for role, name in op.constants.items()}
    if not isinstance(attributes, Binary) or attributes.clamp != NO_CLAMP or len(held) != 1:
        return None
    ((role, data),) = held.items()
    number = float(data.reshape(-1)[0])
    if data.size != 1 or not 1 / FAR < number < FAR or (attributes.function, role) == ("divide", "left"):
        return None
    return 1 / number if attributes.function == "divide" else number


def _reread(draft: _Draft, op: Op, source: str) -> bool:
    """A product with a number is the same integers with another scale."""
    factor, (dtype, quant) = _factor(draft, op), draft.form(source)
    shape = draft.graph.tensors[op.outputs[0]].shape[len(op.outer) :]
    if factor is None or not _near(quant.scale, quant.scale * factor):
        return False
    whole = replace(op, attributes=Offset(shape, factor=factor), constants={})
    return _add(draft, whole, (source,), (dtype, Quant((quant.scale * factor,), quant.zero_point)))


def _of_one_byte(draft: _Draft, op: Op, inputs: Sequence[str]) -> bool:
    """Whether bytes become bytes, each by itself. A product with a number is left to `_reread`."""
    target = _target(draft, op.outputs[0])
    bytes_only = len(op.inputs) == 1 and draft.form(inputs[0])[0] == "int8" == (target or ("",))[0]
    single = all(draft.constants[name].data.size == 1 for name in op.constants.values())
    scales = isinstance(op.attributes, Binary) and op.attributes.function in ("multiply", "divide")
    return bytes_only and single and not (scales and _factor(draft, op) is not None)


def _look_up(draft: _Draft, op: Op, source: str) -> bool:
    form = _target(draft, op.outputs[0])
    assert form is not None
    held = {role: draft.constants[name].data for role, name in op.constants.items()}
    table = between_conversions(op.attributes, draft.form(source)[1], form[1], held)
    return _add(draft, replace(op, attributes=table, constants={}), (source,), form)


def _compute(draft: _Draft, op: Op) -> bool:
    """Adds an operation with an integer rule; False where it has none for these formats.

    Where the result's format is the operation's own, it has 16 bits, so that the conversion behind it rounds no number
    that has been rounded before.
    """
    target = _target(draft, op.outputs[0])
    if target is None or not _has_rule(draft, op):
        return False
    inputs = tuple(draft.integers.get(name) or _in_form(draft, draft.held[name], target) for name in op.inputs)
    first = draft.form(inputs[0])
    form = first if same_scale(op.attributes) else target
    scales = [draft.form(name)[1].scale for name in inputs] + [form[1].scale]
    if any(draft.form(name)[0] != target[0] for name in inputs) or not _near(*scales):
        return False
    if isinstance(op.attributes, Affine) and not _summand_fits(draft, op, *scales):
        return False
    if isinstance(op.attributes, Softmax):
        inputs = (_converted(draft, op, inputs[0], ("int16", Quant(first[1].scales))),)
        form = ("int16", FIXED["softmax", "int16"])
    elif _weighs(op) and first != target:
        form = ("int16", Quant((first[1].scale / 128,)))
        inputs = (_converted(draft, op, inputs[0], form),)
    if isinstance(op.attributes, Binary) and op.attributes.function in ("maximum", "minimum"):
        inputs = tuple(_converted(draft, op, name, form) for name in inputs)
    return _add(draft, op, inputs, form)


def _summand_fits(draft: _Draft, op: Op, source: float, target: float) -> bool:
    """Whether the steps of the summand, those of the products, are fine beside the output's: they are not where the
    input hardly varies, as a constant one with a scale of 1."""
    factor = float(np.abs(draft.constants[op.constants["scale"]].data).max())
    return source * factor / INT8[1] <= target / 4


def _weighs(op: Op) -> bool:
    """Whether it computes averages that have its input's format."""
    attributes = op.attributes
    return isinstance(attributes, ResizeBilinear) or (isinstance(attributes, Pool2D) and attributes.function != "max")


def _has_rule(draft: _Draft, op: Op) -> bool:
    """Whether there is a rule whose results are at most one step from the file's, and seldom that."""
    whole = all(draft.form(draft.integers[name])[0] == "int8" for name in op.inputs if name in draft.integers)
    match op.attributes:
        case Concatenate():
            return True
        case Binary(function):
            return function in ("add", "subtract", "multiply", "maximum", "minimum") and not op.constants
        case Pool2D(function=function, clamp=clamp):
            return clamp == NO_CLAMP and (whole or function == "max")
        case Reduce(axis=axis, count=count):
            shape = draft.graph.tensors[op.inputs[0]].shape[len(op.outer) :]
            return whole and prod(shape[axis : axis + count]) < MOST_SUMMED
        case Activation() | Affine() | LayerNorm() | MatMul() | ResizeBilinear() | Softmax():
            return whole
        case _:
            return False


def _in_form(draft: _Draft, op: Op, form: Form) -> str:
    """A constant in the format of what it is joined with."""
    whole = replace(op, name=_unused(draft, op.name), outputs=(_unused(draft, op.outputs[0]),))
    draft.tensors[whole.outputs[0]] = replace(draft.tensors[op.outputs[0]], name=whole.outputs[0])
    _add(draft, whole, op.inputs, form)
    return draft.integers[whole.outputs[0]]


def _converted(draft: _Draft, op: Op, name: str, form: Form) -> str:
    if draft.form(name) == form:
        return name
    made = _unused(draft, f"{name} for {op.name}")
    draft.tensors[made] = Tensor(made, draft.tensors[name].shape, *form)
    draft.ops.append(Op(made, Convert(once=True), (name,), (made,), layer=op.layer))
    return made


def _add(draft: _Draft, op: Op, inputs: Sequence[str], form: Form) -> bool:
    """Adds the operation on integers, and behind it the conversion to the floats that it computed."""
    out = draft.tensors[op.outputs[0]]
    made = _unused(draft, f"{out.name} in integers")
    draft.tensors[made] = Tensor(made, out.shape, *form, out.layer)
    draft.integers[out.name] = made
    whole = replace(op, name=made, attributes=_once(op), inputs=tuple(inputs), outputs=(made,))
    held = {role: draft.constants[name] for role, name in op.constants.items()}
    site = Site(whole, tuple(draft.tensors[name] for name in inputs), (draft.tensors[made],), held)
    names = {}
    for role, constant in integer_constants(site).items():
        names[role] = _unused(draft, f"{constant.name} in integers")
        draft.constants[names[role]] = replace(constant, name=names[role])
    draft.ops += [replace(whole, constants=names), Op(op.name, Convert(), (made,), op.outputs, layer=op.layer)]
    return True


def _once(op: Op) -> Attributes:
    """Rounded once, as in ONNX."""
    match op.attributes:
        case Affine() | Binary() | Concatenate() | MatMul() | Reduce() as attributes:
            return replace(attributes, once=True)
    return op.attributes


def _unused(draft: _Draft, name: str) -> str:
    taken = {*draft.tensors, *draft.constants, *(op.name for op in draft.graph.ops), *(op.name for op in draft.ops)}
    while name in taken:
        name += "'"
    return name
