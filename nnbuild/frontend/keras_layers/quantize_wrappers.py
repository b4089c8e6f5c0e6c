"""Wrappers of quantization-aware training (tensorflow-model-optimization), with ranges beside the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nnbuild.frontend.checked_config import Config, shown
from nnbuild.frontend.keras_layers.base import Call, LayerKind, Layers, single
from nnbuild.frontend.keras_weights import Child, StoredArray, WeightTree, finite
from nnbuild.model.graph import Array
from nnbuild.numeric.steps import steps
from nnbuild.ops.activation import Activation
from nnbuild.ops.functions import apply

BITS = 8
AWARE, NOTHING = "QuantizeAwareActivation", "NoOpActivation"
BEFORE, BEHIND = ("softmax", "sigmoid", "tanh", "gelu"), ("linear", "relu", "swish", "gelu")
"""Activations whose input, and those whose output has a range."""
UNWRAPPED = "Save the model before quantize_model(), or with its default 8-bit scheme."


def _inner(config: Config) -> tuple[Mapping[str, Any], str]:
    """(the wrapped layer, the name of its activation), without the activation's wrapper."""
    data = config.mapping("layer")
    settings = data.get("config")
    activation = settings.get("activation") if isinstance(settings, dict) else None
    if not isinstance(settings, dict) or not isinstance(activation, dict) or activation.get("class_name") != AWARE:
        return data, ""
    held = activation.get("config")
    name = held.get("activation") if isinstance(held, dict) else None
    if isinstance(name, dict) and name.get("class_name") == NOTHING:
        name = "linear"
    if not isinstance(name, str):
        raise config.error(f"it wraps the activation {shown(name)}.", UNWRAPPED)
    return {**data, "config": {**settings, "activation": name}}, name


def _wrapper_weights(config: Config, layers: Layers) -> WeightTree:
    inner = layers.weights_of(_inner(config)[0], config.where)
    if inner.children:
        raise config.error("it wraps a layer that contains layers.", UNWRAPPED)
    held, fixed = (tuple(f"layer/{role}" for role in roles) for roles in (inner.trained, inner.fixed))
    return WeightTree(held, fixed, ranges=True, archived=_archived(config, inner))


def _archived(config: Config, inner: WeightTree) -> WeightTree:
    """In a .keras file the wrapper holds the weights that it quantizes, its optimizer step, and the ranges, first those
    of weights; all other weights are the layer's."""
    scheme = config.values.get("quantize_config")
    settings = scheme.get("config") if isinstance(scheme, dict) else None
    listed = settings.get("weight_attrs") if isinstance(settings, dict) else None
    quantized = [role for role in inner.trained if isinstance(listed, list) and role in listed]
    rest = WeightTree(tuple(role for role in inner.trained if role not in quantized), inner.fixed)
    activation = _inner(config)[1]
    sides = [side for side, names in (("pre", BEFORE), ("post", BEHIND)) if activation in names]
    known = [*quantized, *(f"{side}_activation" for side in sides)] if activation else [*quantized, "output"]
    ends = tuple(f"{role}_{end}" for role in known for end in ("min", "max"))
    return WeightTree(
        children=(Child("layer", rest, "layer"),),
        around_scalar=(tuple(f"layer/{role}" for role in quantized), ends),
    )


def _wrapper(call: Call) -> tuple[str, ...]:
    data, activation = _inner(call.config)
    stored = call.stored.replaced(_weights_in_steps(call))
    before = call.stored.get("pre_activation_min") is not None
    if before:
        data = {**data, "config": {**data["config"], "activation": "linear"}}
    outputs = call.layers.run(data, (*call.path, "layer"), call.inputs, stored.inside("layer"))
    if len(outputs) != 1:
        raise call.config.error(f"it wraps a layer with {len(outputs)} outputs.", UNWRAPPED)
    y = outputs[0]
    if before:
        y = in_steps(call, y, "pre_activation")
        named = {
            "class_name": "Activation",
            "config": {"name": f"{call.path[-1]}/activation", "activation": activation},
        }
        (y,) = call.layers.run(named, (*call.path, "activation"), (y,), stored)
    for role in ("post_activation", "output"):
        if call.stored.get(f"{role}_min") is not None:
            y = in_steps(call, y, role)
    return (y,)


def _weights_in_steps(call: Call) -> dict[str, StoredArray]:
    """The fake-quantized weights: each with one range, or one per index of its last axis."""
    found = {}
    for role in ("kernel", "depthwise_kernel", "pointwise_kernel"):
        held = call.stored.get(f"layer/{role}")
        if held is not None and call.stored.get(f"{role}_min") is not None:
            found[f"layer/{role}"] = StoredArray(held.shape, lambda h=held, r=role: _weights(call, h, r))  # type: ignore[misc]
    return found


def _weights(call: Call, held: StoredArray, role: str) -> Array:
    values, (lows, highs) = held.read(), _range(call, role)
    if lows.size not in (1, values.shape[-1]) or lows.size != highs.size:
        raise call.config.error(f"its {role} has {lows.size} ranges for {values.shape[-1]} channels.", UNWRAPPED)
    channels = []
    for i, (low, high) in enumerate(zip(lows, highs, strict=True)):
        part = values if lows.size == 1 else values[..., i]
        grid = steps(low, high, BITS, narrow=True)
        channels.append(apply("steps", grid, part) if grid[2] > 0 else part)
    return channels[0] if lows.size == 1 else np.stack(channels, axis=-1)


def _range(call: Call, role: str) -> tuple[Array, Array]:
    ends = [call.stored.get(f"{role}_{end}") for end in ("min", "max")]
    if ends[0] is None or ends[1] is None:
        raise call.config.error(f"the file has no range for its {role}.", UNWRAPPED)
    low, high = (finite(call.config.where, role, end.read()).reshape(-1) for end in ends if end is not None)
    return low, high


def in_steps(call: Call, x: str, role: str) -> str:
    low, high = _range(call, role)
    if low.size != 1 or high.size != 1 or not low[0] <= 0 <= high[0]:
        raise call.config.error(f"the range of its {role} is {low[:4].tolist()} to {high[:4].tolist()}.", UNWRAPPED)
    grid = steps(float(low[0]), float(high[0]), BITS, narrow=False)
    return call.one(Activation("steps", grid), x) if grid[2] > 0 else x


def _first_role(config: Config) -> str:
    """Its range has the layer's name."""
    return str(config.values.get("name", "quantize_layer"))


def _first_weights(config: Config, _: Layers) -> WeightTree:
    ends = tuple(f"{_first_role(config)}_{end}" for end in ("min", "max"))
    return WeightTree(ranges=True, archived=WeightTree(fixed=(*ends, "optimizer_step")))


def _first(call: Call) -> str:
    settings = call.config.values.get("quantizer")
    inner = settings.get("config") if isinstance(settings, dict) else None
    bits = inner.get("num_bits", BITS) if isinstance(inner, dict) else BITS
    if bits != BITS:
        raise call.config.error(f"it keeps its input in {shown(bits)} bits.", UNWRAPPED)
    return in_steps(call, call.input, _first_role(call.config))


LAYERS = {
    "QuantizeLayer": LayerKind(single(_first), _first_weights),
    **dict.fromkeys(("QuantizeWrapper", "QuantizeWrapperV2"), LayerKind(_wrapper, _wrapper_weights)),
}
