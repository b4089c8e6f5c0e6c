"""How each function of `ops.functions` is spelt in C, on the vendored math functions."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa.c99 import product
from nnbuild.ops.functions import SELU_ALPHA, SELU_SCALE

Spell = Callable[..., str]
"""(writer, x, *parameters) -> an expression; x is a name."""


def _clamp(w: Writer, x: str, low: float, high: float) -> str:
    w.bill(4)
    return bounded(x, low, high)


def bounded(x: str, low: float, high: float) -> str:
    """x within [low, high]; an infinite bound is no bound."""
    text = x
    if high != float("inf"):
        text = f"({x} > {float_literal(high)} ? {float_literal(high)} : {x})"
    if low != float("-inf"):
        text = f"({x} < {float_literal(low)} ? {float_literal(low)} : {text})"
    return text


def _relu(w: Writer, x: str, high: float, slope: float, threshold: float) -> str:
    w.bill(6)
    passed = bounded(x, float("-inf"), high)
    below = product(w, float_literal(slope), f"{x} - {float_literal(threshold)}") if slope else "0.0f"
    return f"({x} >= {float_literal(threshold)} ? {passed} : {below})"


def _leaky(w: Writer, x: str, slope: float) -> str:
    w.bill(4)
    return f"({x} >= 0.0f ? {x} : {product(w, float_literal(slope), x)})"


def _elu(w: Writer, x: str, alpha: float) -> str:
    return f"({x} > 0.0f ? {x} : {product(w, float_literal(alpha), w.helper('expm1f', x))})"


def _selu(w: Writer, x: str) -> str:
    negative = product(w, float_literal(SELU_SCALE * SELU_ALPHA), w.helper("expm1f", x))
    return f"({x} > 0.0f ? {product(w, float_literal(SELU_SCALE), x)} : {negative})"


def _softplus(w: Writer, x: str) -> str:
    away = f"({x} > 0.0f ? -{x} : {x})"
    return f"(({x} > 0.0f ? {x} : 0.0f) + {w.helper('log1pf', w.helper('expf', away))})"


def _softsign(w: Writer, x: str) -> str:
    w.bill(18)
    return f"({x} / (1.0f + ({x} < 0.0f ? -{x} : {x})))"


def _line_sigmoid(w: Writer, x: str, slope: str) -> str:
    w.bill(8)
    line = f"{product(w, x, slope)} + 0.5f"
    return f"({x} <= {_edge(slope, -1)} ? 0.0f : {x} >= {_edge(slope, 1)} ? 1.0f : {line})"


def _edge(slope: str, sign: int) -> str:
    return float_literal(sign * (2.5 if slope == "0.2f" else 3.0))


SIXTH = float_literal(1 / 6)


def _gelu(w: Writer, x: str) -> str:
    error = w.helper("erff", product(w, x, float_literal(sqrt(0.5))))
    return product(w, product(w, "0.5f", x), f"1.0f + {error}")


def _gelu_tanh(w: Writer, x: str) -> str:
    cube = product(w, product(w, product(w, "0.044715f", x), x), x)
    inner = product(w, float_literal(sqrt(2 / pi)), f"{x} + {cube}")
    return product(w, product(w, "0.5f", x), f"1.0f + {w.helper('tanhf', inner)}")


SPELLINGS: dict[str, Spell] = {
    "clamp": _clamp,
    "relu": _relu,
    "leaky_relu": _leaky,
    "elu": _elu,
    "selu": _selu,
    "softplus": _softplus,
    "softsign": _softsign,
    "tanh": lambda w, x: w.helper("tanhf", x),
    "sigmoid": lambda w, x: w.helper("logisticf", x),
    "hard_sigmoid": lambda w, x: _line_sigmoid(w, x, SIXTH),
    "hard_sigmoid_fifth": lambda w, x: _line_sigmoid(w, x, "0.2f"),
    "swish": lambda w, x: product(w, x, w.helper("logisticf", x)),
    "hard_swish": lambda w, x: product(w, x, _line_sigmoid(w, x, SIXTH)),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "exponential": lambda w, x: w.helper("expf", x),
    "mish": lambda w, x: product(w, x, w.helper("tanhf", _softplus(w, x))),
    "linear": lambda w, x: x,
    "absolute": lambda w, x: f"({x} < 0.0f ? -{x} : {x})",
    "negative": lambda w, x: f"-{x}",
    "square": lambda w, x: product(w, x, x),
    "sqrt": lambda w, x: w.helper("sqrtf", x),
    "rsqrt": lambda w, x: f"(1.0f / {w.helper('sqrtf', x)})",
    "log": lambda w, x: w.helper("logf", x),
    "sin": lambda w, x: w.helper("sinf", x),
    "cos": lambda w, x: w.helper("cosf", x),
    "floor": lambda w, x: w.helper("floorf", x),
    "ceil": lambda w, x: w.helper("ceilf", x),
}


def spell(w: Writer, name: str, parameters: tuple[float, ...], x: str) -> str:
    return SPELLINGS[name](w, x, *parameters)
