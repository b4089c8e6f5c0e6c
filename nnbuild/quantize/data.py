"""Calibration samples, batch by batch: from .npz, .npy, a folder of images, or for a smoke build from nothing."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from nnbuild.errors import ToolMissing, UsageError
from nnbuild.graph import Array, Graph, Tensor
from nnbuild.quantize.calibrate import Batch, batch_size

RANDOM_SAMPLES = 64
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")
NEXT = "Give what the model really gets in use, as float32 in the model's own units."


@dataclass(frozen=True)
class Source:
    """Where samples come from. None means random numbers. `image_range` is what black and white mean to the model."""

    path: Path | None
    image_range: tuple[float, float] = (0.0, 1.0)


def batches(source: Source, graph: Graph) -> Iterator[Batch]:
    """The samples from the beginning, in batches that fit in memory; every value is checked as it passes."""
    inputs = [graph.tensors[name] for name in graph.inputs]
    size = batch_size(graph)
    spread = {tensor.name: (np.inf, -np.inf) for tensor in inputs}
    for batch in _raw_batches(source, inputs, size):
        checked = {tensor.name: _checked(source, tensor, batch[tensor.name]) for tensor in inputs}
        for name, value in checked.items():
            spread[name] = (min(spread[name][0], float(value.min())), max(spread[name][1], float(value.max())))
        yield checked
    for name, (low, high) in spread.items():
        if low == high:
            raise UsageError(
                f"calibration, input {name!r}", f"all its values are {low:g}, which says nothing of its range.", NEXT
            )


def labels(source: Source) -> Array | None:
    if source.path is None or source.path.suffix != ".npz":
        return None
    with np.load(source.path) as file:
        return np.asarray(file["labels"]) if "labels" in file.files else None


def _raw_batches(source: Source, inputs: Sequence[Tensor], size: int) -> Iterator[Batch]:
    path = source.path
    if path is None:
        yield from _random(inputs, size)
    elif path.is_dir():
        yield from _images(source, path, inputs, size)
    elif not path.is_file():
        raise UsageError(f"calibration {str(path)!r}", "there is no such file or folder.", "Check its name.")
    elif path.suffix == ".npy":
        yield from _npy(path, inputs, size)
    else:
        yield from _npz(path, inputs, size)


def _random(inputs: Sequence[Tensor], size: int) -> Iterator[Batch]:
    chance = np.random.default_rng(0)
    for at in range(0, RANDOM_SAMPLES, size):
        count = min(size, RANDOM_SAMPLES - at)
        yield {t.name: chance.normal(size=(count, *t.shape)).astype(np.float32) for t in inputs}


def _npy(path: Path, inputs: Sequence[Tensor], size: int) -> Iterator[Batch]:
    if len(inputs) != 1:
        names = ", ".join(tensor.name for tensor in inputs)
        raise UsageError(f"calibration {str(path)!r}", "a .npy holds one array.", f"Give a .npz with arrays {names}.")
    try:
        whole = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise UsageError(f"calibration {str(path)!r}", f"it cannot be read as .npy ({error}).", NEXT) from None
    if whole.ndim == 0:
        raise UsageError(f"calibration {str(path)!r}", "it holds a single number.", NEXT)
    for at in range(0, len(whole), size):
        yield {inputs[0].name: whole[at : at + size]}


def _npz(path: Path, inputs: Sequence[Tensor], size: int) -> Iterator[Batch]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}
            streams = [_rows(archive.open(members[name]), size) for name in _member_names(path, members, inputs)]
            for parts in zip(*streams, strict=True):
                yield {tensor.name: part for tensor, part in zip(inputs, parts, strict=True)}
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise UsageError(f"calibration {str(path)!r}", f"it cannot be read as .npz ({error}).", NEXT) from None
    except ValueError as error:
        raise UsageError(f"calibration {str(path)!r}", f"its arrays do not fit together ({error}).", NEXT) from None


def _member_names(path: Path, members: Mapping[str, str], inputs: Sequence[Tensor]) -> list[str]:
    """By the inputs' own names, or x, or x0, x1 …"""
    numbered = ["x"] if len(inputs) == 1 else [f"x{i}" for i in range(len(inputs))]
    for names in ([tensor.name for tensor in inputs], numbered):
        if all(name in members for name in names):
            return names
    raise UsageError(
        f"calibration {str(path)!r}",
        f"it holds {', '.join(members) or 'nothing'}, and not every input.",
        f"Name its arrays {', '.join(numbered)}.",
    )


def _rows(stream: IO[bytes], size: int) -> Iterator[Array]:
    """The rows of one array of a .npz, a batch at a time, without reading the rest."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(stream)
    if dtype.hasobject or by_columns or not shape:
        raise ValueError("an array of objects, in column order, or without samples")
    row = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
    for at in range(0, shape[0], size):
        count = min(size, shape[0] - at)
        data = stream.read(count * row)
        if len(data) != count * row:
            raise EOFError("it ends too early")
        yield np.frombuffer(data, dtype).reshape(count, *shape[1:])


def _images(source: Source, folder: Path, inputs: Sequence[Tensor], size: int) -> Iterator[Batch]:
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGES)
    if not files:
        raise UsageError(f"calibration {str(folder)!r}", "there is no image in this folder.", f"It may hold {IMAGES}.")
    shape = inputs[0].shape
    if len(inputs) != 1 or len(shape) != 3 or shape[2] not in (1, 3):
        raise UsageError(
            f"calibration {str(folder)!r}", f"the model's input {shape} is no image.", "Give a .npz instead."
        )
    for at in range(0, len(files), size):
        yield {inputs[0].name: np.stack([_image(path, shape, source.image_range) for path in files[at : at + size]])}


def _image(path: Path, shape: tuple[int, ...], levels: tuple[float, float]) -> Array:
    try:
        from PIL import Image
    except ImportError:
        raise ToolMissing(
            "calibration", "Pillow, which reads images, is missing.", "pip install nnbuild[images]"
        ) from None
    height, width, channels = shape
    try:
        with Image.open(path) as picture:
            pixels: Any = picture.convert("L" if channels == 1 else "RGB").resize((width, height))
    except OSError as error:
        raise UsageError(f"calibration {str(path)!r}", f"this image cannot be read ({error}).", "Remove it.") from None
    low, high = levels
    values = np.asarray(pixels, np.float32).reshape(shape) / np.float32(255) * np.float32(high - low) + np.float32(low)
    return np.asarray(values, np.float32)


def _checked(source: Source, tensor: Tensor, values: Array) -> Array:
    where = f"calibration {str(source.path)!r}, input {tensor.name!r}"
    if values.dtype.kind not in "fiub":
        raise UsageError(where, f"its numbers have the type {values.dtype}.", NEXT)
    if values.shape[1:] != tensor.shape:
        raise UsageError(where, f"a sample has the shape {values.shape[1:]}, the model takes {tensor.shape}.", NEXT)
    as_float = np.asarray(values, np.float32)
    if not np.isfinite(as_float).all():
        raise UsageError(where, "it holds values that are not finite.", "Remove or repair these samples.")
    return as_float
