"""The end of a model's header: conversion of inputs and outputs from and to floats, and class names."""

from __future__ import annotations

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.emit.text import common_type, quoted
from nnbuild.model.graph import Tensor
from nnbuild.plan.plan import Plan

INLINE = """\
#if defined(__GNUC__)
#define @_INLINE static inline __attribute__((unused))
#else
#define @_INLINE static inline
#endif

"""
CAST = """\
#ifdef __cplusplus
#define @_CAST(type, value) static_cast<type>(value)
#else
#define @_CAST(type, value) ((type)(value))
#endif

"""
NEAREST = """\
@U_INLINE int32_t @_nearest(float x, float scale, int32_t zero_point, int32_t low, int32_t high)
{
    const float quotient = x / scale;
    if (!(quotient > @U_CAST(float, low - zero_point))) {
        return low;
    }
    if (quotient >= @U_CAST(float, high - zero_point)) {
        return high;
    }
    const int32_t whole = @U_CAST(int32_t, quotient);
    const float rest = quotient - @U_CAST(float, whole);
    return whole + zero_point + (rest >= 0.5f) - (rest <= -0.5f);
}

"""


def float_io(plan: Plan, classes: tuple[str, ...] = ()) -> str:
    """Inline functions, so that an integer-only program contains no float code."""
    name, upper = plan.prefix, plan.prefix.upper()
    inputs = [plan.tensor(each) for each in plan.graph.inputs]
    outputs = [plan.tensor(each) for each in plan.graph.outputs]
    text = ""
    if any(tensor.quant is not None for tensor in inputs):
        text += "/* Rounds x / scale to nearest, halves away from zero; adds the zero point and saturates. */\n"
        text += NEAREST.replace("@U", upper).replace("@", name)
    text += "/* Writes input `index` from values in the model's own units. */\n"
    text += f"{upper}_INLINE void {name}_quantize_input({name}_context *context, unsigned index, const float *values)\n"
    kind = common_type(plan, plan.graph.inputs)
    text += _switch([_written(name, index, tensor, kind) for index, tensor in enumerate(inputs)])
    text += "\n/* Reads output `index` in the model's own units. */\n"
    text += (
        f"{upper}_INLINE void {name}_dequantize_output(const {name}_context *context, unsigned index, float *values)\n"
    )
    kind = common_type(plan, plan.graph.outputs)
    text += _switch([_read(name, index, tensor, kind) for index, tensor in enumerate(outputs)])
    macros = INLINE + (CAST if "_CAST(" in text else "")
    text = macros.replace("@", upper) + "#ifndef __KERNEL__\n" + text + "#endif\n"
    return text + (_classes(name, classes) if classes else "")


def _switch(cases: list[list[str]]) -> str:
    lines = ["{"]
    for index, case in enumerate(cases):
        word = "if" if index == 0 else "} else if"
        lines += [f"    {word} (index == {index}) {{", *(f"        {line}" for line in case)]
    return "\n".join([*lines, "    }", "}", ""])


def _written(name: str, index: int, tensor: Tensor, given: str) -> list[str]:
    port, kind, cast = f"{name.upper()}_INPUT{index}", C_TYPES[tensor.dtype], f"{name.upper()}_CAST"
    value = f"{cast}({kind}, values[i])"
    if tensor.quant is not None:
        limits = np.iinfo(tensor.dtype)
        value = f"{name}_nearest(values[i], {port}_SCALE, {port}_ZERO_POINT, {limits.min}, {limits.max})"
        value = value if tensor.dtype == "int32" else f"{cast}({kind}, {value})"
    elif tensor.dtype == "float32":
        value = "values[i]"
    place = f"{name}_input(context, {index})"
    return [
        f"{kind} *to = {place if kind == given else f'{cast}({kind} *, {place})'};",
        f"for (int32_t i = 0; i < {port}_SIZE; ++i) {{",
        f"    to[i] = {value};",
        "}",
    ]


def _read(name: str, index: int, tensor: Tensor, given: str) -> list[str]:
    port, kind, cast = f"{name.upper()}_OUTPUT{index}", C_TYPES[tensor.dtype], f"{name.upper()}_CAST"
    value = "from[i]"
    if tensor.quant is not None:
        value = f"{port}_SCALE * {cast}(float, from[i] - {port}_ZERO_POINT)"
    elif tensor.dtype != "float32":
        value = f"{cast}(float, from[i])"
    place = f"{name}_output(context, {index})"
    return [
        f"const {kind} *from = {place if kind == given else f'{cast}(const {kind} *, {place})'};",
        f"for (int32_t i = 0; i < {port}_SIZE; ++i) {{",
        f"    values[i] = {value};",
        "}",
    ]


def _classes(name: str, classes: tuple[str, ...]) -> str:
    rows = "\n".join(f"        {quoted(each)}," for each in classes)
    return f"""
#define {name.upper()}_CLASSES {len(classes)}

/* Name of class `index` of the output. */
{name.upper()}_INLINE const char *{name}_class(unsigned index)
{{
    static const char *const names[{len(classes)}] = {{
{rows}
    }};
    return index < {len(classes)} ? names[index] : "";
}}
"""
