"""Builds a graph from the records of an `.onnx` file, node by node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nnbuild.base.errors import ModelError, UsageError
from nnbuild.frontend.assembly import Assembly
from nnbuild.frontend.builder import Form
from nnbuild.frontend.import_options import ImportOptions, expect_inputs, fixed_values
from nnbuild.frontend.onnx import (
    attention,
    composed_functions,
    control,
    convolution,
    data_movement,
    deformable,
    dynamic_quantization,
    elementwise,
    foreign,
    fourier,
    indexing,
    integer_operators,
    logic,
    ml_domain,
    normalizing,
    pooling,
    products,
    quantized,
    recurrent,
    reducing,
    resizing,
    sampling,
    sequences,
    transposed_convolution,
)
from nnbuild.frontend.onnx.arithmetic import combined
from nnbuild.frontend.onnx.call import FLOAT, Call, form_of
from nnbuild.frontend.onnx.casts import without_casts
from nnbuild.frontend.onnx.folding import folded
from nnbuild.frontend.onnx.records import DAMAGED, EXPORT_AGAIN, GraphRecord, Model, Node, Port
from nnbuild.frontend.onnx.scope import Scope
from nnbuild.frontend.onnx.type_numbers import HALF_NAMES
from nnbuild.frontend.onnx.unsupported import refused
from nnbuild.frontend.other_arithmetic import HALF_PRECISION
from nnbuild.model.graph import WHOLE, Array, Graph, Shape, Tensor
from nnbuild.model.views import stored
from nnbuild.ops import interpret
from nnbuild.ops.base import Attributes
from nnbuild.ops.convert import Convert
from nnbuild.ops.layout import Value, plain, whole

OLDEST = 7
MAX_SIZE = 2**24
MAX_RANK = 8
MAX_DEPTH = 8
OPERATORS: dict[str, Callable[[Call], None]] = {
    **attention.OPERATORS,
    **indexing.OPERATORS,
    **control.OPERATORS,
    **convolution.OPERATORS,
    **transposed_convolution.OPERATORS,
    **deformable.OPERATORS,
    **dynamic_quantization.OPERATORS,
    **elementwise.OPERATORS,
    **composed_functions.OPERATORS,
    **fourier.OPERATORS,
    **logic.OPERATORS,
    **data_movement.OPERATORS,
    **normalizing.OPERATORS,
    **pooling.OPERATORS,
    **products.OPERATORS,
    **integer_operators.OPERATORS,
    **quantized.OPERATORS,
    **recurrent.OPERATORS,
    **reducing.OPERATORS,
    **resizing.OPERATORS,
    **sampling.OPERATORS,
    **sequences.OPERATORS,
}
NEVER_KNOWN = frozenset("QuantizeLinear DequantizeLinear DynamicQuantizeLinear".split())
"""Nodes that are never folded, because other nodes look through them."""
HARMLESS = frozenset(
    "doc_string is_test spatial seed ratio momentum stash_type softmax_precision kernel_shape hidden_size num_outputs "
    "sorted then_branch else_branch storage_order".split()
)
"""Options without effect at inference, or that repeat what inputs and weights give."""
_POOL = frozenset({"pads", "count_include_pad", "dilations", "ceil_mode", "p"})
_CONVOLUTION = frozenset({"pads", "output_padding", "output_shape", "auto_pad"})
_RECURRENT = frozenset({"input_forget", "linear_before_reset", "clip"})
_REDUCTION = frozenset({"axes", "noop_with_empty_axes"})
CONDITIONAL: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("AveragePool", "MaxPool", "LpPool", "QLinearAveragePool"), _POOL),
    **dict.fromkeys(("Conv", "ConvTranspose", "QLinearConv", "ConvInteger"), _CONVOLUTION),
    **dict.fromkeys(("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"), _RECURRENT),
    **{kind: _REDUCTION for kind in reducing.OPERATORS},
    **dict.fromkeys(
        ("Resize", "Upsample"),
        frozenset(
            "scales cubic_coeff_a exclude_outside nearest_mode antialias extrapolation_value "
            "keep_aspect_ratio_policy".split()
        ),
    ),
    "Clip": frozenset({"min", "max"}),
    "Reshape": frozenset({"allowzero", "shape"}),
    "Cast": frozenset({"saturate", "round_mode"}),
    "CastLike": frozenset({"saturate", "round_mode"}),
    "DequantizeLinear": frozenset({"axis", "block_size", "output_dtype"}),
    "SequenceEmpty": frozenset({"dtype"}),
    "Optional": frozenset({"type"}),
    "Attention": frozenset({"q_num_heads", "kv_num_heads"}),
    "RotaryEmbedding": frozenset({"num_heads"}),
}
"""Options that apply only with certain values of others, and are read only then."""
UNUSED: Mapping[str, tuple[int, ...]] = {"Dropout": (1,), "Resize": (1,)}
"""Inputs without effect: a ratio in training, and the region of a mode that is refused."""


class Importer:
    """The state of reading one model."""

    def __init__(self, name: str, model: Model, options: ImportOptions) -> None:
        self.assembly = Assembly(name)
        self.model = model
        self.options = options
        self.absorbed: set[int] = set()
        """Nodes already computed as part of another, such as an activation after a convolution."""
        self._moved: dict[tuple[Attributes, str], str] = {}
        self._ends = {port.name for port in model.graph.outputs}
        self._depth = 0

    def anchor(self) -> str:
        """A tensor that always exists, for operators without run-time inputs."""
        return self.assembly.first()[0]

    def moved(self, call: Call, attributes: Attributes, name: str) -> str:
        key = (attributes, name)
        if key not in self._moved:
            tensor = self.assembly.tensors[name]
            self._moved[key] = call.add(attributes, [name], form=(tensor.dtype, tensor.quant))
        return self._moved[key]

    def in_floats(self, call: Call, value: Value) -> Value:
        """Converts the scaled integers behind a DequantizeLinear to floats, where no integer rule applies."""
        tensor = self.assembly.tensors[value.name]
        if tensor.quant is None:
            return value
        key = (Convert(), value.name)
        if key not in self._moved:
            self._moved[key] = call.add(Convert(), [value.name], form=FLOAT)
        return replace(value, name=self._moved[key])

    def integers(self, call: Call, value: Value) -> Value:
        """The output of a QuantizeLinear as plain integers, as stored in the file's type."""
        quant = self.assembly.tensors[value.name].quant
        assert quant is not None
        floats = self.in_floats(call, replace(value, dtype="float32"))
        steps = combined(call, "multiply", floats, np.full(1, 1.0 / quant.scale, np.float32))
        point = np.full(1, quant.zero_point + quantized.SHIFTS[value.dtype][1], np.float32)
        return call.converted(combined(call, "add", steps, point), form_of(value.dtype), value.dtype)

    def named(self, made: str, name: str) -> str:
        """Renames a new tensor to the file's name; names of outputs are reserved for the outputs."""
        if made in self._moved.values() or name in self._ends:
            return made
        return self.assembly.call(made, name)

    def graph(self, record: GraphRecord, scope: Scope) -> None:
        scope.items.update(record.constants)
        self.nodes(record.nodes, scope, [p.name for p in record.outputs])

    def nodes(self, nodes: Sequence[Node], scope: Scope, outputs: Sequence[str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise nodes[0].error("its graphs are nested too deeply.", EXPORT_AGAIN)
        scope.wire(nodes, outputs)
        nodes = without_casts(self._read("Constant", nodes, scope), scope, outputs)
        scope.wire(nodes, outputs)
        for kind in ("DequantizeLinear", ""):
            nodes = self._read(kind, nodes, scope)
        self._depth -= 1

    def _read(self, kind: str, nodes: Sequence[Node], scope: Scope) -> list[Node]:
        """Reads the nodes of a kind whose inputs are known, or all; returns the others."""
        others = []
        for node in nodes:
            if not kind or (node.kind == kind and not node.domain and _is_known(node, scope)):
                self.node(Call(self, scope, node))
            else:
                others.append(node)
        return others

    def node(self, call: Call) -> None:
        node = call.node
        if (node.domain, node.kind) in self.model.functions:
            self._function(call)
        elif id(node) in self.absorbed:
            call.put(next(item for item in map(call.any, range(call.count)) if isinstance(item, Value)))
            call.finish()
        else:
            if not folded(call) and not self._worked_out(call):
                _read(call)
            for name in node.attributes.keys() - call.asked - HARMLESS - CONDITIONAL.get(node.kind, frozenset()):
                raise call.unsupported(f"it has the option {name!r}")
            for index, name in enumerate(node.inputs):
                if name and name not in call.taken and index not in UNUSED.get(node.kind, ()):
                    raise call.unsupported(f"it has the input {name!r}")
            call.finish()

    def _worked_out(self, call: Call) -> bool:
        """Folds a node without a numpy equivalent, by folding the operations it is composed of."""
        node = call.node
        held = {name: call.scope.find(node, name) for i, name in enumerate(node.inputs) if call.is_known(i)}
        graphs = any(attribute.graph is not None for attribute in node.attributes.values())
        plain = not node.domain and node.kind not in NEVER_KNOWN and not graphs
        if (
            not held
            or not plain
            or len(held) < len(set(filter(None, node.inputs)))
            or not all(map(_fits, held.values()))
        ):
            return False
        inner, scope = Importer(self.assembly.name, self.model, self.options), Scope(None, call.scope.arguments)
        inner.assembly.input(Tensor("none", (1,)))
        scope.items.update(held)
        again = Call(inner, scope, node)
        _read(again)
        again.finish()
        call.asked |= again.asked
        call.taken |= again.taken
        made = {name: scope.get(name) for name in node.outputs if name}
        if not all(isinstance(item, Value) for item in made.values()):
            return False
        values = {name: again.plain(again.as_value(item)) for name, item in made.items() if isinstance(item, Value)}
        values = {name: again.as_real(value) if value.is_number else value for name, value in values.items()}
        graph = inner.assembly.finish(list(dict.fromkeys(value.name for value in values.values())))
        try:
            with np.errstate(all="ignore"):
                found = interpret.run(graph, {graph.inputs[0]: np.zeros((1, 1), np.float32)}, "float64")
            for index, name in enumerate(node.outputs):
                if name:
                    value = values[name]
                    call.put(_as_stored(value, found[value.name]), index)
        except ValueError:
            raise call.error("its constants do not match each other.") from None
        return True

    def _function(self, call: Call) -> None:
        """Inlines a node that the file defines as a function."""
        function = self.model.functions[call.node.domain, call.node.kind]
        given = {name: found for name in call.node.attributes if (found := call.attribute(name)) is not None}
        inner = Scope(None, {**function.defaults, **given})
        for index, name in enumerate(function.inputs):
            if call.given(index):
                inner.items[name] = call.any(index)
        self.nodes(function.nodes, inner, function.outputs)
        for index, name in enumerate(function.outputs):
            call.put(inner.find(call.node, name), index)
        call.finish()

    # Inputs and outputs of the model.

    def input(self, port: Port, consumers: Sequence[Node], scope: Scope) -> Value:
        shape = self.shape(port)
        if port.dtype in HALF_NAMES:
            self.assembly.unlike = HALF_PRECISION
        form = quantized.edge_form(port.name, port.dtype, consumers, scope) or _edge_form(port)
        view, seen_as = stored(shape), _sample(shape)
        if self.options.layout == "nhwc" and len(shape) == 4:
            order = (0, 2, 3, 1)
            view, seen_as = stored(shape, order), _sample(tuple(shape[i] for i in order))
        name = self.assembly.input(Tensor(port.name, seen_as, *form))
        return Value(name, view, port.dtype)

    def shape(self, port: Port) -> Shape:
        where = f"input {port.name!r}"
        asked = self.options.shapes.get(port.name)
        if port.shape is None and asked is None:
            raise ModelError(where, "the file does not give its shape.", f"Give it: --shape {port.name}=1,3,96,96.")
        shape = port.shape if port.shape is not None else asked or ()
        if asked is not None:
            fits = len(asked) == len(shape)
            if not fits:
                cause = f"it has {len(shape)} axes, {list(shape)} in the file, but --shape gives {list(asked)}."
                raise UsageError(f"--shape {port.name}", cause, "Give a number for each of its axes.")
            shape = asked
        if shape and isinstance(shape[0], str):
            self.assembly.note("The file leaves the batch size open: the compiled model computes one sample at a time.")
            shape = (1, *shape[1:])
        opened = [i for i, n in enumerate(shape) if isinstance(n, str)]
        if opened:
            example = ",".join(str(n) if isinstance(n, int) else "N" for n in shape)
            cause = f"its axes {opened} are open ({list(shape)}), but memory is planned at compile time."
            raise ModelError(where, cause, f"Give them sizes: --shape {port.name}={example}.")
        fixed = tuple(int(n) for n in shape)
        if len(fixed) > MAX_RANK or min(fixed, default=1) < 1 or max(fixed, default=1) > MAX_SIZE:
            raise ModelError(where, f"its shape is {list(fixed)}.", "Give it fixed sizes above 0 with --shape.")
        if len(fixed) > 1 and fixed[0] > 1:
            self.assembly.note(
                f"The file fixes the first axis of {port.name!r} at {fixed[0]}: a run computes all of it."
            )
        return fixed

    def output(self, port: Port, scope: Scope) -> str:
        found = scope.get(port.name)
        node = next((n for n in self.model.graph.nodes if port.name in n.outputs), None)
        if found is None:
            raise ModelError(f"output {port.name!r}", "nothing computes it.", DAMAGED)
        node = node or Node(0, "output", port.name, "", (port.name,), (port.name,), {})
        call = Call(self, scope, node)
        if isinstance(found, list):
            raise ModelError(
                f"output {port.name!r}", "it is a sequence of tensors.", "Export its tensors as separate outputs."
            )
        value = call.as_value(found, port.name)
        if value.is_number:
            value = self.in_floats(call, value)
        if not self.options.shapes and _contradict(port.shape, value.shape):
            self.assembly.note(
                f"The file says that output {port.name!r} is {list(port.shape or ())}; what its operators make is "
                f"{list(value.shape)}."
            )
        if self.options.layout == "nhwc" and len(value.shape) == 4:
            value, order = whole(call, value, (0, 2, 3, 1))
            return call.seen(value.name, _sample(tuple(value.shape[i] for i in order)))
        value = plain(call, value)
        return call.seen(value.name, _sample(value.shape))


def _contradict(said: Sequence[int | str] | None, made: Shape) -> bool:
    """Whether a shape in the file has other sizes."""
    if said is None or len(said) != len(made):
        return False
    return any(isinstance(size, int) and size != n for size, n in zip(said, made, strict=True))


def _as_stored(value: Value, found: Array) -> Array:
    """Numbers that were computed, as the file stores them: quantized ones without a sign are shifted in the graph."""
    dtype = np.dtype("float32" if value.is_number else value.dtype)
    shifted, by = quantized.SHIFTS.get(dtype.name, ("", 0))
    if found.dtype.name == shifted:
        found = found.astype(np.int64) + by
    return found.reshape(value.shape).astype(dtype)


def _fits(item: object) -> bool:
    """Whether a constant can be computed with at run time."""
    if not isinstance(item, np.ndarray) or item.dtype.kind not in "fiub" or not item.size:
        return False
    return bool(np.isfinite(item).all() if item.dtype.kind == "f" else np.abs(item.astype(np.float64)).max() < 2**31)


def _sample(shape: Shape) -> Shape:
    """The shape without a batch of one."""
    return (shape[1:] if len(shape) > 1 and shape[0] == 1 else shape) or (1,)


def _edge_form(port: Port) -> Form:
    return ("uint8", WHOLE) if port.dtype == "uint8" else form_of(port.dtype)


READABLE = ("float32", "float64", "float16", "bfloat16", "bool", "int8", "uint8", "int16", "uint16", "int32", "int64")


def import_model(name: str, file: str, model: Model, options: ImportOptions) -> Graph:
    _known_opset(file, model)
    importer, scope, record = Importer(name, model, options), Scope(), model.graph
    if not record.inputs or not record.outputs:
        raise ModelError(file, f"it has no {'outputs' if record.inputs else 'inputs'}.", DAMAGED)
    expect_inputs(options, {port.name for port in record.inputs}, file)
    importer.assembly.allow(record.constants.values())
    for port in record.inputs:
        if port.dtype not in READABLE or port.name in scope.items:
            cause = f"it is of the type {port.dtype}" if port.name not in scope.items else "it is listed twice"
            raise ModelError(f"input {port.name!r}", f"{cause}, which nnbuild does not read.", EXPORT_AGAIN)
        if port.name in options.fixed:
            dtype = "float32" if port.dtype == "bfloat16" else port.dtype
            numbers = options.fixed[port.name]
            scope.items[port.name] = fixed_values(port.name, numbers, importer.shape(port), dtype)
            continue
        readers = [node for node in record.nodes if port.name in node.inputs]
        scope.items[port.name] = importer.input(port, readers, Scope.of(record))
    for name in _without_values(model):
        importer.assembly.note(
            f"The input {name!r} was a constant in TensorFlow, of which tf2onnx lost the value; "
            "Keras' model.export('model.tflite', format='litert') keeps it."
        )
    importer.graph(record, scope)
    outputs = [importer.output(port, scope) for port in record.outputs]
    return importer.assembly.finish(_named(importer.assembly, outputs, record.outputs))


def _without_values(model: Model) -> list[str]:
    """Inputs that the model did not have: tf2onnx names them by their scopes, and the model's own plainly."""
    names = [port.name for port in model.graph.inputs]
    inner = [name for name in names if "/" in name]
    return inner if model.producer == "tf2onnx" and len(inner) < len(names) else []


def _named(assembly: Assembly, made: Sequence[str], ports: Sequence[Port]) -> list[str]:
    """Gives outputs the file's names; copies those that are also inputs or other outputs."""
    found: list[str] = []
    for name, port in zip(made, ports, strict=True):
        tensor = assembly.tensors[name]
        mine = tensor.layer != port.name and name not in found and made.count(name) == 1
        found.append(assembly.call(name, port.name) if mine and not assembly.is_input(name) else name)
    return found


def _known_opset(file: str, model: Model) -> None:
    version = model.opsets.get("", 0)
    if 0 < version < OLDEST:
        cause = f"its opset is {version}; nnbuild reads {OLDEST} and later."
        raise ModelError(file, cause, "Export it again with a newer opset, or convert it with onnx.version_converter.")


def _is_known(node: Node, scope: Scope) -> bool:
    """Whether it reads constants only: these are read before everything else, so that operators can look ahead."""
    return all(isinstance(scope.get(name), np.ndarray) for name in node.inputs if name)


def _read(call: Call) -> None:
    """Reads a node; a numpy error about shapes means that the file is wrong."""
    reader = _reader(call.node)
    try:
        reader(call)
    except (ValueError, IndexError, OverflowError, ZeroDivisionError):
        raise call.error("its inputs and options do not match.") from None


def _reader(node: Node) -> Callable[[Call], None]:
    table: Mapping[str, Callable[[Call], None]] = OPERATORS if not node.domain else {}
    if node.domain == "com.microsoft":
        table = foreign.OPERATORS
    if node.domain == "ai.onnx.ml":
        table = ml_domain.OPERATORS
    found = table.get(node.kind)
    if found is not None:
        return found
    raise refused(node)
