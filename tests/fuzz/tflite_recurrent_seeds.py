"""Small sound files of recurrent operators older than UNIDIRECTIONAL_SEQUENCE_LSTM, with their states."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.frontend.tflite_files import File, O, T
from tests.fuzz.tflite_selection_seeds import constant, plain

UNITS, FEATURES = 3, 4
TANH = 4


def floats(name: str, *shape: int) -> T:
    return constant(name, shape, "float32")


def state(name: str, *shape: int) -> T:
    return T(name, shape, "float32", variable=True)


def cell(end: str = "") -> list[T]:
    """Weights, bias and state of a plain layer."""
    weights = [floats(f"w{end}", UNITS, FEATURES), floats(f"r{end}", UNITS, UNITS), floats(f"b{end}", UNITS)]
    return [*weights, state(f"hidden{end}", 1, UNITS)]


def gates(end: str) -> list[T]:
    kernels = [floats(f"w{end}{i}", UNITS, FEATURES) for i in range(4)]
    return [
        *kernels,
        *(floats(f"r{end}{i}", UNITS, UNITS) for i in range(4)),
        *(floats(f"b{end}{i}", UNITS) for i in range(4)),
    ]


def seeds() -> Iterator[tuple[str, File]]:
    made = {"FusedActivationFunction": TANH}
    one, steps = plain("x", (1, FEATURES), "float32"), plain("x", (1, 5, FEATURES), "float32")
    row, rows = plain("out", (1, UNITS), "float32"), plain("out", (1, 5, UNITS), "float32")
    yield "RNN-float32", File([one, *cell(), row], [O("RNN", range(5), [5], "RNNOptions", made)], [0], [5])
    kind, options = "UNIDIRECTIONAL_SEQUENCE_RNN", "SequenceRNNOptions"
    yield (
        f"{kind}-float32",
        File([steps, *cell(), rows], [O(kind, range(5), [5], options, {"FusedActivationFunction": 1})], [0], [5]),
    )
    kind, options = "BIDIRECTIONAL_SEQUENCE_RNN", "BidirectionalSequenceRNNOptions"
    ends = [rows, plain("back", (1, 5, UNITS), "float32")]
    both = [steps, *cell("f"), *cell("b")]
    yield (
        f"{kind}-float32",
        File([*both, *ends], [O(kind, [*range(9), -1, -1, -1], [9, 10], options, made)], [0], [9, 10]),
    )
    merged = plain("out", (1, 5, 2 * UNITS), "float32")
    operator = O(kind, [*range(9), -1, -1, -1], [9], options, {**made, "MergeOutputs": True})
    yield f"{kind}-merged-float32", File([*both, merged], [operator], [0], [9])
    yield from _lstm(steps, ends, merged)
    yield from _svdf()


def _lstm(steps: T, ends: list[T], merged: T) -> Iterator[tuple[str, File]]:
    kind, options = "BIDIRECTIONAL_SEQUENCE_LSTM", "BidirectionalSequenceLSTMOptions"
    tensors = [steps, *gates("f"), *gates("b"), *(state(f"state{i}", 1, UNITS) for i in range(4))]
    way = [[*range(1 + o, 9 + o), -1, -1, -1, *range(9 + o, 13 + o), -1, -1] for o in (0, 12)]
    order = [0, *way[0], *way[1], *range(25, 29), *(-1,) * 9]
    for name, outs, values in (("", ends, {}), ("-merged", [merged], {"MergeOutputs": True})):
        places = [29 + i for i in range(len(outs))]
        operator = O(kind, order, places, options, {"FusedActivationFunction": TANH, "TimeMajor": False, **values})
        yield f"{kind}{name}-float32", File([*tensors, *outs], [operator], [0], places)


def _svdf() -> Iterator[tuple[str, File]]:
    for rank, function in ((1, 0), (2, 1)):
        filters = 3 * rank
        parts = [
            plain("x", (1, FEATURES), "float32"),
            floats("features", filters, FEATURES),
            floats("times", filters, 4),
        ]
        parts += [floats("bias", 3), state("state", 1, 4 * filters), plain("out", (1, 3), "float32")]
        values = {"Rank": rank, "FusedActivationFunction": function}
        yield f"SVDF-{rank}-float32", File(parts, [O("SVDF", range(5), [5], "SVDFOptions", values)], [0], [5])
    for rank, memory, largest, zero in ((1, 1, 3000, -128), (1, 5, 3000, 4), (2, 7, 32767, -9)):
        yield f"SVDF-{rank}-{memory}-int8", _integer_svdf(rank, memory, largest, zero)


def _integer_svdf(rank: int, memory: int, largest: int, zero: int) -> File:
    """With a `largest` of 32767 sums lose their upper bits."""
    chance, units, filters = np.random.default_rng(rank), 3, 3 * rank
    parts = [
        T("x", (1, FEATURES), "int8", (0.05,), (3,)),
        T(
            "features",
            (filters, FEATURES),
            "int8",
            (0.01,),
            data=chance.integers(-127, 128, (filters, FEATURES), np.int8),
        ),
        T(
            "times",
            (filters, memory),
            "int16",
            (2e-4,),
            data=chance.integers(-largest, largest, (filters, memory), np.int16),
        ),
        T("bias", (units,), "int32", (2e-7,), data=chance.integers(-200_000, 200_000, units, np.int32)),
        T("state", (1, memory * filters), "int16", (1e-3,), variable=True),
        T("out", (1, units), "int8", (0.05,), (zero,)),
    ]
    values = {"Rank": rank, "FusedActivationFunction": 1}
    return File(parts, [O("SVDF", range(5), [5], "SVDFOptions", values)], [0], [5])


RECURRENT = dict(seeds())
