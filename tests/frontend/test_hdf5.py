"""The HDF5 reader against what h5py writes, in every form that Keras' files have had."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend.hdf5 import H5File


def written(write: Callable[[h5py.File], None], **options: Any) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", **options) as file:
        write(file)
    return buffer.getvalue()


FORMS: list[dict[str, Any]] = [{}, {"libver": "latest"}, {"libver": ("earliest", "v108")}, {"libver": ("v110", "v112")}]


@pytest.mark.parametrize("options", FORMS, ids=str)
@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<f2", ">f4", ">f8"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (2, 1, 3, 2, 2)])
def test_arrays_come_out_as_they_went_in(options: dict[str, Any], dtype: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).normal(size=shape).astype(dtype)
    with H5File(written(lambda file: file.__setitem__("a/b/c", values), **options), "test") as file:
        array = file.array(file.root, "a/b/c", "layer")
        assert array is not None
        assert array.shape == shape
        found = array.read()
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, values.astype(np.float32))


def test_a_compact_array() -> None:
    def write(file: h5py.File) -> None:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_layout(h5py.h5d.COMPACT)
        space, kind = h5py.h5s.create_simple((5,)), h5py.h5t.py_create(np.dtype("<f4"))
        array = h5py.h5d.create(file.id, b"small", kind, space, properties)
        array.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(5, dtype="<f4"))

    with H5File(written(write), "test") as file:
        array = file.array(file.root, "small", "layer")
        assert array is not None
        np.testing.assert_array_equal(array.read(), np.arange(5))


@pytest.mark.parametrize("options", FORMS, ids=str)
@pytest.mark.parametrize(
    "value",
    ["text", "é" * 20, b"bytes", np.bytes_(b"fixed"), np.array([b"one", b"three"]), ["a", "bcd", ""], "x" * 100_000],
    ids=lambda value: str(value)[:20],
)
def test_texts_come_out_as_they_went_in(options: dict[str, Any], value: Any) -> None:
    def write(file: h5py.File) -> None:
        file.create_group("g").attrs["other"] = 3
        file["g"].attrs["name"] = value

    wanted = [item.decode() if isinstance(item, bytes) else str(item) for item in np.atleast_1d(np.asarray(value, "O"))]
    with H5File(written(write, **options), "test") as file:
        group = file.group(file.root, "g")
        assert group is not None
        assert file.texts(group, "name") == wanted
        assert file.texts(group, "nothing") is None


def test_a_group_of_many_members() -> None:
    def write(file: h5py.File) -> None:
        for number in range(3000):
            file.create_group(f"layer_{number}")

    with H5File(written(write), "test") as file:
        assert all(file.group(file.root, f"layer_{number}") is not None for number in range(3000))
        assert file.group(file.root, "layer_3000") is None


def test_names_that_keras_split() -> None:
    def write(file: h5py.File) -> None:
        for number in range(3):
            file.attrs[f"names{number}"] = [f"n{number}".encode()]
        file.attrs["empty"] = []

    with H5File(written(write), "test") as file:
        assert file.names(file.root, "names") == ["n0", "n1", "n2"]
        assert file.names(file.root, "empty") == []
        assert file.names(file.root, "more") is None


def test_a_file_on_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(written(lambda file: file.__setitem__("x", np.ones(3, np.float32))))
    with H5File(path, "test") as file:
        array = file.array(file.root, "x", "layer")
        assert array is not None
        values = array.read()
    path.unlink()
    np.testing.assert_array_equal(values, np.ones(3))


def test_a_tree_that_goes_in_circles() -> None:
    data = bytearray(written(lambda file: file.create_group("a")))
    tree = data.index(b"TREE")
    data[tree + 32 : tree + 40] = tree.to_bytes(8, "little")  # its first child is itself
    with H5File(bytes(data), "test") as file, pytest.raises(ModelError, match="damaged"):
        file.group(file.root, "a")


def test_a_text_may_not_be_had_over_and_over() -> None:
    """Ten thousand references to one long text would make much out of little."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.attrs["names"] = ["x" * 50_000, "y"]
    data = buffer.getvalue()
    at = data.index((50_000).to_bytes(4, "little"))
    reference = data[at : at + 16]
    spoilt = data[: at + 16] + reference + data[at + 32 :]
    with H5File(spoilt, "test") as file, pytest.raises(ModelError, match="too long"):
        file.texts(file.root, "names")


def test_an_array_may_not_be_had_over_and_over() -> None:
    def write(file: h5py.File) -> None:
        file["x0"] = np.ones(10_000, np.float32)
        for number in range(1, 9):
            file[f"x{number}"] = file["x0"]

    with H5File(written(write), "test") as file, pytest.raises(ModelError) as caught:
        for number in range(9):
            array = file.array(file.root, f"x{number}", "layer 'a'")
            assert array is not None
            array.read()
    assert "layer 'a': its weight 'x1' is larger than the data in the file." in str(caught.value)


def test_an_array_counts_once_however_often_it_is_read() -> None:
    """What is read is never larger than the file, and a layer may look at its weights twice."""

    def write(file: h5py.File) -> None:
        file["a"] = np.ones(100_000, np.float32)
        file["b"] = file["a"]  # another name of the same bytes

    with H5File(written(write), "test") as file:
        first, second = (file.array(file.root, name, "layer") for name in "ab")
        assert first is not None and second is not None
        for _ in range(3):
            assert first.read().sum() == 100_000
        with pytest.raises(ModelError, match="'b' is larger than the data in the file"):
            second.read()
