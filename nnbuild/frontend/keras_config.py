"""Parses and checks the architecture in a Keras file, before anything is built."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nnbuild.base.errors import ModelError, UsageError
from nnbuild.frontend.checked_config import BROKEN, Config, is_integer, shown
from nnbuild.frontend.keras_nodes import Node, Ref, model_ends, nodes_of
from nnbuild.model.graph import Shape

MODELS = ("Sequential", "Functional", "Model")
MAX_DEPTH = 120
"""Maximum nesting of lists and dictionaries; also bounds every recursion here."""
MAX_NESTING = 16
LONGEST_NAME = 4096
FIX_SHAPE = "Give the model a fixed input shape, such as keras.Input((96, 96, 3)), and save it again."


@dataclass(frozen=True, eq=False)
class LayerSpec:
    """A layer as the file describes it; `model` holds the contents of a nested model, `registered` the name under which
    Keras knows a class that is not its own."""

    name: str
    class_name: str
    config: Config
    nodes: tuple[Node, ...] = ()
    operation: bool = False
    model: ModelSpec | None = None
    registered: str | None = None


@dataclass(frozen=True, eq=False)
class ModelSpec:
    """`inputs` and `outputs` are None for a Sequential model, whose layers are a chain."""

    layers: tuple[LayerSpec, ...]
    inputs: tuple[Ref, ...] | None = None
    outputs: tuple[Ref, ...] | None = None


def parse(text: str, where: str) -> Any:
    """Parses the file's JSON; refuses nesting that no model needs."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise ModelError(where, "its model configuration is not valid JSON.", BROKEN) from None
    level, depth = [data], 0
    while level:
        level = [
            child
            for value in level
            if isinstance(value, (dict, list))
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, (dict, list))
        ]
        depth += 1
        if depth > MAX_DEPTH:
            raise ModelError(where, f"its model configuration is nested more than {MAX_DEPTH} deep.", BROKEN)
    return data


KERAS = ("keras", "keras_core", "tf_keras", "tensorflow")
"""Packages of Keras' own classes."""


def layer_spec(data: Any, where: str, nesting: int = 0) -> LayerSpec:
    """A layer from its configuration entry; `where` names its surroundings."""
    if not isinstance(data, dict):
        raise ModelError(where, f"it holds {shown(data)} instead of a layer's description.", BROKEN)
    outside = Config(where, data)
    class_name = outside.text("class_name")
    inner = data.get("config")
    settings = inner if isinstance(inner, dict) else {"layers": inner}  # Keras before 2.2.3: a bare list of layers
    name = data.get("name", settings.get("name", class_name.lower()))
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not _is_unicode(name):
        raise outside.error(f"a layer in it has the name {shown(name)}, not a short string.")
    config = Config(f"layer {name!r}", settings)
    entries = data.get("inbound_nodes", [])
    if not isinstance(entries, list):
        raise Config(config.where, data).wrong("inbound_nodes", "a list of calls")
    nodes = nodes_of(Config(config.where, data), entries)
    model = model_spec(config, class_name, nesting) if class_name in MODELS else None
    operation = _is_operation(data.get("module"), settings, entries)
    short = class_name.rpartition(">")[2]  # a registered class is package>name
    return LayerSpec(name, short, config, nodes, operation, model, _registered(data, class_name))


def _registered(data: Mapping[str, Any], class_name: str) -> str | None:
    """The registered name of a class that is not Keras' own."""
    module, name = data.get("module", "keras"), data.get("registered_name")
    if ">" in class_name:
        return class_name
    own = isinstance(module, str) and module.partition(".")[0] in KERAS
    return None if own else name if isinstance(name, str) else class_name


def _is_unicode(text: str) -> bool:
    """Whether all characters are valid: JSON can contain lone surrogates, which files and terminals reject."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_operation(module: object, settings: Mapping[str, Any], entries: Sequence[Any]) -> bool:
    """Keras 3's operations share class names with layers (Add), but lack the layers' common options."""
    if isinstance(module, str) and ".ops." in module:
        return True
    if module == "keras.layers":  # some layers lack them, too
        return False
    return not {"trainable", "dtype"} & settings.keys() and any(isinstance(entry, dict) for entry in entries)


def model_spec(config: Config, class_name: str, nesting: int) -> ModelSpec:
    if nesting >= MAX_NESTING:
        raise config.error(f"models are nested more than {MAX_NESTING} deep.", "Flatten the model.")
    layers = tuple(layer_spec(entry, config.where, nesting + 1) for entry in config.items("layers"))
    if not layers:
        raise config.error("the model has no layers.")
    (name, count), *_ = Counter(layer.name for layer in layers).most_common(1)
    if count > 1:
        raise config.error(f"two of its layers have the name {name!r}.")
    if class_name == "Sequential":
        return ModelSpec(layers)
    return ModelSpec(layers, model_ends(config, "input_layers"), model_ends(config, "output_layers"))


def input_shape(spec: LayerSpec, name: str, declared: Any, asked: Shape | None) -> tuple[Shape, int | None]:
    """(the shape of one sample, the saved batch size) of an input; `asked` are the user's sizes, the batch first."""
    if asked is None and (not isinstance(declared, (list, tuple)) or not declared):
        raise spec.config.error("it does not give the shape of the input.", _give(name, "1,96,96,3"))
    if asked is not None:
        declared = _asked(name, declared, asked)
    batch, *axes = declared
    if any(n is None for n in axes):
        sizes = ",".join("N" if n is None else str(n) for n in axes)
        raise spec.config.error(
            f"its shape {tuple(axes)} leaves axes open, but memory is planned at compile time.",
            _give(name, f"1,{sizes}"),
        )
    if not all(is_integer(n) and 0 < n < 2**31 for n in axes) or not (batch is None or is_integer(batch)):
        raise spec.config.error(f"its shape is {shown(declared)}, not a list of sizes.", FIX_SHAPE)
    return tuple(axes), batch


def _asked(name: str, declared: Any, asked: Shape) -> Shape:
    """The user's sizes, if the model may have them."""
    if isinstance(declared, (list, tuple)) and declared and len(declared) != len(asked):
        cause = f"it has {len(declared)} axes, {shown(list(declared))} in the file, but --shape gives {list(asked)}."
        raise UsageError(f"--shape {name}", cause, "Give a number for each of its axes, 1 for the batch.")
    if asked[0] != 1:
        cause = f"its first axis is the batch, and {asked[0]} of it: the compiled model computes one sample at a time."
        raise UsageError(f"--shape {name}", cause, _give(name, ",".join(map(str, (1, *asked[1:])))))
    return asked


def _give(name: str, sizes: str) -> str:
    return f"Give it sizes: --shape {name}={sizes}."


def declared_shape(layers: Sequence[LayerSpec], config: Config) -> Any:
    """The input shape of a Sequential model, which different versions store in different places."""
    first = layers[0].config
    build = config.get("build_config")
    shapes = [
        first.get("batch_shape"),
        first.get("batch_input_shape"),
        config.get("build_input_shape"),
        build.get("input_shape") if isinstance(build, dict) else None,
    ]
    return next((shape for shape in shapes if shape is not None), None)
