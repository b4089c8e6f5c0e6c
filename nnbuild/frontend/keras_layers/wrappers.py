"""Wrapper layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nnbuild.frontend.checked_config import Config, shown
from nnbuild.frontend.keras_layers import conv_recurrent
from nnbuild.frontend.keras_layers.base import Call, LayerKind, Layers
from nnbuild.frontend.keras_layers.normalization import scaled
from nnbuild.frontend.keras_layers.recurrent import KINDS
from nnbuild.frontend.keras_names import folders
from nnbuild.frontend.keras_weights import Child, WeightTree, parts
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.slice import Slice

MERGES = {"sum": "add", "mul": "multiply", "ave": "add"}


def _time_distributed_weights(config: Config, layers: Layers) -> WeightTree:
    return WeightTree(children=parts(layer=layers.weights_of(config.mapping("layer"), config.where)))


def _time_distributed(call: Call) -> tuple[str, ...]:
    if len(call.shape) < 2:
        raise call.config.error(f"it needs an input [time, …], not {call.shape}.")
    with call.builder.along(call.shape[:1]):
        data = call.config.mapping("layer")
        return call.layers.run(data, (*call.path, "layer"), call.inputs, call.stored.inside("layer"))


def _spectral_weights(config: Config, layers: Layers) -> WeightTree:
    inner = parts(layer=layers.weights_of(config.mapping("layer"), config.where))
    archived = WeightTree(("kernel",), ("vector_u",), inner)  # the inner layer's kernel once more
    return WeightTree((), ("vector_u",), inner, archived=archived)


def _spectral(call: Call) -> tuple[str, ...]:
    """The stored kernel is already divided by its norm; only training changes it. The inner layer sees to the mask."""
    data = call.config.mapping("layer")
    return call.layers.run(data, (*call.path, "layer"), call.inputs, call.stored.inside("layer"))


def _pipeline_layers(config: Config, layers: Layers) -> tuple[tuple[Child, Any], ...]:
    """Each layer, with its weights: they are numbered by class."""
    found = config.items("layers")
    if not all(isinstance(data, dict) and isinstance(data.get("class_name"), str) for data in found):
        raise config.wrong("layers", "a list of layers")
    names = [f"{index} {data['class_name']}" for index, data in enumerate(found)]
    places = folders([(data["class_name"], False) for data in found])
    trees = [layers.weights_of(data, config.where) for data in found]
    children = (Child(*each) for each in zip(names, trees, places, strict=True))
    return tuple(zip(children, found, strict=True))


def _pipeline_weights(config: Config, layers: Layers) -> WeightTree:
    return WeightTree(children=tuple(child for child, _ in _pipeline_layers(config, layers)))


def _pipeline(call: Call) -> tuple[str, ...]:
    made = call.inputs
    for child, data in _pipeline_layers(call.config, call.layers):
        made = call.layers.run(data, (*call.path, child.name), made, call.stored.inside(child.name))
    return made


def _recurrent(config: Config, data: Mapping[str, Any]) -> Mapping[str, Any]:
    known = (*KINDS, "RNN", *conv_recurrent.LAYERS)
    if data.get("class_name") not in known or not isinstance(data.get("config"), dict):
        raise config.error(f"it wraps {shown(data.get('class_name'))}.", f"Use one of {', '.join(known)} in it.")
    return data


def _directions(config: Config) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The two layers; Keras 2 omits the backward one where it mirrors the forward one."""
    forward = _recurrent(config, config.mapping("layer"))
    mirrored = {**forward["config"], "go_backwards": not forward["config"].get("go_backwards", False)}
    backward: Mapping[str, Any] = {**forward, "config": mirrored}
    if "backward_layer" in config:
        backward = _recurrent(config, config.mapping("backward_layer"))
    return _with_zeros(forward), _with_zeros(backward)


def _with_zeros(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Bidirectional layers give zeros for invalid steps, whatever the inner layer's option says."""
    settings = data["config"]
    return {**data, "config": {**settings, "zero_output_for_mask": settings.get("return_sequences", False)}}


def _bidirectional_weights(config: Config, layers: Layers) -> WeightTree:
    forward, backward = (layers.weights_of(data, config.where) for data in _directions(config))
    return WeightTree(children=parts(forward_layer=forward, backward_layer=backward))


def _bidirectional(call: Call) -> tuple[str, ...]:
    results = []
    states = call.inputs[1:]
    halves = states[: len(states) // 2], states[len(states) // 2 :]
    for data, name, initial in zip(_directions(call.config), ("forward_layer", "backward_layer"), halves, strict=True):
        inputs, stored = (*call.inputs[:1], *initial), call.stored.inside(name)
        found = call.layers.run(data, (*call.path, name), inputs, stored, call.mask)
        results.append(found)
    (forward, *ahead), (backward, *behind) = results
    if _directions(call.config)[1]["config"].get("return_sequences"):
        backward = _reversed(call, backward)
    return (*_merged(call, forward, backward), *ahead, *behind)


def _reversed(call: Call, x: str) -> str:
    time, *rest = call.builder.shape(x)
    return call.one(Slice((time - 1, *(0 for _ in rest)), (-1, *(1 for _ in rest)), (time, *rest)), x)


def _merged(call: Call, forward: str, backward: str) -> tuple[str, ...]:
    mode = call.config.values.get("merge_mode", "concat")
    if mode is None:
        return forward, backward
    if mode == "concat":
        return (call.one(Concatenate(len(call.builder.shape(forward)) - 1), forward, backward),)
    if mode not in tuple(MERGES):
        raise call.config.wrong("merge_mode", "one of concat, sum, mul, ave or null")
    joined = call.one(Binary(MERGES[mode]), forward, backward)
    return (scaled(call, joined, "multiply", "half", np.asarray(0.5)) if mode == "ave" else joined,)


LAYERS = {
    "Pipeline": LayerKind(_pipeline, _pipeline_weights),
    "SpectralNormalization": LayerKind(_spectral, _spectral_weights),
    "TimeDistributed": LayerKind(_time_distributed, _time_distributed_weights, takes_mask=True, passes_mask=True),
    "Bidirectional": LayerKind(
        _bidirectional, _bidirectional_weights, sees_mask=True, takes_mask=True, passes_mask=True
    ),
}
