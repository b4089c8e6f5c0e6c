"""Builds the integer graph: the same operations on integer tensors, with conversions where formats differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.model.graph import Constant, Graph, Op, Quant, State, Tensor
from nnbuild.model.verify import LARGEST_RATIO, verify
from nnbuild.numeric.arithmetic import EXACT, TFLITE, Arithmetic
from nnbuild.numeric.edge import quantize
from nnbuild.numeric.elementwise import sum_limit
from nnbuild.numeric.multiplier import SMALLEST_SCALE
from nnbuild.numeric.rounding import limits
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.convert import Convert
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.device_arithmetic import operator_name
from nnbuild.ops.gather import Gather
from nnbuild.ops.integer import quant_of, scale_and_limits
from nnbuild.ops.known import Known
from nnbuild.ops.offset import Offset
from nnbuild.ops.pad import Pad
from nnbuild.ops.pick import Pick
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.select import Select
from nnbuild.ops.site import Site
from nnbuild.ops.slice import Slice
from nnbuild.ops.top_k import TopK
from nnbuild.ops.transpose import Transpose
from nnbuild.passes.fold_affine import ChannelAffine, along_inputs
from nnbuild.passes.graph_editor import GraphEditor
from nnbuild.quantize.calibrate import Range, Ranges
from nnbuild.quantize.columns import about_columns, of_columns
from nnbuild.quantize.compared_features import compared_features
from nnbuild.quantize.constants import integer_constants
from nnbuild.quantize.far_results import is_too_coarse, leaves_32_bits
from nnbuild.quantize.formats import NO_RULES, Rules, activation_format, fixed_format
from nnbuild.quantize.in_floats import in_floats
from nnbuild.quantize.recurrent import Format, reached_by_recurrent, state_formats, weight_bits, with_headroom
from nnbuild.quantize.shared_scales import share_ranges
from nnbuild.quantize.table_ends import with_table_ends
from nnbuild.quantize.whole_numbers import read_by, whole_from_floats

SAME_SCALE = (Pad, Pick, Pool2D, Repeat, Reshape, ResizeBilinear, Slice, TopK, Transpose)
"""Operations that choose or move values, so that their results keep their input's format."""


NOT_BY_RANGE = (Gather, Recurrent, Select)
"""Operations whose result formats do not, or not always, follow from their ranges."""
FEW_STEPS = 256
"""A range of fewer steps than int8 has is coarse, in int16 as well."""


@dataclass
class _Draft:
    """The graph under construction; formats required by recurrent layers are known from the start."""

    states: Mapping[str, Format]
    reached: frozenset[str]
    whole: frozenset[str]
    device: Rules = field(default_factory=dict)
    missed: dict[str, float] = field(default_factory=dict)
    """Tensor -> offset lost because zero points are integers; its readers add it to their bias."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def format(self, values: Range, form: str) -> Quant:
        return activation_format(values, form, self.device)


def rewrite(
    graph: Graph,
    ranges: Ranges,
    formats: Mapping[str, str],
    default: str,
    float_edge: bool,
    device: Rules = NO_RULES,
) -> Graph:
    """`formats` gives the formats of single operations by name; all others take the default. With a `device`, integers
    are such as it can compute with."""
    exact = whole_from_floats(graph) | compared_features(graph, float_edge)
    float_inputs = set(graph.inputs) if float_edge else read_by(graph, exact)
    forms = _forms(graph, formats, default, float_inputs)
    whole = frozenset(name for name, tensor in graph.tensors.items() if tensor.is_whole)
    draft = _Draft(state_formats(graph, ranges, forms), reached_by_recurrent(graph), whole, device)
    ranges = with_table_ends(graph, with_headroom(graph, ranges, forms, draft.reached), forms)
    if "concatenate" in device:
        moves = frozenset(op.name for op in graph.ops if same_scale(op.attributes))
        ranges = share_ranges(graph, ranges, forms, moves)
    coarse, notes = in_floats(graph, ranges, forms, float_edge)
    forms |= dict.fromkeys((*coarse, *exact), "float")
    draft.notes += notes
    for name in (*graph.inputs, *(state.before for state in graph.states)):
        tensor = graph.tensors[name]
        reader = next((op for op in graph.ops if name in op.inputs), None)
        usual = formats.get(reader.name, default) if reader is not None else default
        draft.tensors[name] = _typed(draft, tensor, ranges, "float" if name in float_inputs else usual, reader)
    for op in graph.ops:
        _rewrite_op(draft, graph, op, ranges, forms[op.name])
    draft.notes += [] if float_edge else _about_outputs(draft, graph, coarse)
    draft.notes += about_columns(graph, ranges, forms, draft.tensors)
    outputs = tuple(_edge(draft, name, ranges) if float_edge else name for name in graph.outputs)
    states = tuple(
        State(
            state.before,
            _converted(draft, state.after, draft.tensors[state.before]),
            _initial(draft, graph, state),
        )
        for state in graph.states
    )
    return verify(
        replace(
            graph,
            tensors=draft.tensors,
            constants=draft.constants,
            ops=tuple(draft.ops),
            outputs=outputs,
            states=states,
            notes=(*graph.notes, *draft.notes),
        )
    )


def _forms(graph: Graph, formats: Mapping[str, str], default: str, floats: Collection[str]) -> dict[str, str]:
    """The format of every operation: what normalizes the columns of inputs in `floats`, or joins those of inputs with a
    scale each, takes floats, and a reshape the format of what reads it."""
    forms, draft = {op.name: formats.get(op.name, default) for op in graph.ops}, GraphEditor(graph)
    for _, between, _ in of_columns(graph):
        inputs = read_by(graph, {op.name for op in between})
        if len(inputs) > 1 or inputs.issubset(floats):
            forms |= {op.name: "float" for op in between if op.name not in formats}
    for op in reversed(graph.ops):
        readers = {forms[reader.name] for reader in draft.readers(op.outputs[0])}
        if type(op.attributes) is Reshape and readers == {"float"} and op.outputs[0] not in draft.pinned:
            forms[op.name] = "float"
    return forms


def _about_outputs(draft: _Draft, graph: Graph, coarse: Collection[str]) -> Iterator[str]:
    for op in graph.ops:
        for name in op.outputs:
            if op.name in coarse and name in graph.outputs and draft.tensors[name].dtype == "float32":
                yield f"output {name!r} is float32, because layer {op.layer or op.name!r} is computed in floats"


def _initial(draft: _Draft, graph: Graph, state: State) -> str | None:
    """A state's initial value, in the state's format."""
    tensor = draft.tensors[state.before]
    if state.initial is None or tensor.quant is None or graph.tensors[state.before].quant is not None:
        if state.initial is not None:
            draft.constants[state.initial] = graph.constants[state.initial]
        return state.initial
    data = quantize(graph.constants[state.initial].data, *scale_and_limits(tensor)).astype(tensor.dtype)
    draft.constants[state.initial] = Constant(state.initial, data, tensor.quant)
    return state.initial


def _typed(draft: _Draft, tensor: Tensor, ranges: Ranges, form: str, op: Op | None) -> Tensor:
    """The tensor in its format, which is that of the operation that makes it, or first reads it."""
    if form == "float" or tensor.is_whole:
        return tensor
    if tensor.name in draft.states:
        return draft.states[tensor.name].of(tensor)
    found = ranges[tensor.name]
    quant = draft.format(found, form)
    if quant.scale == SMALLEST_SCALE and max(0.0, found.high) - min(0.0, found.low) < FEW_STEPS * quant.scale:
        remedy = f". Otherwise give --keep {op.layer or op.name}=float" if op is not None else ""
        draft.notes.append(
            f"tensor {tensor.name!r}: its values, {found.low:.3g} to {found.high:.3g}, are very small, and take only a "
            f"few of the steps of {form}, as in a model before its training{remedy}"
        )
    return replace(tensor, dtype=form, quant=quant)


def _rewrite_op(draft: _Draft, graph: Graph, op: Op, ranges: Ranges, form: str) -> None:
    if isinstance(op.attributes, Convert) and graph.tensors[op.inputs[0]].dtype == "int32":
        form = "float"  # plain integers have no range that fewer bits could hold
    if form != "float" and (cause := _unfit(draft, graph, op, ranges, form)):
        form = "float"
        draft.notes.append(f"layer {op.layer or op.name!r}: {cause}, and it is computed in floats")
    inputs = _inputs(draft, op, ranges, form)
    if form == "float":
        inputs = _with_roots(draft, op, inputs)
        outputs = [graph.tensors[name] for name in op.outputs]
        constants = {role: graph.constants[name] for role, name in op.constants.items()}
    else:
        outputs = [_output(draft, graph, op, inputs, index, ranges, form) for index in range(len(op.outputs))]
        _check_scales(op, [draft.tensors[name] for name in inputs] + outputs)
        inputs = _aligned(draft, graph, op, inputs, outputs[0])
        op = replace(op, attributes=_finer(op.attributes, form), arithmetic=_arithmetic(draft, op, form))
        site = Site(
            op,
            tuple(draft.tensors[name] for name in inputs),
            tuple(outputs),
            _compensate_bias(draft, op, {role: graph.constants[name] for role, name in op.constants.items()}),
        )
        bits = weight_bits(op, form, draft.reached)
        constants = dict(integer_constants(site, ranges[op.inputs[0]].means, bits))
    names = {role: _add_constant(draft, constant) for role, constant in constants.items()}
    draft.tensors.update({tensor.name: tensor for tensor in outputs})
    draft.ops.append(replace(op, inputs=inputs, constants=names))


def _finer(attributes: Attributes, form: str) -> Attributes:
    """Bytes that are joined at a larger scale would leave zero by up to a quarter of a step on average if they were
    rounded twice, as by QUANTIZE, and the means of channels would be off."""
    match attributes:
        case Compare():
            return replace(attributes, fine=True)
        case Concatenate() if form == "int8":
            return replace(attributes, once=True)
    return attributes


def _with_roots(draft: _Draft, op: Op, inputs: tuple[str, ...]) -> tuple[str, ...]:
    """The root of what integers may have rounded below zero is that of zero, as in integers."""
    if op.attributes != Activation("sqrt") or draft.tensors[op.inputs[0]].dtype != "int16":
        return inputs
    made = f"{inputs[0]} from zero"
    if made not in draft.tensors:
        tensor = draft.tensors[inputs[0]]
        draft.tensors[made] = replace(tensor, name=made)
        draft.ops.append(Op(made, Activation("clamp", (0.0, inf)), (tensor.name,), (made,), layer=op.layer))
    return (made,)


def _unfit(draft: _Draft, graph: Graph, op: Op, ranges: Ranges, form: str) -> str | None:
    """Why integers cannot scale some product or sum to its output's steps."""
    inputs = tuple(_expected(draft, graph.tensors[name], ranges, form) for name in op.inputs)
    out = _expected(draft, graph.tensors[op.outputs[0]], ranges, form)
    site = Site(op, inputs, (out,), {role: graph.constants[name] for role, name in op.constants.items()})
    if isinstance(op.attributes, Affine) and is_too_coarse(site):
        return "its factors differ too much for integers"
    if is_too_coarse(site) or leaves_32_bits(site, weight_bits(op, form, draft.reached)):
        held = ranges[out.name]
        return f"its results may lie too far beyond their range, {held.low:.3g} to {held.high:.3g}, for integers"
    return None


def _expected(draft: _Draft, tensor: Tensor, ranges: Ranges, form: str) -> Tensor:
    """The tensor in the format in which an operation will take or give it."""
    known = draft.tensors.get(tensor.name, tensor)
    if tensor.is_whole or known.dtype == form:
        return known
    return replace(tensor, dtype=form, quant=draft.format(ranges[tensor.name], form))


def _compensate_bias(draft: _Draft, op: Op, constants: dict[str, Constant]) -> dict[str, Constant]:
    """The constants, with the input's lost offset added to the bias; a reshaped tensor passes its lost offset on."""
    missed = draft.missed.get(op.inputs[0]) if op.inputs else None
    if missed is None:
        return constants
    if not isinstance(op.attributes, Conv2D | DepthwiseConv2D):
        draft.missed[op.outputs[0]] = missed
        return constants
    bias, kernel = constants["bias"], constants["kernel"].data.astype(np.float64)
    channels = draft.tensors[op.inputs[0]].shape[-1]
    _, extra = along_inputs(op.attributes, kernel, ChannelAffine(np.ones(channels), np.full(channels, missed)))
    return constants | {"bias": replace(bias, data=(bias.data + extra).astype(np.float32))}


def _arithmetic(draft: _Draft, op: Op, form: str) -> Arithmetic | None:
    """The device's arithmetic, if it has the operation and its results differ from TFLite's."""
    operator = operator_name(op) if not isinstance(op.attributes, Concatenate) else None
    spec = draft.device.get(operator) if operator is not None and form == "int8" else None
    like = EXACT if operator == "dense" else TFLITE
    return spec if spec is not None and spec != like else None


def _inputs(draft: _Draft, op: Op, ranges: Ranges, form: str) -> tuple[str, ...]:
    """A recurrent operation takes 16-bit inputs where they already exist, initial states in its states' formats, and
    its mask as it is."""
    if isinstance(op.attributes, Known):
        return op.inputs
    if form == "float" or not isinstance(op.attributes, Recurrent):
        return tuple(_in_format(draft, name, ranges, form) for name in op.inputs)
    x, before = op.inputs[0], op.attributes.initial(op.inputs)
    mask = op.inputs[1 + len(before) :]
    after = op.outputs[-op.attributes.states :]
    first = x if draft.tensors[x].dtype == "int16" else _in_format(draft, x, ranges, form)
    wanted = [draft.states[a].of(draft.tensors[b]) for a, b in zip(after[: len(before)], before, strict=True)]
    return (first, *(_converted(draft, b, like) for b, like in zip(before, wanted, strict=True)), *mask)


def _output(
    draft: _Draft, graph: Graph, op: Op, inputs: tuple[str, ...], index: int, ranges: Ranges, form: str
) -> Tensor:
    tensor = graph.tensors[op.outputs[index]]
    if tensor.is_whole:
        return tensor
    if isinstance(op.attributes, Offset):
        return _shift_zero_point(draft, tensor, draft.tensors[inputs[0]], op.attributes.summand)
    if (
        same_scale(op.attributes)
        or (isinstance(op.attributes, Gather) and len(inputs) == 2)
        or _chosen(draft, op, inputs)
    ):
        return replace(tensor, dtype=form, quant=draft.tensors[inputs[0]].quant)
    if "table" in op.constants:
        table = graph.constants[op.constants["table"]].data
        return replace(tensor, dtype=form, quant=draft.format(Range(float(table.min()), float(table.max())), form))
    fixed = fixed_format(op.attributes, form)
    return replace(tensor, dtype=form, quant=fixed) if fixed else _typed(draft, tensor, ranges, form, op)


def _chosen(draft: _Draft, op: Op, inputs: tuple[str, ...]) -> bool:
    """Whether it takes the larger or smaller of two numbers of one format."""
    return _chooses(op) and len({draft.tensors[name].quant for name in inputs}) == 1


def _chooses(op: Op) -> bool:
    return getattr(op.attributes, "function", "") in ("maximum", "minimum") and len(op.inputs) == 2


def _shift_zero_point(draft: _Draft, tensor: Tensor, like: Tensor, summand: float) -> Tensor:
    """The same integers with another zero point, which adds the summand; the remainder is recorded in `missed`."""
    quant = quant_of(like)
    zero = int(np.clip(np.round(quant.zero_point - summand / quant.scale), *limits(like.dtype)))
    draft.missed[tensor.name] = summand - quant.scale * (quant.zero_point - zero)
    return replace(tensor, dtype=like.dtype, quant=replace(quant, zero_point=zero))


def _check_scales(op: Op, tensors: list[Tensor]) -> None:
    """Refuses operations whose tensors differ so much in scale that no shift converts between them."""
    sized = {t.quant.scale: t.name for t in tensors if t.quant is not None and not t.is_whole}
    small, large = min(sized, default=1.0), max(sized, default=1.0)
    if large >= _max_ratio(op, tensors[-1], small) * small:
        raise _too_far_apart(op, repr(sized[large]), large, repr(sized[small]), small)


def _too_far_apart(op: Op, one: str, large: float, other: str, small: float) -> UsageError:
    return UsageError(
        f"layer {op.layer or op.name!r}",
        f"a step of {one} is {large:.3g}, of {other} {small:.3g}: too far apart for integers.",
        f"Give --keep {op.layer or op.name}=float, or train with values of similar size.",
    )


def _max_ratio(op: Op, out: Tensor, small: float) -> float:
    """The largest ratio of scales; smaller for sums whose output has the smallest scale, see `sum_limit`."""
    adds = isinstance(op.attributes, Binary) and op.attributes.function in ("add", "subtract")
    if not adds or out.quant is None or out.quant.scale > small:
        return LARGEST_RATIO
    return sum_limit(8 * np.dtype(out.dtype).itemsize) / 2


def same_scale(attributes: Attributes) -> bool:
    if isinstance(attributes, Reduce):
        return attributes.function in ("max", "min")
    return isinstance(attributes, SAME_SCALE) and not isinstance(attributes, Offset)


def has_own_format(op: Op) -> bool:
    """Whether the format of the result does not depend on its range."""
    known = any(fixed_format(op.attributes, form) for form in ("int8", "int16")) or _chooses(op)
    return known or same_scale(op.attributes) or "table" in op.constants or isinstance(op.attributes, NOT_BY_RANGE)


def _aligned(draft: _Draft, graph: Graph, op: Op, inputs: tuple[str, ...], output: Tensor) -> tuple[str, ...]:
    """Inputs converted to the output's format where the operation compares or copies integers."""
    if isinstance(op.attributes, Select):
        return (inputs[0], *(_converted(draft, name, output) for name in inputs[1:]))
    if getattr(op.attributes, "function", "") not in ("maximum", "minimum"):
        return inputs
    return tuple(_converted(draft, name, output) for name in inputs)


def _in_format(draft: _Draft, name: str, ranges: Ranges, form: str) -> str:
    """The tensor itself, or a conversion of it, in the format that an operation computes in."""
    tensor = draft.tensors[name]
    dtype = "float32" if form == "float" else form
    if tensor.dtype == dtype or name in draft.whole:
        return name
    quant = None if form == "float" else draft.format(ranges[name], form)
    return _converted(draft, name, replace(tensor, dtype=dtype, quant=quant))


def _converted(draft: _Draft, name: str, like: Tensor) -> str:
    """The tensor in the type and scale of another, converted once."""
    tensor = draft.tensors[name]
    if (tensor.dtype, tensor.quant) == (like.dtype, like.quant):
        return name
    made = f"{name} as {like.dtype}" if like.quant is None else f"{name} as {like.dtype} by {like.quant.scale:.9g}"
    if like.quant is not None and made in draft.tensors and draft.tensors[made].quant != like.quant:
        made = f"{made} from {like.quant.zero_point}"
    if made not in draft.tensors:
        draft.tensors[made] = Tensor(made, tensor.shape, like.dtype, like.quant)
        once = tensor.dtype == like.dtype == "int8"
        draft.ops.append(Op(made, Convert(once), (name,), (made,), layer=tensor.layer or name))
    return made


def _edge(draft: _Draft, name: str, ranges: Ranges) -> str:
    return _in_format(draft, name, ranges, "float")


def _add_constant(draft: _Draft, constant: Constant) -> str:
    """Adds a constant; one that another operation needs in a different format gets a new name."""
    name, count = constant.name, 1
    while name in draft.constants and not _equal(draft.constants[name], constant):
        count += 1
        name = f"{constant.name} {count}"
    draft.constants[name] = replace(constant, name=name)
    return name


def _equal(a: Constant, b: Constant) -> bool:
    same: bool = a.data.dtype == b.data.dtype and a.quant == b.quant and np.array_equal(a.data, b.data)
    return same


def refuse_unknown_layers(graph: Graph, layers: Mapping[str, str]) -> None:
    """Refuses a --keep for a layer that does not exist."""
    known = {op.layer for op in graph.ops} | {op.name for op in graph.ops}
    for layer in layers:
        if layer not in known:
            names = ", ".join(sorted(known)[:12])
            cause = "the model has no such layer, or computes it within another one."
            raise UsageError(f"--keep {layer}", cause, f"Its layers: {names} …")
