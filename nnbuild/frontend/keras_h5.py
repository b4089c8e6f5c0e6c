"""Whole models in HDF5, as Keras 2 and Keras 3 save them to .h5 files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nnbuild.base.errors import ModelError
from nnbuild.frontend.hdf5 import Group, H5File
from nnbuild.frontend.import_options import DEFAULTS, ImportOptions
from nnbuild.frontend.keras_config import parse
from nnbuild.frontend.keras_import import import_model
from nnbuild.frontend.keras_version import Dialect, dialect
from nnbuild.frontend.keras_weights import DAMAGED, Stored, StoredArray, WeightTree, by_order, listed_roles
from nnbuild.model.graph import Graph

RANGES = ("_min", "_max", "optimizer_step")
"""Suffixes of names that quantization-aware training stores next to weights."""
CLUSTERS = "pulling_indices_tf"
"""In the name of an array that is stored next to weights of clusters."""


def load(path: Path, name: str, options: ImportOptions = DEFAULTS) -> Graph:
    where = path.name
    with H5File(path, where) as file:
        text = file.text(file.root, "model_config")
        if text is None:
            raise _no_architecture(file)
        weights = file.group(file.root, "model_weights")
        if weights is None:
            raise ModelError(where, "it contains an architecture, but no weights.", DAMAGED)
        version = file.text(file.root, "keras_version") or file.text(weights, "keras_version")
        data = parse(text, where)
        if version is None:  # very old or foreign writers; only Keras 3 writes batch_shape
            version = "3.0" if '"batch_shape"' in text else "2.2"
        _check_backend(file, weights)
        found = dialect(version, where)
        return import_model(name, data, found, where, lambda tree: _stored(file, weights, tree, found), options)


def _no_architecture(file: H5File) -> ModelError:
    if file.names(file.root, "layer_names") is not None or file.group(file.root, "layers") is not None:
        cause = "it contains only a model's weights, not its architecture."
        return ModelError(file.where, cause, "Save the whole model with model.save() instead of save_weights().")
    return ModelError(file.where, "it is an HDF5 file, but does not contain a Keras model.", DAMAGED)


def _check_backend(file: H5File, weights: Group) -> None:
    backend = file.text(file.root, "backend") or file.text(weights, "backend")
    if backend in ("theano", "cntk"):
        raise ModelError(
            file.where,
            f"it was written by Keras on {backend}, which stores convolutions in a different order.",
            "Load it with Keras on TensorFlow and save it again.",
        )


def _stored(file: H5File, weights: Group, model: WeightTree, version: Dialect) -> Stored:
    """Every layer of the model has a group with its name, which lists its arrays in order."""
    arrays: dict[str, StoredArray] = {}
    for child in model.children:
        where = f"layer {child.name!r}"
        roles = listed_roles(child.tree, version.keras3)
        group = file.group(weights, child.name)
        if group is None:
            if roles:
                raise ModelError(where, "the file holds no weights for it.", DAMAGED)
            continue
        if child.tree.fixed and child.tree.fixed[0].endswith("_scale"):
            cause = "Keras has quantized it, and .h5 files list its weights in another order."
            raise ModelError(where, cause, "Save the model as .keras: model.save('model.keras').")
        names = file.names(group, "weight_names") or []
        if any(name.rpartition("/")[2].startswith("lora_") for name in names):
            cause = "it has weights of low rank beside its own (LoRA), which Keras merges in .keras files alone."
            raise ModelError(where, cause, "Save the model as .keras: model.save('model.keras').")
        if any(CLUSTERS in name for name in names):
            cause = "it was trained to keep its weights in clusters, from which it computes them."
            raise ModelError(where, cause, "Convert the model with TFLiteConverter and give the .tflite file.")
        if wrappers := dict(_with_ranges(child.name, child.name, child.tree)):
            ends = {name: name.rpartition("/")[2].partition(":")[0] for name in names}
            beside = {name: end for name, end in ends.items() if end.endswith(RANGES)}
            for name, end in beside.items():
                owner = wrappers.get(name.split("/")[-2] if "/" in name else "", child.name)
                arrays[f"{owner}/{end}"] = _array(file, group, where, name)
            names = [name for name in names if name not in beside]
        found = [_array(file, group, where, name) for name in names]
        arrays |= {f"{child.name}/{role}": array for role, array in by_order(where, roles, found).items()}
    return Stored(arrays)


def _with_ranges(name: str, path: str, tree: WeightTree) -> Iterator[tuple[str, str]]:
    """The layers with ranges, here and in models inside, and their paths."""
    if tree.ranges:
        yield name, path
    for child in tree.children:
        yield from _with_ranges(child.name, f"{path}/{child.name}", child.tree)


def _array(file: H5File, group: Group, where: str, name: str) -> StoredArray:
    found = file.array(group, name, where)
    if found is None:
        raise ModelError(where, f"the file lists its weight {name[:80]!r}, but does not contain it.", DAMAGED)
    return found
