"""Reads ONNX models, as exported by PyTorch, TensorFlow, scikit-learn and others."""

from __future__ import annotations

from pathlib import Path

from nnbuild.frontend.import_options import DEFAULTS, ImportOptions
from nnbuild.frontend.onnx.byte_functions import byte_functions
from nnbuild.frontend.onnx.importer import import_model
from nnbuild.frontend.onnx.records import parse, read
from nnbuild.model.graph import Graph


def load(path: Path, name: str, options: ImportOptions = DEFAULTS) -> Graph:
    return byte_functions(import_model(name, path.name, read(path), options))


def load_bytes(data: bytes, name: str, options: ImportOptions = DEFAULTS) -> Graph:
    """Reads a model in memory, with its weights inside."""
    return byte_functions(import_model(name, name, parse(data, name), options))
