"""Turns a parsed Keras model into a graph, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from nnbuild.base.errors import ModelError
from nnbuild.frontend.builder import MAX_OPS, SIMPLIFY, GraphBuilder
from nnbuild.frontend.checked_config import BROKEN, shown
from nnbuild.frontend.import_options import DEFAULTS, ImportOptions, expect_inputs, fixed_values
from nnbuild.frontend.keras_config import FIX_SHAPE, LayerSpec, declared_shape, input_shape, layer_spec
from nnbuild.frontend.keras_layers.argument_constants import with_known
from nnbuild.frontend.keras_layers.base import Call, Wire, as_floats, wires
from nnbuild.frontend.keras_layers.known_sizes import known_outputs, tensor_of
from nnbuild.frontend.keras_layers.narrow_integers import LIMITS, settled
from nnbuild.frontend.keras_layers.registry import kind_of
from nnbuild.frontend.keras_names import folders
from nnbuild.frontend.keras_nodes import Ref
from nnbuild.frontend.keras_order import Wiring, wiring
from nnbuild.frontend.keras_quantized import bits_of, with_scales
from nnbuild.frontend.keras_version import Dialect
from nnbuild.frontend.keras_weights import Child, Stored, WeightTree
from nnbuild.frontend.other_arithmetic import HALF_PRECISION, ROUNDED_INPUTS
from nnbuild.model.graph import Graph
from nnbuild.ops.known import Known

INPUT_TYPES = {"uint8": "uint8", "bool": "int8"} | dict.fromkeys(
    ("int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"), "int32"
)
"""Types of integer inputs -> types in the graph."""
NOT_AT_INFERENCE = ("training",)
"""Call arguments that the layer's builder does not need."""
RATES = ("rate", "stddev", "dropout", "recurrent_dropout")
"""Options that make a layer random during training; without them, most compute the same in training."""


class Importer:
    """Shared data of one model's layers: the graph in progress, and cached results."""

    def __init__(self, name: str, dialect: Dialect, options: ImportOptions) -> None:
        self.builder = GraphBuilder(name)
        self.dialect = dialect
        self._options = options
        self._specs: dict[int, tuple[Any, LayerSpec]] = {}
        self._wirings: dict[int, Wiring] = {}
        self._calls: dict[tuple[str, ...], int] = {}
        self._count = 0
        self._parameters: dict[str, int] = {}

    def weights_of(self, data: Any, where: str) -> WeightTree:
        return self.tree(self._spec(data, where))

    def tree(self, spec: LayerSpec) -> WeightTree:
        """The weights of a layer and everything in it, in the file's order."""
        trainable = spec.config.flag("trainable", True)
        if spec.model is not None:
            layers = spec.model.layers
            places = folders([(layer.class_name, layer.operation) for layer in layers])
            children = tuple(
                Child(layer.name, self.tree(layer), folder) for layer, folder in zip(layers, places, strict=True)
            )
            return WeightTree(children=children, trainable=trainable, is_model=True)
        if spec.class_name == "InputLayer":
            return WeightTree()
        found = kind_of(spec).weights(spec.config, self)
        bits = bits_of(spec.config, spec.class_name)
        found = with_scales(found, bits, spec.class_name) if bits else found
        return replace(found, trainable=trainable)

    def graph(self, spec: LayerSpec, stored: Stored) -> Graph:
        """Builds the whole model."""
        if spec.model is None:
            raise spec.config.error("it is not a model.")
        layers = {layer.name: layer for layer in spec.model.layers}
        if spec.model.inputs is None:
            inputs = [self._sequential_input(spec)]
            expect_inputs(self._options, inputs, "the model")
        else:
            names = [ref.layer for ref in spec.model.inputs]
            run = {name: self._input(layers.get(name), name) for name in names if name not in self._options.fixed}
            expect_inputs(self._options, names, "the model")
            beside = next(iter(run.values()))
            inputs = [run[name] if name in run else self._fixed(layers.get(name), name, beside) for name in names]
        outputs = self._model(spec, (), inputs, stored)
        return replace(self.builder.finish(outputs), parameters=self._parameters)

    def run(
        self, data: Any, path: tuple[str, ...], inputs: Sequence[str], stored: Stored, mask: str | None = None
    ) -> tuple[str, ...]:
        """Builds a layer inside a wrapper: its operations belong to the wrapper."""
        spec = self._spec(data, f"layer {path[0]!r}")
        if spec.model is not None:
            return self._model(spec, path, inputs, stored)
        named = {} if mask is None else {"mask": Wire(mask)}
        return self._build(spec, path, tuple(Wire(name) for name in inputs), named, stored)

    def _spec(self, data: Any, where: str) -> LayerSpec:
        """Cached by identity; keeps the data alive, so that its id stays unique."""
        if id(data) not in self._specs:
            self._specs[id(data)] = (data, layer_spec(data, where))
        return self._specs[id(data)][1]

    def _sequential_input(self, spec: LayerSpec) -> str:
        assert spec.model is not None
        first = spec.model.layers[0]
        while first.class_name != "InputLayer" and first.model is not None and first.model.inputs is None:
            first = first.model.layers[0]  # a Sequential whose first layer is a Sequential
        shape = declared_shape(spec.model.layers, spec.config) or declared_shape((first,), first.config)
        if first.model is not None and first.model.inputs is not None and shape is None:
            inner = {layer.name: layer for layer in first.model.layers}
            return self._input(inner.get(first.model.inputs[0].layer), first.name)
        return self._new_input(first, first.name if first.class_name == "InputLayer" else f"{first.name}_input", shape)

    def _input(self, layer: LayerSpec | None, name: str) -> str:
        if layer is None or layer.class_name != "InputLayer":
            raise ModelError(f"layer {name!r}", "it is an input of the model, but not an input layer.", BROKEN)
        return self._new_input(layer, name, declared_shape((layer,), layer.config))

    def _fixed(self, layer: LayerSpec | None, name: str, beside: str) -> str:
        """The constant in the place of an input, beside one that is left."""
        if layer is None or layer.class_name != "InputLayer":
            raise ModelError(f"layer {name!r}", "it is an input of the model, but not an input layer.", BROKEN)
        declared = declared_shape((layer,), layer.config)
        shape, _ = input_shape(layer, name, declared, self._options.shapes.get(name))
        kind = str(layer.config.get("dtype"))
        for dtype in (kind if kind in INPUT_TYPES else "float32", INPUT_TYPES.get(kind, "float32")):
            values = fixed_values(name, self._options.fixed[name], shape, dtype)  # both types must hold the numbers
        return self.builder.one(Known(), (beside,), {"values": self.builder.constant((name, "fixed"), lambda: values)})

    def _new_input(self, layer: LayerSpec, name: str, declared: Any) -> str:
        for key in ("sparse", "ragged"):
            layer.config.refuse(key, FIX_SHAPE)
        shape, batch = input_shape(layer, name, declared, self._options.shapes.get(name))
        if batch not in (None, 1):
            self.builder.note(f"saved for batches of {batch} samples; the compiled model computes one at a time")
        if layer.config.get("dtype") in ("string", "resource"):
            raise layer.config.error("its input is text.", "Convert the text to numbers outside the model.")
        kind = str(layer.config.get("dtype"))
        made = self.builder.input(name, shape, INPUT_TYPES.get(kind, "float32"))
        if kind in LIMITS:
            self.builder.integers[made] = kind
        return made

    def _model(self, spec: LayerSpec, path: tuple[str, ...], inputs: Sequence[str], stored: Stored) -> tuple[str, ...]:
        assert spec.model is not None
        if spec.model.inputs is not None:
            return self._functional(spec, path, inputs, stored)
        if len(inputs) != 1:
            raise spec.config.error(f"it is called with {len(inputs)} tensors instead of one.")
        here = tuple(inputs)
        for layer in spec.model.layers:
            if layer.class_name != "InputLayer":
                arguments = tuple(Wire(name) for name in here)
                here = self._layer(layer, (*path, layer.name), arguments, {}, stored.inside(layer.name))
        return here

    def _functional(
        self, spec: LayerSpec, path: tuple[str, ...], inputs: Sequence[str], stored: Stored
    ) -> tuple[str, ...]:
        assert spec.model is not None and spec.model.inputs is not None
        if id(spec) not in self._wirings:
            self._wirings[id(spec)] = wiring(spec.model, self.dialect)
        plan = self._wirings[id(spec)]
        if len(inputs) != len(plan.inputs):
            raise spec.config.error(f"it has {len(plan.inputs)} inputs, but is called with {len(inputs)} tensors.")
        bound = {ref.layer: name for ref, name in zip(plan.inputs, inputs, strict=True)}
        values: dict[tuple[str, int], tuple[Any, ...]] = {}
        for call in plan.calls:
            layer = call.layer
            if layer.class_name == "InputLayer":
                if layer.name not in bound:
                    raise layer.config.error("it is an input layer that is not among the model's inputs.")
                values[call.key] = (Wire(bound[layer.name]),)
                continue
            arguments = _filled(call.node.arguments, values, layer)
            named = _filled(call.node.named, values, layer)
            known = known_outputs(layer, arguments, named, self.builder)
            if known is None:
                made = self._layer(layer, (*path, layer.name), arguments, named, stored.inside(layer.name))
                known = tuple(Wire(name) for name in made)
            values[call.key] = known
        return tuple(tensor_of(_fill(ref, values, spec), spec.config).name for ref in plan.outputs)

    def _layer(
        self,
        spec: LayerSpec,
        path: tuple[str, ...],
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        stored: Stored,
    ) -> tuple[str, ...]:
        """Builds one call of a layer, and names the outputs after it."""
        self._count += 1
        if self._count > MAX_OPS:
            raise spec.config.error(f"the model contains more than {MAX_OPS} calls.", SIMPLIFY)
        number = self._calls.get(path, 0)
        self._calls[path] = number + 1
        label = "/".join(path) + (f"@{number}" if number else "")
        with self.builder.at(label):
            since = self.builder.mark()
            if spec.model is not None:
                _refuse_training(spec, named, whole=True)
                given = named.get("mask")
                named = {key: value for key, value in named.items() if key != "mask"}
                arguments, named = with_known(self.builder, spec.config, (*path, str(number)), arguments, named)
                inputs = tuple(wires((arguments, named)))
                with self._masked(inputs, given):
                    outputs = self._model(spec, path, inputs, stored)
            else:
                outputs = self._build(spec, path, arguments, named, stored)
                if number == 0:  # a repeated call has no further parameters
                    self._parameters[label] = stored.parameters()
            return self.builder.label(outputs, label, since)

    def _build(
        self,
        spec: LayerSpec,
        path: tuple[str, ...],
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        stored: Stored,
    ) -> tuple[str, ...]:
        kind = kind_of(spec)
        _refuse_training(spec, named, whole=False)
        named = {key: value for key, value in named.items() if key not in NOT_AT_INFERENCE}
        if not kind.literal:
            if next(wires((arguments, named)), None) is None:
                cause = "it is called with numbers alone, so that its result has no axis for the samples."
                raise spec.config.error(cause, "Call it with an input of the model, and give that its numbers.")
            number = self._calls.get(path, 0)
            arguments, named = with_known(self.builder, spec.config, (*path, str(number)), arguments, named)
        argument = None if kind.literal else named.pop("mask", None)
        masks = _listed(argument) if kind.takes_masks else None
        given = [*wires(argument)] if masks is None else []
        first = next(wires((arguments, named)), None)
        passed = given[0] if given else self.builder.masks.get(first) if first is not None else None
        passed = masks[0] if masks else passed
        mask = passed if given or self._applies_masks(arguments, named) else None
        if len(given) > 1 or (mask is not None and (given or kind.sees_mask) and not kind.takes_mask):
            raise spec.config.error(
                "a mask makes it skip some of its input, which nnbuild does not support here.",
                "Remove the mask, and give sequences without padding.",
            )
        self._check_policy(spec)
        operands = (arguments, named)
        if not kind.takes_whole:
            arguments, named = as_floats(self.builder, arguments), as_floats(self.builder, named)
        inputs = tuple(wires((arguments, named)))
        call = Call(self.builder, self, self.dialect, path, spec.config, inputs, arguments, named, stored, mask, masks)
        outputs = kind.build(call)
        if not kind.literal:  # operations see to it themselves
            outputs = settled(call, spec.class_name, operands, outputs)
        if passed is not None and kind.passes_mask:
            self.builder.masks[outputs[0]] = passed
        return outputs

    @contextmanager
    def _masked(self, inputs: tuple[str, ...], given: Any) -> Iterator[None]:
        """Masks that a model is called with hold within this call only."""
        before = {name: self.builder.masks.get(name) for name in inputs}
        self._set_masks(dict(zip(inputs, _listed(given) or wires(given), strict=False)))
        yield
        for name in inputs:
            self.builder.masks.pop(name, None)
        self._set_masks(before)

    def _set_masks(self, masks: Mapping[str, str | None]) -> None:
        self.builder.masks |= {name: mask for name, mask in masks.items() if mask is not None}

    def _applies_masks(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
        """Whether a layer sees the mask of its input: Keras 3 hides it where further arguments are tensors, such as
        initial states."""
        return not self.dialect.keras3 or sum(any(wires(each)) for each in (*arguments, *named.values())) < 2

    def _check_policy(self, spec: LayerSpec) -> None:
        """Notes that everything is computed in single precision, whatever the saved precision."""
        policy = spec.config.get("dtype")
        name = policy
        if isinstance(policy, dict):
            inner = policy.get("config")
            name = inner.get("name") if isinstance(inner, dict) else None
            bits = bits_of(spec.config, spec.class_name)
            if bits:
                rounds = bits != 4 and spec.class_name != "Embedding"
                also = "; Keras also rounds the layer's input to 8 bits" if rounds else ""
                self.builder.unlike = ROUNDED_INPUTS if rounds else self.builder.unlike
                self.builder.note(f"weights of {bits} bits are computed with in float32{also}")
        if isinstance(name, str) and name.endswith("float16"):
            self.builder.unlike = HALF_PRECISION
        if isinstance(name, str) and name != "float32":
            self.builder.note(f"saved to be computed as {shown(name)}; computed in float32")


def _listed(masks: Any) -> tuple[str | None, ...] | None:
    """A list of masks, of which some may be missing."""
    if not isinstance(masks, (list, tuple)) or not masks:
        return None
    return tuple(mask.name if isinstance(mask, Wire) else None for mask in masks)


def _refuse_training(spec: LayerSpec, named: Mapping[str, Any], whole: bool) -> None:
    """With `training=True`, a layer also drops values at random, or normalizes by the batch, at inference."""
    if named.get("training") in (None, False, 0):
        return
    learns = spec.class_name == "BatchNormalization" and spec.config.get("trainable") is not False
    chance = any(isinstance(spec.config.get(key), int | float) and spec.config.get(key) for key in RATES)
    inner = "layer" in spec.config  # a wrapper passes it on
    if whole or learns or chance or inner:
        raise spec.config.error(
            "it is called with training=True, so it behaves at inference as in training: its results "
            "depend on chance or on the other samples.",
            "Build the model for inference, without training=True, and save it.",
        )


def _fill(ref: Ref, values: Mapping[tuple[str, int], tuple[Any, ...]], layer: LayerSpec) -> Any:
    """A tensor, or numbers in its place."""
    outputs = values[ref.layer, ref.node]
    if ref.index >= len(outputs):
        raise layer.config.error(f"output {ref.index} of the layer {ref.layer!r} is wired to it, but does not exist.")
    return outputs[ref.index]


def _filled(value: Any, values: Mapping[tuple[str, int], tuple[Any, ...]], layer: LayerSpec) -> Any:
    """Arguments with every Ref replaced by its tensor."""
    if isinstance(value, Ref):
        return _fill(value, values, layer)
    if isinstance(value, (list, tuple)):
        return tuple(_filled(item, values, layer) for item in value)
    if isinstance(value, Mapping):
        return {key: _filled(item, values, layer) for key, item in value.items()}
    return value


Sources = Callable[[WeightTree], Stored]
"""Finds a model's arrays in a file format."""


def import_model(
    name: str, data: Any, dialect: Dialect, where: str, source: Sources, options: ImportOptions = DEFAULTS
) -> Graph:
    """Builds a model's graph from its configuration and weights."""
    spec = layer_spec(data, where)
    if spec.model is None:
        raise ModelError(
            where,
            f"it contains a model of the class {shown(spec.class_name)}, whose architecture is Python code, not data.",
            "Trace it: x = keras.Input(shape); keras.Model(x, model.call(x)).save('model.keras'), and give that file; "
            "or export it: model.export('model.tflite', format='litert') or ('model.onnx', format='onnx').",
        )
    importer = Importer(name, dialect, options)
    return importer.graph(spec, source(importer.tree(spec)))
