"""Reads ONNX models, as exported by PyTorch, TensorFlow, scikit-learn and others."""

from __future__ import annotations

from pathlib import Path

from nnbuild.frontend.import_options import DEFAULTS, ImportOptions
from nnbuild.frontend.onnx.importer import import_model
from nnbuild.frontend.onnx.records import parse, read
from nnbuild.model.graph import Graph

LARGEST_VERSION = 64


def looks_like(start: bytes) -> bool:
    """Whether the bytes start a protobuf message whose first field is a version, as exporters write it."""
    return len(start) > 2 and start[0] == 8 and 0 < start[1] < LARGEST_VERSION


def load(path: Path, name: str, options: ImportOptions = DEFAULTS) -> Graph:
    return import_model(name, path.name, read(path), options)


def load_bytes(data: bytes, name: str, options: ImportOptions = DEFAULTS) -> Graph:
    """Reads a model in memory, with its weights inside."""
    return import_model(name, name, parse(data, name), options)
