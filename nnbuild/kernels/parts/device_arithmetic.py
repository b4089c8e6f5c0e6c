"""Layers that the processor computes in a device's arithmetic: plain loops, one kernel for each operation."""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names
from nnbuild.kernels.loops.strided import Loops, Walk, contiguous, loops
from nnbuild.kernels.loops.window import Window, window_of
from nnbuild.kernels.loops.window_loops import column_taps, each_position, each_row, row_taps, taps_count
from nnbuild.kernels.parts.integer_steps import centred, declare, finish, zero
from nnbuild.model.graph import Array
from nnbuild.numeric.arithmetic import Arithmetic
from nnbuild.ops.binary import Binary
from nnbuild.ops.convolution import Convolution
from nnbuild.ops.dense import Dense
from nnbuild.ops.device_arithmetic import channel_scales, device_arithmetic_of, operand_scales
from nnbuild.ops.integer import bounds, quant_of
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site


def _spec(site: Site) -> Arithmetic:
    found = device_arithmetic_of(site.op)
    assert found is not None, site.op.name
    return found


def _accepts(site: Site) -> str | None:
    if device_arithmetic_of(site.op) is None:
        return "it computes in a device's arithmetic, which this operation does not have"
    return None if site.dtypes == {"int8"} else "devices compute int8 only"


def _shifted(value: str, amount: str, rounding: str) -> str:
    """The C of `numeric.arithmetic.shifted`, in 64 bits."""
    half = f"((({amount}) > 0 ? INT64_C(1) << (({amount}) - 1) : 0))"
    if rounding == "floor":
        return f"({value}) >> ({amount})"
    if rounding == "half_away":
        return f"(({value}) + {half} - (({amount}) > 0 && ({value}) < 0)) >> ({amount})"
    up = f"(({value}) + {half}) >> ({amount})"
    if rounding != "half_even":
        return up
    tie = f"(({amount}) > 0 && (({value}) & ((INT64_C(1) << ({amount})) - 1)) == {half})"
    return f"({up}) - ({tie} && ((({up}) & 1) == 1))"


def requantizer(spec: Arithmetic) -> Instruction:
    """The C of `numeric.arithmetic.requant`."""
    first, second = spec.rounding
    if second == "none" or spec.point == 0:
        body = f"""\
    const int32_t amount = {spec.point} - shift;
    const int64_t product = (int64_t)acc * multiplier * (INT64_C(1) << (amount < 0 ? -amount : 0));
    const int32_t right = amount > 0 ? amount : 0;

    return (int32_t)({_shifted("product", "right", first)});"""
    else:
        body = f"""\
    const int32_t wide = (int32_t)((uint32_t)acc << (shift > 0 ? shift : 0));
    const int64_t exact = (int64_t)wide * multiplier;
    const int64_t product = {_shifted("exact", str(spec.point), first)};
    const int32_t right = shift < 0 ? -shift : 0;

    return (int32_t)({_shifted("product", "right", second)});"""
    name = f"as_device_{spec.scale}_{first}_{second}"
    head = "int32_t {name}(int32_t acc, int32_t multiplier, int32_t shift)"
    return Instruction(name, head, body, 12, outlined=True)


# --- layers with weights ---


def _weights_demand(site: Site) -> Demand:
    window = window_of(site)
    multiplier, shift = channel_scales(site, _spec(site), window.filters)
    packed: dict[str, Array] = {
        "weights": np.ascontiguousarray(site.constant("kernel").reshape(-1)),
        "multiplier": multiplier.astype(np.int32),
        "shift": shift.astype(np.int8),
    }
    if "bias" in site.constants:
        packed["bias"] = site.constant("bias").astype(np.int32)
    return Demand(extent=window.rows.places, packed=packed)


def _emit_weights(w: Writer, site: Site[Convolution | Dense], names: Names) -> None:
    window, out = window_of(site), site.outputs[0]
    with each_row(w, window.rows), each_position(w, window.columns), w.loop("c", window.filters):
        declare(w, "acc", f"{names.packed['bias']}[c]" if "bias" in names.packed else "0", "int32_t")
        with row_taps(w, window.rows), column_taps(w, window.columns):
            _taps(w, site, window, names)
        scale = (f"{names.packed['multiplier']}[c]", f"{names.packed['shift']}[c]")
        value = w.call(requantizer(_spec(site)), "acc", *scale)
        place = f"(y * {window.columns.places} + x) * {window.filters} + c"
        finish(w, f"{names.outputs[0]}[{place}]", value, out, bounds(site.attributes.clamp, out))


def _taps(w: Writer, site: Site, window: Window, names: Names) -> None:
    """One tap of the window: all channels that the output reads, or just its own."""
    row = f"top + ky * {window.rows.dilation}"
    column = f"left + kx * {window.columns.dilation}"
    pixel = f"(({row}) * {window.columns.size} + {column}) * {window.channels}"
    tap = f"(ky * {window.columns.kernel} + kx)"
    if window.depth == 1 and window.groups > 1:
        first = f" + c / {window.filters // window.channels}"
        centred(w, "value", f"{names.inputs[0]}[{pixel}{first}]", zero(site.inputs[0]))
        w(w.use(c99.MULTIPLY_ADD, "acc", "value", f"{names.packed['weights']}[{tap} * {window.filters} + c]"))
        return
    group = f" + c / {window.share} * {window.depth}" if window.groups > 1 else ""
    with w.loop("k", window.depth):
        centred(w, "value", f"{names.inputs[0]}[{pixel}{group} + k]", zero(site.inputs[0]))
        weight = f"{names.packed['weights']}[({tap} * {window.depth} + k) * {window.filters} + c]"
        w(w.use(c99.MULTIPLY_ADD, "acc", "value", weight))


# --- averages and sums ---


def _emit_pool(w: Writer, site: Site[Pool2D], names: Names) -> None:
    window, out = window_of(site), site.outputs[0]
    with each_row(w, window.rows), each_position(w, window.columns):
        w(f"const int32_t count = {taps_count(window.rows, 'ky')} * {taps_count(window.columns, 'kx')};")
        with w.loop("c", window.channels):
            declare(w, "total", "0", "int32_t")
            with row_taps(w, window.rows), column_taps(w, window.columns):
                pixel = f"((top + ky) * {window.columns.size} + left + kx) * {window.channels} + c"
                w(w.use(c99.ADD, "total", f"{names.inputs[0]}[{pixel}]"))
            w.bill(20)
            place = f"(y * {window.columns.places} + x) * {window.channels} + c"
            target = f"{names.outputs[0]}[{place}]"
            declare(w, "value", _quotient(_spec(site).mean), "int32_t")
            c99.bound(w, bounds(site.attributes.clamp, out), "value")
            w(w.use(c99.STORE, target, "(int8_t)value"))


def _quotient(rounding: str) -> str:
    """The C of `numeric.arithmetic.mean`."""
    down = "({0} / {1} - ({0} % {1} < 0))"
    if rounding == "floor":
        return down.format("total", "count")
    if rounding == "half_even":
        floor = down.format("total", "count")
        rest = f"2 * (total - {floor} * count)"
        return f"{floor} + ({rest} > count || ({rest} == count && ({floor} & 1) == 1))"
    return down.format("(2 * total + count)", "(2 * count)")


def _loops(site: Site[Binary]) -> Loops:
    shape = site.output_shape()
    return loops(shape, *(Walk(contiguous(shape)) for _ in range(3)))


def _emit_add(w: Writer, site: Site[Binary], names: Names) -> None:
    spec, out = _spec(site), site.outputs[0]
    scales = [(str(m), str(s)) for m, s in operand_scales(site, spec)]

    def element(at: list[str]) -> None:
        for name, source, number in (("left", at[1], 0), ("right", at[2], 1)):
            centred(w, f"{name}_steps", f"{names.inputs[number]}[{source}]", quant_of(site.inputs[number]).zero_point)
            declare(w, name, w.call(requantizer(spec), f"{name}_steps * {1 << spec.spare}", *scales[number]))
        value = w.call(requantizer(spec), "left + right", *scales[2])
        finish(w, f"{names.outputs[0]}[{at[0]}]", value, out, bounds(site.attributes.clamp, out))

    _loops(site).nest(w, element)


def _same_shapes(site: Site[Binary]) -> str | None:
    same = len({tensor.shape for tensor in (*site.inputs, *site.outputs)}) == 1
    return _accepts(site) or (None if same else "its operands have different shapes")


NAME = "as_device"
WEIGHTS = Kernel[Dense](NAME, PORTABLE, _accepts, _weights_demand, _emit_weights, device_arithmetic=True)
POOL = Kernel[Pool2D](
    NAME, PORTABLE, _accepts, lambda site: Demand(site.output_shape()[0]), _emit_pool, device_arithmetic=True
)
ADD = Kernel[Binary](
    NAME, PORTABLE, _same_shapes, lambda site: Demand(_loops(site).extent), _emit_add, device_arithmetic=True
)
