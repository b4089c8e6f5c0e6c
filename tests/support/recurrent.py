"""Models of one recurrent layer and a softmax, with Keras' initial weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nnbuild.model.graph import WHOLE, Array, Constant, Graph, Op, State, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.dense import Dense
from nnbuild.ops.gru import GRU
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax


def glorot(chance: np.random.Generator, rows: int, columns: int) -> Array:
    limit = np.sqrt(6 / (rows + columns))
    return chance.uniform(-limit, limit, (rows, columns))


def orthogonal(chance: np.random.Generator, rows: int, columns: int) -> Array:
    q, r = np.linalg.qr(chance.normal(size=(columns, rows)))
    return np.asarray((q * np.sign(np.diag(r))).T)


def initial_weights(chance: np.random.Generator, layer: Recurrent, features: int) -> dict[str, Array]:
    """As Keras begins: glorot_uniform, orthogonal, zeros, and ones for an LSTM's forget gate."""
    width = layer.gates * layer.units
    bias = np.zeros(layer.bias_shape())
    if isinstance(layer, LSTM):
        bias[layer.units : 2 * layer.units] = 1
    kernel = glorot(chance, features, width)
    return {"kernel": kernel, "recurrent": orthogonal(chance, layer.units, width), "bias": bias}


def classifier(layer: Recurrent, seed: int, *, features: int = 8, classes: int = 10, factor: float = 1.0) -> Graph:
    """A stateful layer over one time step, Dense and Softmax; `factor` multiplies all weights."""
    chance = np.random.default_rng(seed)
    weights = initial_weights(chance, layer, features)
    weights |= {"dense": glorot(chance, layer.units, classes), "dense_bias": np.zeros(classes)}
    constants = {name: Constant(name, (value * factor).astype(np.float32)) for name, value in weights.items()}
    before = [f"before{i}" for i in range(layer.states)]
    after = [f"after{i}" for i in range(layer.states)]
    shapes: Mapping[str, tuple[int, ...]] = {
        "x": (1, features),
        **dict.fromkeys((*before, *after), (layer.units,)),
        "logits": (classes,),
        "y": (classes,),
    }
    ops = (
        Op("rnn", layer, ("x", *before), tuple(after), {r: r for r in ("kernel", "recurrent", "bias")}, "rnn"),
        Op("dense", Dense(), ("after0",), ("logits",), {"kernel": "dense", "bias": "dense_bias"}, "dense"),
        Op("softmax", Softmax(), ("logits",), ("y",), layer="softmax"),
    )
    tensors = {name: Tensor(name, shape) for name, shape in shapes.items()}
    states = tuple(State(b, a) for b, a in zip(before, after, strict=True))
    return verify(Graph("net", tensors, constants, ops, ("x",), ("y",), states))


LAYERS: dict[str, Recurrent] = {
    "lstm": LSTM(units=32),
    "gru": GRU(units=32),
    "gru-before": GRU(units=32, reset_after=False),
}


def stacked(layer: Recurrent) -> Graph:
    """Two layers, the second without a sequence, and a Dense behind."""
    chance = np.random.default_rng(1)
    first, second = replace(layer, sequences=True), replace(layer, sequences=False)
    constants = _held("first", initial_weights(chance, first, 3)) | _held(
        "second", initial_weights(chance, second, layer.units)
    )
    constants["dense"] = Constant("dense", chance.normal(size=(layer.units, 3)).astype(np.float32))
    states = [[f"{name}{i}" for i in range(layer.states)] for name in ("a", "b")]
    ops = (
        Op("first", first, ("x",), ("sequence", *states[0]), _roles("first"), "first"),
        Op("second", second, ("sequence",), tuple(states[1]), _roles("second"), "second"),
        Op("dense", Dense(), (states[1][0],), ("y",), {"kernel": "dense"}, "dense"),
    )
    shapes = {"x": (5, 3), "sequence": (5, layer.units), **dict.fromkeys((*states[0], *states[1]), (layer.units,))}
    tensors = {name: Tensor(name, shape) for name, shape in (shapes | {"y": (3,)}).items()}
    return verify(Graph("net", tensors, constants, ops, ("x",), ("y",)))


def bidirectional(layer: Recurrent) -> Graph:
    """Forwards and backwards over the same input, their sequences side by side; all states are outputs too."""
    chance = np.random.default_rng(2)
    constants = _held("there", initial_weights(chance, layer, 3)) | _held("back", initial_weights(chance, layer, 3))
    states = [[f"{name}{i}" for i in range(layer.states)] for name in ("a", "b")]
    there, back = replace(layer, sequences=True), replace(layer, sequences=True, backwards=True)
    ops = (
        Op("there", there, ("x",), ("ahead", *states[0]), _roles("there"), "both"),
        Op("back", back, ("x",), ("behind", *states[1]), _roles("back"), "both"),
        Op("turn", Slice((4, 0), (-1, 1), (5, layer.units)), ("behind",), ("turned",), layer="both"),
        Op("join", Concatenate(1), ("ahead", "turned"), ("y",), layer="both"),
    )
    sequence = (5, layer.units)
    shapes = {"x": (5, 3), "y": (5, 2 * layer.units), **dict.fromkeys(("ahead", "behind", "turned"), sequence)}
    shapes |= dict.fromkeys((*states[0], *states[1]), (layer.units,))
    tensors = {name: Tensor(name, shape) for name, shape in shapes.items()}
    return verify(Graph("net", tensors, constants, ops, ("x",), ("y", *states[0], *states[1])))


def handed_over(layer: Recurrent) -> Graph:
    """The states of one layer begin another, one state of which a Dense reads; a third begins with graph inputs."""
    chance = np.random.default_rng(3)
    constants: dict[str, Constant] = {}
    for name in ("a", "b", "c"):
        constants |= _held(name, initial_weights(chance, layer, 3))
    constants["dense"] = Constant("dense", chance.normal(size=(layer.units, 3)).astype(np.float32))
    states = {name: tuple(f"{name}{i}" for i in range(layer.states)) for name in ("given", "a", "b", "c")}
    ops = (
        Op("a", layer, ("x",), states["a"], _roles("a"), "a"),
        Op("b", layer, ("x", *states["a"]), states["b"], _roles("b"), "b"),
        Op("c", layer, ("x", *states["given"]), states["c"], _roles("c"), "c"),
        Op("dense", Dense(), (states["b"][-1],), ("y",), {"kernel": "dense"}, "dense"),
    )
    shapes = {"x": (4, 3), "y": (3,)} | dict.fromkeys((n for names in states.values() for n in names), (layer.units,))
    tensors = {name: Tensor(name, shape) for name, shape in shapes.items()}
    inputs, outputs = ("x", *states["given"]), ("y", *states["c"])
    return verify(Graph("net", tensors, constants, ops, inputs, outputs))


def masked(layer: Recurrent) -> Graph:
    """Half of the steps are left out: rows of zeros, forwards; rows repeated, backwards from given states."""
    chance = np.random.default_rng(4)
    constants = _held("there", initial_weights(chance, layer, 3)) | _held("back", initial_weights(chance, layer, 3))
    constants["zero"] = Constant("zero", np.zeros(1, np.int32), WHOLE)
    states = {name: tuple(f"{name}{i}" for i in range(layer.states)) for name in ("given", "a", "b")}
    there, back = (replace(layer, masked=True, sequences=True, zero_rows=zeros) for zeros in (True, False))
    behind = ("x", *states["given"], "valid")
    ops = (
        Op("choose", Compare("greater"), ("marks",), ("valid",), {"right": "zero"}, "choose"),
        Op("there", there, ("x", "valid"), ("ahead", *states["a"]), _roles("there"), "there"),
        Op("back", replace(back, backwards=True), behind, ("behind", *states["b"]), _roles("back"), "back"),
    )
    shapes = {"x": (6, 3)} | dict.fromkeys(("ahead", "behind"), (6, layer.units))
    shapes |= dict.fromkeys((n for names in states.values() for n in names), (layer.units,))
    tensors = {name: Tensor(name, shape) for name, shape in shapes.items()}
    tensors["marks"] = Tensor("marks", (6,), "int32", WHOLE)
    tensors["valid"] = Tensor("valid", (6,), "int8", WHOLE)
    outputs = ("ahead", "behind", *states["a"], *states["b"])
    return verify(Graph("net", tensors, constants, ops, ("x", "marks", *states["given"]), outputs))


def _held(name: str, weights: Mapping[str, Array]) -> dict[str, Constant]:
    return {f"{name} {role}": Constant(f"{name} {role}", value.astype(np.float32)) for role, value in weights.items()}


def _roles(name: str) -> dict[str, str]:
    return {role: f"{name} {role}" for role in ("kernel", "recurrent", "bias")}
