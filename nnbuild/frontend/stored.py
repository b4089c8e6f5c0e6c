"""How many parameters a model file holds, without reading them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import h5py


def stored_parameters(path: Path) -> int:
    """Elements of all weights in the file; 0 for a file that holds none that can be counted.

    A .tflite file is taken whole: it holds little else, and counts as floats of the same size.
    """
    try:
        with path.open("rb") as opened:
            if opened.read(8)[4:] == b"TFL3":
                return path.stat().st_size // 4
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return archive.getinfo("model.weights.h5").file_size // 4
        with h5py.File(path, "r") as file:
            return _elements(file.get("model_weights", file))
    except (OSError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile):
        return 0


def _elements(group: h5py.Group) -> int:
    sizes: list[int] = []

    def visit(_: str, node: object) -> None:
        if isinstance(node, h5py.Dataset):
            sizes.append(int(node.size or 0))

    group.visititems(visit)
    return sum(sizes)
