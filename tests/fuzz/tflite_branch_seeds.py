"""Sound `.tflite` files whose operators depend on a condition, as converters write them of tf.cond."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tests.frontend.tflite_files import File, O, T
from tests.fuzz.tflite_selection_seeds import constant, plain

SHAPE = (1, 4, 3)


def chosen(condition: T, branches: Sequence[File], out: Sequence[T], first: Sequence[O] = (), *more: T) -> File:
    """The condition, x, the results, and `more` tensors, of which `first` computes the condition."""
    x = branches[0].tensors[0]
    tensors = [condition, x, *out, *more]
    outputs = list(range(2, 2 + len(out)))
    values = {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2}
    operators = [*first, O("IF", [0, 1], outputs, "IfOptions", values)]
    inputs = [1] if first or condition.data is not None else [0, 1]
    return File(tensors, operators, inputs, outputs, branches)


def scaled(dtype: str, kind: str) -> File:
    """A branch of two operators and a constant."""
    tensors = [plain("x", SHAPE, dtype), constant("k", (3,), dtype), plain("a", SHAPE, dtype), plain("b", SHAPE, dtype)]
    operators = [O(kind, [0, 1], [2], f"{kind.title()}Options"), O("RELU", [2], [3])]
    return File(tensors, operators, [0], [3])


def unchanged(dtype: str) -> File:
    return File([plain("x", SHAPE, dtype)], [], [0], [0])


def nested(dtype: str) -> File:
    """A branch that chooses again, by the same subgraphs, and gives a constant, too."""
    tensors = [plain("x", SHAPE, dtype), plain("seven", SHAPE, dtype, np.full(SHAPE, 7)), plain("y", SHAPE, dtype)]
    tensors += [plain("most", (), dtype), plain("zero", (), dtype, 0), plain("is", (), "bool")]
    tensors.append(plain("axes", (3,), "int32", [0, 1, 2]))
    operators = [
        O("REDUCE_MIN", [0, 6], [3], "ReducerOptions"), O("LESS", [3, 4], [5]),
        O("IF", [5, 0], [2], "IfOptions", {"ThenSubgraphIndex": 3, "ElseSubgraphIndex": 4}),
    ]  # fmt: skip
    return File(tensors, operators, [0], [2, 1])


def computed(dtype: str) -> File:
    """By whether the largest number is above zero."""
    most, zero, axes = plain("most", (1,), dtype), plain("zero", (), dtype, 0), plain("axes", (2,), "int32", [1, 2])
    out = [plain("y", SHAPE, dtype)]
    first = [O("REDUCE_MAX", [1, 5], [3], "ReducerOptions"), O("GREATER", [3, 4], [0])]
    condition = plain("is", (1,), "bool")
    branches = [scaled(dtype, "MUL"), unchanged(dtype)]
    return chosen(condition, branches, out, first, most, zero, axes)


def deep(dtype: str) -> File:
    twice = File([plain("x", SHAPE, dtype), plain("y", SHAPE, dtype)], [O("ADD", [0, 0], [1], "AddOptions")], [0], [1])
    other = File(
        [*twice.tensors, plain("k", SHAPE, dtype, np.full(SHAPE, 9))],
        [O("SUB", [0, 2], [1], "SubOptions")],
        [0],
        [1, 2],
    )
    out = [plain("y", SHAPE, dtype), plain("k", SHAPE, dtype)]
    return chosen(plain("is", (), "bool"), [nested(dtype), other, scaled(dtype, "ADD"), twice], out)


def _seeds() -> Iterator[tuple[str, File]]:
    for dtype in ("float32", "int8", "int16"):
        yield f"IF-{dtype}", computed(dtype)
        yield f"IF-deep-{dtype}", deep(dtype)
    known = plain("is", (), "bool", False)
    yield (
        "IF-known-float32",
        chosen(known, [unchanged("float32"), scaled("float32", "SUB")], [plain("y", SHAPE, "float32")]),
    )


BRANCHES = dict(_seeds())
