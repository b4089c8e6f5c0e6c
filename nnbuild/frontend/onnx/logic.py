"""Comparisons, booleans, bit operations, selection, and casts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nnbuild.frontend.onnx.arithmetic import (
    LARGE,
    as_type,
    chosen,
    combined,
    compared,
    whole,
    without_fraction,
    wrapped,
)
from nnbuild.frontend.onnx.call import Call
from nnbuild.frontend.onnx.type_numbers import HALF_TYPES, TYPE_NAMES
from nnbuild.frontend.other_arithmetic import HALF_PRECISION
from nnbuild.ops.layout import NUMBERS, Value


def compare(function: str, call: Call) -> None:
    call.put(compared(call, function, call.item(0), call.item(1)))


def logical(function: str, call: Call) -> None:
    items = [call.item(i) for i in (0, 1)]
    call.put(whole(call, function, *(call.truth(i) if isinstance(i, Value) else i != 0 for i in items)))


def logical_not(call: Call) -> None:
    call.put(compared(call, "equal", call.truth(call.value(0)), np.zeros((), bool)))


def bitwise(function: str, call: Call) -> None:
    call.put(whole(call, function, call.item(0), call.item(1)))


def bitwise_not(call: Call) -> None:
    x = call.value(0)
    call.put(wrapped(call, whole(call, "xor", x, np.array(-1, np.int32))))


def where(call: Call) -> None:
    call.put(chosen(call, call.item(0), call.item(1), call.item(2)))


def shift(call: Call) -> None:
    """Shifts by a constant amount."""
    x, places = call.value(0), call.constant(1)
    direction = call.text("direction")
    call.expect(direction in ("LEFT", "RIGHT"), f"its direction is {direction!r}.")
    bits, shifted = np.dtype(x.dtype).itemsize * 8, places.astype(np.int64)
    call.expect(bits <= 32, f"nnbuild shifts numbers of at most 32 bits, not {x.dtype}.", "Cast them to uint32 before.")
    call.expect(bool((shifted >= 0).all()), "it shifts by a negative amount.")
    factor = np.left_shift(np.ones_like(shifted), np.minimum(shifted, 30))
    again = np.where(shifted > 30, np.where(shifted == 31, 2, 0), 1)  # in two steps that stay within 32 bits
    if direction == "LEFT":
        factor = np.where(shifted >= bits, 0, factor)
        made = whole(call, "multiply", x, factor)
        call.put(wrapped(call, whole(call, "multiply", made, again) if (again != 1).any() else made))
        return
    made = whole(call, "floor_divide", x, factor)
    call.put(whole(call, "floor_divide", made, np.where(again == 1, 1, 4)) if (again != 1).any() else made)


def cast(call: Call) -> None:
    to = TYPE_NAMES.get(call.integer("to"))
    if to is None:
        raise call.unsupported(f"it casts to ONNX' type {call.integer('to')}")
    if call.integer("to") in HALF_TYPES:
        call.assembly.unlike = HALF_PRECISION
    call.put(as_type(call, call.value(0), to))


def cast_like(call: Call) -> None:
    call.expect(call.name_of(1) not in call.importer.model.narrow, "it casts to four bits.")
    call.put(as_type(call, call.value(0), call.dtype(1)))


def is_nan(call: Call) -> None:
    x = call.real(0)
    call.put(compared(call, "not_equal", x, x))


def is_infinite(call: Call) -> None:
    x, found = call.real(0), None
    for name, function, bound in (("detect_positive", "greater", LARGE), ("detect_negative", "less", -LARGE)):
        if call.integer(name, 1):
            side = compared(call, function, x, np.float32(bound))
            found = side if found is None else whole(call, "or", found, side)
    call.put(
        found if found is not None else whole(call, "xor", compared(call, "equal", x, x), compared(call, "equal", x, x))
    )


def modulo(call: Call) -> None:
    """The remainder: integers with the divisor's sign, or with `fmod` with the dividend's sign, like floats."""
    left, right = call.item(0), call.item(1)
    dtype = next(i.dtype for i in (left, right) if isinstance(i, Value))
    fmod = bool(call.integer("fmod", 0))
    if dtype in NUMBERS:
        call.expect(fmod, "floats need fmod=1.")
        parts = combined(call, "divide", left, right)
        call.put(combined(call, "subtract", left, combined(call, "multiply", without_fraction(call, parts), right)))
    elif fmod:
        quotient = whole(call, "divide", left, right)
        call.put(whole(call, "subtract", left, whole(call, "multiply", quotient, right)))
    else:
        call.put(whole(call, "floor_mod", left, right))


COMPARISONS = {
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
}
OPERATORS: dict[str, Callable[[Call], None]] = {
    "IsNaN": is_nan,
    "IsInf": is_infinite,
    "And": partial(logical, "and"),
    "Or": partial(logical, "or"),
    "Xor": partial(logical, "xor"),
    "Not": logical_not,
    "BitwiseAnd": partial(bitwise, "and"),
    "BitwiseOr": partial(bitwise, "or"),
    "BitwiseXor": partial(bitwise, "xor"),
    "BitwiseNot": bitwise_not,
    "BitShift": shift,
    "Where": where,
    "Mod": modulo,
    "Cast": cast,
    "CastLike": cast_like,
    **{kind: partial(compare, function) for kind, function in COMPARISONS.items()},
}
