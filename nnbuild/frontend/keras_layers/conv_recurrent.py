"""Convolutional LSTM: unrolled steps of convolutions and gates."""

from __future__ import annotations

from functools import partial

from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_layers.activation import apply, function_of
from nnbuild.frontend.keras_layers.base import Call, LayerKind, Layers
from nnbuild.frontend.keras_layers.channels_first import in_either_order, is_first
from nnbuild.frontend.keras_layers.convolution import Geometry, geometry, pads
from nnbuild.frontend.keras_weights import WeightTree, parts
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.slice import Slice
from nnbuild.ops.windows import same_padding

MOST_STEPS = 256
"""Each step is printed as separate operations."""


def _weights(config: Config, layers: Layers) -> WeightTree:
    roles = ("kernel", "recurrent", "bias") if config.flag("use_bias", True) else ("kernel", "recurrent")
    return WeightTree(children=parts(cell=WeightTree(roles)))


def _kind(flat: bool) -> LayerKind:
    return LayerKind(partial(_either, flat=flat), _weights, sees_mask=True)


def _either(call: Call, flat: bool) -> tuple[str, ...]:
    bent = [call.config.get(key) for key in ("activation", "recurrent_activation")]
    if is_first(call.config) and "softmax" in bent:
        raise call.config.error("its softmax is not over the channels, which come first.", "Put the channels last.")
    return in_either_order(partial(_build, flat=flat), 1 if flat else 2)(call)


def _build(call: Call, flat: bool) -> tuple[str, ...]:
    call.config.refuse("stateful", "Set it to False.")
    shape = call.shape
    if len(shape) != (3 if flat else 4):
        raise call.config.error(f"it is called with a tensor of the shape {shape}.")
    if shape[0] > MOST_STEPS:
        raise call.config.error(f"it has {shape[0]} steps; nnbuild unrolls at most {MOST_STEPS}.", "Use fewer.")
    outputs, state, cell = _steps(call, flat, shape[0])
    if call.config.flag("return_sequences", False):
        rows = [call.one(Reshape((1, *call.builder.shape(y))), y) for y in outputs]
        result = rows[0] if len(rows) == 1 else call.one(Concatenate(0), *rows)
    else:
        result = state
    return (result, state, cell) if call.config.flag("return_state", False) else (result,)


def _steps(call: Call, flat: bool, count: int) -> tuple[list[str], str, str]:
    """(the output of each step, the last hidden state, the last cell state), without the added axis of
    one-dimensional rows."""
    fed, window = _fed(call, flat)
    order = range(count - 1, -1, -1) if call.config.flag("go_backwards", False) else range(count)
    state: str | None = None
    cell: str | None = None
    outputs = []
    for step in order:
        gates = _part(call, fed, 0, step, 1)
        gates = call.one(Reshape(call.builder.shape(fed)[1:]), gates)
        if state is not None:
            gates = call.one(Binary("add"), gates, _recurred(call, state, window))
        state, cell = _gated(call, gates, cell)
        outputs.append(call.one(Reshape(call.builder.shape(state)[1:]), state) if flat else state)
    assert state is not None and cell is not None
    last = call.one(Reshape(call.builder.shape(cell)[1:]), cell) if flat else cell
    return outputs, outputs[-1], last


def _fed(call: Call, flat: bool) -> tuple[str, Geometry]:
    """The input's contribution to all gates of all steps, computed at once."""
    x = call.inputs[0]
    shape = call.builder.shape(x)
    x = call.one(Reshape((shape[0], 1, *shape[1:])), x) if flat else x
    window, filters = geometry(call.config, flat), call.config.integer("filters")
    channels = shape[-1]
    stored = window.stored(channels, 4 * filters)
    constants = {"kernel": call.weight("cell/kernel", stored, (*window.kernel, channels, 4 * filters))}
    if call.config.flag("use_bias", True):
        constants["bias"] = call.weight("cell/bias", (4 * filters,))
    with call.builder.along(shape[:1]):
        op = Conv2D(window.strides, window.dilation, pads(call, x, window))
        return call.builder.one(op, (x,), constants), window


def _recurred(call: Call, state: str, window: Geometry) -> str:
    size, filters = call.builder.shape(state), call.config.integer("filters")
    rows, columns = (same_padding(size[i], window.kernel[i], 1, 1) for i in (0, 1))
    shape = window.stored(filters, 4 * filters)
    kernel = call.weight("cell/recurrent", shape, (*window.kernel, filters, 4 * filters))
    return call.one(Conv2D(padding=(rows, columns)), state, kernel=kernel)


def _part(call: Call, x: str, axis: int, begin: int, count: int) -> str:
    shape = call.builder.shape(x)
    begins = tuple(begin if i == axis else 0 for i in range(len(shape)))
    counts = tuple(count if i == axis else n for i, n in enumerate(shape))
    return call.one(Slice(begins, (1,) * len(shape), counts), x)


def _gated(call: Call, gates: str, cell: str | None) -> tuple[str, str]:
    """Applies the gates, in Keras's order: input, forget, candidate, output."""
    filters = call.config.integer("filters")
    gate = function_of(call.config.values.get("recurrent_activation", "sigmoid"), call.dialect, call.config)
    bent = function_of(call.config.values.get("activation", "tanh"), call.dialect, call.config)
    taken, kept, new, shown = (_part(call, gates, 2, i * filters, filters) for i in range(4))
    fresh = call.one(Binary("multiply"), apply(call, taken, gate), apply(call, new, bent))
    if cell is not None:
        fresh = call.one(Binary("add"), call.one(Binary("multiply"), apply(call, kept, gate), cell), fresh)
    return call.one(Binary("multiply"), apply(call, shown, gate), apply(call, fresh, bent)), fresh


LAYERS = {"ConvLSTM1D": _kind(flat=True), "ConvLSTM2D": _kind(flat=False)}
