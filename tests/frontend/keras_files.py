"""Writes model files as Keras does, without Keras: for tests that need a file with one thing wrong."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

Json = Any
Arrays = Mapping[str, Sequence[np.ndarray]]


def layer(class_name: str, name: str, **options: Json) -> dict[str, Json]:
    return {"class_name": class_name, "config": {"name": name, "trainable": True, "dtype": "float32", **options}}


def input_layer(name: str, shape: Sequence[int | None]) -> dict[str, Json]:
    return layer("InputLayer", name, batch_input_shape=[None, *shape])


def dense(name: str, units: int, **options: Json) -> dict[str, Json]:
    return layer("Dense", name, **{"units": units, "activation": "linear", "use_bias": True, **options})


def sequential(*layers: Json, name: str = "model") -> dict[str, Json]:
    return {"class_name": "Sequential", "config": {"name": name, "layers": list(layers)}}


def called(spec: dict[str, Json], *inputs: str | Sequence[Json], **named: Json) -> dict[str, Json]:
    """A layer of a Functional model, called once in the way Keras 2 writes it."""
    triples = [[i, 0, 0, named] if isinstance(i, str) else [*i, named] for i in inputs]
    return {**spec, "name": spec["config"]["name"], "inbound_nodes": [triples] if inputs else []}


def functional(layers: Sequence[Json], inputs: Sequence[str], outputs: Sequence[Json]) -> dict[str, Json]:
    ends = [[end, 0, 0] if isinstance(end, str) else end for end in outputs]
    config = {"name": "model", "layers": list(layers), "input_layers": [[i, 0, 0] for i in inputs]}
    return {"class_name": "Functional", "config": {**config, "output_layers": ends}}


def h5_bytes(config: Json, weights: Arrays, version: str | None = "2.15.0") -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        if version is not None:
            file.attrs["keras_version"] = version
        file.attrs["backend"] = "tensorflow"
        file.attrs["model_config"] = config if isinstance(config, str) else json.dumps(config)
        root = file.create_group("model_weights")
        root.attrs["layer_names"] = [name.encode() for name in weights]
        for name, arrays in weights.items():
            group = root.create_group(name)
            names = [f"{name}/weight_{index}:0" for index in range(len(arrays))]
            group.attrs["weight_names"] = [text.encode() for text in names]
            for text, array in zip(names, arrays, strict=True):
                group[text] = array
    return buffer.getvalue()


def keras_bytes(config: Json, arrays: Mapping[str, np.ndarray], version: str = "3.5.0") -> bytes:
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        for path, array in arrays.items():
            file[path] = array
    return zip_bytes(
        {
            "metadata.json": json.dumps({"keras_version": version}).encode(),
            "config.json": json.dumps(config).encode(),
            "model.weights.h5": weights.getvalue(),
        }
    )


def wire(name: str) -> Json:
    """A tensor among the arguments that Keras 3 writes."""
    return {"class_name": "__keras_tensor__", "config": {"keras_history": [name, 0, 0]}}


def number(values: np.ndarray) -> Json:
    """An array among them."""
    return {"class_name": "__numpy__", "config": {"value": values.tolist(), "dtype": "float32"}}


def operation_bytes(sizes: Sequence[int], class_name: str, operands: Json, **options: Json) -> bytes:
    """One operation of keras.ops, of the input x."""
    first = {**layer("InputLayer", "x", batch_shape=[None, *sizes]), "name": "x", "inbound_nodes": []}
    spec = {
        "module": "keras.src.ops.numpy",
        "class_name": class_name,
        "config": {"name": "op", **options},
        "name": "op",
        "inbound_nodes": [{"args": operands, "kwargs": {}}],
    }
    return keras_bytes(functional([first, spec], ["x"], ["op"]), {})


def zip_bytes(members: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def random_arrays(*shapes: Sequence[int]) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=tuple(shape)).astype(np.float32) for shape in shapes]


def small() -> tuple[dict[str, Json], dict[str, list[np.ndarray]]]:
    """A model of one Dense layer and its weights."""
    return sequential(input_layer("x", [4]), dense("dense", 3)), {"dense": random_arrays((4, 3), (3,))}
