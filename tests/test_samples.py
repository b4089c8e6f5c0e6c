"""Sample files: what is read, what is refused and how, and what is written."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.errors import UsageError
from nnbuild.model.samples import load_samples, save_outputs
from nnbuild.ops.activation import Activation
from nnbuild.quantize.data import Source, batches
from tests.support.graphs import single


@dataclass(frozen=True)
class Port:
    name: str
    shape: tuple[int, ...]


ONE = [Port("image", (2, 2))]
TWO = [Port("a", (2,)), Port("b", (3,))]
OUT = [Port("probs", (4,))]


def write(path: Path, **arrays: object) -> Path:
    np.savez(path / "s.npz", **arrays)  # type: ignore[arg-type]
    return path / "s.npz"


@pytest.mark.parametrize("name", ["x", "arr_0", "image"])
def test_one_input(tmp_path: Path, name: str) -> None:
    found = load_samples(write(tmp_path, **{name: np.ones((3, 2, 2))}), ONE)
    assert len(found) == 3
    assert found.inputs["image"].dtype == np.float32
    assert [sample["image"].shape for sample in found] == [(2, 2)] * 3
    assert found.golden is None and found.labels is None


@pytest.mark.parametrize("names", [("a", "b"), ("x0", "x1"), ("arr_0", "arr_1")])
def test_two_inputs(tmp_path: Path, names: tuple[str, str]) -> None:
    arrays = {names[0]: np.zeros((4, 2), np.uint8), names[1]: np.ones((4, 3), np.float64)}
    found = load_samples(write(tmp_path, **arrays), TWO)
    assert list(found.inputs) == ["a", "b"]
    assert found.inputs["b"].sum() == 12


def test_one_of_two_arrays_without_names_is_not_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, arr_0=np.ones((3, 2, 2)), arr_1=np.ones(3))
    with pytest.raises(UsageError, match="There is no array for input"):
        load_samples(path, ONE)


def test_golden_and_labels(tmp_path: Path) -> None:
    path = write(tmp_path, x=np.ones((3, 2, 2)), y=np.ones((3, 4)), labels=np.array([0.0, 1.0, 2.0]))
    found = load_samples(path, ONE, OUT)
    assert found.golden is not None and found.golden[0].shape == (3, 4)
    assert found.labels is not None and found.labels.tolist() == [0, 1, 2]
    two = write(tmp_path, x=np.ones((3, 2, 2)), y0=np.ones((3, 4)), y1=np.ones((3, 4)))
    golden = load_samples(two, ONE, OUT * 2).golden
    assert golden is not None and len(golden) == 2


def test_one_number_a_sample_needs_no_second_axis(tmp_path: Path) -> None:
    """Joined outputs of other programs have none."""
    found = load_samples(write(tmp_path, x=np.ones(3), y=np.arange(3)), [Port("x", (1,))], [Port("y", (1, 1))])
    assert found.inputs["x"].shape == (3, 1)
    assert found.golden is not None and found.golden[0].shape == (3, 1, 1)


def test_truth_values_are_zero_and_one(tmp_path: Path) -> None:
    path = write(tmp_path, x=np.ones((3, 2, 2)), y=np.eye(3, 4, dtype=bool))
    golden = load_samples(path, ONE, OUT).golden
    assert golden is not None
    np.testing.assert_array_equal(golden[0], np.eye(3, 4))


GOOD = np.ones((3, 2, 2), np.float32)
NAN = GOOD.copy()
NAN[1, 0, 1] = np.nan

INFINITE = NAN * np.float32(np.inf)

REFUSED = [
    ({}, "There is no array for input 'image'; it holds nothing. Name the array image, or x."),
    ({"z": GOOD}, "There is no array for input 'image'; it holds z. Name the array image, or x."),
    ({"x": GOOD[0]}, "array 'x': Its shape is (2, 2), the model takes (samples, 2, 2). Reshape it;"),
    ({"x": np.float32(1)}, "array 'x': Its shape is (), the model takes (samples, 2, 2)."),
    ({"x": GOOD[:0]}, "It holds no samples."),
    ({"x": np.full((1, 2, 2), "a")}, "Its type is <U1, which holds no plain numbers. Save it as float32."),
    ({"x": np.full((1, 2, 2), 1j)}, "Its type is complex128, which holds no plain numbers."),
    ({"x": NAN}, "1 of its values are no finite float32, the first at (1, 0, 1): nan. Remove or repair these samples."),
    ({"x": np.full((1, 2, 2), 1e300)}, "4 of its values are no finite float32, the first at (0, 0, 0): 1e+300."),
    ({"x": np.array([[[None, 1], [1, 1]]])}, "It is no sound .npz file of plain numbers (ValueError)."),
    ({"x": GOOD, "labels": np.array([0.5, 1, 2])}, "array 'labels': Labels are whole numbers, one per sample"),
    ({"x": GOOD, "labels": np.array([np.nan, 1, 2])}, "array 'labels': Labels are whole numbers, one per sample"),
    ({"x": GOOD, "labels": np.array([0, np.inf, 2])}, "one-hot rows, and the label at [1] is inf. Save them as int64."),
    ({"x": GOOD, "labels": np.array([0, 2, 2.5])}, "one-hot rows, and the label at [2] is 2.5. Save them as int64."),
    ({"x": GOOD, "labels": np.array([0, 2, 1 << 40])}, "and the label at [2] is 1099511627776. Number the classes"),
    ({"\x1b[2Jz": GOOD}, "There is no array for input 'image'; it holds \\x1b[2Jz. Name the array image"),
    ({"x": GOOD, "labels": np.array([0, 1])}, "array 'labels': It has 2 rows for 3 samples. Give one row per sample."),
    (
        {"x": GOOD, "labels": np.array([0, -1, 1])},
        "array 'labels': A label is negative (-1). Number the classes from 0.",
    ),
    ({"x": GOOD, "y": np.ones((3, 5))}, "array 'y': Its shape is (3, 5), the model takes (samples, 4)."),
    ({"x": GOOD, "y": np.ones((2, 4))}, "array 'y': It has 2 rows for 3 samples."),
]


@pytest.mark.parametrize(("arrays", "text"), REFUSED, ids=[text[:40] for _, text in REFUSED])
def test_what_does_not_fit_is_refused_with_a_reason(tmp_path: Path, arrays: dict[str, object], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_samples(write(tmp_path, **arrays), ONE, OUT)
    assert text in str(caught.value)
    assert "s.npz" in caught.value.where
    assert caught.value.exit_code == 2


def test_several_arrays_that_do_not_match(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="The inputs have different numbers of samples: a 3, b 2"):
        load_samples(write(tmp_path, a=np.ones((3, 2)), b=np.ones((2, 3))), TWO)
    with pytest.raises(UsageError, match="It has y0 but no y1"):
        load_samples(write(tmp_path, x=GOOD, y0=np.ones((3, 4))), ONE, OUT * 2)


def test_files_that_are_no_sample_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no such file"):
        load_samples(tmp_path / "none.npz", ONE)
    with pytest.raises(UsageError, match=r"Samples come in a \.npz file"):
        load_samples(tmp_path / "s.csv", ONE)
    (tmp_path / "d.npz").mkdir()
    with pytest.raises(UsageError, match="It cannot be read"):
        load_samples(tmp_path / "d.npz", ONE)
    whole = write(tmp_path, x=GOOD).read_bytes()
    for size in range(0, len(whole), 7):
        (tmp_path / "cut.npz").write_bytes(whole[:size])
        with pytest.raises(UsageError):
            load_samples(tmp_path / "cut.npz", ONE)


def test_a_changed_byte_never_ends_in_a_traceback(tmp_path: Path) -> None:
    whole = write(tmp_path, x=GOOD).read_bytes()
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 0xFF
        (tmp_path / "c.npz").write_bytes(changed)
        try:
            load_samples(tmp_path / "c.npz", ONE)
        except UsageError:
            continue


def test_outputs_come_back(tmp_path: Path) -> None:
    y, q = np.ones((3, 4), np.float32), np.ones((3, 4), np.int8)
    save_outputs(tmp_path / "one.npz", [y], [q])
    assert {name: array.dtype.name for name, array in np.load(tmp_path / "one.npz").items()} == {
        "y": "float32",
        "q": "int8",
    }
    save_outputs(tmp_path / "two.npz", [y, y], [None, q])
    assert sorted(np.load(tmp_path / "two.npz").files) == ["q1", "y0", "y1"]
    save_outputs(tmp_path / "float.npz", [y])
    assert np.load(tmp_path / "float.npz").files == ["y"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["float.npz", "one.npz", "two.npz"]


def test_outputs_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"It cannot be written \(No such file or directory\)"):
        save_outputs(tmp_path / "none" / "y.npz", [np.ones((1, 1), np.float32)])


def test_names_of_classes_are_no_labels(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=np.zeros((2, 3), np.float32), labels=np.array(["yes", "no", "up"]))
    found = load_samples(path, [Port("x", (3,))])
    assert found.labels is None
    assert found.notes == (f"{path}: its array 'labels' holds names, not the samples' classes, and is left aside",)


def test_a_file_that_unpacks_to_too_much_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nnbuild.model.samples.LARGEST", 10_000)
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was unpacked"))
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, x=np.zeros((1000, 2, 2), np.float32))
    assert path.stat().st_size < 1000
    with pytest.raises(UsageError) as caught:
        load_samples(path, ONE)
    assert "It unpacks to 16,128 bytes, more than the 10,000 that are read. Give fewer samples" in str(caught.value)
    with pytest.raises(UsageError, match="unpacks to 16,128 bytes"):
        list(batches(Source(path), single(Activation("tanh"), [(2, 2)])))


def test_a_single_input_and_output_may_have_a_number(tmp_path: Path) -> None:
    found = load_samples(write(tmp_path, x0=GOOD, y0=np.ones((len(GOOD), 4))), ONE, OUT)
    assert found.golden is not None and len(found.golden) == 1
    np.testing.assert_array_equal(found.inputs["image"], GOOD)


@pytest.mark.parametrize(
    ("arrays", "outputs", "said"),
    [
        (("y",), 2, "It has y, but golden outputs of this model are named y0, y1. Name them so, or leave them out."),
        (("y0", "y1", "y2"), 2, "It has y2, but golden outputs of this model are named y0, y1."),
        (("y", "y1"), 1, "It has y1, but golden outputs of this model are named y."),
        (("y0", "y1"), 1, "It has y1, but golden outputs of this model are named y0."),
    ],
)
def test_golden_outputs_are_not_left_aside(arrays: tuple[str, ...], outputs: int, said: str, tmp_path: Path) -> None:
    golden = dict.fromkeys(arrays, np.ones((len(GOOD), 4)))
    with pytest.raises(UsageError, match=re.escape(said)):
        load_samples(write(tmp_path, x=GOOD, **golden), ONE, OUT * outputs)


def test_other_arrays_are_no_golden_outputs(tmp_path: Path) -> None:
    others = {"y64": np.ones((len(GOOD), 4)), "years": np.ones(2)}
    found = load_samples(write(tmp_path, x=GOOD, y=np.ones((len(GOOD), 4)), **others), ONE, OUT)
    assert found.golden is not None and len(found.golden) == 1


def test_an_input_named_as_an_output_is_no_golden_one(tmp_path: Path) -> None:
    ports = [Port("x", (2, 2)), Port("y", (2, 2))]
    assert load_samples(write(tmp_path, x=GOOD, y=GOOD), ports, OUT).golden is None


def test_the_names_of_arrays_are_told_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"it holds z\. Name the array x\."):
        load_samples(write(tmp_path, z=GOOD), [Port("x", (2, 2))])


def test_missing_values_are_let_through_where_the_model_looks_for_them(tmp_path: Path) -> None:
    found = load_samples(write(tmp_path, x=NAN), ONE, missing={"image"})
    np.testing.assert_array_equal(found.inputs["image"], NAN)
    with pytest.raises(UsageError, match="11 of its values are no finite float32"):
        load_samples(write(tmp_path, x=INFINITE), ONE, missing={"image"})


def test_arrays_that_are_nothing_to_a_check_are_named(tmp_path: Path) -> None:
    """Golden outputs under another name are not compared, and do not seem to be."""
    path = write(tmp_path, x=np.ones((3, 2, 2)), Y=np.ones((3, 4)), golden=np.ones((3, 4)))
    found = load_samples(path, ONE, OUT)
    assert found.golden is None and found.beside == ("Y", "golden")
    told = f"{path}: its arrays 'Y', 'golden' are left aside; golden outputs are named y, classes 'labels'"
    assert found.notes == (told,)
    assert load_samples(path, ONE).notes == (), "where no outputs are compared"
    assert load_samples(write(tmp_path, x=np.ones((3, 2, 2)), y0=np.ones((3, 4))), ONE, OUT).notes == ()


def test_two_arrays_of_one_name_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, x=np.ones((3, 2, 2)))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x", archive.read("x.npy"))
    with pytest.raises(UsageError, match="It holds two arrays named 'x'"):
        load_samples(path, ONE)
