"""Spoils sound model files and loads what comes out: an error for the user is fine, anything else is a bug.

    python -m tests.fuzz.importer --cases 10000 --seed 1
    python -m tests.fuzz.importer --cases 10000 --seed 1 --layers

With `--layers` the sound files are those that Keras 3 writes of every layer and operation of tests/zoo/layers.py. Every
case follows from the seed and its number, so `--only NUMBER` repeats one. Run as a process of its own, so that a crash
in a library shows too.
"""

from __future__ import annotations

import copy
import io
import json
import random
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from nnbuild.frontend import keras_h5, keras_zip
from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from tests.frontend.keras_files import h5_bytes, keras_bytes, zip_bytes
from tests.fuzz.harness import Fuzzer, main
from tests.fuzz.seeds import H5_SEEDS, KERAS_SEEDS
from tests.zoo import layers

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"),
    "", "x", "same", "valid", "causal", "channels_first", "softmax", "relu", "Lambda", "Dense", "LSTM", "Sequential",
    "../x", "a/b", "\x00", "é" * 300, [], [[]], [None], [1], [1, 2], [0, 0], [1, 2, 3], [2**31, 2**31], ["x", 0, 0],
    {}, {"a": 1}, {"class_name": "Lambda", "config": {"function": ["4wEAAAA=", None, None]}},
    {"class_name": "__tensor__", "config": {"value": [1.0, "x"]}}, {"module": "os", "class_name": "system"},
)  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything within a JSON value."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        here = waiting.pop()
        keys = list(here) if isinstance(here, dict) else range(len(here))
        found += [(here, key) for key in keys]
        waiting += [here[key] for key in keys if isinstance(here[key], (dict, list))]
    return found


def spoil_json(config: Any, rng: random.Random) -> Any:
    config = copy.deepcopy(config)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        everywhere = places(config)
        if not everywhere:
            break
        container, key = rng.choice(everywhere)
        match rng.randrange(7):
            case 0 | 1:
                container[key] = copy.deepcopy(rng.choice(ODD_VALUES))
            case 2:
                other, at = rng.choice(everywhere)
                container[key] = copy.deepcopy(other[at]) if len(json.dumps(other[at])) < 20_000 else None
            case 3:
                del container[key]
            case 4 if isinstance(container, list):
                container.insert(key, copy.deepcopy(rng.choice(container)))
            case 5 if isinstance(container[key], (int, float)) and abs(container[key]) < 2**60:
                container[key] += rng.choice((-1, 1, 2, -100, 10**6))
            case _ if isinstance(container, list):
                rng.shuffle(container)
            case _:
                container[key] = [container[key]]
    return config


def spoil_h5(data: bytes, rng: random.Random) -> bytes:
    """Another tree of groups, arrays and attributes."""
    buffer = io.BytesIO(data)
    with h5py.File(buffer, "r+") as file:
        for _ in range(rng.choice((1, 1, 2, 4))):
            members: list[Any] = [file]
            file.visititems(lambda _, item, members=members: members.append(item))
            groups = [member for member in members if isinstance(member, h5py.Group)]
            arrays = [member for member in members if isinstance(member, h5py.Dataset)]
            if rng.random() < 0.5 and arrays:
                _spoil_array(rng.choice(arrays), rng)
            else:
                _spoil_group(rng.choice(groups), rng)
    return buffer.getvalue()


def _spoil_array(array: h5py.Dataset, rng: random.Random) -> None:
    if (
        not array.size
        or array.size > 10**6
        or not isinstance(array.parent.get(array.name, getlink=True), h5py.HardLink)
    ):
        return  # spoilt already
    parent, name, value, shape = array.parent, array.name.rpartition("/")[2], array[()], array.shape
    del parent[name]
    match rng.randrange(11):
        case 0:
            parent[name] = np.full(shape, rng.choice((np.nan, np.inf, -np.inf, 3e38, 1e-45)), np.float32)
        case 1:
            with np.errstate(all="ignore"):
                numbers = value.astype("f8") if value.dtype.kind == "S" else value.real
                parent[name] = numbers.astype(rng.choice(("f2", "f8", "i4", "u1", "c8", "S3", "?")))
        case 2:
            parent[name] = np.zeros(rng.choice(((), (0,), (1,), (2, 3), (4, 4), (1,) * 32)), np.float32)
        case 3:
            parent.create_dataset(name, shape=(2**20, 2**20), dtype="f4", chunks=(1024, 1024))
        case 4 if value.ndim:
            parent.create_dataset(name, data=np.zeros(shape, np.float32), chunks=True, compression="gzip")
        case 5:
            parent[name] = h5py.SoftLink(rng.choice(("/", f"{parent.name}/{name}", "/nowhere")))
        case 6:
            parent[name] = h5py.ExternalLink("/etc/passwd", "/")
        case 7:
            parent.create_dataset(name, shape=shape, dtype="f4", external=[("/dev/zero", 0, h5py.h5f.UNLIMITED)])
        case 8:
            parent.create_group(name)
        case 9:
            parent.create_dataset(name, data=h5py.Empty("f4"))
        case _:
            pass


def _spoil_group(group: h5py.Group, rng: random.Random) -> None:
    names, children = list(group.attrs), list(group)
    match rng.randrange(6):
        case 0 if names:
            del group.attrs[rng.choice(names)]
        case 1 if names:
            odd = (1, 2.5, "x", b"\xff\xfe", "3.0.0", "1.2", "2", [b"a", b"b"], [], np.arange(9), "{", "[" * 500)
            group.attrs[rng.choice(names)] = rng.choice(odd)
        case 2 if names:
            name = rng.choice(names)
            value = group.attrs[name]
            text = str(value).encode("utf-8", "replace").decode()
            group.attrs[name] = _turned(value) if isinstance(value, np.ndarray) else text[: rng.randrange(40)]
        case 3 if children:
            del group[rng.choice(children)]
        case 4 if len(children) > 1:
            one, other = rng.sample(children, 2)
            del group[one]
            group[one] = h5py.SoftLink(other)
        case _:
            group.create_group(f"more{rng.randrange(10**9)}")


def _turned(value: np.ndarray) -> Any:
    """The values backwards; strings as bytes, because h5py declares them ASCII even if they are not."""
    return [str(text).encode() for text in value[::-1]] if value.dtype.kind == "O" else value[::-1]


def spoil_bytes(data: bytes, rng: random.Random) -> bytes:
    spoilt = bytearray(data)
    match rng.randrange(4):
        case 0:
            return data[: rng.randrange(len(data))]
        case 1:
            for _ in range(rng.choice((1, 3, 30))):
                spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        case 2:
            at = rng.randrange(len(spoilt) - 8)
            spoilt[at : at + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, bytes(rng.randrange(256) for _ in range(8))))
        case _:
            at, length = rng.randrange(len(spoilt)), rng.randrange(200)
            spoilt[at : at + length] = spoilt[: rng.randrange(length + 1)]
    return bytes(spoilt)


def spoil_zip(data: bytes, rng: random.Random) -> bytes:
    members = dict(unzipped(data))
    name = rng.choice(list(members))
    match rng.randrange(6):
        case 0:
            del members[name]
        case 1:
            members[rng.choice(("../../evil", "/abs", "a\\..\\..\\b", "C:x", "ok.txt"))] = b"x"
        case 2:
            members[name] = spoil_bytes(members[name], rng)
        case 3:
            members["model.weights.h5"] = spoil_h5(members["model.weights.h5"], rng)
        case 4:
            members["metadata.json"] = json.dumps(rng.choice(ODD_VALUES)).encode()
        case _:
            return zip_bytes({**members, name: members[name] + b" " * 10**6}, zipfile.ZIP_DEFLATED)
    return zip_bytes(members)


@cache
def unzipped(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def spoil_config(data: bytes, rng: random.Random) -> dict[str, bytes]:
    """The members of a `.keras` file with another configuration, which need not be packed and unpacked."""
    found = unzipped(data)
    return {**found, "config.json": json.dumps(spoil_json(json.loads(found["config.json"]), rng)).encode()}


def members(path: Path, found: dict[str, bytes]) -> Graph:
    return verify(keras_zip.read(found, "fuzzed", path.name))


Files = tuple[bytes, ...]


def make_case(rng: random.Random, files: Files = ()) -> tuple[str, Any]:
    """(what was spoilt, the file), of these files or of the seeds."""
    kind = rng.choice(("config", "config", "config", "config", "tree", "tree", "bytes"))
    if files:
        data = rng.choice(files)
        if kind == "config":
            return kind, spoil_config(data, rng)
        return kind, spoil_zip(data, rng) if kind == "tree" else spoil_bytes(data, rng)
    if rng.random() < 0.7:
        name = rng.choice(list(H5_SEEDS))
        if kind == "config":
            return kind, other_config(name, rng)
        data = sound_h5(name)
        return kind, spoil_h5(data, rng) if kind == "tree" else spoil_bytes(data, rng)
    data = sound_keras()
    if kind == "config":
        return kind, spoil_config(data, rng)
    return kind, spoil_zip(data, rng) if kind == "tree" else spoil_bytes(data, rng)


@cache
def sound_h5(name: str) -> bytes:
    build, version = H5_SEEDS[name]
    return h5_bytes(*build(), version)


@cache
def sound_keras() -> bytes:
    build, version = KERAS_SEEDS["keras3"]
    config, weights = build()
    arrays = {
        f"layers/{folder}/vars/{index}": array
        for folder, name in (("dense", "dense"), ("dense_1", "out"))
        for index, array in enumerate(weights[name])
    }
    return keras_bytes(config, arrays, version)


def other_config(name: str, rng: random.Random) -> bytes:
    """A sound `.h5` whose configuration, and perhaps version, are not its own."""
    buffer = io.BytesIO(sound_h5(name))
    build, version = H5_SEEDS[name]
    with h5py.File(buffer, "r+") as file:
        file.attrs["model_config"] = json.dumps(spoil_json(build()[0], rng))
        match rng.choice((version, version, "3.5.0", None)):
            case None:
                file.attrs.pop("keras_version", None)
            case other:
                file.attrs["keras_version"] = other
    return buffer.getvalue()


def fuzzer(files: Files = ()) -> Fuzzer:
    name = "layers" if files else "keras"
    inside = ((keras_h5, "parse"), (keras_zip, "parse"))
    return Fuzzer(name, ".h5", lambda rng: make_case(rng, files), inside, members, prints=False)


def of_layers() -> Fuzzer:
    return fuzzer(tuple(path.read_bytes() for path in sorted(layers().glob("*.keras"))))


if __name__ == "__main__":
    flag = ("--layers", "spoil what Keras 3 writes of every layer")
    sys.exit(main(lambda given: of_layers() if given.layers else fuzzer(), flag))
