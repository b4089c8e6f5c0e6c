"""Turn a Keras 2 `.h5` file into what an older Keras would have written.

Old versions cannot be installed beside today's Python, but what their files look like is known: other key names and
class names in the configuration, and other ways of storing strings in HDF5. `rewrite` copies a file and translates
those; weights and meaning stay, so the golden output of the original holds for the copy.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

Config = dict[str, Any]
Strings = Callable[[str], Any]

# Options that came later: left out where they have the value that was the only one before.
_NEW_OPTIONS: Config = {
    "groups": 1,
    "keepdims": False,
    "time_major": False,
    "ragged": False,
    "optional": False,
    "output_padding": None,
}

# Options that standalone Keras 2.1 had not either.
_OPTIONS_AFTER_2_1: Config = {"reset_after": False, "interpolation": "nearest"}

_VARIANCE_SCALING = {
    "GlorotUniform": ("fan_avg", "uniform"),
    "GlorotNormal": ("fan_avg", "normal"),
    "HeUniform": ("fan_in", "uniform"),
    "HeNormal": ("fan_in", "normal"),
}


_LARGEST_FIXED_STRING = 60_000  # HDF5 keeps fixed-length attributes in a header of 64 KB


@dataclass(frozen=True)
class Dialect:
    """How one generation of Keras wrote a model."""

    name: str
    keras_version: str
    functional_class: str = "Model"
    batch_normalization_class: str = "BatchNormalization"
    axis_in_list: bool = False
    flags_as_integers: bool = False
    dtype_of_each_layer: bool = False
    sequential_as_list: bool = False
    dropped: tuple[Config, ...] = (_NEW_OPTIONS,)
    strings: str = "fixed"  # "fixed": fixed-length bytes; "bytes", "text": of variable length
    names_per_chunk: int | None = None  # Keras splits lists of names past 64 KB; any length must do to read them


DIALECTS = (
    Dialect("keras_2_1", "2.1.6", sequential_as_list=True, dropped=(_NEW_OPTIONS, _OPTIONS_AFTER_2_1)),
    Dialect("keras_2_2_4", "2.2.4"),
    Dialect("keras_2_2_4_chunked", "2.2.4", names_per_chunk=2),
    Dialect("keras_2_2_4_integers", "2.2.4", flags_as_integers=True, strings="bytes"),
    Dialect("keras_2_3_1", "2.3.1", dtype_of_each_layer=True, strings="bytes"),
    Dialect("tf_1_14", "2.2.4-tf", batch_normalization_class="BatchNormalizationV1", dtype_of_each_layer=True),
    Dialect("tf_2_1", "2.2.4-tf", axis_in_list=True, dtype_of_each_layer=True, strings="text"),
    Dialect(
        "tf_2_4_chunked",
        "2.4.0",
        functional_class="Functional",
        axis_in_list=True,
        dtype_of_each_layer=True,
        dropped=({"optional": False},),
        strings="text",
        names_per_chunk=1,
    ),
)


def rewrite(source: Path, target: Path, dialect: Dialect) -> None:
    """Write a copy of the tf-keras file `source` as `dialect` would have written it."""
    with h5py.File(source) as old, h5py.File(target, "w") as new:
        config = translate(json.loads(old.attrs["model_config"]), dialect)
        store = _string_writer(dialect.strings)
        for place in (new, new.create_group("model_weights")):
            place.attrs["keras_version"] = store(dialect.keras_version)
            place.attrs["backend"] = store("tensorflow")
        new.attrs["model_config"] = store(json.dumps(config))
        _copy_weights(old["model_weights"], new["model_weights"], dialect)


def translate(config: Config, dialect: Dialect) -> Config:
    """A layer's or model's `{class_name, config, …}` in the dialect's words, and all that is nested in it."""
    config = dict(config)
    class_name = config["class_name"]
    inner = config["config"]
    if class_name == "Functional":
        config["class_name"] = dialect.functional_class
    if class_name in ("Functional", "Sequential"):
        inner = inner | {"layers": [translate(layer, dialect) for layer in inner["layers"]]}
        inner.pop("trainable", None)
    if class_name == "Sequential":
        inner = _sequential(inner, dialect)
    if class_name not in ("Functional", "Sequential"):
        inner = _layer_options(class_name, inner, dialect)
    if class_name == "BatchNormalization":
        config["class_name"] = dialect.batch_normalization_class
    config["config"] = inner
    config.pop("build_config", None)
    return config


def _layer_options(class_name: str, options: Config, dialect: Dialect) -> Config:
    options = {key: _value(value, dialect) for key, value in options.items()}
    for dropped in dialect.dropped:
        options = {key: value for key, value in options.items() if key not in dropped or value != dropped[key]}
    if not dialect.dtype_of_each_layer and "batch_input_shape" not in options:
        options.pop("dtype", None)
    axis = options.get("axis")
    if class_name == "BatchNormalization" and isinstance(axis, list) and len(axis) == 1 and not dialect.axis_in_list:
        options["axis"] = axis[0]
    if dialect.flags_as_integers:
        flags = [key for key in ("scale", "center", "use_bias") if isinstance(options.get(key), bool)]
        options |= {key: int(options[key]) for key in flags}
    return options


def _value(value: Any, dialect: Dialect) -> Any:
    """An option's value: a wrapped layer, an initializer in its old words, or the value itself."""
    if not (isinstance(value, dict) and "class_name" in value):
        return value
    if value.get("module") == "keras.initializers":
        return _initializer(value["class_name"], value["config"])
    return translate({key: value[key] for key in ("class_name", "config")}, dialect)


def _initializer(class_name: str, config: Config) -> Config:
    if class_name in _VARIANCE_SCALING:
        mode, distribution = _VARIANCE_SCALING[class_name]
        config = {"scale": 1.0, "mode": mode, "distribution": distribution, "seed": config.get("seed")}
        class_name = "VarianceScaling"
    return {"class_name": class_name, "config": config}


def _sequential(inner: Config, dialect: Dialect) -> Any:
    """Old Sequential models list no InputLayer: the first layer holds `batch_input_shape`."""
    layers = inner["layers"]
    if len(layers) > 1 and layers[0]["class_name"] == "InputLayer":
        first, second = layers[0]["config"], layers[1]
        shape = {"batch_input_shape": first["batch_input_shape"], "dtype": first.get("dtype", "float32")}
        if second["class_name"] not in (dialect.functional_class, "Sequential"):  # a model knows its own inputs
            second = second | {"config": second["config"] | shape}
        layers = [second, *layers[2:]]
    if dialect.sequential_as_list:
        return layers
    return {"name": inner["name"], "layers": layers}


def _string_writer(strings: str) -> Strings:
    def variable_length(text: str) -> Any:
        return np.array(text.encode(), dtype=h5py.string_dtype("ascii"))

    def fixed_length(text: str) -> Any:
        return np.bytes_(text.encode()) if len(text) < _LARGEST_FIXED_STRING else variable_length(text)

    return {"fixed": fixed_length, "bytes": variable_length, "text": str}[strings]


def _copy_weights(old: h5py.Group, new: h5py.Group, dialect: Dialect) -> None:
    layer_names = _read_names(old, "layer_names")
    _write_names(new, "layer_names", layer_names, dialect)
    for layer_name in layer_names:
        weight_names = _read_names(old[layer_name], "weight_names")
        group = new.require_group(layer_name)
        _write_names(group, "weight_names", weight_names, dialect)
        for weight_name in weight_names:
            group[weight_name] = old[layer_name][weight_name][()]


def _read_names(group: h5py.Group, key: str) -> list[str]:
    """A list of names, which may be split already."""
    keys = (
        [key]
        if key in group.attrs
        else itertools.takewhile(lambda part: part in group.attrs, (f"{key}{index}" for index in itertools.count()))
    )
    return [_text(name) for part in keys for name in group.attrs[part]]


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _write_names(group: h5py.Group, key: str, names: list[str], dialect: Dialect) -> None:
    """One attribute, or `<key>0`, `<key>1` … with a few names each."""
    size = dialect.names_per_chunk
    if size is None and len(names) * max(map(len, names), default=0) > _LARGEST_FIXED_STRING:
        size = _LARGEST_FIXED_STRING // max(map(len, names))
    if size is None or len(names) <= size:
        group.attrs[key] = _name_array(names, dialect)
        return
    for index, start in enumerate(range(0, len(names), size)):
        group.attrs[f"{key}{index}"] = _name_array(names[start : start + size], dialect)


def _name_array(names: list[str], dialect: Dialect) -> np.ndarray:
    if not names:
        return np.array([], dtype=np.float64)  # what numpy makes of an empty list, and old Keras stored
    if dialect.strings == "fixed":
        return np.array([name.encode() for name in names])
    return np.array(names, dtype=h5py.string_dtype("ascii" if dialect.strings == "bytes" else "utf-8"))
