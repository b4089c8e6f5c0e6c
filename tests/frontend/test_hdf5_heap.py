"""Links and attributes that HDF5 stores densely, in a fractal heap with a B-tree, as h5py writes them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pytest

from nnbuild.base.errors import ModelError
from nnbuild.frontend.hdf5 import H5File
from nnbuild.frontend.hdf5_bytes import Malformed, Unsupported
from nnbuild.frontend.hdf5_format import Hdf5
from tests.frontend.test_hdf5 import FORMS, written

NAMES = ["größe", "层", "😀", "é" * 200, *(f"layer_{number}" for number in range(60)), "x" * 3000, "ß" * 1900]


@pytest.mark.parametrize("options", [*FORMS, {"track_order": True}], ids=str)
@pytest.mark.parametrize("count", [8, 60, 1000, 5000])
def test_a_group_with_a_name_that_is_not_ascii(options: dict[str, Any], count: int) -> None:
    names = (NAMES + [f"größe_{number}" for number in range(count)])[:count]

    def write(file: h5py.File) -> None:
        for name in names:
            file.create_group(f"g/{name}")

    with H5File(written(write, **options), "test") as file:
        assert all(file.group(file.root, f"g/{name}") is not None for name in names)
        assert file.group(file.root, "g/layer") is None


def test_the_arrays_of_such_a_group() -> None:
    def write(file: h5py.File) -> None:
        for number, name in enumerate(NAMES):
            file[f"g/{name}/kernel"] = np.full(3, number, np.float32)

    with H5File(written(write), "test") as file:
        for number, name in enumerate(NAMES):
            array = file.array(file.root, f"g/{name}/kernel", name)
            assert array is not None
            np.testing.assert_array_equal(array.read(), np.full(3, number))


@pytest.mark.parametrize("options", FORMS[1:], ids=str)
@pytest.mark.parametrize("count", [8, 9, 100, 3000])
def test_many_attributes(options: dict[str, Any], count: int) -> None:
    """The last ones have no room in the heap's blocks; some files can store them nowhere."""
    texts = {f"größe_{number}": f"{number}" * (number % 50) for number in range(count)}
    if options["libver"] != ("earliest", "v108"):
        texts |= {"long0": "y" * 5000, "long1": "z" * 100_000}

    def write(file: h5py.File) -> None:
        for name, text in texts.items():
            file.attrs[name] = np.bytes_(text.encode())

    with H5File(written(write, **options), "test") as file:
        assert {name: file.text(file.root, name) for name in texts} == texts
        assert file.text(file.root, "long2") is None


def dense(count: int = 60) -> bytes:
    def write(file: h5py.File) -> None:
        for number in range(count):
            file.create_group(f"g/größe_{number}")
            file["g"].attrs[f"a{number}"] = f"{number}" * 30

    return written(write, libver="latest")


def read(data: bytes) -> None:
    """Reads all there is; only the two kinds of refusal may come out."""
    try:
        file = Hdf5(memoryview(data))
        waiting = [file.root]
        for _ in range(200):
            if not waiting:
                break
            at = waiting.pop()
            file.attribute(at, "a7")
            if file.is_group(at):
                waiting += [member.address for member in file.members(at).values() if member.address is not None]
    except (Malformed, Unsupported):
        pass


SIGNATURES = (b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTIN", b"BTLF")


@pytest.mark.turns(2)
@pytest.mark.slow
@pytest.mark.parametrize("count", [60, 1500])
def test_damaged_heaps_are_refused(count: int) -> None:
    """Every field of a structure in turn, with small, large and random values."""
    sound, rng = dense(count), random.Random(1)
    places = {signature: sound.find(signature) for signature in SIGNATURES}
    assert min(places[name] for name in (b"FRHP", b"FHDB", b"BTHD", b"BTLF")) > 0
    assert count < 1000 or min(places.values()) > 0
    for start in (at for at in places.values() if at > 0):
        for at in range(start, start + 150, 1 if count < 1000 else 7):
            for value in (0, 255, rng.randrange(256)):
                data = bytearray(sound)
                data[at : at + rng.choice((1, 2, 8))] = bytes([value])
                read(bytes(data[: len(sound)].ljust(len(sound), b"\0")))


def test_cut_files_are_refused() -> None:
    sound = dense()
    for size in range(100, len(sound), 211):
        data = bytearray(sound[:size])
        data[28:36] = size.to_bytes(8, "little")  # the end of the file in the superblock
        read(bytes(data))


def spoilt(change: Callable[[bytearray], None]) -> bytes:
    data = bytearray(dense())
    change(data)
    return bytes(data)


def lead_to_itself(data: bytearray) -> None:
    """The tree's root becomes an inner node whose children are itself."""
    header = next(at for at in range(len(data)) if data[at : at + 6] == b"BTHD\0\x05")
    (root,) = struct.unpack_from("<Q", data, header + 16)
    struct.pack_into("<H", data, header + 12, 16)
    struct.pack_into("<H", data, header + 24, 0)
    data[root : root + 14] = b"BTIN\0\x05" + root.to_bytes(8, "little")


def compress(data: bytearray) -> None:
    struct.pack_into("<H", data, data.find(b"FRHP") + 7, 8)


def inside(data: bytearray) -> None:
    leaf = next(at for at in range(len(data)) if data[at : at + 6] == b"BTLF\0\x05")
    data[leaf + 10] = 0x20


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lead_to_itself, "it is damaged or incomplete"),
        (compress, "(a compressed heap)"),
        (inside, "(an object inside its identifier)"),
    ],
)
def test_refusals(change: Callable[[bytearray], None], what: str) -> None:
    with H5File(spoilt(change), "test") as file, pytest.raises(ModelError) as caught:
        file.group(file.root, "g/größe_3")
    assert what in str(caught.value)


def test_an_object_may_not_be_had_over_and_over() -> None:
    """Many records of one long name would make much out of little."""

    def write(file: h5py.File) -> None:
        for number in range(40):
            file.create_group(f"g/{number}")
        file.create_group("g/" + "ß" * 1000)

    data = bytearray(written(write, libver="latest"))
    leaf = next(at for at in range(len(data)) if data[at : at + 6] == b"BTLF\0\x05")
    records = [bytes(data[at : at + 11]) for at in range(leaf + 6, leaf + 6 + 41 * 11, 11)]
    longest = max(records, key=lambda record: int.from_bytes(record[9:11], "little"))
    data[leaf + 6 : leaf + 6 + 41 * 11] = longest * 41
    with H5File(bytes(data), "test") as file, pytest.raises(ModelError, match="damaged"):
        file.group(file.root, "g/1")
