"""SVDF: filters over features, and filters over their results in earlier runs."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from nnbuild.frontend.tflite.call import BATCH_ONE, Call, form
from nnbuild.frontend.tflite.linear import within_bits
from nnbuild.model.graph import Quant
from nnbuild.numeric.multiplier import SUM_SCALE_LIMIT
from nnbuild.ops.base import NO_CLAMP, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.dense import Dense
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.slice import Slice
from nnbuild.ops.svdf import Svdf

FLOAT = "Convert it to that, or to float32."


def svdf(call: Call) -> None:
    """The state stores the feature filters' results of earlier runs, one column per run."""
    call.expect(call.batch == 1, "its state is that of several samples.", BATCH_ONE)
    (x,) = call.data_inputs(0)
    rank, clamp = int(call.option("SVDFOptions", "Rank", 1)), call.clamp("SVDFOptions")
    features, times = call.weights(1), call.weights(2)
    fits = features.ndim == times.ndim == 2 and rank > 0 and features.shape[0] == times.shape[0]
    call.expect(
        fits and features.shape[0] % rank == 0, f"{features.shape} and {times.shape} are not filters of its input."
    )
    (filters, size), memory = features.shape, times.shape[1]
    call.expect(call.shape(x)[-1] == size == prod(call.shape(x)), f"its input is not of {size} features.")
    if not call.is_float():
        _svdf_in_integers(call, x, rank, clamp)
        return
    kernel = {"kernel": call.constant(1, features.T)}
    column = call.seen(call.add(Dense(), [call.seen(x, (size,))], kernel), (filters, 1))
    before = call.assembly.state(replace(call.like(), name=call.stored(4).name, shape=(filters, memory)))
    after = column
    if memory > 1:
        older = call.add(Slice((0, 1), (1, 1), (filters, memory - 1)), [before])
        after = call.add(Concatenate(1), [older, column])
    call.assembly.keep(before, after)
    weighed = call.add(Binary("multiply"), [after], {"right": call.constant(2, times)})
    total = call.add(Reduce("sum", 1, 1), [call.seen(weighed, (filters // rank, rank * memory))])
    if call.given(3):
        total = call.add(Binary("add", clamp), [total], {"right": call.constant(3, call.weights(3).reshape(-1))})
    elif clamp != NO_CLAMP:
        total = call.add(Binary("add", clamp), [total], {"right": call.constant(2, np.zeros(1, np.float32))})
    call.reshaped(total)


def _svdf_in_integers(call: Call, x: str, rank: int, clamp: Clamp) -> None:
    """TFLite supports it only with a ReLU, which the output's format implies."""
    stored, features, times = call.stored(4), call.weights(1), call.weights(2)
    kinds = [call.tensor(x).dtype, call.stored(1).dtype, call.stored(2).dtype, stored.dtype, call.output().dtype]
    call.expect(
        kinds == ["int8", "int8", "int16", "int16", "int8"],
        f"it computes {kinds[0]} with weights of {kinds[1]} and {kinds[2]} and a state of {kinds[3]}; nnbuild does "
        "int8 with weights of int8 and int16 and a state of int16.",
        FLOAT,
    )
    ends = "its integer form has no ReLU, which TFLite requires."
    call.expect(clamp == Clamp(0.0), ends, FLOAT)
    filters, memory = times.shape
    quants = [_lone(call, index) for index in (1, 2)]
    state = replace(form(stored, 1), shape=(filters, memory))
    call.expect(state.quant is not None and state.quant.zero_point == 0, "its state's zero point is not 0.")
    bias = call.weights(3).reshape(-1) if call.given(3) else np.zeros(filters // rank, np.int32)
    call.expect(bias.dtype == np.int32 and bias.size == filters // rank, f"its bias is {bias.size} of {bias.dtype}.")
    within_bits(call, features.T, 0, None)
    own, out = call.tensor(x).quant, call.like().quant
    assert own is not None and out is not None and state.quant is not None
    call.ratio(own.scale * quants[0].scale / state.quant.scale, SUM_SCALE_LIMIT)
    call.ratio(state.quant.scale * quants[1].scale / out.scale, SUM_SCALE_LIMIT)
    constants = {
        "kernel": call.constant(1, features.T, quants[0]),
        "times": call.constant(2, times, quants[1]),
        "bias": call.constant(3 if call.given(3) else 2, bias),
    }
    before = call.assembly.state(state)
    shape = (call.shape(x)[-1],)
    made = call.adds(Svdf(rank), [call.seen(x, shape), before], [call.like(), state], constants)
    call.assembly.keep(before, made[1])
    call.reshaped(made[0])


def _lone(call: Call, index: int) -> Quant:
    """A constant's single scale, with zero point 0."""
    stored = call.stored(index)
    known = stored.quantization
    if known is None or len(known.scales) != 1 or any(known.zero_points):
        raise stored.error("it holds weights as integers, but has no scale of its own with a zero point of 0.")
    return Quant(known.scales)


OPERATORS = {"SVDF": svdf}
