"""Small sound files with loops, as converters write them from recurrent layers of Keras."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tests.frontend.tflite_files import File, O, T
from tests.fuzz.tflite_selection_seeds import plain

STEPS, FEATURES, UNITS = 5, 3, 4
NAMES = ("Add", "Concatenation", "Gather", "Less", "Mul", "Slice", "Sub")
OPTIONS = {name.upper(): f"{name}Options" for name in NAMES}
OPTIONS |= {"FULLY_CONNECTED": "FullyConnectedOptions", "SELECT_V2": "SelectV2Options"}


class Part:
    """A subgraph under construction; tensors are known by their names."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.tensors: list[T] = []
        self.operators: list[O] = []

    def tensor(self, name: str, shape: Sequence[int] = (), dtype: str = "float32", data: Any = None) -> str:
        self.tensors.append(plain(name, shape, dtype, data))
        return name

    def number(self, value: int | Sequence[int]) -> str:
        return self.tensor(f"number {len(self.tensors)}", np.shape(value), "int32", value)

    def weights(self, *shape: int) -> str:
        return self.tensor(f"weights {len(self.tensors)}", shape, data=self.chance.normal(size=shape))

    def at(self, *names: str) -> list[int]:
        order = [tensor.name for tensor in self.tensors]
        return [order.index(name) for name in names]

    def add(
        self, kind: str, inputs: Sequence[str], name: str, shape: Sequence[int], dtype: str = "float32", **options: Any
    ) -> str:
        self.tensor(name, shape, dtype)
        kinds = {"GATHER": "GatherOptions", "CONCATENATION": "ConcatenationOptions"}
        kinds |= {kind: f"{kind.capitalize()}Options" for kind in ("ADD", "MUL", "SUB", "SPLIT", "SLICE", "LESS")}
        kinds |= {"FULLY_CONNECTED": "FullyConnectedOptions", "SPLIT": "SplitOptions", "SELECT_V2": "SelectV2Options"}
        self.operators.append(O(kind, self.at(*inputs), self.at(name), kinds.get(kind, "NONE"), options))
        return name

    def split(self, x: str, names: Sequence[str]) -> None:
        for name in names:
            self.tensor(name, (1, UNITS))
        axis = self.number(1)
        self.operators.append(O("SPLIT", self.at(axis, x), self.at(*names), "SplitOptions", {"NumSplits": len(names)}))

    def file(self, inputs: Sequence[str], outputs: Sequence[str], others: Sequence[File] = ()) -> File:
        return File(self.tensors, self.operators, self.at(*inputs), self.at(*outputs), others)


def seeds() -> Iterator[tuple[str, File]]:
    yield "WHILE-gru-float32", loop(_gru, every=False)
    yield "WHILE-gru-rows-float32", loop(_gru, every=True)
    yield "WHILE-rnn-rows-float32", loop(_rnn, every=True)
    yield "WHILE-rnn-masked-float32", loop(_rnn, every=True, masked=True)
    yield "WHILE-bounded-float32", loop(_bounded, every=False)
    yield "WHILE-other-float32", loop(_other, every=False)
    yield "WHILE-other-rows-float32", loop(_other, every=True)


def loop(cell: Any, *, every: bool, masked: bool = False) -> File:
    """x [steps, features] -> every row, or the last one, and the state after the last step."""
    arguments = ["count", "time", "rows", "state", "steps", *(["previous", "marks"] if masked else [])]
    rows = (STEPS if every else 1, 1, UNITS)
    shapes = {
        "rows": rows,
        "state": (1, UNITS),
        "steps": (STEPS, 1, FEATURES),
        "previous": (1, UNITS),
        "marks": (STEPS, 1, 1),
    }
    types = {"count": "int32", "time": "int32", "marks": "bool"}
    cond, body, main = (Part(seed) for seed in range(3))
    for part in (cond, body):
        for name in arguments:
            part.tensor(name, shapes.get(name, ()), types.get(name, "float32"))
    cond.add("LESS", ["time", cond.number(STEPS)], "goes on", (), "bool")
    made = {name: name for name in arguments}
    one = body.number(1)
    made |= {name: body.add("ADD", [name, one], f"next {name}", (), "int32") for name in ("count", "time")}
    x = body.add("GATHER", ["steps", "time"], "x", (1, FEATURES))
    row = made["state"] = cell(body, x)
    if masked:
        mark = body.add("GATHER", ["marks", "time"], "mark", (1, 1), "bool")
        for name in ("state", "previous"):
            made[name] = body.add("SELECT_V2", [mark, row, name], f"kept {name}", (1, UNITS))
        row = made["previous"]
    row = body.add("RESHAPE", [row, body.number([1, 1, UNITS])], "row", (1, 1, UNITS))
    made["rows"] = _placed(body, row) if every else row
    ends = (cond.file(arguments, ["goes on"]), body.file(arguments, [made[name] for name in arguments]))
    main.tensor("input", (1, STEPS, FEATURES))
    zero = main.number(0)
    given = {"count": zero, "time": zero, "rows": main.tensor("no rows", rows, data=np.zeros(rows))}
    given["state"] = given["previous"] = main.tensor("zeros", (1, UNITS), data=np.zeros((1, UNITS)))
    shape = main.number([STEPS, 1, FEATURES])
    given["steps"] = main.add("RESHAPE", ["input", shape], "by step", (STEPS, 1, FEATURES))
    if masked:
        main.tensor("which", (1, STEPS), "int32")
        less = main.add("LESS", [zero, "which"], "valid", (1, STEPS), "bool")
        given["marks"] = main.add("RESHAPE", [less, main.number([STEPS, 1, 1])], "by mark", (STEPS, 1, 1), "bool")
    after = [main.tensor(f"after {name}", shapes.get(name, ()), types.get(name, "float32")) for name in arguments]
    options = {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2}
    main.operators.append(
        O("WHILE", main.at(*(given[name] for name in arguments)), main.at(*after), "WhileOptions", options)
    )
    inputs = ["input", *(["which"] if masked else [])]
    return main.file(inputs, ["after rows", "after state"], ends)


def _placed(body: Part, row: str) -> str:
    """The rows with this one behind those of the steps before it."""
    for name, word, rest in (("time", "size", -1), ("next time", "begin", 0)):
        one = body.add("RESHAPE", [name, body.number([1])], f"{name} alone", (1,), "int32")
        body.add("CONCATENATION", [one, body.number([rest, rest])], word, (3,), "int32")
    ahead = body.add("SLICE", ["rows", body.number([0, 0, 0]), "size"], "ahead", (1, 1, UNITS))
    behind = body.add("SLICE", ["rows", "begin", body.number([-1, -1, -1])], "behind", (1, 1, UNITS))
    for name in (ahead, behind):
        place = body.at(name)[0]
        tensor = body.tensors[place]
        body.tensors[place] = T(tensor.name, tensor.shape, tensor.dtype, (), (), signature=(-1, 1, UNITS))
    return body.add("CONCATENATION", [ahead, row, behind], "all rows", (STEPS, 1, UNITS))


def _products(body: Part, x: str, gates: int) -> tuple[str, str]:
    found = []
    for name, vector, size in (("of x", x, FEATURES), ("of state", "state", UNITS)):
        given = [vector, body.weights(gates * UNITS, size), body.weights(gates * UNITS)]
        found.append(body.add("FULLY_CONNECTED", given, name, (1, gates * UNITS)))
    return found[0], found[1]


def _rnn(body: Part, x: str) -> str:
    total = body.add("ADD", _products(body, x, 1), "total", (1, UNITS))
    return body.add("TANH", [total], "after", (1, UNITS))


def _bounded(body: Part, x: str) -> str:
    """Sums so small that usual inputs never reach the bound."""
    total = body.add("ADD", _products(body, x, 1), "total", (1, UNITS))
    small = body.tensor("small", (), data=1.0)
    for place, tensor in enumerate(body.tensors):
        if tensor.data is not None and np.size(tensor.data) > 1 and tensor.dtype == "float32":
            body.tensors[place] = plain(tensor.name, tensor.shape, "float32", np.asarray(tensor.data) * 1e-3)
    return body.add("RELU6", [body.add("MUL", [total, small], "same", (1, UNITS))], "after", (1, UNITS))


def _gru(body: Part, x: str) -> str:
    own = (1, UNITS)
    of_x, of_state = _products(body, x, 3)
    body.split(of_x, ["zx", "rx", "hx"])
    body.split(of_state, ["zh", "rh", "hh"])
    keep = body.add("LOGISTIC", [body.add("ADD", ["zx", "zh"], "z", own)], "keep", own)
    reset = body.add("LOGISTIC", [body.add("ADD", ["rx", "rh"], "r", own)], "reset", own)
    recalled = body.add("MUL", [reset, "hh"], "recalled", own)
    fresh = body.add("TANH", [body.add("ADD", ["hx", recalled], "h", own)], "fresh", own)
    kept = body.add("MUL", [keep, "state"], "kept", own)
    rest = body.add("SUB", [body.tensor("one", (), data=1.0), keep], "rest", own)
    return body.add("ADD", [kept, body.add("MUL", [rest, fresh], "entering", own)], "after", own)


def _other(body: Part, x: str) -> str:
    """No cell that there is an operator for."""
    of_x, of_state = _products(body, x, 1)
    gate = body.add("LOGISTIC", [of_state], "gate", (1, UNITS))
    return body.add("MUL", [body.add("TANH", [of_x], "value", (1, UNITS)), gate], "after", (1, UNITS))


LOOPS: dict[str, File] = dict(seeds())
