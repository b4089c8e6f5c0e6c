"""Elementwise operators of one or two operands, and softmax."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, sqrt

import numpy as np

from nnbuild.frontend.assembly import CALIBRATE
from nnbuild.frontend.other_arithmetic import SMALL_QUOTIENTS
from nnbuild.frontend.tflite.call import LARGEST_SCALE, RANGES, Call
from nnbuild.frontend.tflite.records import CONVERT_AGAIN, Quantization, along, as_float
from nnbuild.frontend.tflite.selection import two_sided
from nnbuild.model.graph import Array, Quant
from nnbuild.numeric.elementwise import rescale, rescale_multiplier, sum_limit
from nnbuild.numeric.multiplier import SMALLEST_SCALE
from nnbuild.numeric.steps import steps
from nnbuild.numeric.tables import FUNCTIONS16, given_table16
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import NO_CLAMP, Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.convert import Convert
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.select import LEFT_OUT, Select
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.whole import FUNCTIONS as WHOLE_NUMBERS
from nnbuild.ops.whole import Whole

# Scale ratios below which a result with its zero point stays within 32 bits.
SHIFT_LIMIT = 2.0**21
PRODUCT_LIMIT = 2.0**14

TABLE_LIMIT = 32767 / (4096 * 3)
SOFTMAX_FROM = 2.0**-26
SOFTMAX16_BELOW = 2.0
HARD_SWISH_BELOW = 2.0**10
NEARER_ZERO = "Convert the model with representative samples, or normalize before it: its values lie too far from zero."
BOUNDS = ("add", "subtract", "maximum", "minimum")
"""Functions where infinity is a mask or a bound."""
EXACT_QUOTIENTS = 64
"""The ratio of scales from which TFLite's quotients are right near zero, too."""
SMALLEST_SUMMAND = 2.0**-100
"""Smallest scale of an added constant: the epsilon of a normalization has a tiny one."""
GIVEN = {("sqrt", "int8"), *((name, "int16") for name in FUNCTIONS16)}
"""Functions whose integer results in TFLite differ from nnbuild's rule."""


def quant(call: Call, name: str) -> Quant | None:
    return call.tensor(name).quant


def unary(function: str, parameters: tuple[float, ...], call: Call, *, integers: bool = True) -> None:
    (x,) = call.data_inputs(0)
    own, out = quant(call, x), call.like().quant
    if own is not None and out is not None:
        call.expect(integers, f"nnbuild supports {call.operator.kind} only in float32.", "Convert it to float32.")
        _within_tables(call, function, own, out)
    given = own is not None and (function, call.output().dtype) in GIVEN
    call.done(call.add(Activation(function, parameters, given), [x]))


def _within_tables(call: Call, function: str, own: Quant, out: Quant) -> None:
    """Refuses scales for which the function's rule is not defined."""
    wide = call.output().dtype == "int16"
    if wide and function in FUNCTIONS16:
        try:
            given_table16(function, own.scale, out.scale)
        except ValueError as error:
            raise call.error(f"{error}.", CONVERT_AGAIN) from None
        return
    call.ratio(own.scale / out.scale, SHIFT_LIMIT)
    if function in ("sigmoid", "tanh") and wide:
        _expect_below(call, own.scale, TABLE_LIMIT)
        call.expect(out.scale == 2.0**-15, f"the scale of its output is {out.scale:.6g}, not 2^-15.")
    if function == "hard_swish":
        call.expect(not wide, "nnbuild supports HARD_SWISH in int8 and float32, not in int16.", CONVERT_AGAIN)
        call.ratio(own.scale / out.scale / 128, 1.0)
        _expect_below(call, own.scale, HARD_SWISH_BELOW)
    if function == "rsqrt":
        call.ratio(1 / (sqrt(own.scale) * out.scale), SHIFT_LIMIT)


def turned(function: str, call: Call) -> None:
    """ABS and NEG, also on integers."""
    like = call.like()
    if not (like.is_whole and like.dtype == "int32"):
        unary(function, (), call, integers=function == "absolute")
        return
    (x,) = call.data_inputs(0)
    zero = call.assembly.constant(call.operator, f"{call.layer}/zero", np.zeros((1,), np.int32), like.quant)
    negative = call.add(Whole("subtract"), [x], {"left": zero})
    call.done(negative if function == "negative" else call.add(Whole("maximum"), [x, negative]))


def root(call: Call) -> None:
    call.expect(
        call.output().dtype != "int16", "nnbuild supports SQRT in int8 and float32, not in int16.", CONVERT_AGAIN
    )
    unary("sqrt", (), call)


def fake_quant(call: Call) -> None:
    """Left by quantization-aware training in a float file; its range becomes the scale when the model is quantized."""
    (x,) = call.data_inputs(0)
    call.expect(call.is_float(), f"it computes {call.output().dtype}.", CONVERT_AGAIN)
    call.done(call.add(Activation("steps", steps_of(call)), [x]))


def steps_of(call: Call) -> tuple[float, float, float]:
    """(smallest, largest, step): the range shifted so that zero is representable, in float32 as in TFLite."""
    kind = "FakeQuantOptions"
    low, high = (call.number(kind, name, 0.0) for name in ("Min", "Max"))
    bits, narrow = int(call.option(kind, "NumBits", 0)), bool(call.option(kind, "NarrowRange", False))
    call.expect(
        low <= 0 <= high and low < high and 2 <= bits <= 16, f"its range is {low:g} to {high:g} in {bits} bits."
    )
    found = steps(low, high, bits, narrow)
    call.expect(found[2] > 0, f"its range is {low:g} to {high:g}.")
    return found


def leaky_relu(call: Call) -> None:
    alpha = call.number("LeakyReluOptions", "Alpha", 0.0)
    call.expect(abs(alpha) < 2.0**10, f"its Alpha is {alpha:g}.")
    own, out = quant(call, call.value(0)), call.like().quant
    if own is not None and out is not None:
        call.ratio(own.scale * abs(alpha) / out.scale, SHIFT_LIMIT)
    unary("leaky_relu", (alpha,), call)


def elu(call: Call) -> None:
    unary("elu", (1.0,), call, integers=False)


def gelu(call: Call) -> None:
    tanh_form = bool(call.option("GeluOptions", "Approximate", False))
    unary("gelu_tanh" if tanh_form else "gelu", (), call)


def prelu(call: Call) -> None:
    (x,) = call.data_inputs(0)
    slope, held = _operand(call, 1, "prelu")
    own, out = quant(call, x), call.like().quant
    if own is not None and out is not None and held is not None:
        call.expect(call.output().dtype == "int8", "nnbuild supports PRELU in int8 and float32, not in int16.")
        call.ratio(own.scale / out.scale, SHIFT_LIMIT)
        call.ratio(own.scale * held.scale / out.scale, PRODUCT_LIMIT)
    rank = len(call.shape(x))
    call.expect(slope.ndim <= rank, f"its slopes {list(slope.shape)} have more axes than its input.")
    slope = slope.reshape((1,) * (rank - slope.ndim) + slope.shape)
    call.done(call.add(PReLU(), [x], {"slope": call.constant(1, slope, held)}))


def squared_difference(call: Call) -> None:
    """On integers, a difference followed by a product."""
    like = call.like()
    if not (like.is_whole and like.dtype == "int32"):
        binary("squared_difference", "", call)
        return
    apart = call.add(Whole("subtract"), [call.value(0), call.value(1)])
    call.done(call.add(Whole("multiply"), [apart, apart]))


def binary(function: str, options: str, call: Call) -> None:
    clamp = call.clamp(options) if options else NO_CLAMP
    if call.like().is_whole and call.like().dtype == "int32":
        call.expect(clamp == NO_CLAMP and function in WHOLE_NUMBERS, f"nnbuild does not support {function} on int32.")
        two_sided(Whole(function), call)
        return
    call.expect(len(call.operator.inputs) == 2, "it needs two operands.")
    names, constants, quants = [], {}, []
    for index, role in enumerate(("left", "right")):
        if call.is_constant(index):
            values, held = _operand(call, index, function)
            if function == "add" and held is None and (values <= LEFT_OUT).any():
                call.done(_left_out(call, 1 - index, values, clamp))
                return
            constants[role] = call.constant(index, values, held)
        else:
            (name,) = call.data_inputs(index)
            held = quant(call, name)
            names.append(name)
        quants.append(held)
    call.expect(bool(names), "both its operands are constants.", CONVERT_AGAIN)
    _within_sums(call, function, quants)
    call.done(call.add(Binary(function, clamp), names, constants))


def _left_out(call: Call, index: int, mask: Array, clamp: Clamp) -> str:
    """Adds a mask to a tensor. Masked elements are replaced instead of added to, so that integer scales fit the
    others."""
    call.expect(not call.is_constant(index), "both its operands are constants.", CONVERT_AGAIN)
    (kept,), lost = call.data_inputs(index), mask <= LEFT_OUT
    rest, lowest = np.where(lost, np.float32(0), mask), mask.min().reshape(1)
    if rest.any() or clamp != NO_CLAMP or np.broadcast_shapes(mask.shape, call.shape(kept)) != call.shape(kept):
        kept = call.add(Binary("add", clamp), [kept], {"right": call.constant(1 - index, rest)})
    chosen = call.known((~lost).astype(np.int8), call.truth)
    return call.add(Select(), [chosen, kept], {"other": call.constant(1 - index, lowest)})


def _operand(call: Call, index: int, function: str) -> tuple[Array, Quant | None]:
    """A constant operand without its batch axis, and its scale."""
    stored, values = call.stored(index), call.weights(index, bounds=function in BOUNDS)
    rank = len(call.output().shape)
    if values.ndim == rank and rank > 1:
        if call.batch > 1:
            call.expect(values.shape[0] == 1, f"its constant {stored.name!r} differs between samples.")
        values = values[0] if values.shape[0] == 1 else values
    if call.is_float():
        return values, None
    known = stored.quantization
    call.expect(stored.dtype == call.output().dtype, f"its constant {stored.name!r} is of type {stored.dtype}.")
    if known is None or len(known.scales) != 1:
        raise stored.error("it is an operand in integers, and must have one scale.", CONVERT_AGAIN)
    low, high = RANGES[stored.dtype] if stored.dtype == "int8" else (0, 0)
    smallest = SMALLEST_SUMMAND if function in ("add", "subtract") else SMALLEST_SCALE
    if not (smallest <= known.scales[0] <= LARGEST_SCALE and low <= known.zero_points[0] <= high):
        raise stored.error(f"its scale is {known.scales[0]:.6g} and its zero point {known.zero_points[0]}.")
    return values, Quant(known.scales, known.zero_points[0])


def _within_sums(call: Call, function: str, quants: list[Quant | None]) -> None:
    out, (left, right) = call.like().quant, quants
    if out is None or left is None or right is None:
        return
    twice = 2 * max(left.scale, right.scale)
    match function:
        case "add" | "subtract":
            call.ratio(twice / out.scale, sum_limit(16 if call.output().dtype == "int16" else 8))
        case "multiply":
            call.ratio(left.scale * right.scale / out.scale, PRODUCT_LIMIT)
        case "squared_difference" | "divide":
            fits = call.output().dtype == "int8"
            call.expect(fits, "nnbuild supports it in int8 and float32, not in int16.", CONVERT_AGAIN)
            if function == "squared_difference":
                call.ratio(twice * twice / out.scale, PRODUCT_LIMIT)
            elif left.scale < EXACT_QUOTIENTS * right.scale * out.scale:
                call.assembly.unlike = SMALL_QUOTIENTS
        case _:
            same = left == right == out
            call.expect(same, "its operands and its output have different scales or zero points.", CONVERT_AGAIN)


def _expect_below(call: Call, scale: float, limit: float) -> None:
    call.expect(scale < limit, f"the scale of its input is {scale:.6g}, and must be below {limit:.4g}.", NEARER_ZERO)


def softmax(call: Call) -> None:
    (x,) = call.data_inputs(0)
    beta = call.number("SoftmaxOptions", "Beta", 1.0)
    call.expect(beta == 1.0, f"its beta is {beta:g}, and nnbuild supports only 1.", "Scale its input instead.")
    own, out = quant(call, x), call.like().quant
    if own is not None and out is not None:
        wide = call.output().dtype == "int16"
        if wide:
            _expect_below(call, own.scale, SOFTMAX16_BELOW)
        else:
            call.expect(own.scale > SOFTMAX_FROM, f"the scale of its input is {own.scale:.6g}, below 2^-26.", CALIBRATE)
        wanted = (2.0**-15, 0) if wide else (2.0**-8, -128)
        call.expect(
            (out.scale, out.zero_point) == wanted,
            f"its output has the scale {out.scale:.6g} and the zero point {out.zero_point}.",
        )
    call.done(call.add(Softmax(len(call.shape(x)) - 1), [x]))


def _quantized(call: Call, values: Array) -> tuple[Array, int, Quantization]:
    """A constant in integers, as quantization-aware training stores a layer's weights."""
    out = call.output()
    known = out.quantization
    if known is None or out.dtype not in ("int8", "uint8") or min(known.scales) <= 0:
        raise call.error(f"it quantizes a constant to {out.dtype}.", CONVERT_AGAIN)
    call.expect(not np.isnan(values).any(), "a constant that it quantizes is not a number.")
    scales, zeros = along(out, values.ndim, values.shape)
    low, high = RANGES[out.dtype]
    with np.errstate(over="ignore"):
        real = values / scales
    return np.clip(np.sign(real) * np.floor(np.abs(real) + 0.5) + zeros, low, high).astype(out.dtype), 0, known


def _rescaled(call: Call, values: Array, given: Quantization) -> tuple[Array, int, Quantization]:
    """A constant from one format to another, as QUANTIZE computes it at run time."""
    out = call.output()
    known = out.quantization
    if known is None or out.dtype not in RANGES or len(known.scales) != 1 or min(known.scales) <= 0:
        raise call.error(f"it quantizes a constant to {out.dtype}.", CONVERT_AGAIN)
    call.ratio(given.scales[0] / known.scales[0], SHIFT_LIMIT)
    scale = rescale_multiplier(given.scales[0], known.scales[0])
    made = rescale(values, given.zero_points[0], known.zero_points[0], scale)
    return np.clip(made, *RANGES[out.dtype]).astype(out.dtype), 0, known


def _steps_of_bytes(call: Call, name: str) -> tuple[float, float, float]:
    """The rounding of floats that are briefly 8-bit: converters leave such pairs from quantization-aware training."""
    own = quant(call, name)
    assert own is not None
    low, high = RANGES["uint8"]
    return (low - own.zero_point) * own.scale, (high - own.zero_point) * own.scale, own.scale


def densify(call: Call) -> None:
    """Sparse constants are expanded when they are read."""
    stored = call.stored(0)
    call.fold(stored.values(), quantization=stored.quantization)


def convert(call: Call) -> None:
    """QUANTIZE and DEQUANTIZE; a constant is converted at compile time."""
    stored = call.stored(0)
    if call.is_constant(0):
        known = stored.quantization
        if call.is_float():
            call.fold(as_float(stored))
        elif stored.dtype in RANGES and known is not None and len(known.scales) == 1:
            call.fold(*_rescaled(call, stored.values(), known))
        else:
            call.fold(*_quantized(call, as_float(stored)))
        return
    x = call.value(0)
    made_of = call.assembly.made_of(x)
    if call.is_float() and stored.dtype == "uint8" and made_of and call.tensor(made_of).dtype == "float32":
        call.done(call.add(Activation("steps", _steps_of_bytes(call, x)), [made_of]))
        return
    own, out = quant(call, x), call.like().quant
    if own is not None and out is not None:
        call.ratio(own.scale / out.scale, SHIFT_LIMIT)
    call.done(call.add(Convert(), [x]))


def _float_only(function: str) -> Callable[[Call], None]:
    return partial(unary, function, (), integers=False)


OPERATORS: dict[str, Callable[[Call], None]] = {
    "RELU": partial(unary, "clamp", (0.0, inf)),
    "RELU6": partial(unary, "clamp", (0.0, 6.0)),
    "RELU_N1_TO_1": partial(unary, "clamp", (-1.0, 1.0)),
    "RELU_0_TO_1": partial(unary, "clamp", (0.0, 1.0)),
    "FAKE_QUANT": fake_quant,
    "LEAKY_RELU": leaky_relu,
    "PRELU": prelu,
    "ELU": elu,
    "GELU": gelu,
    "HARD_SWISH": partial(unary, "hard_swish", ()),
    "LOGISTIC": partial(unary, "sigmoid", ()),
    "TANH": partial(unary, "tanh", ()),
    "RSQRT": partial(unary, "rsqrt", ()),
    "ABS": partial(turned, "absolute"),
    "NEG": partial(turned, "negative"),
    "SQUARE": _float_only("square"),
    "SQRT": root,
    "EXP": partial(unary, "exponential", ()),
    "LOG": partial(unary, "log", ()),
    "SIN": _float_only("sin"),
    "COS": _float_only("cos"),
    "FLOOR": _float_only("floor"),
    "CEIL": _float_only("ceil"),
    "ADD": partial(binary, "add", "AddOptions"),
    "SUB": partial(binary, "subtract", "SubOptions"),
    "MUL": partial(binary, "multiply", "MulOptions"),
    "DIV": partial(binary, "divide", "DivOptions"),
    "MAXIMUM": partial(binary, "maximum", ""),
    "MINIMUM": partial(binary, "minimum", ""),
    "SQUARED_DIFFERENCE": squared_difference,
    "SOFTMAX": softmax,
    "QUANTIZE": convert,
    "DEQUANTIZE": convert,
    "DENSIFY": densify,
}
