"""LSTM, GRU and SimpleRNN, with or without a state that persists between runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nnbuild.frontend.checked_config import Config, shown
from nnbuild.frontend.keras_layers.activation import SOFTMAX, function_of
from nnbuild.frontend.keras_layers.attention import truth
from nnbuild.frontend.keras_layers.base import Build, Call, LayerKind, Layers, WeightRule
from nnbuild.frontend.keras_names import folders
from nnbuild.frontend.keras_weights import WeightTree, parts
from nnbuild.ops.functions import Function
from nnbuild.ops.gru import GRU
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.slice import Slice

OF_LAYER = ("return_sequences", "return_state", "go_backwards", "stateful", "time_major", "zero_output_for_mask")


def cell_weights(config: Config, layers: Layers) -> WeightTree:
    """Keras stores them in the cell, a layer inside the layer."""
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
    """The initial states, and whether they are the states of the last run."""
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
    if call.mask is not None:
        outputs = _masked_steps(call, op, states, constants, truth(call, call.mask))
    else:
        outputs = call.builder.add(op, (call.inputs[0], *states), constants)
    after = outputs[-op.states :]
    if kept:
        for index, state in enumerate(after):
            call.builder.keep_state((*call.path, f"state{index}"), state)
    passed = call.mask or call.builder.masks.get(call.inputs[0])
    if passed is not None and op.sequences:
        call.builder.masks[outputs[0]] = passed
    if not call.config.flag("return_state"):
        return outputs[:1]
    return (outputs[0], *after)


def _masked_steps(
    call: Call, op: Recurrent, states: tuple[str, ...], constants: dict[str, str], mask: str
) -> tuple[str, ...]:
    """An invalid step keeps the states, and the output too, unless it should be zeros; before the first valid one, the
    output is zeros."""
    zeros = call.config.flag("zero_output_for_mask")
    last_row = not op.sequences and (zeros or bool(states))
    op = replace(op, masked=True, zero_rows=zeros, sequences=op.sequences or last_row)
    sequence, *after = call.builder.add(op, (call.inputs[0], *states, mask), constants)
    if last_row:
        last = call.one(Slice((call.builder.shape(sequence)[0] - 1, 0), (1, 1), (1, op.units)), sequence)
        sequence = call.one(Reshape((op.units,)), last)
    return sequence, *after


def _of_cell(call: Call) -> tuple[str, ...]:
    """RNN(cell): the layer of that cell, or a sequence of layers for StackedRNNCells."""
    cells, mask = _cells(call.config), call.mask
    options = {key: call.config.values[key] for key in OF_LAYER if key in call.config}
    inputs = list(call.inputs)
    after: list[str] = []
    for number, (kind, inner) in enumerate(cells):
        last = number == len(cells) - 1
        values = {**inner, **options, "return_state": True, "return_sequences": True}
        if last:
            values["return_sequences"] = call.config.flag("return_sequences")
        else:
            values["zero_output_for_mask"] = False
        if number > 0:
            values["go_backwards"] = False  # the previous layer gives its steps in its own order
        if number == 1 and call.mask is not None and call.config.flag("go_backwards"):
            (count,) = call.builder.shape(call.mask)
            call = replace(call, mask=call.one(Slice((count - 1,), (-1,), (count,)), call.mask))
        whole = replace(call, config=Config(call.config.where, values))
        if len(cells) > 1:
            name = f"cell{number}"
            whole = replace(whole, path=(*call.path, name), stored=call.stored.inside(name))
        op = KINDS[kind](whole)
        given, inputs = inputs[: 1 + op.states], inputs[1 + op.states :]
        made = run(replace(whole, inputs=tuple(given) if not last else (*given, *inputs)), op)
        inputs, after = [made[0], *inputs], [*after, *made[1:]]
    if mask is not None and inputs[0] in call.builder.masks:
        call.builder.masks[inputs[0]] = mask
    return (inputs[0], *after) if call.config.flag("return_state") else (inputs[0],)


def _cells(config: Config) -> list[tuple[str, dict[str, Any]]]:
    """The class and configuration of every cell, first to last."""
    outer = config.mapping("cell")
    inner = outer.get("config")
    found = [outer]
    if outer.get("class_name") == "StackedRNNCells" and isinstance(inner, dict):
        if inner.get("reverse_state_order"):
            raise config.error("it returns its states in reverse order.", "Build it without reverse_state_order.")
        found = inner["cells"] if isinstance(inner.get("cells"), list) and inner["cells"] else []
    cells = []
    for data in found:
        kind = str(data.get("class_name", "")) if isinstance(data, dict) else ""
        settings = data.get("config") if isinstance(data, dict) else None
        if kind.removesuffix("Cell") not in KINDS or not isinstance(settings, dict):
            known = ", ".join(f"{k}Cell" for k in KINDS)
            raise config.error(f"its cell is {shown(kind)}.", f"Use {known}, or a list of them.")
        cells.append((kind.removesuffix("Cell"), settings))
    if not cells:
        raise config.error("it has no cell.")
    return cells


def _rnn_weights(config: Config, layers: Layers) -> WeightTree:
    """Several cells have their own folders, named like layers."""
    cells = _cells(config)
    trees = [cell_weights(Config(config.where, inner), layers) for _, inner in cells]
    if len(cells) == 1:
        return trees[0]
    places = [folder.removeprefix("layers/") for folder in folders([(f"{kind}Cell", False) for kind, _ in cells])]
    return WeightTree(
        children=tuple(
            replace(tree.children[0], name=f"cell{number}/cell", folder=f"cell/cells/{place}")
            for number, (tree, place) in enumerate(zip(trees, places, strict=True))
        )
    )


KINDS = {"LSTM": _lstm, "GRU": _gru, "SimpleRNN": _simple}


def _kind(name: str) -> LayerKind:
    return _masked(lambda call: run(call, KINDS[name](call)), cell_weights)


def _masked(build: Build, weights: WeightRule) -> LayerKind:
    return LayerKind(build, weights, sees_mask=True, takes_mask=True)


LAYERS = {**{name: _kind(name) for name in KINDS}, "RNN": _masked(_of_cell, _rnn_weights)}
