"""Operators composed of several operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nnbuild.frontend.tflite.call import Call
from nnbuild.frontend.tflite.linear import image
from nnbuild.frontend.tflite.selection import whole
from nnbuild.model.graph import Quant
from nnbuild.ops.binary import Binary
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.transpose import Transpose
from nnbuild.ops.unit_length import UnitLength
from nnbuild.ops.whole import Whole

FLOAT = "Convert it to float32."
TINY = 1e-12
UNIT_QUANT = Quant((2.0**-7,), 0)


def blocks(deep: bool, call: Call) -> None:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH: squares of pixels become channels, or the reverse."""
    kind = "DepthToSpaceOptions" if deep else "SpaceToDepthOptions"
    size = int(call.option(kind, "BlockSize", 1))
    x, (height, width, channels), outer = image(call, 0)
    call.same_quant(x)
    fits = 0 < size < 2**15 and (channels % (size * size) == 0 if deep else height % size == 0 and width % size == 0)
    call.expect(fits, f"blocks of {size} do not divide {[height, width, channels]}.")
    if deep:
        channels //= size * size
        seen, order, made = (height, width, size, size, channels), (0, 2, 1, 3, 4), (height * size, width * size)
    else:
        height, width = height // size, width // size
        seen, order, made = (height, size, width, size, channels), (0, 2, 1, 3, 4), (height, width)
        channels *= size * size
    turned = call.add(Transpose(order), [call.seen(x, outer + seen)], like=call.tensor(x), outer=outer)
    call.done(call.seen(turned, (*outer, *made, channels)))


def add_n(call: Call) -> None:
    call.expect(len(call.operator.inputs) > 0, "it adds nothing.")
    first, *others = call.data_inputs(*range(len(call.operator.inputs)))
    like = call.like()
    plain = call.is_float() or (like.is_whole and like.dtype == "int32")
    call.expect(plain, "nnbuild supports ADD_N on floats and 32-bit integers.", FLOAT)
    for other in others:
        first = call.add(Binary("add") if call.is_float() else Whole("add"), [first, other])
    call.done(first)


def unit_length(call: Call) -> None:
    (x,) = call.data_inputs(0)
    if not call.is_float():
        out, own = call.like(), call.tensor(x)
        call.expect(
            out.dtype == own.dtype == "int8" and own.quant is not None, "it supports int8 input and output only.", FLOAT
        )
        call.expect(out.quant == UNIT_QUANT, "its output does not have the scale 2^-7 and zero point 0.")
        call.done(call.add(UnitLength(), [x]))
        return
    size = call.shape(x)[-1]
    data = np.full((size,), 1 / np.sqrt(size), np.float32)
    scale = call.assembly.constant(call.operator, f"{call.layer}/length", data, None)
    call.done(call.add(LayerNorm(1, TINY / size, centred=False), [x], {"scale": scale}))


OPERATORS: dict[str, Callable[[Call], None]] = {
    "DEPTH_TO_SPACE": partial(blocks, True),
    "SPACE_TO_DEPTH": partial(blocks, False),
    "ADD_N": add_n,
    "L2_NORMALIZATION": unit_length,
    "BITWISE_XOR": partial(whole, "xor"),
    "RIGHT_SHIFT": partial(whole, "right_shift"),
}
