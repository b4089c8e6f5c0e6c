"""Functions of one operand that are made of others: trigonometric, hyperbolic, and the rest of the error function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, pi

import numpy as np

from nnbuild.frontend.onnx.arithmetic import chosen, combined, compared, times_plus
from nnbuild.frontend.onnx.call import Call
from nnbuild.frontend.onnx.layout import Value


def error_rest(call: Call) -> None:
    """1 - erf(x), which ONNX does not have: tf2onnx leaves TensorFlow's in its files."""
    call.put(times_plus(call, call.activated(call.real(0), "erf"), -1.0, 1.0))


def tangent(call: Call) -> None:
    x = call.real(0)
    call.put(combined(call, "divide", call.activated(x, "sin"), call.activated(x, "cos")))


def hyperbolic(sum_: bool, call: Call) -> None:
    """(exp(x) - exp(-x)) / 2 and (exp(x) + exp(-x)) / 2; the first without cancellation."""
    x = call.real(0)
    grown = call.activated(x, "exponential" if sum_ else "elu", () if sum_ else (1.0,))
    if sum_:
        made = combined(call, "add", grown, combined(call, "divide", np.float32(1), grown))
        call.put(times_plus(call, made, 0.5))
        return
    size = call.activated(x, "absolute")
    # With e = exp(-|x|) - 1, sinh |x| = -e * (1 + 1 / (1 + e)) / 2; its sign is that of x.
    small = call.activated(call.activated(size, "negative"), "elu", (1.0,))
    inner = times_plus(call, combined(call, "divide", np.float32(1), times_plus(call, small, 1.0, 1.0)), 1.0, 1.0)
    made = times_plus(call, combined(call, "multiply", small, inner), -0.5)
    call.put(chosen(call, compared(call, "less", x, np.float32(0)), call.activated(made, "negative"), made))


def arc_tangent(call: Call) -> None:
    call.put(_arc(call, call.real(0)))


ARC = (0.99999999, -0.3333321, 0.19993055, -0.14199, 0.10614, -0.0749, 0.0425)
"""Coefficients of x, x³, x⁵ … of the arc tangent up to 0.42, within 2e-9."""


def _arc(call: Call, x: Value) -> Value:
    """The arc tangent by halving the angle twice: tan(a/2) = x / (1 + sqrt(1 + x²))."""
    size = call.activated(x, "absolute")
    # Numbers above 1 use their inverse: both are computed, and one is selected.
    large = compared(call, "greater", size, np.float32(1))
    small = combined(call, "divide", combined(call, "minimum", size, np.float32(1)), _at_least_one(call, size))
    root = call.activated(times_plus(call, call.activated(small, "square"), 1.0, 1.0), "sqrt")
    half = combined(call, "divide", small, times_plus(call, root, 1.0, 1.0))
    square = call.activated(half, "square")
    total = times_plus(call, square, ARC[-1], ARC[-2])
    for factor in reversed(ARC[:-2]):
        total = times_plus(call, combined(call, "multiply", total, square), 1.0, factor)
    angle = times_plus(call, combined(call, "multiply", total, half), 2.0)
    angle = chosen(call, large, times_plus(call, angle, -1.0, pi / 2), angle)
    return chosen(call, compared(call, "less", x, np.float32(0)), call.activated(angle, "negative"), angle)


def _at_least_one(call: Call, size: Value) -> Value:
    return combined(call, "maximum", size, np.float32(1))


def arc_sine(complement: bool, call: Call) -> None:
    """Twice the arc tangent of x / (1 + sqrt(1 - x²)); the arc cosine is the complement to a right angle."""
    x = call.real(0)
    rest = times_plus(call, call.activated(x, "square"), -1.0, 1.0)
    root = call.activated(call.activated(rest, "clamp", (0.0, inf)), "sqrt")
    angle = _arc(call, combined(call, "divide", x, times_plus(call, root, 1.0, 1.0)))
    call.put(times_plus(call, angle, -2.0, pi / 2) if complement else times_plus(call, angle, 2.0))


def area(kind: str, call: Call) -> None:
    """Inverse hyperbolic functions by the logarithm of the magnitude; the sign is restored."""
    x = call.real(0)
    if kind == "Acosh":
        root = call.activated(times_plus(call, call.activated(x, "square"), 1.0, -1.0), "sqrt")
        call.put(call.activated(combined(call, "add", x, root), "log"))
        return
    size = call.activated(x, "absolute")
    if kind == "Atanh":
        rest = times_plus(call, size, -1.0, 1.0)
        inner = combined(call, "divide", times_plus(call, size, 1.0, 1.0), rest)
        made = times_plus(call, call.activated(inner, "log"), 0.5)
    else:
        root = call.activated(times_plus(call, call.activated(x, "square"), 1.0, 1.0), "sqrt")
        made = call.activated(combined(call, "add", size, root), "log")
    call.put(chosen(call, compared(call, "less", x, np.float32(0)), call.activated(made, "negative"), made))


OPERATORS: dict[str, Callable[[Call], None]] = {
    "Erfc": error_rest,
    "Tan": tangent,
    "Sinh": partial(hyperbolic, False),
    "Cosh": partial(hyperbolic, True),
    "Atan": arc_tangent,
    "Asin": partial(arc_sine, False),
    "Acos": partial(arc_sine, True),
    **{kind: partial(area, kind) for kind in ("Asinh", "Acosh", "Atanh")},
}
