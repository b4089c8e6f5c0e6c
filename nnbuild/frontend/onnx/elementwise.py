"""Elementwise operators of one, two or more operands; no data is moved for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf

import numpy as np

from nnbuild.frontend.builder import Form
from nnbuild.frontend.onnx.arithmetic import (
    LARGE,
    Operand,
    chosen,
    combined,
    compared,
    join,
    left_out,
    magnitude,
    pair,
    raised,
    raised_each,
    times_plus,
)
from nnbuild.frontend.onnx.call import FLOAT, INT32, Call
from nnbuild.frontend.onnx.data_movement import repeated
from nnbuild.frontend.onnx.quantized import SHIFTS, formed, is_scaled, narrowed
from nnbuild.model.graph import WHOLE, Quant
from nnbuild.numeric.elementwise import sum_limit
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.layout import Value, broadcast
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.select import LEFT_OUT

SHIFT_LIMIT, PRODUCT_LIMIT = 2.0**21, 2.0**14
INTEGER = "clamp sigmoid tanh leaky_relu elu hard_sigmoid swish gelu exponential".split()


# One operand.


def unary(function: str, parameters: tuple[float, ...], call: Call) -> None:
    mode = formed(call, 0)
    (x,) = mode.inputs
    if mode.is_integer and not _fits(call.form(x), mode.form, function):
        mode = replace(mode, inputs=(call.as_real(x),), form=FLOAT)
        (x,) = mode.inputs
    call.expect(
        x.is_number,
        f"nnbuild supports {call.node.kind} on floating-point numbers, not on {x.dtype}.",
        "Cast its input to float before.",
    )
    made = call.add(Activation(function, parameters), [x.name], form=mode.form)
    call.done(made, x.view)


def _fits(own: Form, out: Form, function: str) -> bool:
    """Whether an integer rule exists for these scales."""
    if own[1] is None or out[1] is None:
        return False
    if function not in INTEGER:
        return False
    straight = function in ("clamp", "leaky_relu")
    return own[1].scale / out[1].scale < SHIFT_LIMIT and (own[0] == "int8" or straight)


def relu(call: Call) -> None:
    """On scaled integers, the maximum of each element and the zero point, which is exact in their format."""
    x = call.value(0)
    if is_scaled(call, x) and not formed(call, 0).is_integer:
        call.put(replace(x, name=call.add(Activation("clamp", (0.0, inf)), [x.name], form=call.form(x))))
        return
    _clip(call, 0.0, inf)


def clip(call: Call) -> None:
    bounds = []
    for index, (name, default) in enumerate((("min", -inf), ("max", inf)), 1):
        if call.given(index):
            found = call.item(index)
            if isinstance(found, Value):
                _clip_computed(call)
                return
            call.expect(found.size == 1, f"its {name} is not a single number.")
            bounds.append(float(found.reshape(-1)[0]))
        else:
            bounds.append(call.number(name, default))
    low, high = bounds
    _clip(call, min(low, high), high)


def _clip_computed(call: Call) -> None:
    made: Operand = call.item(0)
    for index, function in ((1, "maximum"), (2, "minimum")):
        if call.given(index):
            made = pair(call, function, made, call.item(index))
    call.put(made)


def _clip(call: Call, low: float, high: float) -> None:
    x = call.value(0)
    if not x.is_number and call.form(x)[1] not in (None, WHOLE):
        call.put(narrowed(call, x, Clamp(low, high)))
        return
    if x.is_number:
        low, high = (b if abs(b) < LARGE else inf if b > 0 else -inf for b in (low, high))
        unary("clamp", (low, high), call)
        return
    made: Operand = x
    for bound, function in ((low, "maximum"), (high, "minimum")):
        if abs(bound) < 2.0**31:
            made = pair(call, function, made, np.array(int(bound), x.dtype))
    call.put(made)


def _with_option(function: str, names: Sequence[tuple[str, float]], call: Call) -> None:
    unary(function, tuple(call.number(name, default) for name, default in names), call)


def hard_sigmoid(call: Call) -> None:
    alpha, beta = call.number("alpha", 0.2), call.number("beta", 0.5)
    if abs(alpha - 0.2) < 1e-6 and beta == 0.5:
        unary("hard_sigmoid_fifth", (), call)
    elif abs(alpha - 1 / 6) < 1e-6 and beta == 0.5:
        unary("hard_sigmoid", (), call)
    else:
        call.put(call.activated(_line(call, call.real(0), alpha, beta), "clamp", (0.0, 1.0)))


def _line(call: Call, x: Value, factor: float, summand: float) -> Value:
    return times_plus(call, x, factor, summand)


def gelu(call: Call) -> None:
    kind = call.text("approximate", "none")
    call.expect(kind in ("none", "tanh"), f"its approximate is {kind!r}.")
    unary("gelu" if kind == "none" else "gelu_tanh", (), call)


def selu(call: Call) -> None:
    alpha, gamma = call.number("alpha", 1.6732632), call.number("gamma", 1.0507010)
    call.put(times_plus(call, call.activated(call.real(0), "elu", (alpha,)), gamma))


def celu(call: Call) -> None:
    """alpha * elu(x / alpha) below 0."""
    alpha = call.number("alpha", 1.0)
    call.expect(alpha != 0, "its alpha is 0.")
    call.put(times_plus(call, call.activated(times_plus(call, call.real(0), 1 / alpha), "elu", (1.0,)), alpha))


def swish(call: Call) -> None:
    alpha = call.number("alpha", 1.0)
    if alpha == 1.0:
        unary("swish", (), call)
        return
    x = call.real(0)
    call.put(combined(call, "multiply", x, call.activated(times_plus(call, x, alpha), "sigmoid")))


def reciprocal(call: Call) -> None:
    call.put(combined(call, "divide", np.float32(1), call.real(0)))


def above(call: Call) -> None:
    """ThresholdedRelu: values not above the threshold become 0."""
    x, zero = call.real(0), np.float32(0)
    call.put(chosen(call, compared(call, "greater", x, np.float32(call.number("alpha", 1.0))), x, zero))


def shrink(call: Call) -> None:
    x, lambd, bias = call.real(0), call.number("lambd", 0.5), call.number("bias", 0.0)
    low, high = times_plus(call, x, 1.0, bias), times_plus(call, x, 1.0, -bias)
    middle = chosen(call, compared(call, "greater", x, np.float32(lambd)), high, np.float32(0))
    call.put(chosen(call, compared(call, "less", x, np.float32(-lambd)), low, middle))


def sign(call: Call) -> None:
    x = call.value(0)
    x = call.real(0) if x.is_number else x
    zero = np.zeros((), np.float32 if x.is_number else x.dtype)
    above_zero, below = (call.converted(compared(call, f, x, zero), FLOAT, "float32") for f in ("greater", "less"))
    made = combined(call, "subtract", above_zero, below)
    call.put(made if x.is_number else call.converted(made, INT32, x.dtype))


def negative(call: Call) -> None:
    x = call.value(0)
    if x.is_number:
        unary("negative", (), call)
    else:
        call.put(pair(call, "subtract", np.zeros((), x.dtype), x))


def absolute(call: Call) -> None:
    x = call.value(0)
    if x.is_number:
        unary("absolute", (), call)
    else:
        call.put(magnitude(call, x))


def rounded(function: str, call: Call) -> None:
    x = call.value(0)
    if x.is_number:
        unary(function, (), call)
    else:
        call.put(x)


# Two operands.


def binary(function: str, call: Call) -> None:
    call.expect(call.count == 2, "it needs two operands.")
    left, right = call.item(0), call.item(1)
    values = [v for v in (left, right) if isinstance(v, Value)]
    if values and all(is_scaled(call, v) for v in values) and _integers(call, function, left, right):
        return
    numbers = next((v for v in values if v.is_number), None)
    masks = [
        v
        for v in (left, right)
        if not isinstance(v, Value) and v.dtype.kind == "f" and v.size and float(v.min()) <= LEFT_OUT
    ]
    if function == "add" and numbers is not None and masks:
        call.put(left_out(call, numbers, masks[0]))
    else:
        call.put(pair(call, function, left, right))


def _integers(call: Call, function: str, left: Operand, right: Operand) -> bool:
    """Computes on scaled integers where a rule for their scales exists."""
    from nnbuild.frontend.onnx.quantized import ahead, form_by

    following = ahead(call, clamps=True)
    if following is None or function not in ("add", "subtract", "multiply"):
        return False
    items: list[Operand] = []
    quants: list[Quant] = []
    for index, item in enumerate((left, right)):
        if isinstance(item, Value):
            dtype, quant = call.form(item)
            items.append(item)
        else:
            held = call.scaled(index)
            form = None if held is None else form_by(held.integers.dtype.name, held.scales, held.zeros)
            if held is None or form is None or form[1] is None:
                return False
            dtype, quant = form
            items.append((held.integers.astype(np.int64) - SHIFTS[held.integers.dtype.name][1]).astype(dtype))
        if dtype != following.form[0] or quant is None:
            return False
        quants.append(quant)
    out = following.form[1]
    assert out is not None
    bits = 16 if following.form[0] == "int16" else 8
    ratio = quants[0].scale * quants[1].scale / out.scale
    twice = 2 * max(q.scale for q in quants) / out.scale
    if not (ratio < PRODUCT_LIMIT if function == "multiply" else twice < sum_limit(bits)):
        return False
    once = function == "multiply"
    made = join(
        call,
        lambda: Binary(function, following.clamp, once),
        items,
        ("left", "right"),
        following.form,
        quants,
        "float32",
    )
    call.importer.absorbed.update(id(node) for node in following.nodes)
    call.put(made)
    return True


def several(function: str, call: Call) -> None:
    """Sum, Max, Min, Mean of any number of operands."""
    call.expect(call.count > 0, "it has no inputs.")
    made: Operand = call.item(0)
    for index in range(1, call.count):
        made = pair(call, function if function != "mean" else "add", made, call.item(index))
    if function == "mean" and call.count > 1:
        made = combined(call, "multiply", made, np.float32(1 / call.count))
    call.put(made)


def power(call: Call) -> None:
    base, exponent = call.item(0), call.item(1)
    if isinstance(exponent, Value) and not isinstance(base, Value) and (base > 0).all():
        logarithms = np.log(base.astype(np.float64)).astype(np.float32)
        call.put(call.activated(combined(call, "multiply", call.as_real(exponent), logarithms), "exponential"))
        return
    if isinstance(exponent, Value):
        raise call.unsupported("its exponent is computed at run time, and its base is no positive constant")
    x = call.as_value(base)
    same = bool((exponent == exponent.flat[0]).all())
    if not same and not x.is_number:
        raise call.unsupported("the exponents of its integers differ from element to element")
    x = repeated(call, x, np.broadcast_shapes(x.shape, exponent.shape))
    call.put(raised(call, x, float(exponent.flat[0])) if same else raised_each(call, x, exponent))


def divide(call: Call) -> None:
    binary("divide", call)


def prelu(call: Call) -> None:
    x, slope = call.real(0), call.item(1)
    if isinstance(slope, Value):
        low = combined(call, "multiply", x, slope)
        call.put(chosen(call, compared(call, "less", x, np.float32(0)), low, x))
        return
    values = call.as_floats(slope, "slope")
    if values.ndim == 1 and len(x.shape) > 2 and values.size == x.shape[1] != x.shape[-1]:
        values = values.reshape(-1, *(1,) * (len(x.shape) - 2))  # as older exporters define it
    try:
        view, (name, laid) = broadcast(call, [x, values])
    except ValueError as error:
        raise call.error(str(error)) from None
    assert isinstance(name, str) and not isinstance(laid, str)
    call.done(call.add(PReLU(), [name], {"slope": laid}), view)


PLAIN = {
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Exp": "exponential",
    "Log": "log",
    "Sqrt": "sqrt",
    "Sin": "sin",
    "Cos": "cos",
    "Erf": "erf",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "HardSwish": "hard_swish",
    "Mish": "mish",
}


OPERATORS: dict[str, Callable[[Call], None]] = {
    **{kind: partial(unary, function, ()) for kind, function in PLAIN.items()},
    "Relu": relu,
    "Clip": clip,
    "LeakyRelu": partial(_with_option, "leaky_relu", [("alpha", 0.01)]),
    "Elu": partial(_with_option, "elu", [("alpha", 1.0)]),
    "Selu": selu,
    "Celu": celu,
    "Gelu": gelu,
    "Swish": swish,
    "HardSigmoid": hard_sigmoid,
    "ThresholdedRelu": above,
    "Shrink": shrink,
    "Reciprocal": reciprocal,
    "Sign": sign,
    "Neg": negative,
    "Abs": absolute,
    "Floor": partial(rounded, "floor"),
    "Ceil": partial(rounded, "ceil"),
    "Round": partial(rounded, "round"),
    "Add": partial(binary, "add"),
    "Sub": partial(binary, "subtract"),
    "Mul": partial(binary, "multiply"),
    "Div": divide,
    "Sum": partial(several, "add"),
    "Max": partial(several, "maximum"),
    "Min": partial(several, "minimum"),
    "Mean": partial(several, "mean"),
    "Pow": power,
    "PRelu": prelu,
}
