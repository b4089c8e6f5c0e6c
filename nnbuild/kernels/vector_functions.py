"""How each function of `ops.functions` is spelt in vectors; those missing here are computed one by one."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi, sqrt

from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa import vector_functions as math
from nnbuild.isa.vectors import Vectors
from nnbuild.ops.functions import SELU_ALPHA, SELU_SCALE, Function


class Lane:
    """Prints operations on vectors that are names; each returns the name of its result, or an expression."""

    def __init__(self, w: Writer, floats: Vectors) -> None:
        self.w = w
        self.floats = floats

    def op(self, operation: str, *operands: str | float) -> str:
        return self.floats.use(self.w, operation, *map(self.value, operands))

    def value(self, operand: str | float) -> str:
        return operand if isinstance(operand, str) else self.floats.each(self.w, operand)

    def call(self, function: Callable[[Vectors], Instruction], *operands: str | float) -> str:
        return self.w.call(function(self.floats), *map(self.value, operands))

    def less(self, a: str | float, b: str | float, then: str | float, otherwise: str | float) -> str:
        return self.op("if_less", a, b, then, otherwise)

    def bounded(self, x: str, low: float, high: float) -> str:
        if high != inf:
            x = self.op("min", high, x)
        return self.op("max", low, x) if low != -inf else x


Spell = Callable[..., str]
"""(lane, x, *parameters) -> an expression; x is a name."""


def _relu(v: Lane, x: str, high: float, slope: float, threshold: float) -> str:
    passed = v.bounded(x, -inf, high)
    below: str | float = v.op("mul", slope, v.op("sub", x, threshold)) if slope else 0.0
    return v.less(x, threshold, below, passed)


def _elu(v: Lane, x: str, alpha: float, scale: float = 1.0) -> str:
    above = v.op("mul", x, scale) if scale != 1.0 else x
    return v.less(0.0, x, above, v.op("mul", alpha * scale, v.call(math.expm1, x)))


def _softsign(v: Lane, x: str) -> str:
    return v.op("div", x, v.op("add", 1.0, _absolute(v, x)))


def _absolute(v: Lane, x: str) -> str:
    return v.op("max", x, v.op("sub", 0.0, x))


def _line_sigmoid(v: Lane, x: str, slope: float) -> str:
    return v.bounded(v.op("add", v.op("mul", x, slope), 0.5), 0.0, 1.0)


def _swish(v: Lane, x: str) -> str:
    """The sigmoid is never quite 0: times the largest of floats it would be something."""
    return v.op("mul", v.op("max", -1e5, x), v.call(math.sigmoid, x))


def _gelu_tanh(v: Lane, x: str) -> str:
    cube = v.op("mul", v.op("mul", v.op("mul", 0.044715, x), x), x)
    inner = v.op("mul", sqrt(2 / pi), v.op("add", x, cube))
    return v.op("mul", v.op("mul", 0.5, x), v.op("add", 1.0, v.call(math.tanh, inner)))


SPELLINGS: dict[str, Spell] = {
    "clamp": lambda v, x, low, high: v.bounded(x, low, high),
    "relu": _relu,
    "leaky_relu": lambda v, x, slope: v.less(x, 0.0, v.op("mul", slope, x), x),
    "elu": _elu,
    "selu": lambda v, x: _elu(v, x, SELU_ALPHA, SELU_SCALE),
    "softsign": _softsign,
    "tanh": lambda v, x: v.call(math.tanh, x),
    "sigmoid": lambda v, x: v.call(math.sigmoid, x),
    "hard_sigmoid": lambda v, x: _line_sigmoid(v, x, 1 / 6),
    "hard_sigmoid_fifth": lambda v, x: _line_sigmoid(v, x, 0.2),
    "swish": _swish,
    "hard_swish": lambda v, x: v.op("mul", x, _line_sigmoid(v, x, 1 / 6)),
    "gelu_tanh": _gelu_tanh,
    "exponential": lambda v, x: v.call(math.exp, x),
    "linear": lambda v, x: x,
    "absolute": _absolute,
    "negative": lambda v, x: v.op("sub", 0.0, x),
    "square": lambda v, x: v.op("mul", x, x),
    "sqrt": lambda v, x: v.op("sqrt", x),
    "rsqrt": lambda v, x: v.op("div", 1.0, v.op("sqrt", x)),
    "log": lambda v, x: v.call(math.log, x),
}


def spell(w: Writer, floats: Vectors, function: Function, x: str) -> str:
    return SPELLINGS[function[0]](Lane(w, floats), x, *function[1])


def missing(function: str) -> str | None:
    """The reason why a function cannot be computed in vectors."""
    return None if function in SPELLINGS else f"it has no {function} in vectors"
