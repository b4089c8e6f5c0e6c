"""Operators defined by a formula of others: log-softmax, powers, running sums, bucketizing and so on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np

from nnbuild.frontend.assembly import CALIBRATE
from nnbuild.frontend.tflite.call import Call
from nnbuild.frontend.tflite.elementwise import SOFTMAX_FROM
from nnbuild.frontend.tflite.records import CONVERT_AGAIN
from nnbuild.frontend.tflite.reductions import folded, reduce
from nnbuild.frontend.tflite.selection import whole as whole_numbers
from nnbuild.frontend.tflite.static_indexing import alone
from nnbuild.model.graph import Quant
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.log_softmax import LogSoftmax
from nnbuild.ops.pad import Pad
from nnbuild.ops.pick import Pick
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice
from nnbuild.ops.whole import Whole

FLOAT = "Convert it to float32."
MOST_OF_A_SEGMENT = 1 << 20
MOST_SEGMENTS = 1024


def only_float(call: Call) -> str:
    (name,) = call.data_inputs(0)
    call.expect(call.is_float(), f"nnbuild supports {call.operator.kind} only in float32.", FLOAT)
    return name


def applied(call: Call, function: str, name: str, *parameters: float) -> str:
    return call.add(Activation(function, parameters), [name], like=call.tensor(name))


def with_number(call: Call, function: str, name: str, *right: float) -> str:
    return call.add(Binary(function), [name], {"right": held(call, right)}, like=call.tensor(name))


def held(call: Call, values: object) -> str:
    with np.errstate(over="ignore"):
        numbers = np.asarray(values, np.float32)
    return call.assembly.constant(call.operator, f"{call.layer}/number", numbers, None)


def log_softmax(call: Call) -> None:
    (x,) = call.data_inputs(0)
    own, out = call.tensor(x).quant, call.like().quant
    if own is not None and out is not None:
        _expect_log_softmax(call, own, out)
        call.done(call.add(LogSoftmax(), [x]))
        return
    last = len(call.shape(x)) - 1
    largest = call.add(Reduce("max", last, 1, keep=True), [x])
    x = call.add(Binary("subtract"), [x, largest])
    total = call.add(Reduce("sum", last, 1, keep=True), [applied(call, "exponential", x)])
    call.done(call.add(Binary("subtract"), [x, applied(call, "log", total)]))


def _expect_log_softmax(call: Call, own: Quant, out: Quant) -> None:
    call.expect(call.output().dtype == "int8", "nnbuild supports it in int8 and float32, as TFLite does.", FLOAT)
    call.expect(own.scale > SOFTMAX_FROM, f"the scale of its input is {own.scale:.6g}, below 2^-26.", CALIBRATE)
    fixed = (out.scale, out.zero_point) == (2.0**-4, 127)
    call.expect(fixed, f"its output has the scale {out.scale:.6g} and the zero point {out.zero_point}.")


def local_response(call: Call) -> None:
    """TFLite's window extends one channel less to the right than to the left."""
    kind, x = "LocalResponseNormalizationOptions", only_float(call)
    radius = int(call.option(kind, "Radius", 0))
    bias, alpha, beta = (call.number(kind, name, 0.0) for name in ("Bias", "Alpha", "Beta"))
    shape = call.shape(x)
    call.expect(0 < radius < 2**15, f"its radius is {radius}.")
    rows = call.seen(applied(call, "square", x), (prod(shape[:-1]), shape[-1], 1))
    wide = call.add(Pad(((0, 0), (radius, radius - 1), (0, 0))), [rows], like=call.tensor(x))
    mean = call.add(Pool2D("average", (1, 2 * radius), (1, 1)), [wide])
    total = with_number(call, "add", with_number(call, "multiply", mean, alpha * 2 * radius), bias)
    factor = raised(call, call.seen(total, shape), -beta)
    call.done(call.add(Binary("multiply"), [x, factor]))


def raised(call: Call, base: str, exponent: float) -> str:
    """A power of a positive number."""
    if exponent == -0.5:
        return applied(call, "rsqrt", base)
    return applied(call, "exponential", with_number(call, "multiply", applied(call, "log", base), exponent))


def power(call: Call) -> None:
    """With a constant integer exponent, a product; otherwise a power of the base's magnitude, with the sign
    restored."""
    call.expect(call.is_float(), "nnbuild supports POW only in float32.", FLOAT)
    if call.is_constant(1) and call.weights(1).size == 1:
        exponent = float(call.weights(1).reshape(-1)[0])
        call.done(_constant_power(call, call.data_inputs(0)[0], exponent))
        return
    names = [_broadcast(call, index) for index in (0, 1)]
    call.done(_signed_power(call, *names))


def _broadcast(call: Call, index: int) -> str:
    if not call.is_constant(index):
        return call.data_inputs(index)[0]
    return call.value(index)


def _constant_power(call: Call, x: str, exponent: float) -> str:
    if exponent in (0.5, -0.5):
        return applied(call, "sqrt" if exponent > 0 else "rsqrt", x)
    if exponent != int(exponent) or not 1 <= abs(exponent) <= 64:
        return _signed_power(call, x, call.value(1))
    result, square, left = "", x, int(abs(exponent))
    while left:
        if left % 2:
            result = call.add(Binary("multiply"), [result, square]) if result else square
        left //= 2
        square = applied(call, "square", square) if left else square
    if exponent < 0:
        return call.add(Binary("divide"), [result], {"left": held(call, (1.0,))})
    return result


def _signed_power(call: Call, x: str, y: str) -> str:
    def size(base: str) -> str:
        product = call.add(Binary("multiply"), [applied(call, "log", base), y])
        return call.add(Activation("exponential"), [product])

    half = applied(call, "floor", with_number(call, "multiply", y, 0.5))
    rest = call.add(
        Binary("subtract"), [y, with_number(call, "multiply", half, 2.0)], like=call.tensor(y)
    )  # remainder of 2
    zero, one = held(call, (0.0,)), held(call, (1.0,))
    odd = call.add(Compare("equal"), [rest], {"right": one}, like=call.truth)
    even = call.add(Compare("equal"), [rest], {"right": zero}, like=call.truth)
    plain, absolute = size(x), size(applied(call, "absolute", x))
    negative = call.add(Compare("less"), [x], {"right": zero}, like=call.truth)
    turned = call.add(Select(), [negative, applied(call, "negative", absolute), absolute])
    found = call.add(Select(), [even, absolute, call.add(Select(), [odd, turned, plain])])
    nothing = call.add(Compare("equal"), [y], {"right": zero}, like=call.truth)
    return call.add(Select(), [nothing, found], {"chosen": one})


def cumsum(call: Call) -> None:
    """Each round adds the element at twice the previous distance."""
    kind, whole = "CumsumOptions", call.whole(0)
    place = call.integer(1)
    axis = call.axis(place, len(whole))
    call.expect(call.is_float() or call.like().dtype == "int32", "it has a scale.", FLOAT)
    name, missing = call.view(0, axis == 0)
    axis -= missing
    if call.option(kind, "Reverse", False):
        name = _turned(call, name, axis)
    if call.option(kind, "Exclusive", False):
        name = _later(call, name, axis, 1)
    size, step = call.shape(name)[axis], 1
    while step < size:
        later = _later(call, name, axis, step)
        name = call.add(Binary("add") if call.is_float() else Whole("add"), [name, later])
        step *= 2
    call.done(_turned(call, name, axis) if call.option(kind, "Reverse", False) else name)


def _turned(call: Call, name: str, axis: int) -> str:
    shape = call.shape(name)
    begins = tuple(n - 1 if i == axis else 0 for i, n in enumerate(shape))
    return call.add(Slice(begins, tuple(-1 if i == axis and n > 1 else 1 for i, n in enumerate(shape)), shape), [name])


def _later(call: Call, name: str, axis: int, step: int) -> str:
    """Shifts along an axis; zeros move in."""
    shape = call.shape(name)
    if shape[axis] > step:
        kept = tuple(n - step if i == axis else n for i, n in enumerate(shape))
        name = call.add(Slice((0,) * len(shape), (1,) * len(shape), kept), [name])
        return call.add(Pad(tuple((step, 0) if i == axis else (0, 0) for i in range(len(shape)))), [name])
    zeros = call.add(Binary("multiply") if call.is_float() else Whole("multiply"), [name], {"right": _zero(call)})
    return zeros


def _zero(call: Call) -> str:
    like = call.like()
    return call.assembly.constant(call.operator, f"{call.layer}/zero", np.zeros((1,), like.dtype), like.quant)


def bucketize(call: Call) -> None:
    """Counts the boundaries that are not above a number."""
    options = call.options("BucketizeOptions")
    bounds = (
        np.zeros(0, np.float32) if options is None or not options.BoundariesLength() else options.BoundariesAsNumpy()
    )
    call.expect(0 < bounds.size <= 1024 and bool(np.isfinite(bounds).all()), f"it has {bounds.size} boundaries.")
    name = call.value(0)
    x, shape = call.tensor(name), call.shape(name)
    call.expect(x.quant is None or x.is_whole, f"it sorts {x.dtype} with a scale.", CONVERT_AGAIN)
    if x.quant is not None:  # an integer reaches a boundary when it reaches the next integer
        bounds = np.ceil(bounds.astype(np.float64)).clip(-(2**31), 2**31 - 1).astype(np.int32)
    side = call.assembly.constant(call.operator, f"{call.layer}/bounds", bounds.astype(x.dtype), x.quant)
    above = call.add(Compare("greater_equal"), [call.seen(name, (*shape, 1))], {"right": side}, like=call.truth)
    counted = call.add(Convert(), [above], like=call.plain)
    total = call.add(Reduce("sum", len(shape)), [counted], like=call.plain)
    call.done(call.add(Convert(), [total]))


def sign(call: Call) -> None:
    (name,) = call.data_inputs(0)
    like = call.like()
    call.expect(call.is_float() or (like.is_whole and like.dtype == "int32"), "it has a scale.", FLOAT)

    def number(value: int) -> str:
        data = np.asarray([value], like.dtype)
        return call.assembly.constant(call.operator, f"{call.layer}/{value}", data, like.quant)

    above = call.add(Compare("greater"), [name], {"right": number(0)}, like=call.truth)
    below = call.add(Compare("less"), [name], {"right": number(0)}, like=call.truth)
    negative = call.add(Select(), [below, name], {"chosen": number(-1)})
    call.done(call.add(Select(), [above, negative], {"chosen": number(1)}))


def segments(function: str, call: Call) -> None:
    """Combines rows with the same segment number; empty segments get the function's initial value."""
    alone(call)
    (name,), whole, count = call.data_inputs(0), call.whole(0), call.integer(2)
    call.expect(call.is_float() or call.like().dtype == "int32", "it has a scale.", FLOAT)
    call.expect(call.is_constant(1), "its segments are computed at run time.", CONVERT_AGAIN)
    ids = call.stored(1).values()
    fits = ids.shape == whole[: ids.ndim] and ids.ndim > 0 and 0 < count <= MOST_SEGMENTS and bool((ids < count).all())
    call.expect(fits, f"its segments {list(ids.shape)} do not match {list(whole)}.")
    rest = prod(whole[ids.ndim :])
    call.expect(rest <= MOST_OF_A_SEGMENT, f"a segment has {rest} numbers.")
    name, flat = call.seen(name, (ids.size, rest)), ids.reshape(-1)
    parts = []
    for segment in range(count):
        rows = tuple(int(row) for row in np.flatnonzero(flat == segment))
        taken = call.add(Pick((rows, None)), [name]) if rows else ""
        parts.append(folded(call, function, taken) if rows else _empty(call, function, rest))
    made = parts[0] if count == 1 else call.add(Concatenate(0), parts)
    call.reshaped(made, whole=(count, *whole[ids.ndim :]))


def _empty(call: Call, function: str, size: int) -> str:
    like = call.like()
    limits = np.finfo(np.float32) if like.quant is None else np.iinfo(like.dtype)
    value = {"add": 0, "multiply": 1, "maximum": limits.min, "minimum": limits.max}[function]
    return call.known(np.full((1, size), value, like.dtype), like)


def stablehlo(function: str, call: Call) -> None:
    """Two tensors of equal shape, without a fused activation."""
    names = call.data_inputs(0, 1)
    like = call.like()
    call.expect(len({call.shape(name) for name in names}) == 1, "its operands differ in shape.")
    call.expect(call.is_float() or (like.is_whole and like.dtype == "int32"), "its operands have a scale.", FLOAT)
    call.done(call.add(Binary(function) if call.is_float() else Whole(function), names))


def fill(call: Call) -> None:
    """Fills with a number that is computed at run time."""
    shape = call.integers(0)
    call.expect(prod(call.whole(1)) == 1 and prod(shape) > 0, f"it fills {list(shape)}.")
    (name,) = call.data_inputs(1)
    call.same_quant(name)
    call.reshaped(call.add(Repeat((prod(shape),)), [call.seen(name, (1,))]), whole=shape)


def one_hot(call: Call) -> None:
    depth, whole, like = call.integer(1), call.whole(0), call.like()
    axis = call.axis(int(call.option("OneHotOptions", "Axis", -1)), len(whole) + 1)
    call.expect(0 < depth <= 2**16, f"it has {depth} classes.")
    alone(call)
    name = call.value(0)
    x = call.tensor(name)
    call.expect(x.dtype == "int32", f"its indices are {x.dtype}.", CONVERT_AGAIN)
    seen = call.seen(name, (*whole[:axis], 1, *whole[axis:]))
    classes = np.arange(depth, dtype=np.int32).reshape(depth, *(1,) * (len(whole) - axis))
    side = call.assembly.constant(call.operator, f"{call.layer}/classes", classes, x.quant)
    is_it = call.add(Compare("equal"), [seen], {"right": side}, like=call.truth)
    sides = {}
    for role, index in (("chosen", 2), ("other", 3)):
        value = call.stored(index).values()
        plain = call.is_constant(index) and value.size == 1 and bool(np.isfinite(value).all())
        call.expect(plain, "its on or off value is not a number.", CONVERT_AGAIN)
        sides[role] = call.constant(index, value.reshape(1).astype(like.dtype), like.quant)
    call.reshaped(call.add(Select(), [is_it], sides), whole=(*whole[:axis], depth, *whole[axis:]))


def truth_of_all(function: str, call: Call) -> None:
    """Any is the maximum of booleans, all the minimum."""
    call.expect(call.output().dtype == "bool", f"it reduces {call.output().dtype}.")
    reduce(function, call)


def floored(remainder: bool, call: Call) -> None:
    """Floored quotients and their remainders; corrects a quotient that was rounded up to an integer."""
    if not call.is_float():
        whole_numbers("floor_mod" if remainder else "floor_divide", call)
        return
    names = [call.value(index) for index in (0, 1)]
    kinds = {call.tensor(name).dtype for name in names}
    call.expect(kinds == {"float32"}, f"its inputs are {' and '.join(sorted(kinds))}.", CONVERT_AGAIN)
    down = applied(call, "floor", call.add(Binary("divide"), names))
    if not remainder:
        call.done(down)
        return
    rest = call.add(Binary("subtract"), [names[0], call.add(Binary("multiply"), [down, names[1]])])
    zero = held(call, (0.0,))
    signs = [call.add(Compare("less"), [name], {"right": zero}, like=call.truth) for name in (rest, names[1])]
    odd = call.add(Whole("xor"), signs, like=call.truth)
    some = call.add(Compare("not_equal"), [rest], {"right": zero}, like=call.truth)
    wrong = call.add(Whole("and"), [odd, some], like=call.truth)
    call.done(call.add(Select(), [wrong, call.add(Binary("add"), [rest, names[1]]), rest]))


OPERATORS: dict[str, Callable[[Call], None]] = {
    "REDUCE_ANY": partial(truth_of_all, "max"),
    "REDUCE_ALL": partial(truth_of_all, "min"),
    "FILL": fill,
    "ONE_HOT": one_hot,
    "FLOOR_DIV": partial(floored, False),
    "FLOOR_MOD": partial(floored, True),
    "LOG_SOFTMAX": log_softmax,
    "LOCAL_RESPONSE_NORMALIZATION": local_response,
    "POW": power,
    "CUMSUM": cumsum,
    "BUCKETIZE": bucketize,
    "SIGN": sign,
    "UNSORTED_SEGMENT_SUM": partial(segments, "add"),
    "UNSORTED_SEGMENT_PROD": partial(segments, "multiply"),
    "UNSORTED_SEGMENT_MAX": partial(segments, "maximum"),
    "UNSORTED_SEGMENT_MIN": partial(segments, "minimum"),
    "STABLEHLO_ADD": partial(stablehlo, "add"),
    "STABLEHLO_MULTIPLY": partial(stablehlo, "multiply"),
    "STABLEHLO_MAXIMUM": partial(stablehlo, "maximum"),
    "STABLEHLO_MINIMUM": partial(stablehlo, "minimum"),
}
