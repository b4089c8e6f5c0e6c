"""Powers: products for whole exponents, otherwise the exponential of a logarithm."""

from __future__ import annotations

from math import log
from typing import Any

from nnbuild.frontend.checked_config import shown
from nnbuild.frontend.keras_layers.activation import apply
from nnbuild.frontend.keras_layers.base import Call, Wire
from nnbuild.frontend.keras_layers.operation_formulas import by, filled, held, of, raised, two
from nnbuild.frontend.keras_layers.operation_selection import two_sided
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.functions import Function
from nnbuild.ops.select import Select
from nnbuild.ops.whole import Whole

FUNCTIONS: dict[float, Function] = {1.0: ("linear", ()), 2.0: ("square", ()), 0.5: ("sqrt", ()), -0.5: ("rsqrt", ())}
MOST = 64
"""The largest whole exponent that becomes products."""
OTHERWISE = "Give it a tensor and a number or another tensor."


def power(call: Call, base: Any, exponent: Any) -> str:
    if isinstance(base, Wire) and isinstance(exponent, int | float):
        return _by_number(call, base.name, float(exponent))
    if isinstance(exponent, Wire) and isinstance(base, int | float) and base > 0:
        return of(call, "exponential", by(call, "multiply", exponent.name, log(base)))
    if not isinstance(base, Wire) or not isinstance(exponent, Wire):
        cause = f"it raises {_said(base)} to the power {_said(exponent)}."
        raise call.config.error(cause, OTHERWISE)
    return _of_two(call, base, exponent)


def _said(operand: Any) -> str:
    return "a tensor" if isinstance(operand, Wire) else shown(operand)


def _by_number(call: Call, x: str, exponent: float) -> str:
    if exponent in FUNCTIONS:
        return apply(call, x, FUNCTIONS[exponent])
    if exponent == 0:
        return filled(call, 1.0)
    if exponent in range(-MOST, MOST + 1):
        made = raised(call, x, int(abs(exponent)))
        return made if exponent > 0 else call.one(Binary("divide"), made, left=held(call, 1.0))
    return of(call, "exponential", by(call, "multiply", of(call, "log", x), exponent))


def _of_two(call: Call, base: Wire, exponent: Wire) -> str:
    """The logarithm of a negative base is no number; where the exponent is whole, the base's magnitude is taken, and an
    odd one gives its sign back. Anything to the power of 0 is 1."""
    x, y = base.name, exponent.name
    whole = call.one(Compare("equal"), y, of(call, "floor", y))
    size = call.one(Select(), whole, of(call, "absolute", x), x)
    made = of(call, "exponential", two_sided(call, Binary("multiply"), Wire(of(call, "log", size)), exponent))
    half = of(call, "floor", by(call, "multiply", y, 0.5))
    rest = two(call, "subtract", y, by(call, "multiply", half, 2.0))
    odd = call.one(Compare("equal"), rest, right=held(call, 1.0))
    below = call.one(Compare("less"), x, right=held(call, 0.0))
    made = call.one(Select(), call.one(Whole("and"), odd, below), of(call, "negative", made), made)
    zero = call.one(Compare("equal"), y, right=held(call, 0.0))
    return call.one(Select(), zero, made, chosen=held(call, 1.0))
