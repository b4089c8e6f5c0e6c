"""Scaling of sums on Cortex-M: a multiply-accumulate of the high word, a shift, a saturation, a store.

The numbers are those of `numeric.requant_product`; where they do not exist for every channel, the vendored function is
called, which is exact for all. Every channel has columns of constants, and its sum starts minus its centre.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.c99 import added
from nnbuild.isa.float_results import FloatResults, of_bits
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.lanes.layer_sums import Sums, layer_of, results_of, sums_of
from nnbuild.kernels.loops.window import Weighted
from nnbuild.numeric.requant import General, Layer
from nnbuild.numeric.requant_product import Form, Products, common_level, products
from nnbuild.numeric.rounding import INT16, INT32, Ints, ints
from nnbuild.ops.site import Site

LESS_BELOW_ZERO = Row("{0} - ({1} & ({2} >> 31))", 2)
ANY = 0
"""Any shift, but the same for all channels."""
CALL_CYCLES = 20
BEYOND = "the sums of its many inputs do not fit its accumulators"


def _routine(function: str, accumulator: str, multiplier: str, *others: str) -> Instruction:
    """A vendored function as one routine for all channels, which the compiler would otherwise inline for each."""
    parameters = {"acc": accumulator, "multiplier": multiplier} | dict.fromkeys(others, "int32_t")
    head = ", ".join(f"{kind} {name}" for name, kind in parameters.items())
    body = f"return {{prefix}}_{function}({', '.join(parameters)});"
    return Instruction(f"{function}_apart", f"int32_t {{name}}({head})", body, CALL_CYCLES, outlined=True)


GENERAL = {
    "requantize": _routine("requantize", "int32_t", "int32_t", "shift"),
    "requantize64": _routine("requantize64", "int64_t", "int32_t", "shift"),
    "scale_once": _routine("scale_once", "int64_t", "int64_t", "shift", "away"),
    "scale_float": _routine("scale_float", "int64_t", "int64_t", "shift"),
}


LONG = frozenset({"scale_once", "scale_float"})
"""The functions with multipliers of 64 bits."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """left: the shift of sums before scaling. centre: subtracted from each channel's start.

    columns: the epilogue's constants of every channel. form: what it computes; None for the vendored `function`, or
    where sums become floats, its `results`; the columns are the bits of their constants then.
    """

    left: Ints
    centre: Ints
    columns: Mapping[str, Ints]
    form: Form | None
    function: str
    zero: int
    low: int
    high: int
    bits: int
    results: FloatResults | None = None

    @property
    def output_type(self) -> str:
        return "float" if self.results else f"int{self.bits}_t"

    @property
    def level(self) -> int | None:
        return self.form.level if self.form else None

    @property
    def factor(self) -> Ints:
        return np.int64(1) << self.left

    @property
    def doubled(self) -> bool:
        """Whether all sums must be doubled."""
        return self.form is not None and self.form.left == 1

    def part(self, channels: slice) -> Scaling:
        columns = {name: values[channels] for name, values in self.columns.items()}
        return replace(self, left=self.left[channels], centre=self.centre[channels], columns=columns)

    def marks(self) -> list[str]:
        """The parts of a routine's name that identify this scaling."""
        if self.results:
            return ["float", *self.results.marks()]
        bounds = []
        if self.low > -(1 << (self.bits - 1)):
            bounds.append(f"from_{self.low}".replace("-", "m"))
        if self.high < (1 << (self.bits - 1)) - 1:
            bounds.append(f"to_{self.high}".replace("-", "m"))
        if self.form is None:
            rule = [self.function, f"at_{self.zero}".replace("-", "m")]
        else:
            rule = [f"level{self.level}"] if self.level is not None else ["twice" if self.doubled else "once"]
            rule += ["long"] if self.form.long else ["signed"] if self.form.below != 0 else []
        return [f"int{self.bits}", *rule, *bounds]


def of_products(layer: Layer, found: Products, bits: int) -> Scaling:
    columns = {name: found.of(name) for name in ("multiplier", *(["lower"] if found.form.long else []), "offset")}
    below = found.of("below")
    form = found.form if below.any() or found.form.below is not None else replace(found.form, below=0)
    if form.below is None:
        columns["below"] = below
    if form.level is None:
        columns["shift"] = found.of("shift")
    return Scaling(found.of("left"), found.of("centre"), columns, form, "", layer.zero, *layer.bounds, bits)


def of_function(layer: Layer, general: General, bits: int) -> Scaling:
    """The vendored function. Sums start near the middle of their range to need the fewest bits; it adds the centre."""
    centre = np.clip((layer.low + layer.high) // 2, *INT32)
    columns = {name: ints(values) for name, values in general.constants.items()}
    if general.function in LONG:
        columns["upper"] = columns["multiplier"] >> 32
    columns["centre"] = centre
    left = np.zeros(len(centre), np.int64)
    return Scaling(left, centre, columns, None, general.function, layer.zero, *layer.bounds, bits)


def to_floats(sums: Sums, results: FloatResults, room: Ints) -> Scaling | str:
    """Sums that become floats."""
    none = np.zeros_like(sums.start)
    columns = {name: ints(values.view(np.int32)) for name, values in results.constants.items()}
    fits = (np.maximum(sums.high, -sums.low) <= room).all()
    return Scaling(none, none, columns, None, "", 0, *INT32, 32, results) if fits else BEYOND


def plain_form(layer: Layer, always_signed: bool = False) -> Form:
    """Rounds like the rule, with a shift for each channel: the doubled sum and the rounded high word."""
    if layer.rule != "twice":
        return Form(left=0)
    return Form(rounded=True, below=int(layer.signed or always_signed), left=1)


def scaling_by(
    site: Site[Weighted], forms: Callable[[Layer], Sequence[Form]], left: Ints | int, room: Ints | int = INT32[1]
) -> Scaling | str:
    """How a layer's sums, which need `room`, become outputs: floats, or by the first form with numbers for every
    channel; sums may be shifted `left`."""
    sums, results = sums_of(site), results_of(site)
    most, within = (np.broadcast_to(limit, sums.start.shape) for limit in (left, room))
    if results:
        return to_floats(sums, results, within)
    layer = layer_of(site)
    return chosen(layer, forms(layer), most, within, 8 * np.dtype(site.outputs[0].dtype).itemsize)


def chosen(layer: Layer, forms: Sequence[Form], most_left: Ints, room: Ints, bits: int) -> Scaling | str:
    """The first form that has numbers for every channel; a level may be ANY."""
    for form in forms:
        found = (common_level if form.level == ANY else products)(layer, form, most_left, room)
        if found is not None:
            return of_products(layer, found, bits)
    scaling = of_function(layer, layer.general((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)), bits)
    farthest = np.maximum(layer.high - scaling.centre, scaling.centre - layer.low)
    return scaling if (farthest <= room).all() else BEYOND


def most_left(largest_weight: Ints) -> Ints:
    """The bits by which weights can be shifted without exceeding 16."""
    found: Ints = ints([(INT16[1] // max(int(weight), 1)).bit_length() - 1 for weight in largest_weight])
    return found


def result(w: Writer, scaling: Scaling, value: str, names: Mapping[str, str], ops: Vectors = DSP) -> str:
    """Turns a sum into an output, and gives the variable that holds it."""
    if scaling.results:
        scaling.results.declare(w, f"{value}_real", value, of_bits(w, names))
        return f"{value}_real"
    scaled(w, scaling, value, names, ops)
    return value


def scaled(w: Writer, scaling: Scaling, value: str, names: Mapping[str, str], ops: Vectors = DSP) -> None:
    """Turns a sum into an output, without storing it; `names` are those of the channel's columns."""
    form, bits = scaling.form, scaling.bits
    if form is None:
        w(f"{value} = {added(general(w, scaling, value, names), scaling.zero)};")
        saturated = (-(1 << (bits - 1)) - 1, 1 << (bits - 1))
    else:
        offset = names["offset"]
        if form.below == 1:
            offset = f"{offset} + ({value} >> 31)"
        elif form.below is None:
            offset = w.use(LESS_BELOW_ZERO, offset, names["below"], value)
        row = "high_long_add" if form.long else "high_rounded_add" if form.rounded else "high_add"
        factors = [names[name] for name in ("multiplier", "lower") if name in names]
        high_word = ops.call(w, row, value, *factors, offset)
        if form.level is not None and bits == 8:
            w(f"{value} = {ops.call(w, 'saturate', high_word, of=(8, form.level))};")
        else:
            w(f"{value} = {high_word} >> {names['shift'] if form.level is None else form.level};")
            w(f"{value} = {ops.call(w, 'saturate', value, of=(bits,))};")
            w.bill(1 + (form.below == 1))
        saturated = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    c99.narrow(w, (scaling.low, scaling.high), value, saturated)


def general(w: Writer, scaling: Scaling, value: str, names: Mapping[str, str]) -> str:
    """A sum, which started minus its centre, scaled by the vendored function."""
    wide = scaling.function == "requantize64" or scaling.bits == 16  # the sum itself may exceed 32 bits
    whole = f"{'(int64_t)' if wide else ''}{value} + {names['centre']}"
    multiplier = names["multiplier"]
    if "upper" in names:
        multiplier = DSP.call(w, "two", multiplier, names["upper"])
    others = [names[name] for name in ("shift", "away") if name in names]
    w.helpers.add(scaling.function)
    return w.call(GENERAL[scaling.function], whole, multiplier, *others)
