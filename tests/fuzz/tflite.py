"""Spoils sound `.tflite` files and loads what comes out: an error for the user is fine, anything else is a bug.

    python -m tests.fuzz.tflite --cases 10000 --seed 1

Every case follows from the seed and its number, so `--only NUMBER` repeats one. What is imported is planned and
printed too. Run as a process of its own, so that a crash in a library shows too.
"""

from __future__ import annotations

import random
import struct
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from nnbuild.frontend.tflite import records
from tests.frontend.tflite_files import KINDS, OPTIONS, TYPES, File, O, T, to_bytes
from tests.fuzz.harness import Fuzzer, main
from tests.fuzz.importer import spoil_bytes
from tests.fuzz.tflite_seeds import SEEDS

ODD_NUMBERS = (0, 1, -1, 2, 3, 5, 7, 16, 64, 127, 128, -128, 255, 1000, 65536, 2**24, 2**31 - 1, -(2**31))
ODD_SCALES = (
    0.0, 1.0, -1.0, 1e-40, 1e-20, 1e-9, 2.0**-28, 2.0**-16, 2.0**-15, 2.0**-8, 0.5, 3.0, 100.0, 1e6, 2.0**28, 1e20,
    3e38, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
ODD_ZEROS = (0, 1, -1, -128, 127, 128, -129, 32767, 2**31, 2**63 - 1, -(2**63))
ODD_NAMES = ("", "x", "a/b;c", "\x00", "é" * 300, "*/ int x; /*", '"\\')


def number(rng: random.Random, value: int) -> int:
    return rng.choice((value + 1, value - 1, value * 2, -value, *ODD_NUMBERS))


def spoil_list(values: list[Any], rng: random.Random, odd: tuple[Any, ...]) -> list[Any]:
    values = list(values)
    match rng.randrange(5):
        case 0 if values:
            del values[rng.randrange(len(values))]
        case 1:
            values.insert(rng.randrange(len(values) + 1), rng.choice(odd))
        case 2 if len(values) > 1:
            rng.shuffle(values)
        case _ if values:
            values[rng.randrange(len(values))] = rng.choice(odd)
    return values


def spoil_tensor(t: T, rng: random.Random) -> T:
    match rng.randrange(9):
        case 0 | 1:
            shape = list(t.shape)
            if shape and rng.random() < 0.6:
                at = rng.randrange(len(shape))
                shape[at] = number(rng, shape[at])
            else:
                shape = spoil_list(shape, rng, ODD_NUMBERS)
            return replace(t, shape=[max(-(2**31), min(n, 2**31 - 1)) for n in shape])
        case 2:
            return replace(t, dtype=rng.choice(("int8", "int16", "float32", "int32", "int64", *TYPES)))
        case 3 | 4:
            factor = 2.0 ** rng.uniform(-40, 40)
            scales = [s * factor for s in t.scales] if rng.random() < 0.5 else spoil_list([*t.scales], rng, ODD_SCALES)
            return replace(t, scales=np.asarray(scales, np.float64).clip(-3e38, 3e38).tolist())
        case 5:
            return replace(t, zeros=spoil_list([*t.zeros], rng, ODD_ZEROS))
        case 6:
            blocks = t.blocks and rng.choice((None, (rng.randrange(-1, 5), rng.choice((0, 1, 4, 5, -4, 2**31 - 1)))))
            return replace(t, axis=rng.choice((0, 1, 2, 3, -1, 9)), variable=rng.random() < 0.5, blocks=blocks)
        case 7:
            return replace(t, data=spoil_data(t.data, rng))
        case _:
            return replace(t, buffer=rng.choice((0, 1, 2, 3, 99, 2**31)), name=rng.choice((t.name, *ODD_NAMES)))


def spoil_data(data: Any, rng: random.Random) -> Any:
    if data is None:
        return np.zeros(rng.choice((1, 4, 16)), rng.choice((np.int8, np.int32, np.float32)))
    flat = np.array(data).reshape(-1)
    match rng.randrange(4):
        case 0:
            return None
        case 1:
            return flat[: rng.randrange(len(flat) + 1)]
        case 2:
            extreme = {"f": (np.nan, np.inf, 3e38, 1e-45), "i": (0, -1, 3, 100, -100), "u": (0, 1, 127, 255)}
            extreme |= {"c": extreme["f"], "b": (False, True)}
            with np.errstate(over="ignore"):
                flat[rng.randrange(len(flat))] = rng.choice(extreme[flat.dtype.kind])
            return flat
        case _:
            size = flat.dtype.itemsize * len(flat)
            return np.frombuffer(rng.randbytes(size), np.uint8)


def spoil_operator(o: O, tensors: int, rng: random.Random) -> O:
    places = (*range(-1, tensors + 1), 2**31 - 1, -(2**31))
    match rng.randrange(8):
        case 0 | 1:
            return replace(o, inputs=spoil_list([*o.inputs], rng, places))
        case 2:
            return replace(o, outputs=spoil_list([*o.outputs], rng, places))
        case 3 | 4 | 5 if o.values:
            name = rng.choice(list(o.values))
            value = o.values[name]
            if isinstance(value, np.ndarray):
                odd: tuple[Any, ...] = ODD_SCALES if value.dtype.kind == "f" else ODD_NUMBERS
                changed: Any = np.asarray(spoil_list(value.tolist(), rng, odd), np.float64).astype(value.dtype)
            elif isinstance(value, float):
                changed = rng.choice(ODD_SCALES)
            elif isinstance(value, bool):
                changed = not value
            else:
                byte = name in ("Padding", "FusedActivationFunction", "Mode")
                changed = rng.randrange(-3, 9) if byte else number(rng, value)
            return replace(o, values={**o.values, name: changed})
        case 6:
            return replace(o, options=rng.choice([n for n in OPTIONS if n != "NONE"]), values={})
        case 7:
            return replace(o, kind=rng.choice(list(KINDS)), code=rng.choice((None, None, None, 127, 250, -3)))
        case _:
            return replace(o, intermediates=spoil_list([*o.intermediates], rng, places))


def spoil_file(file: File, rng: random.Random) -> File:
    tensors, operators = list(file.tensors), list(file.operators)
    inputs, outputs = list(file.inputs), list(file.outputs)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        match rng.randrange(20):
            case 0:
                inputs = spoil_list(inputs, rng, tuple(range(-1, len(tensors) + 1)))
            case 1:
                outputs = spoil_list(outputs, rng, tuple(range(-1, len(tensors) + 1)))
            case 2 if operators:
                operators.insert(rng.randrange(len(operators) + 1), rng.choice(operators))
            case n if n < 13 or not operators:
                at = rng.randrange(len(tensors))
                tensors[at] = spoil_tensor(tensors[at], rng)
            case _:
                at = rng.randrange(len(operators))
                operators[at] = spoil_operator(operators[at], len(tensors), rng)
    others = [spoil_file(each, rng) if rng.random() < 0.2 else each for each in file.others]
    return File(tensors, operators, inputs, outputs, others)


def spoil_words(data: bytes, rng: random.Random) -> bytes:
    """Numbers, lengths and offsets, which lie at multiples of four."""
    spoilt = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = 4 * rng.randrange(2, len(spoilt) // 4)
        (value,) = struct.unpack_from("<i", spoilt, at)
        odd = number(rng, value) if rng.random() < 0.7 else value ^ (1 << rng.randrange(31))
        struct.pack_into("<I", spoilt, at, odd & 0xFFFFFFFF)
    return bytes(spoilt)


def make_case(rng: random.Random) -> tuple[str, bytes]:
    """(what was spoilt, the file)."""
    file = SEEDS[rng.choice(list(SEEDS))]
    kind = rng.choice(("record", "record", "record", "record", "words", "bytes"))
    if kind == "record":
        while True:
            try:
                return kind, to_bytes(spoil_file(file, rng))
            except (struct.error, TypeError, OverflowError, ValueError, AttributeError):
                continue  # a number that the file format itself cannot hold
    data = to_bytes(file)
    return kind, spoil_words(data, rng) if kind == "words" else spoil_bytes(data, rng)


FUZZER = Fuzzer("tflite", ".tflite", make_case, ((records, "check"),))


if __name__ == "__main__":
    sys.exit(main(lambda _: FUZZER))
