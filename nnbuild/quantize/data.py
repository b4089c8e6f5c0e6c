"""Reads calibration samples batch by batch: from .npz, .npy or a folder of images, or draws random ones for a smoke
build."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from nnbuild.base.errors import ToolMissing, UsageError
from nnbuild.base.sanitize import escape_name
from nnbuild.model.graph import Array, Graph, Tensor
from nnbuild.model.samples import (
    RESHAPE,
    UNSOUND,
    about_inputs,
    checked_labels,
    how_to_name,
    names_of_inputs,
    one_a_row,
    refuse_bomb,
)
from nnbuild.ops.compare import may_miss
from nnbuild.ops.drawn import drawn
from nnbuild.quantize.calibrate import Batch, batch_size

RANDOM_SAMPLES = 64
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")
KINDS = f"It may hold {', '.join(IMAGES)}."
NEXT = "Give what the model really gets in use, as float32 in the model's own units."


@dataclass(frozen=True)
class Source:
    """Where samples come from; None means random numbers. `image_range` gives the model's values for black and
    white."""

    path: Path | None
    image_range: tuple[float, float] = (0.0, 1.0)


def batches(source: Source, graph: Graph) -> Iterator[Batch]:
    """The samples in batches that fit in memory; every value is checked."""
    inputs = [graph.tensors[name] for name in graph.inputs]
    size, missing = batch_size(graph), may_miss(graph)
    spread = {tensor.name: (np.inf, -np.inf) for tensor in inputs}
    for batch in _raw_batches(source, graph, size):
        checked = {
            tensor.name: _checked(source, tensor, batch[tensor.name], tensor.name in missing) for tensor in inputs
        }
        for name, value in checked.items():
            low, high = spread[name]
            spread[name] = (
                float(np.fmin.reduce(value, None, initial=low)),
                float(np.fmax.reduce(value, None, initial=high)),
            )
        yield checked
    for name, (low, high) in spread.items():
        if low == high and not graph.tensors[name].is_whole:
            raise UsageError(
                f"calibration, input {name!r}",
                f"all its values are {low + 0.0:g}, which says nothing of its range.",
                NEXT,
            )


def labels(source: Source, graph: Graph) -> Array | None:
    """The class number of every sample, checked against the samples and the first output."""
    if source.path is None or source.path.is_dir() or source.path.suffix.lower() == ".npy":
        return None
    with _opened(source.path) as archive:
        members = _members(archive)
        if "labels" not in members:
            return None
        count = _header(archive, members[_member_names(source.path, members, graph)[0]])[0][0]
        with archive.open(members["labels"]) as stream:
            known = np.lib.format.read_array(stream, allow_pickle=False)
    where = f"calibration {str(source.path)!r}, array 'labels'"
    return _classes(where, checked_labels(where, known, count), prod(graph.tensors[graph.outputs[0]].shape))


def _classes(where: str, known: Array, width: int) -> Array:
    if known.ndim == 2 and known.shape[1] in (1, width):
        known = known[:, 0] if known.shape[1] == 1 else known.argmax(axis=1)
    if known.ndim != 1:
        cause = f"its shape is {known.shape}, and the model's first output has {width} values."
        raise UsageError(where, cause, "Give one class number per sample, or one-hot rows.")
    if len(known) and known.max() >= width:
        cause = f"it names class {known.max()}, and the model's first output has {width} values."
        raise UsageError(where, cause, "Number the classes from 0.")
    return known


def _raw_batches(source: Source, graph: Graph, size: int) -> Iterator[Batch]:
    path, inputs = source.path, [graph.tensors[name] for name in graph.inputs]
    if path is None:
        yield from _random(graph, size)
    elif path.is_dir():
        yield from _images(source, path, inputs, size)
    elif not path.is_file():
        raise UsageError(f"calibration {str(path)!r}", "there is no such file or folder.", "Check its name.")
    elif path.suffix.lower() == ".npy":
        yield from _npy(path, inputs, size)
    elif path.suffix.lower() == ".npz":
        yield from _npz(path, graph, size)
    else:
        cause = "samples come in a .npz file, those of one input in a .npy file, images in a folder."
        raise UsageError(f"calibration {str(path)!r}", cause, "Write one with numpy.savez(path, x=inputs).")


def _random(graph: Graph, size: int) -> Iterator[Batch]:
    chance = np.random.default_rng(0)
    for at in range(0, RANDOM_SAMPLES, size):
        count = min(size, RANDOM_SAMPLES - at)
        yield {name: drawn(graph, name, chance, count) for name in graph.inputs}


def _npy(path: Path, inputs: Sequence[Tensor], size: int) -> Iterator[Batch]:
    if len(inputs) != 1:
        names = ", ".join(tensor.name for tensor in inputs)
        raise UsageError(f"calibration {str(path)!r}", "a .npy holds one array.", f"Give a .npz with arrays {names}.")
    try:
        whole = np.lib.format.open_memmap(path, mode="r")
    except (OSError, *UNSOUND) as error:
        raise UsageError(f"calibration {str(path)!r}", f"it cannot be read as .npy ({error}).", NEXT) from None
    if whole.ndim == 0:
        raise UsageError(f"calibration {str(path)!r}", "it holds a single number.", NEXT)
    for at in range(0, len(whole), size):
        yield {inputs[0].name: whole[at : at + size]}


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Opens an archive; any defect in its bytes raises the same error."""
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_bomb(f"calibration {str(path)!r}", archive)
            yield archive
    except (OSError, *UNSOUND) as error:
        raise UsageError(f"calibration {str(path)!r}", f"it cannot be read as .npz ({error}).", NEXT) from None


def _members(archive: zipfile.ZipFile) -> dict[str, str]:
    return {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}


def _npz(path: Path, graph: Graph, size: int) -> Iterator[Batch]:
    inputs = [graph.tensors[name] for name in graph.inputs]
    with _opened(path) as archive:
        members = _members(archive)
        names = _member_names(path, members, graph)
        counts = {name: _header(archive, members[name])[0][0] for name in names}
        if len(set(counts.values())) > 1:
            listing = ", ".join(f"{name} {count}" for name, count in counts.items())
            cause = f"its inputs have different numbers of samples: {listing}."
            raise UsageError(f"calibration {str(path)!r}", cause, "Give each the same.")
        streams = [_rows(archive, members[name], size) for name in names]
        for parts in zip(*streams, strict=True):
            yield {tensor.name: part for tensor, part in zip(inputs, parts, strict=True)}


def _member_names(path: Path, members: Mapping[str, str], graph: Graph) -> list[str]:
    names = names_of_inputs(members, graph.inputs)
    if names is not None:
        return names
    missing = [name for name in graph.inputs if name not in members]
    raise UsageError(
        f"calibration {str(path)!r}",
        f"it holds {', '.join(map(escape_name, members)) or 'nothing'}, and not every input."
        f"{about_inputs(missing, graph.notes)}",
        how_to_name(graph.inputs),
    )


def _header(archive: zipfile.ZipFile, member: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    with archive.open(member) as stream:
        return _read_header(stream)


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """(shape, whether in column order, type) of an array whose first axis counts samples."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects instead of numbers")
    if not shape:
        raise ValueError("it holds a single number")
    if min(shape) < 0:
        raise ValueError(f"the shape {shape} is none")
    return shape, by_columns, dtype


def _rows(archive: zipfile.ZipFile, member: str, size: int) -> Iterator[Array]:
    """The rows of one array, a batch at a time, without reading the rest; arrays in column order are read whole."""
    with archive.open(member) as stream:
        shape, by_columns, dtype = _read_header(stream)
        if by_columns:
            whole = _numbers(stream, dtype, prod(shape)).reshape(shape, order="F")
        for at in range(0, shape[0], size):
            count = min(size, shape[0] - at)
            if by_columns:
                yield whole[at : at + count]
            else:
                yield _numbers(stream, dtype, count * prod(shape[1:])).reshape(count, *shape[1:])


def _numbers(stream: IO[bytes], dtype: np.dtype[Any], count: int) -> Array:
    data = stream.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise EOFError("it ends too early")
    return np.frombuffer(data, dtype)


def _images(source: Source, folder: Path, inputs: Sequence[Tensor], size: int) -> Iterator[Batch]:
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGES)
    if not files:
        raise UsageError(f"calibration {str(folder)!r}", "there is no image in this folder.", KINDS)
    shape = inputs[0].shape
    if len(inputs) != 1 or len(shape) != 3 or shape[2] not in (1, 3):
        raise UsageError(
            f"calibration {str(folder)!r}", f"the model's input {shape} is no image.", "Give a .npz instead."
        )
    levels = (0.0, 255.0) if inputs[0].dtype == "uint8" else source.image_range
    for at in range(0, len(files), size):
        yield {inputs[0].name: np.stack([_image(path, shape, levels) for path in files[at : at + size]])}


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
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise UsageError(f"calibration {str(path)!r}", f"this image cannot be read ({error}).", "Remove it.") from None
    low, high = levels
    values = np.asarray(pixels, np.float32).reshape(shape) / np.float32(255) * np.float32(high - low) + np.float32(low)
    return np.asarray(values, np.float32)


def _checked(source: Source, tensor: Tensor, values: Array, missing: bool) -> Array:
    where = f"calibration {str(source.path)!r}, input {tensor.name!r}"
    if values.dtype.kind not in "fiub":
        raise UsageError(where, f"its numbers have the type {values.dtype}.", NEXT)
    values = one_a_row(values, tensor.shape)
    if values.shape[1:] != tensor.shape:
        cause = f"a sample has the shape {values.shape[1:]}, the model takes {tensor.shape}."
        raise UsageError(where, cause, RESHAPE)
    with np.errstate(over="ignore"):  # values too large for float32 are reported just below
        as_float = np.asarray(values, np.float32)
    if not (np.isfinite(as_float) | (missing & np.isnan(as_float))).all():
        raise UsageError(where, "it holds values that are not finite.", "Remove or repair these samples.")
    return as_float
