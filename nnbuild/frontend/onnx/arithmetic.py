"""Building blocks of operators: sums, products, comparisons and selection of tensors in any layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from nnbuild.frontend.builder import Form
from nnbuild.frontend.onnx.call import FLOAT, INT32, TRUTH, WIDTHS, Call, as_whole
from nnbuild.model.graph import WHOLE, Array, Quant
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.layout import NUMBERS, Value, broadcast, channels_together, without_ones
from nnbuild.ops.select import LEFT_OUT, Select
from nnbuild.ops.whole import Whole

Operand = Value | Array
LARGE = float(np.finfo(np.float32).max)


def join(
    call: Call,
    attributes: Callable[[], Attributes],
    items: Sequence[Operand],
    roles: Sequence[str],
    form: Form,
    quants: Sequence[Quant | None],
    dtype: str,
) -> Value:
    """Adds an operation on operands in one layout; constants take their roles."""
    try:
        view, laid = broadcast(call, items)
    except ValueError as error:
        raise call.error(str(error)) from None
    names = [each for each in laid if isinstance(each, str)]
    constants: dict[str, Array | tuple[Array, Quant | None]] = {
        role: (without_ones(each), quant)
        for role, each, quant in zip(roles, laid, quants, strict=True)
        if not isinstance(each, str)
    }
    made = call.add(attributes(), names, constants, form)
    return Value(made, view, dtype)


def _both(call: Call, left: Operand, right: Operand) -> tuple[Operand, Operand]:
    if isinstance(left, np.ndarray | np.generic) and isinstance(right, np.ndarray | np.generic):
        return call.as_value(np.asarray(left)), np.asarray(right)
    return (left if isinstance(left, Value) else np.asarray(left)), (
        right if isinstance(right, Value) else np.asarray(right)
    )


def combined(call: Call, function: str, left: Operand | np.generic, right: Operand | np.generic) -> Value:
    """Combines floats."""
    items = [_real(call, item) for item in _both(call, left, right)]  # type: ignore[arg-type]
    items = channels_together(call, items)
    return join(call, lambda: Binary(function), items, ("left", "right"), FLOAT, (None, None), "float32")


def _real(call: Call, item: Operand) -> Operand:
    return call.as_real(item) if isinstance(item, Value) else call.as_floats(_finite(item), "constant")


def _finite(values: Array) -> Array:
    """Replaces infinities, which masks use, by the largest numbers."""
    with np.errstate(all="ignore"):
        return np.clip(values, -LARGE, LARGE) if values.dtype.kind == "f" else values


def left_out(call: Call, scores: Value, mask: Array) -> Value:
    """Adds a mask to scores. Masked scores are replaced instead of added to, so that integer scales fit the others."""
    mask = call.as_floats(_finite(mask), "mask")
    lost = mask <= LEFT_OUT
    rest = np.where(lost, np.float32(0), mask).astype(np.float32)
    kept = combined(call, "add", scores, rest) if rest.any() else scores
    return chosen(call, ~lost, kept, mask.min().astype(np.float32)) if lost.any() else kept


def _held(item: Operand, form: Form) -> Operand:
    return as_whole(item, form) if not isinstance(item, Value) else item


def whole(call: Call, function: str, left: Operand, right: Operand) -> Value:
    """Combines integers or booleans."""
    left, right = _both(call, left, right)
    dtype = left.dtype if isinstance(left, Value) else right.dtype
    dtype = dtype if isinstance(dtype, str) else dtype.name
    if any(isinstance(item, Value) and call.form(item) == FLOAT for item in (left, right)):
        real = [call.converted(i, FLOAT, "float32") if isinstance(i, Value) else i for i in (left, right)]
        return replace(combined(call, function, *real), dtype=dtype)  # whole numbers, which are read as floats alone
    form = TRUTH if dtype == "bool" else INT32
    items = [call.converted(i, form, dtype) if isinstance(i, Value) else _held(i, form) for i in (left, right)]
    made = join(call, lambda: Whole(function), items, ("left", "right"), form, (WHOLE, WHOLE), dtype)
    return wrapped(call, made) if function in ("add", "subtract", "multiply") else made


def wrapped(call: Call, value: Value) -> Value:
    """Wraps 8- and 16-bit integers around, as ONNX does."""
    if value.dtype not in WIDTHS:
        return value
    low, high = WIDTHS[value.dtype]
    mask, half = high - low, np.array(-low, np.int32)
    steps = [("add", half), ("and", np.array(mask, np.int32)), ("subtract", half)]
    name, zero = value.name, low == 0
    for function, operand in steps[1:2] if zero else steps:
        name = call.add(Whole(function), [name], {"right": operand.reshape(1)}, INT32)
    return replace(value, name=name)


def compared(call: Call, function: str, left: Operand | np.generic, right: Operand | np.generic) -> Value:
    one, other = _both(call, left, right)  # type: ignore[arg-type]
    numbers = one.is_number if isinstance(one, Value) else other.is_number if isinstance(other, Value) else True
    if numbers:
        items = [_bounded(i) if not isinstance(i, Value) else call.as_real(i) for i in (one, other)]
        quant = None
    else:
        dtype = next(i.dtype for i in (one, other) if isinstance(i, Value))
        form = TRUTH if dtype == "bool" else INT32
        items = [call.converted(i, form, dtype) if isinstance(i, Value) else _held(i, form) for i in (one, other)]
        quant = WHOLE
    return join(call, lambda: Compare(function), items, ("left", "right"), TRUTH, (quant, quant), "bool")


def _bounded(values: Array) -> Array:
    """Replaces infinities by the largest numbers, which compare the same with all others."""
    return np.nan_to_num(values.astype(np.float32), nan=LARGE, posinf=LARGE, neginf=-LARGE)


def chosen(call: Call, condition: Operand, yes: Operand | np.generic, no: Operand | np.generic) -> Value:
    """`yes` where the condition holds, otherwise `no`."""
    one, other = (i if isinstance(i, Value) else np.asarray(i) for i in (yes, no))
    dtype = next((i.dtype for i in (one, other) if isinstance(i, Value)), None) or one.dtype
    dtype = dtype if isinstance(dtype, str) else dtype.name
    items: list[Operand] = [call.truth(call.as_value(condition))]
    form: Form
    if dtype in NUMBERS:
        form = FLOAT
        items += [call.as_real(i) if isinstance(i, Value) else _bounded(i) for i in (one, other)]
    else:
        form = TRUTH if dtype == "bool" else INT32
        items += [call.converted(i, form, dtype) if isinstance(i, Value) else _held(i, form) for i in (one, other)]
    return join(call, Select, items, ("", "chosen", "other"), form, (None, form[1], form[1]), dtype)


def pair(call: Call, function: str, left: Operand, right: Operand) -> Value:
    """Combines operands of any type."""
    dtype = next((i.dtype for i in (left, right) if isinstance(i, Value)), None) or str(np.asarray(left).dtype)
    return combined(call, function, left, right) if dtype in NUMBERS else whole(call, function, left, right)


def magnitude(call: Call, x: Value) -> Value:
    """The absolute values of integers."""
    return pair(call, "maximum", x, pair(call, "subtract", np.zeros((), x.dtype), x))


def times_plus(call: Call, x: Value, factor: float = 1.0, summand: float = 0.0) -> Value:
    """x * factor + summand."""
    if factor != 1.0:
        x = combined(call, "multiply", x, np.float32(factor))
    return combined(call, "add", x, np.float32(summand)) if summand else x


def raised(call: Call, x: Value, exponent: float) -> Value:
    """Raises to a constant power: by products and roots, or by the logarithm for non-negative numbers."""
    if not x.is_number:
        call.expect(exponent == int(exponent) and 0 < exponent <= 16, f"its exponent is {exponent:g}.", "Use floats.")
        made = x
        for _ in range(int(exponent) - 1):
            made = whole(call, "multiply", made, x)
        return made
    x = call.as_real(x)
    if exponent == 0.5:
        return call.activated(x, "sqrt")
    if exponent == -0.5:
        return call.activated(x, "rsqrt")
    if exponent != int(exponent) or abs(exponent) > 16:
        return call.activated(combined(call, "multiply", call.activated(x, "log"), np.float32(exponent)), "exponential")
    product: Value | None = None
    square, left = x, int(abs(exponent))
    while left:
        if left & 1:
            product = square if product is None else combined(call, "multiply", product, square)
        left >>= 1
        square = call.activated(square, "square") if left else square
    if product is None:
        return times_plus(call, combined(call, "multiply", x, np.float32(0)), 1.0, 1.0)
    return combined(call, "divide", np.float32(1), product) if exponent < 0 else product


def raised_each(call: Call, x: Value, exponents: Array) -> Value:
    """Raises to an exponent for each element; negative numbers only to whole ones, as everywhere."""
    each = call.as_floats(exponents, "exponent")
    x, whole, odd = call.as_real(x), each == np.floor(each), each % 2 == 1
    below = compared(call, "less", x, np.float32(0))
    size = call.activated(x, "absolute")
    base = chosen(call, whole, size, x) if not whole.all() else size
    made = call.activated(combined(call, "multiply", call.activated(base, "log"), each), "exponential")
    if odd.any():
        minus = combined(call, "multiply", made, np.where(odd, np.float32(-1), np.float32(1)))
        made = chosen(call, below, minus, made)
    return chosen(call, each == 0, np.float32(1), made) if (each == 0).any() else made


def without_fraction(call: Call, x: Value) -> Value:
    """The floor of positive numbers, the ceiling of negative ones."""
    high = call.activated(call.activated(x, "clamp", (0.0, inf)), "floor")
    low = call.activated(call.activated(x, "clamp", (-inf, 0.0)), "ceil")
    return combined(call, "add", high, low)


def as_type(call: Call, x: Value, to: str) -> Value:
    """Casts: floats to integers by truncation; nonzero is true."""
    if to == "bool":
        return call.truth(call.as_real(x) if x.is_number else x)
    if to in NUMBERS:
        return call.as_real(x) if x.is_number else call.converted(x, FLOAT, to)
    if x.is_number:
        return wrapped(call, call.converted(without_fraction(call, call.as_real(x)), INT32, to))
    return wrapped(call, call.converted(x, INT32, to))
