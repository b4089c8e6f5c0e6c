"""Frames of an axis: pieces of one length, a step apart."""

from __future__ import annotations

from math import gcd

import numpy as np

from nnbuild.frontend.frames import MOST_PARTS
from nnbuild.frontend.onnx.call import Call
from nnbuild.frontend.onnx.data_movement import as_shape, every, joined, part, picked
from nnbuild.ops.layout import Value


def framed(call: Call, x: Value, axis: int, length: int, step: int, count: int) -> Value:
    """[..., size, ...] as [..., count, length, ...]: each part of the frames is one slice."""
    before, after, piece = x.shape[:axis], x.shape[axis + 1 :], gcd(length, step)
    if length // piece > MOST_PARTS:
        places = (np.arange(count)[:, None] * step + np.arange(length)).reshape(-1)
        return as_shape(call, picked(call, x, axis, [int(i) for i in places]), (*before, count, length, *after))
    rows = ((count - 1) * step + length) // piece
    x = part(call, x, [*every(before), (0, 1, rows * piece), *every(after)])
    x = as_shape(call, x, (*before, rows, piece, *after))
    ends = every((piece, *after))
    cuts = [part(call, x, [*every(before), (i, step // piece, count), *ends]) for i in range(length // piece)]
    return joined(call, cuts, axis + 1)
