"""Calibration samples: what is read, how it is cut into batches, and what is said of data that cannot serve."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.errors import UsageError
from nnbuild.model.graph import Array, Graph, Op, Tensor
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.softmax import Softmax
from nnbuild.quantize.data import Source, batches, labels

NEXT = "Give what the model really gets in use, as float32 in the model's own units."
SHAPE = (4, 3)
X = np.random.default_rng(0).normal(size=(150, *SHAPE)).astype(np.float32)


def one_input(shape: tuple[int, ...] = SHAPE, name: str = "image") -> Graph:
    tensors = {n: Tensor(n, shape, layer=n) for n in (name, "y")}
    return Graph("model", tensors, {}, (Op("y", Softmax(), (name,), ("y",)),), (name,), ("y",))


def two_inputs() -> Graph:
    tensors = {n: Tensor(n, (3,), layer=n) for n in ("left", "right", "y")}
    add = Op("y", Binary("add"), ("left", "right"), ("y",))
    return Graph("model", tensors, {}, (add,), ("left", "right"), ("y",))


def read(path: Path | None, graph: Graph | None = None, levels: tuple[float, float] = (0.0, 1.0)) -> dict[str, Array]:
    parts = list(batches(Source(path, levels), graph or one_input()))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def saved(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "samples.npz", **arrays)
    return folder / "samples.npz"


def said(path: Path, graph: Graph | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        read(path, graph)
    return str(caught.value).replace(str(path), "FILE")


@pytest.mark.parametrize("name", ["x", "arr_0", "image"])
def test_npz_by_either_name_comes_in_batches(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path, **{name: X})
    assert [len(part["image"]) for part in batches(Source(path), one_input())] == [64, 64, 22]
    np.testing.assert_array_equal(read(path)["image"], X)


@pytest.mark.parametrize("dtype", ["float64", "float16", ">f4", "int8", "uint8", "bool"])
def test_numbers_of_any_type_become_float32(tmp_path: Path, dtype: str) -> None:
    values = (X * 20).clip(0 if dtype in ("uint8", "bool") else -127, 127).astype(dtype)
    found = read(saved(tmp_path, x=values))["image"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, values.astype(np.float32))


@pytest.mark.parametrize("suffix", ["npz", "npy"])
def test_column_order_is_read_as_any_other(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"samples.{suffix}"
    columns = np.asfortranarray(X)
    np.savez(path, x=columns) if suffix == "npz" else np.save(path, columns)
    np.testing.assert_array_equal(read(path)["image"], X)


def test_several_inputs_are_numbered_or_named(tmp_path: Path) -> None:
    left, right = X[:, 0], X[:, 1]
    for arrays in ({"x0": left, "x1": right}, {"right": right, "left": left}):
        found = read(saved(tmp_path, **arrays), two_inputs())
        np.testing.assert_array_equal(found["left"], left)
        np.testing.assert_array_equal(found["right"], right)


def test_nothing_is_seeded_random_numbers() -> None:
    first, again = read(None)["image"], read(None)["image"]
    np.testing.assert_array_equal(first, again)
    assert len(first) == 64


def test_images_are_scaled_to_the_model(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.full((10, 12), 255, np.uint8)).save(tmp_path / "a.png")
    image.fromarray(np.zeros((5, 5, 3), np.uint8)).save(tmp_path / "b.bmp")
    found = read(tmp_path, one_input((6, 7, 1)), (-1.0, 1.0))["image"]
    np.testing.assert_array_equal(found, np.stack([np.full((6, 7, 1), 1.0), np.full((6, 7, 1), -1.0)]))


def test_a_damaged_image_is_named(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "a.png"
    image.fromarray(np.arange(100, dtype=np.uint8).reshape(10, 10)).save(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UsageError, match=r"a\.png': this image cannot be read \(.*\)\. Remove it\."):
        read(tmp_path, one_input((6, 7, 1)))


def test_a_folder_without_images(tmp_path: Path) -> None:
    assert said(tmp_path).startswith("calibration 'FILE': there is no image in this folder. It may hold .png, ")


def test_one_number_a_sample_needs_no_second_axis(tmp_path: Path) -> None:
    found = read(saved(tmp_path, x=X[:, 0, 0]), one_input((1,)))["image"]
    np.testing.assert_array_equal(found, X[:, 0, :1])


def test_a_table_of_text_is_no_samples(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    path.write_text("1,2,3\n4,5,6\n")
    assert said(path) == (
        "calibration 'FILE': samples come in a .npz file, those of one input in a .npy file, images in a folder. "
        "Write one with numpy.savez(path, x=inputs)."
    )


BAD = {
    "wrong shape": (
        {"x": X[:, :3]},
        "calibration 'FILE', input 'image': a sample has the shape (3, 3), the model takes (4, 3). "
        "Reshape it; the first axis counts the samples.",
    ),
    "no numbers": (
        {"x": np.array(["a", "b"])},
        "calibration 'FILE', input 'image': its numbers have the type <U1. " + NEXT,
    ),
    "complex": ({"x": X + 1j}, "calibration 'FILE', input 'image': its numbers have the type complex64. " + NEXT),
    "objects": (
        {"x": np.array([X[0], None], object)},
        "calibration 'FILE': it cannot be read as .npz (it holds Python objects instead of numbers). " + NEXT,
    ),
    "one number": (
        {"x": np.float32(3)},
        "calibration 'FILE': it cannot be read as .npz (it holds a single number). " + NEXT,
    ),
    "wrong name": (
        {"images": X},
        "calibration 'FILE': it holds images, and not every input. Name the array image, or x.",
    ),
    "nothing": ({}, "calibration 'FILE': it holds nothing, and not every input. Name the array image, or x."),
    "zeros": (
        {"x": X * 0},
        "calibration, input 'image': all its values are 0, which says nothing of its range. " + NEXT,
    ),
    "not a number": (
        {"x": np.where(X > 2, np.nan, X)},
        "calibration 'FILE', input 'image': it holds values that are not finite. Remove or repair these samples.",
    ),
    "beyond float32": (
        {"x": X.astype(np.float64) * 1e300},
        "calibration 'FILE', input 'image': it holds values that are not finite. Remove or repair these samples.",
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", BAD)
def test_what_cannot_serve_is_said(tmp_path: Path, case: str) -> None:
    arrays, text = BAD[case]
    assert said(saved(tmp_path, **arrays)) == text


def test_inputs_of_different_length(tmp_path: Path) -> None:
    path = saved(tmp_path, x0=X[:40, 0], x1=X[:30, 0])
    text = "calibration 'FILE': its inputs have different numbers of samples: x0 40, x1 30. Give each the same."
    assert said(path, two_inputs()) == text


def test_a_single_array_for_several_inputs(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    text = "calibration 'FILE': a .npy holds one array. Give a .npz with arrays left, right."
    assert said(tmp_path / "x.npy", two_inputs()) == text


def test_a_missing_file(tmp_path: Path) -> None:
    text = "calibration 'FILE': there is no such file or folder. Check its name."
    assert said(tmp_path / "no.npz") == text


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04", b"\x93NUMPY\x01\x00\xff"])
def test_files_that_are_no_samples(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"samples{suffix}"
    path.write_bytes(content)
    assert said(path).startswith(f"calibration 'FILE': it cannot be read as {suffix} (")


def test_damaged_archives_are_errors_or_harmless(tmp_path: Path) -> None:
    """Every damage is either not met, as where nothing reads, or said as one error."""
    whole = io.BytesIO()
    np.savez_compressed(whole, x=X, labels=np.zeros(len(X), np.int64))
    chance = np.random.default_rng(1)
    path, refused = tmp_path / "samples.npz", 0
    for _ in range(400):
        damaged = bytearray(whole.getvalue())
        for place in chance.integers(0, len(damaged), chance.integers(1, 4)):
            damaged[place] = chance.integers(0, 256)
        path.write_bytes(damaged[: chance.integers(1, len(damaged))] if chance.random() < 0.1 else damaged)
        try:
            read(path)
            labels(Source(path), one_input())
        except UsageError:
            refused += 1
    assert refused > 200


def test_a_header_that_promises_too_much(tmp_path: Path) -> None:
    header = io.BytesIO()
    wanted = {"descr": "<f4", "fortran_order": False, "shape": (2**40, *SHAPE)}
    np.lib.format.write_array_header_1_0(header, wanted)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    assert said(tmp_path / "a.npz") == f"calibration 'FILE': it cannot be read as .npz (it ends too early). {NEXT}"


CLASSES = np.arange(150) % 12


@pytest.mark.parametrize("known", [CLASSES, CLASSES[:, None], np.eye(12)[CLASSES], CLASSES.astype(np.float32)])
def test_labels_in_all_their_forms(tmp_path: Path, known: Array) -> None:
    np.testing.assert_array_equal(labels(Source(saved(tmp_path, x=X, labels=known)), one_input()), CLASSES)


def test_no_labels(tmp_path: Path) -> None:
    assert labels(Source(saved(tmp_path, x=X)), one_input()) is None
    assert labels(Source(None), one_input()) is None
    assert labels(Source(tmp_path), one_input()) is None


WHOLE = "Labels are whole numbers, one per sample, or one-hot rows. Save them as int64."
UNFIT = {
    "too few": (CLASSES[:30], "It has 30 rows for 150 samples. Give one row per sample."),
    "too many": (np.zeros(151, int), "It has 151 rows for 150 samples. Give one row per sample."),
    "names": (np.array(["a"] * 150), WHOLE),
    "fractions": (CLASSES + 0.5, WHOLE.replace(". S", f", and the label at [0] is {CLASSES[0] + 0.5}. S")),
    "not numbers": (CLASSES * np.nan, WHOLE.replace(". S", ", and the label at [0] is nan. S")),
    "infinite": (np.where(np.arange(150) == 7, np.inf, 0), WHOLE.replace(". S", ", and the label at [7] is inf. S")),
    "far too large": (
        CLASSES + 1e30,
        "There are at most 2,147,483,648 classes, and the label at [0] is 1e+30. Number the classes from 0.",
    ),
    "one for all": (np.int64(4), WHOLE),
    "negative": (CLASSES - 5, "A label is negative (-5). Number the classes from 0."),
    "no such class": (
        CLASSES + 10,
        "it names class 21, and the model's first output has 12 values. Number the classes from 0.",
    ),
    "wrong width": (
        np.eye(13)[CLASSES],
        "its shape is (150, 13), and the model's first output has 12 values. "
        "Give one class number per sample, or one-hot rows.",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_labels_that_do_not_fit(tmp_path: Path, case: str) -> None:
    known, text = UNFIT[case]
    path = saved(tmp_path, x=X, labels=known)
    with pytest.raises(UsageError) as caught:
        labels(Source(path), one_input())
    assert str(caught.value) == f"calibration {str(path)!r}, array 'labels': {text}"


def test_missing_values_calibrate_what_looks_for_them(tmp_path: Path) -> None:
    missing = X.copy()
    missing[3:7], missing[100, 1] = np.nan, np.nan
    graph = one_input()
    with pytest.raises(UsageError, match="it holds values that are not finite"):
        read(saved(tmp_path, image=missing), graph)
    asks = Op("y", Compare("not_equal"), ("image", "image"), ("y",))
    np.testing.assert_array_equal(read(saved(tmp_path, image=missing), replace(graph, ops=(asks,)))["image"], missing)
