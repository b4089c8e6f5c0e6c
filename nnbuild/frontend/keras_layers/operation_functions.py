"""Elementwise functions that are made of others, and sparse activations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import e, log, pi

import numpy as np

from nnbuild.frontend import composed
from nnbuild.frontend.keras_layers.activation import apply
from nnbuild.frontend.keras_layers.base import Call, Wire
from nnbuild.frontend.keras_layers.operation_formulas import by, held, of, one_axis, two
from nnbuild.frontend.keras_layers.operation_kind import OTHERWISE, Operation
from nnbuild.frontend.keras_layers.products import by_kernel, ordered
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.select import Select
from nnbuild.ops.top_k import TopK

TWO = "its operands are not two tensors of as many axes."
MOST_SORTED = 2**10


@dataclass(frozen=True)
class _Wires:
    call: Call

    def of(self, function: str, x: Wire, *parameters: float) -> Wire:
        return Wire(apply(self.call, x.name, (function, parameters)))

    def two(self, function: str, left: Wire | float, right: Wire | float) -> Wire:
        return Wire(_joined(self.call, Binary(function), left, right))

    def line(self, x: Wire, factor: float, summand: float = 0.0) -> Wire:
        made = by(self.call, "multiply", x.name, factor) if factor != 1 else x.name
        return Wire(by(self.call, "add", made, summand) if summand else made)

    def where(self, comparison: str, x: Wire, bound: Wire | float, chosen: Wire, other: Wire) -> Wire:
        side = _joined(self.call, Compare(comparison), x, bound)
        return Wire(self.call.one(Select(), side, chosen.name, other.name))


def _joined(call: Call, attributes: Binary | Compare, left: Wire | float, right: Wire | float) -> str:
    sides = {"left": left, "right": right}
    names = [side.name for side in sides.values() if isinstance(side, Wire)]
    constants = {role: held(call, side) for role, side in sides.items() if not isinstance(side, Wire)}
    return call.one(attributes, *names, **constants)


def _of_one(function: Callable[[_Wires, Wire], Wire]) -> Operation:
    return Operation(lambda call: function(_Wires(call), Wire(call.input)).name)


def _angle_of(call: Call) -> str:
    if len(call.inputs) != 2 or len({len(call.builder.shape(x)) for x in call.inputs}) != 1:
        raise call.config.error(TWO, OTHERWISE)
    y, x = (Wire(name) for name in call.inputs)
    return composed.angle_of(_Wires(call), y, x).name


def _scaled(factor: float) -> Operation:
    return Operation(lambda call: by(call, "multiply", call.input, factor))


def _sparse_sigmoid(call: Call) -> str:
    return of(call, "clamp", by(call, "multiply", by(call, "add", call.input, 1.0), 0.5), 0.0, 1.0)


def _sparse_plus(call: Call) -> str:
    """A quarter of the square of x + 1 between -1 and 1, x above."""
    bent = of(call, "square", by(call, "add", of(call, "clamp", call.input, -1.0, 1.0), 1.0))
    above = by(call, "maximum", by(call, "subtract", call.input, 1.0), 0.0)
    return two(call, "add", by(call, "multiply", bent, 0.25), above)


def _sparsemax(call: Call) -> str:
    """What Keras computes: its threshold is of the sum of all running sums of the support."""
    axis, last = one_axis(call, default=-1), len(call.shape) - 1
    size = call.shape[axis]
    if size > MOST_SORTED:
        raise call.config.error(f"it sorts an axis of {size}; nnbuild sorts at most {MOST_SORTED} there.", OTHERWISE)
    order = (*(i for i in range(last + 1) if i != axis), axis)
    x = ordered(call, call.input, order)
    descending, _ = call.builder.add(TopK(size), [x])
    ones = call.constant(f"ones before {size}", lambda: np.triu(np.ones((size, size), np.float32)))
    letters = "abcdefgh"[: last + 1]
    parts = (letters, f"{letters[-1]}z", f"{letters[:-1]}z")
    sums = by_kernel(call, descending, parts, ones, (size, size), None)
    counts = call.constant(f"one to {size}", lambda: np.arange(1, size + 1, dtype=np.float32))
    shares = call.one(Binary("divide"), by(call, "subtract", sums, 1.0), right=counts)
    support = call.one(Compare("greater"), two(call, "subtract", descending, shares), right=held(call, 0.0))
    inside = call.one(Select(), support, sums, other=held(call, 0.0))
    total = by(call, "subtract", call.one(Reduce("sum", last, 1, True), inside), 1.0)
    count = call.one(Reduce("sum", last, 1, True), call.builder.as_float(support))
    made = by(call, "maximum", two(call, "subtract", x, two(call, "divide", total, count)), 0.0)
    return ordered(call, made, tuple(order.index(i) for i in range(last + 1)))


def _cube_root(call: Call) -> str:
    """Of the magnitude, with the sign of x."""
    a, x = _Wires(call), Wire(call.input)
    size = a.of("exponential", a.line(a.of("log", a.two("maximum", a.of("absolute", x), 1e-30)), 1 / 3))
    return a.where("less", x, 0.0, a.of("negative", size), a.where("greater", x, 0.0, size, x)).name


def _divided(call: Call) -> str:
    """Zero where it would divide by zero."""
    if len(call.inputs) != 2 or len({len(call.builder.shape(x)) for x in call.inputs}) != 1:
        raise call.config.error(TWO, OTHERWISE)
    left, right = call.inputs
    nothing = call.one(Compare("equal"), right, right=held(call, 0.0))
    safe = call.one(Select(), nothing, right, chosen=held(call, 1.0))
    return call.one(Select(), nothing, two(call, "divide", left, safe), chosen=held(call, 0.0))


def _finite(call: Call) -> str:
    """Tests x - x, which is 0 only for finite x."""
    return call.one(Compare("equal"), two(call, "subtract", call.input, call.input), right=held(call, 0.0))


def _infinite(call: Call) -> str:
    size = of(call, "absolute", call.input)
    return call.one(Compare("greater"), size, right=held(call, float(np.finfo(np.float32).max)))


def _log_add_exp(call: Call, base: float = e) -> str:
    """The larger operand plus a correction from the other."""
    if len(call.inputs) != 2 or len({len(call.builder.shape(x)) for x in call.inputs}) != 1:
        raise call.config.error(TWO, OTHERWISE)
    left, right = call.inputs
    apart = by(call, "multiply", of(call, "absolute", two(call, "subtract", left, right)), -log(base))
    rest = by(call, "multiply", of(call, "softplus", apart), 1 / log(base))
    return two(call, "add", two(call, "maximum", left, right), rest)


_INVERSE = {
    "cos": _of_one(composed.arc_cosine),
    "cosh": _of_one(composed.area_cosine),
    "sin": _of_one(composed.arc_sine),
    "sinh": _of_one(composed.area_sine),
    "tan": _of_one(composed.arc_tangent),
    "tanh": _of_one(composed.area_tangent),
    "tan2": Operation(_angle_of),
}
OPERATIONS: dict[str, Operation] = {
    **{f"{before}{name}": operation for name, operation in _INVERSE.items() for before in ("a", "arc")},
    "cbrt": Operation(_cube_root),
    "cosh": _of_one(composed.hyperbolic_cosine),
    "deg2rad": _scaled(pi / 180),
    "divide_no_nan": Operation(_divided),
    "erfc": _of_one(composed.error_rest),
    "fabs": Operation(lambda call: of(call, "absolute", call.input)),
    "logaddexp": Operation(_log_add_exp),
    "logaddexp2": Operation(lambda call: _log_add_exp(call, 2.0)),
    **dict.fromkeys(("is_finite", "isfinite"), Operation(_finite)),
    **dict.fromkeys(("is_inf", "isinf"), Operation(_infinite)),
    **dict.fromkeys(
        ("is_nan", "isnan"), Operation(lambda call: call.one(Compare("not_equal"), call.input, call.input))
    ),
    "rad2deg": _scaled(180 / pi),
    "sinh": _of_one(composed.hyperbolic_sine),
    "sparse_plus": Operation(_sparse_plus),
    "sparse_sigmoid": Operation(_sparse_sigmoid),
    "sparsemax": Operation(_sparsemax, ("axis",)),
    "tan": _of_one(composed.tangent),
}
