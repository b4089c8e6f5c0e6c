"""LSTM, GRU and SimpleRNN, with or without a state that outlives a run."""

from __future__ import annotations

from typing import Any

from nnbuild.frontend.keras_layers.activation import SOFTMAX, function_of
from nnbuild.frontend.keras_layers.base import Call, LayerKind, Layers
from nnbuild.frontend.settings import Config
from nnbuild.frontend.weights import WeightTree, parts
from nnbuild.ops.functions import Function
from nnbuild.ops.gru import GRU
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.simple_rnn import SimpleRNN


def cell_weights(config: Config, layers: Layers) -> WeightTree:
    """Keras keeps them in the cell, a layer within the layer."""
    roles = ("kernel", "recurrent", "bias") if config.flag("use_bias", True) else ("kernel", "recurrent")
    return WeightTree(children=parts(cell=WeightTree(roles)))


def _function(call: Call, key: str, default: str) -> Function:
    found = function_of(call.config.values.get(key, default), call.dialect, call.config)
    if found == SOFTMAX:
        raise call.config.error(f"its {key} is a softmax, which nnbuild does not support there.", "Use another one.")
    return found


def _common(call: Call) -> dict[str, Any]:
    return {
        "units": call.config.integer("units"),
        "activation": _function(call, "activation", "tanh"),
        "sequences": call.config.flag("return_sequences"),
        "backwards": call.config.flag("go_backwards"),
    }


def _lstm(call: Call) -> Recurrent:
    return LSTM(gate_activation=_function(call, "recurrent_activation", "sigmoid"), **_common(call))


def _gru(call: Call) -> Recurrent:
    gate = _function(call, "recurrent_activation", "sigmoid")
    after = call.config.flag("reset_after", call.dialect.gru_resets_after)
    return GRU(gate_activation=gate, reset_after=after, **_common(call))


def _simple(call: Call) -> Recurrent:
    return SimpleRNN(**_common(call))


def _constants(call: Call, op: Recurrent) -> dict[str, str]:
    if len(call.builder.shape(call.inputs[0])) != 2:
        raise call.config.error(f"it needs an input [time, features], not {call.builder.shape(call.inputs[0])}.")
    features, width = call.builder.shape(call.inputs[0])[1], op.gates * op.units
    shapes = {"kernel": (features, width), "recurrent": (op.units, width), "bias": op.bias_shape()}
    if not call.config.flag("use_bias", True):
        del shapes["bias"]
    return {role: call.weight(f"cell/{role}", shape) for role, shape in shapes.items()}


def _initial(call: Call, op: Recurrent) -> tuple[tuple[str, ...], bool]:
    """The initial states, and whether they are those of the run before."""
    given = call.inputs[1:]
    if given and len(given) != op.states:
        raise call.config.error(f"it is called with {len(given)} initial states instead of {op.states}.")
    if given or not call.config.flag("stateful"):
        return given, False
    return tuple(call.builder.state((*call.path, f"state{i}"), (op.units,)) for i in range(op.states)), True


def run(call: Call, op: Recurrent) -> tuple[str, ...]:
    call.config.refuse("time_major", "Rebuild the layer without it.")
    if not call.inputs:
        raise call.config.error("it is called without any tensor.")
    constants = _constants(call, op)
    states, kept = _initial(call, op)
    outputs = call.builder.add(op, (call.inputs[0], *states), constants)
    after = outputs[-op.states :]
    if kept:
        for index, state in enumerate(after):
            call.builder.keep_state((*call.path, f"state{index}"), state)
    if not call.config.flag("return_state"):
        return outputs[:1]
    return (outputs[0], *after)


KINDS = {"LSTM": _lstm, "GRU": _gru, "SimpleRNN": _simple}


def _kind(name: str) -> LayerKind:
    return LayerKind(lambda call: run(call, KINDS[name](call)), cell_weights, sees_mask=True)


LAYERS = {name: _kind(name) for name in KINDS}
