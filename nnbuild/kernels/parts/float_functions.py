"""The C of each function of `ops.functions` for any set of floats, including a single lane."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi, sqrt

import numpy as np

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa import vector_functions as math
from nnbuild.isa.c99 import Single
from nnbuild.isa.vectors import Vectors
from nnbuild.ops.functions import SELU_ALPHA, SELU_SCALE, Function

VECTORS: dict[str, Callable[[Vectors], Instruction]] = {
    "expf": math.exp,
    "expm1f": math.expm1,
    "tanhf": math.tanh,
    "logisticf": math.sigmoid,
    "logf": math.log,
    "log1pf": math.log1p,
    "erff": math.erf,
    "rintf": math.rint,
    "floorf": math.floor,
    "ceilf": math.ceil,
}
"""The vector functions in place of vendored math functions."""


class Lane:
    """Prints operations on named vectors; each returns the name of its result or an expression."""

    def __init__(self, w: Writer, floats: Vectors) -> None:
        self.w = w
        self.floats = floats

    def op(self, operation: str, *operands: str | float) -> str:
        return self.floats.use(self.w, operation, *map(self.value, operands))

    def value(self, operand: str | float) -> str:
        return operand if isinstance(operand, str) else self.floats.each(self.w, operand)

    def call(self, function: str, x: str | float) -> str:
        return self.w.call(VECTORS[function](self.floats), self.value(x))

    def less(self, a: str | float, b: str | float, then: str | float, otherwise: str | float) -> str:
        return self.op("if_less", a, b, then, otherwise)

    def bounded(self, x: str, low: float, high: float) -> str:
        """x clamped to [low, high]; an infinite bound is ignored."""
        if high != inf:
            x = self.op("min", high, x)
        return self.op("max", low, x) if low != -inf else x

    def within_reach(self, x: str) -> str:
        """x, or a bound beyond which the sigmoid is nearly 0: in vectors it never is 0 exactly."""
        return self.op("max", -1e5, x)

    def negative(self, x: str) -> str:
        return self.op("sub", 0.0, x)

    def absolute(self, x: str) -> str:
        return self.op("max", x, self.negative(x))

    def line_sigmoid(self, x: str, slope: float, edge: float) -> str:
        """A linear ramp from 0 at -edge to 1 at edge."""
        return self.bounded(self.op("add", self.op("mul", x, slope), 0.5), 0.0, 1.0)


class SingleLane(Lane):
    """The same for float variables, with the vendored math functions; a selection evaluates its operands once."""

    def value(self, operand: str | float) -> str:
        return operand if isinstance(operand, str) else float_literal(operand)

    def call(self, function: str, x: str | float) -> str:
        return self.w.helper(function, self.value(x))

    def bounded(self, x: str, low: float, high: float) -> str:
        below = super().bounded(x, -inf, high)
        self.w.bill(4)
        return f"({x} < {float_literal(low)} ? {float_literal(low)} : {below})" if low != -inf else below

    def within_reach(self, x: str) -> str:
        return x

    def negative(self, x: str) -> str:
        return f"-{x}"

    def absolute(self, x: str) -> str:
        self.w.bill(2)
        return f"({x} < 0.0f ? -{x} : {x})"

    def line_sigmoid(self, x: str, slope: float, edge: float) -> str:
        line = self.op("add", self.op("mul", x, slope), 0.5)
        return self.less(-edge, x, self.less(x, edge, line, 1.0), 0.0)


Spell = Callable[..., str]
"""(lane, x, *parameters) -> an expression; x is a name."""


def _relu(v: Lane, x: str, high: float, slope: float, threshold: float) -> str:
    passed = v.bounded(x, -inf, high)
    below: str | float = v.op("mul", slope, v.op("sub", x, threshold)) if slope else 0.0
    return v.less(x, threshold, below, passed)


def _elu(v: Lane, x: str, alpha: float, scale: float = 1.0) -> str:
    above = v.op("mul", x, scale) if scale != 1.0 else x
    return v.less(0.0, x, above, v.op("mul", alpha * scale, v.call("expm1f", x)))


def _softplus(v: Lane, x: str) -> str:
    return v.op("add", v.op("max", x, 0.0), v.call("log1pf", v.call("expf", v.op("min", x, v.negative(x)))))


def _gelu(v: Lane, x: str) -> str:
    error = v.call("erff", v.op("mul", x, sqrt(0.5)))
    return v.op("mul", v.op("mul", 0.5, x), v.op("add", 1.0, error))


def _gelu_tanh(v: Lane, x: str) -> str:
    cube = v.op("mul", v.op("mul", v.op("mul", 0.044715, x), x), x)
    inner = v.op("mul", sqrt(2 / pi), v.op("add", x, cube))
    return v.op("mul", v.op("mul", 0.5, x), v.op("add", 1.0, v.call("tanhf", inner)))


def _hard_sigmoid(v: Lane, x: str) -> str:
    return v.line_sigmoid(x, 1 / 6, 3.0)


def _steps(v: Lane, x: str, low: float, high: float, scale: float) -> str:
    within = v.op("sub", v.bounded(x, low, high), low)
    inverse = float(np.float32(1) / np.float32(scale))
    nearest = v.call("floorf", v.op("add", v.op("mul", within, inverse), 0.5))
    return v.op("add", v.op("mul", nearest, scale), low)


def _even_steps(v: Lane, x: str, low: float, high: float, scale: float) -> str:
    return v.op("mul", v.call("rintf", v.op("mul", v.bounded(x, low, high), 1 / scale)), scale)


SPELLINGS: dict[str, Spell] = {
    "clamp": lambda v, x, low, high: v.bounded(x, low, high),
    "relu": _relu,
    "leaky_relu": lambda v, x, slope: v.less(x, 0.0, v.op("mul", slope, x), x),
    "elu": _elu,
    "selu": lambda v, x: _elu(v, x, SELU_ALPHA, SELU_SCALE),
    "softplus": _softplus,
    "softsign": lambda v, x: v.op("div", x, v.op("add", 1.0, v.absolute(x))),
    "tanh": lambda v, x: v.call("tanhf", x),
    "erf": lambda v, x: v.call("erff", x),
    "round": lambda v, x: v.call("rintf", x),
    "sigmoid": lambda v, x: v.call("logisticf", x),
    "hard_sigmoid": _hard_sigmoid,
    "hard_sigmoid_fifth": lambda v, x: v.line_sigmoid(x, 0.2, 2.5),
    "swish": lambda v, x: v.op("mul", v.within_reach(x), v.call("logisticf", x)),
    "hard_swish": lambda v, x: v.op("mul", x, _hard_sigmoid(v, x)),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "exponential": lambda v, x: v.call("expf", x),
    "mish": lambda v, x: v.op("mul", x, v.call("tanhf", _softplus(v, x))),
    "linear": lambda v, x: x,
    "absolute": lambda v, x: v.absolute(x),
    "negative": lambda v, x: v.negative(x),
    "square": lambda v, x: v.op("mul", x, x),
    "sqrt": lambda v, x: v.op("sqrt", x),
    "rsqrt": lambda v, x: v.op("div", 1.0, v.op("sqrt", x)),
    "log": lambda v, x: v.call("logf", x),
    "sin": lambda v, x: v.call("sinf", x),
    "cos": lambda v, x: v.call("cosf", x),
    "floor": lambda v, x: v.call("floorf", x),
    "ceil": lambda v, x: v.call("ceilf", x),
    "steps": _steps,
    "even_steps": _even_steps,
}
SCALAR_ONLY = frozenset({"sin", "cos"})
"""Functions that vectors do not have, computed one by one."""


def spell(w: Writer, floats: Vectors, function: Function, x: str) -> str:
    lane = SingleLane if isinstance(floats, Single) else Lane
    return SPELLINGS[function[0]](lane(w, floats), x, *function[1])


def missing(floats: Vectors, function: str) -> str | None:
    """Why a function cannot be computed in vectors."""
    return f"it has no {function} in vectors" if function in SCALAR_ONLY and floats.lanes > 1 else None
