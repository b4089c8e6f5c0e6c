"""Spoils sound model files and loads what comes out: an error for the user is fine, anything else is a bug.

    python -m tests.fuzz.importer --cases 10000 --seed 1
    python -m tests.fuzz.importer --cases 10000 --seed 1 --layers

With `--layers` the sound files are those that Keras 3 writes of every layer and operation of tests/zoo/layers.py. Every
case follows from the seed and its number, so `--only NUMBER` repeats one. Run as a process of its own, so that a crash
in a library shows too.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from nnbuild import frontend, passes
from nnbuild.base.errors import NnbuildError
from nnbuild.frontend import keras_h5, keras_zip
from tests.frontend.keras_files import h5_bytes, keras_bytes, zip_bytes
from tests.fuzz.seeds import H5_SEEDS, KERAS_SEEDS
from tests.zoo import layers

LONGEST_SECONDS = 10
"""Of the processor, so that a loaded machine is no hang."""
MOST_MEGABYTES = 1000

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"),
    "", "x", "same", "valid", "causal", "channels_first", "softmax", "relu", "Lambda", "Dense", "LSTM", "Sequential",
    "../x", "a/b", "\x00", "é" * 300, [], [[]], [None], [1], [1, 2], [0, 0], [1, 2, 3], [2**31, 2**31], ["x", 0, 0],
    {}, {"a": 1}, {"class_name": "Lambda", "config": {"function": ["4wEAAAA=", None, None]}},
    {"class_name": "__tensor__", "config": {"value": [1.0, "x"]}}, {"module": "os", "class_name": "system"},
)  # fmt: skip


class Hang(BaseException):
    """Not an Exception, so that nothing on the way takes it for a damaged file."""


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
            parent[name] = value.astype(rng.choice(("f2", "f8", "i4", "u1", "c8", "S3", "?")))
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
            group.attrs[name] = value[::-1] if isinstance(value, np.ndarray) else text[: rng.randrange(40)]
        case 3 if children:
            del group[rng.choice(children)]
        case 4 if len(children) > 1:
            one, other = rng.sample(children, 2)
            del group[one]
            group[one] = h5py.SoftLink(other)
        case _:
            group.create_group(f"more{rng.randrange(10**9)}")


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
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
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


def spoil_config(data: bytes, rng: random.Random) -> bytes:
    """Another configuration of a whole `.keras` file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    config = spoil_json(json.loads(members["config.json"]), rng)
    return zip_bytes({**members, "config.json": json.dumps(config).encode()})


Files = tuple[bytes, ...]


def make_case(rng: random.Random, files: Files = ()) -> tuple[str, bytes]:
    """(what was spoilt, the file), of these files or of the seeds."""
    kind = rng.choice(("config", "config", "config", "config", "tree", "tree", "bytes"))
    if files:
        data = rng.choice(files)
        if kind == "config":
            return kind, spoil_config(data, rng)
        return kind, spoil_zip(data, rng) if kind == "tree" else spoil_bytes(data, rng)
    if rng.random() < 0.7:
        build, version = H5_SEEDS[rng.choice(list(H5_SEEDS))]
        config, weights = build()
        if kind == "config":
            return kind, h5_bytes(spoil_json(config, rng), weights, rng.choice((version, version, "3.5.0", None)))
        data = h5_bytes(config, weights, version)
        return kind, spoil_h5(data, rng) if kind == "tree" else spoil_bytes(data, rng)
    build, version = KERAS_SEEDS["keras3"]
    config, weights = build()
    arrays = {
        f"layers/{folder}/vars/{index}": array
        for folder, name in (("dense", "dense"), ("dense_1", "out"))
        for index, array in enumerate(weights[name])
    }
    if kind == "config":
        return kind, keras_bytes(spoil_json(config, rng), arrays, version)
    data = keras_bytes(config, arrays, version)
    return kind, spoil_zip(data, rng) if kind == "tree" else spoil_bytes(data, rng)


class Counting:
    """Stands in for the JSON parser to see how many cases get past the container."""

    def __init__(self, parse: Any) -> None:
        self.parse = parse
        self.passed = False

    def __call__(self, text: str, where: str) -> Any:
        self.passed = True
        return self.parse(text, where)


def try_case(path: Path, data: bytes) -> str:
    """ "imported" or "refused"; whatever else happens is raised."""
    path.write_bytes(data)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_SECONDS)
    try:
        passes.run(frontend.load(path, "fuzzed"))
    except NnbuildError as error:
        text = str(error)
        if "Please report this model" in text or not error.next_step or len(text) > 2000:
            raise AssertionError(f"not an error for a user: {text[:500]}") from error
        return "refused"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "imported"


def run(seed: int, cases: range, show: bool, files: Files = ()) -> int:
    """The number of bugs found."""

    def hang(*_: Any) -> None:
        raise Hang(f"longer than {LONGEST_SECONDS} s")

    signal.signal(signal.SIGPROF, hang)
    counting = Counting(keras_h5.parse)
    for module in (keras_h5, keras_zip):
        module.parse = counting  # type: ignore[assignment]
    results: Counter[str] = Counter()
    slowest, bugs = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in cases:
            kind, data = make_case(random.Random(f"{seed} {number}"), files)
            counting.passed, started = False, time.process_time()
            try:
                outcome = try_case(Path(folder) / "case.h5", data)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                bugs += 1
                outcome = "BUG"
                print(f"case {number} ({kind}): {type(error).__name__}: {str(error)[:300]}", flush=True)
                if show:
                    traceback.print_exc()
            slowest = max(slowest, time.process_time() - started)
            results[outcome] += 1
            results["past the container"] += counting.passed
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"seed {seed}, {len(cases)} cases: {dict(results)}, slowest {slowest:.2f} s, peak {megabytes} MB")
    return bugs + (megabytes > MOST_MEGABYTES)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the importer.")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="repeat this case and show its traceback")
    parser.add_argument("--layers", action="store_true", help="spoil what Keras 3 writes of every layer")
    arguments = parser.parse_args()
    cases = range(arguments.first, arguments.first + arguments.cases)
    if arguments.only is not None:
        cases = range(arguments.only, arguments.only + 1)
    files = tuple(path.read_bytes() for path in sorted(layers().glob("*.keras"))) if arguments.layers else ()
    return 1 if run(arguments.seed, cases, arguments.only is not None, files) else 0


if __name__ == "__main__":
    sys.exit(main())
