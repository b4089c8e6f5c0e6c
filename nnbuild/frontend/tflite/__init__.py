"""Reads TensorFlow Lite models: int8, 16-bit activations with 8-bit weights, and float32, with the file's scales."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from nnbuild.frontend.import_options import DEFAULTS, ImportOptions
from nnbuild.frontend.tflite.composites import inlined
from nnbuild.frontend.tflite.importer import import_model
from nnbuild.frontend.tflite.records import Model, opened
from nnbuild.model.graph import Graph


def read(path: Path) -> Model:
    """The records of a file, with composite operators and loops expanded."""
    reader = opened(path)
    return inlined(reader.model(), reader.called, partial(import_model, "body", path.name))


def load(path: Path, name: str, options: ImportOptions = DEFAULTS) -> Graph:
    return import_model(name, path.name, read(path), options)
