"""Fully connected layers."""

from __future__ import annotations

from nnbuild.frontend.keras_layers.activation import activate
from nnbuild.frontend.keras_layers.base import Call, LayerKind, single, trained_by
from nnbuild.ops.dense import Dense


def _dense(call: Call) -> str:
    units = call.config.integer("units")
    if not call.shape:
        raise call.config.error("its input has no axis to work on.")
    constants = {"kernel": call.weight("kernel", (call.shape[-1], units))}
    if call.config.flag("use_bias", True):
        constants["bias"] = call.weight("bias", (units,))
    return activate(call, call.builder.one(Dense(), (call.input,), constants))


LAYERS = {"Dense": LayerKind(single(_dense), trained_by("kernel"), passes_mask=True)}
