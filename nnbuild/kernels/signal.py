"""The steps of a fixed-point front end in portable C, one work item each."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names
from nnbuild.model.graph import Array
from nnbuild.numeric.fixed_fft import HALF, QUARTER, Stage, factors, order, split_factors, stages
from nnbuild.numeric.rounding import INT16
from nnbuild.numeric.signal import NATURAL, log_steps
from nnbuild.ops.signal import Signal
from nnbuild.ops.site import Site

ROUND = 0x4000
FORMS = {
    "window": ("int16", "int16"),
    "enlarge": ("int16", "int16", "int32"),
    "transform": ("int16", "int16"),
    "energy": ("int16", "int32"),
    "bands": ("int32", "int32", "int32"),
    "less_noise": ("int32",) * 4,
    "gain": ("int32",) * 3,
    "logarithm": ("int32", "int16"),
}
"""The types of inputs and outputs."""
ROOT = Instruction(
    "root64",
    "uint32_t {name}(uint64_t value)",
    """\
const uint64_t most = value >> 32 ? 0xffffffffU : 0xffffU;
uint64_t rest = value, root = 0, bit = (uint64_t)1 << 62;

while (bit > rest) bit >>= 2;
for (; bit > 0; bit >>= 2) {
    const uint64_t sum = root + bit;

    root >>= 1;
    if (rest >= sum) {
        rest -= sum;
        root += bit;
    }
}
return (uint32_t)(rest > root && root != most ? root + 1 : root); /* to the nearest, but for the largest */""",
    400,
    outlined=True,
)


def _accepts(site: Site[Signal]) -> str | None:
    found = tuple(tensor.dtype for tensor in (*site.inputs, *site.outputs))
    wanted = FORMS[site.attributes.function]
    return None if found == wanted else f"its tensors are {', '.join(found)}, not {', '.join(wanted)}"


def _pairs(values: tuple[Array, Array]) -> Array:
    return np.stack(values, axis=-1).reshape(-1).astype(np.int16)


def _demand(site: Site[Signal]) -> Demand:
    packed = {role: constant.data.reshape(-1) for role, constant in site.constants.items()}
    function, scratch = site.attributes.function, 0
    if function == "transform":
        points = site.attributes.numbers[0] // 2
        packed = {
            "leaves": np.array(order(points), np.uint16),
            "factors": _pairs(factors(points)),
            "split": _pairs(split_factors(points)),
        }
        scratch = 4 * points
    elif function == "logarithm":
        packed = {"steps": log_steps().astype(np.uint16)}
    return Demand(1, scratch, "int16", packed)


def _emit(w: Writer, site: Site[Signal], names: Names) -> None:
    with w.block("if (begin < end)"):
        EMIT[site.attributes.function](w, site, names)


def _window(w: Writer, site: Site[Signal], names: Names) -> None:
    (x,), (out,) = names.inputs, names.outputs
    size = site.constant("weights").size
    with w.loop("frame", prod(site.shape()) // size), w.loop("i", size):
        at = f"frame * {size} + i"
        w(f"int32_t value = ({x}[{at}] * {names.packed['weights']}[i]) >> {site.attributes.numbers[0]};")
        c99.bound(w, INT16, "value")
        w(w.use(c99.STORE, f"{out}[{at}]", "(int16_t)value"))
        w.bill(7)


def _enlarge(w: Writer, site: Site[Signal], names: Names) -> None:
    (x,), (out, bits), size = names.inputs, names.outputs, prod(site.shape())
    w("int32_t largest = 0;")
    with w.loop("i", size):
        w(f"const int32_t value = {x}[i];")
        w("if (value > largest) largest = value;")
        w("else if (-value > largest) largest = (int16_t)-value;")
        w.bill(7)
    w(f"const int32_t shift = largest < 0 ? 0 : {w.helper('leading_zeros', '(uint32_t)largest')} - 17;")
    with w.loop("i", size):
        w(w.use(c99.STORE, f"{out}[i]", f"(int16_t)({x}[i] * (1 << shift))"))
        w.bill(4)
    w(f"{bits}[0] = shift;")


def _share(value: str, by: int) -> str:
    return f"(int16_t)(({value} * {by} + {ROUND}) >> 15)"


def _turned(w: Writer, name: str, re: str, im: str, factor: str) -> None:
    """A complex number times a factor, in 32 bits that wrap."""
    w(f"const int32_t {name}_factor_re = {factor}[0], {name}_factor_im = {factor}[1];")
    signs = (("re", (re, "re"), "-", (im, "im")), ("im", (re, "im"), "+", (im, "re")))
    for part, (a, i), sign, (b, j) in signs:
        terms = f"(uint32_t)({a} * {name}_factor_{i}) {sign} (uint32_t)({b} * {name}_factor_{j}) + {ROUND}U"
        w(f"const int32_t {name}_{part} = (int16_t)((int32_t)({terms}) >> 15);")
    w.bill(16)


def _transform(w: Writer, site: Site[Signal], names: Names) -> None:
    *_, size = site.shape()
    points = site.attributes.numbers[0] // 2
    w(f"int16_t *const values = {names.scratch};")
    with w.loop("row", prod(site.shape()) // size):
        w(f"const int16_t *from = {names.inputs[0]} + row * {size};")
        w(f"int16_t *to = {names.outputs[0]} + row * {2 * points + 2};")
        with w.loop("i", points):
            w(f"const int32_t at = 2 * {names.packed['leaves']}[i];")
            for part in range(2):
                value = f"from[at + {part}]"
                inside = value if size == 2 * points else f"at + {part} < {size} ? {value} : (int16_t)0"
                w(w.use(c99.STORE, f"values[2 * i + {part}]", inside))
            w.bill(8)
        for stage in stages(points):
            _stage(w, names, points, stage)
        _split(w, names, points)


def _stage(w: Writer, names: Names, points: int, stage: Stage) -> None:
    radix, length = stage.radix, stage.length
    share = QUARTER if radix == 4 else HALF
    with w.loop("block", points // (radix * length)), w.loop("k", length):
        w(f"int16_t *v = values + 2 * (block * {radix * length} + k);")
        for part in range(radix):
            for half, name in enumerate(("re", "im")):
                own = f"{'abcd'[part]}_{name}" if part == 0 else f"x{part}_{name}"
                w(f"const int32_t {own} = {_share(f'v[{2 * part * length + half}]', share)};")
                w.bill(4)
            if part:
                w(f"const int16_t *f{part} = {names.packed['factors']} + {2 * part * stage.step} * k;")
                _turned(w, "abcd"[part], f"x{part}_re", f"x{part}_im", f"f{part}")
        for part, (re, im) in enumerate(_sums(radix)):
            w(w.use(c99.STORE, f"v[{2 * part * length}]", f"(int16_t)({re})"))
            w(w.use(c99.STORE, f"v[{2 * part * length + 1}]", f"(int16_t)({im})"))
            w.bill(8)


def _sums(radix: int) -> list[tuple[str, str]]:
    """The results of a butterfly; every sum wraps to 16 bits, and so does their total."""
    if radix == 2:
        return [("a_re + b_re", "a_im + b_im"), ("a_re - b_re", "a_im - b_im")]
    return [
        ("a_re + c_re + b_re + d_re", "a_im + c_im + b_im + d_im"),
        ("a_re - c_re + b_im - d_im", "a_im - c_im - b_re + d_re"),
        ("a_re + c_re - b_re - d_re", "a_im + c_im - b_im - d_im"),
        ("a_re - c_re - b_im + d_im", "a_im - c_im + b_re - d_re"),
    ]


def _split(w: Writer, names: Names, points: int) -> None:
    """From the transform of pairs to the bins of real samples."""
    for half, name in enumerate(("re", "im")):
        w(f"const int32_t first_{name} = {_share(f'values[{half}]', HALF)};")
    w("to[0] = (int16_t)(first_re + first_im);")
    w("to[1] = 0;")
    w(f"to[{2 * points}] = (int16_t)(first_re - first_im);")
    w(f"to[{2 * points + 1}] = 0;")
    with w.loop("k", points // 2 + 1, start=1):
        w(f"const int16_t *p = values + 2 * k, *q = values + 2 * ({points} - k);")
        w(f"const int32_t p_re = {_share('p[0]', HALF)}, p_im = {_share('p[1]', HALF)};")
        w(f"const int32_t q_re = {_share('q[0]', HALF)}, q_im = {_share('(int16_t)-q[1]', HALF)};")
        w("const int32_t g_re = (int16_t)(p_re + q_re), g_im = (int16_t)(p_im + q_im);")
        w("const int32_t d_re = (int16_t)(p_re - q_re), d_im = (int16_t)(p_im - q_im);")
        w(f"const int16_t *f = {names.packed['split']} + 2 * (k - 1);")
        _turned(w, "h", "d_re", "d_im", "f")
        for at, re, im in (("k", "g_re + h_re", "g_im + h_im"), (f"({points} - k)", "g_re - h_re", "h_im - g_im")):
            w(f"to[2 * {at}] = (int16_t)(({re}) >> 1);")
            w(f"to[2 * {at} + 1] = (int16_t)(({im}) >> 1);")
        w.bill(40)


def _energy(w: Writer, site: Site[Signal], names: Names) -> None:
    first, last = site.attributes.numbers
    *_, bins = site.output_shape()
    with w.loop("row", prod(site.output_shape()) // bins), w.loop("i", bins):
        place = f"2 * (row * {bins} + i)"
        w(f"const int32_t re = {names.inputs[0]}[{place}], im = {names.inputs[0]}[{place} + 1];")
        energy = "(int32_t)((uint32_t)(re * re) + (uint32_t)(im * im))"
        value = energy if (first, last) == (0, bins) else f"i >= {first} && i < {last} ? {energy} : 0"
        w(w.use(c99.STORE, f"{names.outputs[0]}[row * {bins} + i]", value))
        w.bill(7)


def _bands(w: Writer, site: Site[Signal], names: Names) -> None:
    (x, bits), (out,), packed = names.inputs, names.outputs, names.packed
    groups, widths = site.constant("widths").size, site.constant("widths")
    w("uint64_t next = 0;")
    with w.loop("group", groups):
        w("uint64_t sum = next;")
        w("next = 0;")
        for name, role, source in (("e", "bins", x), ("k", "starts", "weights"), ("r", "starts", "rests")):
            kind = "int32_t" if name == "e" else C_TYPES[site.constant(source).dtype.name]
            w(f"const {kind} *{name} = {packed.get(source, source)} + {packed[role]}[group];")
        with w.loop("i", f"{packed['widths']}[group]", trips=float(widths.mean())):
            w("sum += (uint64_t)(uint32_t)e[i] * (uint64_t)k[i];")
            w("next += (uint64_t)(uint32_t)e[i] * (uint64_t)r[i];")
            w.bill(12)
        with w.block("if (group > 0)"):
            w(f"{out}[group - 1] = (int32_t)({w.call(ROOT, 'sum')} >> ({bits}[0] & 31));")


def _less_noise(w: Writer, site: Site[Signal], names: Names) -> None:
    (x, before), (out, after) = names.inputs, names.outputs
    new, old, other_new, other_old, least, up_bits, share_bits, bounded = site.attributes.numbers
    with w.loop("i", prod(site.shape())):
        w(f"const uint32_t x = (uint32_t){x}[i], up = x << {up_bits};")
        w(f"const uint64_t share = i % 2 == 0 ? {new}U : {other_new}U, rest = i % 2 == 0 ? {old}U : {other_old}U;")
        w(f"const uint32_t now = (uint32_t)((up * share + (uint32_t){before}[i] * rest) >> {share_bits});")
        w("const uint32_t below = now < up ? now : up;")
        w(f"const uint32_t least = (uint32_t)(((uint64_t)x * {least}U) >> {share_bits});")
        w(f"const uint32_t above = (up - below) >> {up_bits};")
        w(f"{out}[i] = (int32_t)(above > least ? above : least);")
        w(f"{after}[i] = (int32_t){'below' if bounded else 'now'};")
        w.bill(30)


def _gain(w: Writer, site: Site[Signal], names: Names) -> None:
    (x, noise), (out,), gains = names.inputs, names.outputs, names.packed["gains"]
    with w.loop("i", prod(site.shape())):
        w(f"const uint32_t now = (uint32_t){noise}[i];")
        w(f"const int32_t bits = 32 - {w.helper('leading_zeros', 'now')};")
        w(f"const int16_t *const knots = {gains} + (now > 2 ? 4 * bits - 6 : (int32_t)now);")
        w("const int32_t z = (int32_t)((bits < 11 ? now << (11 - bits) : now >> (bits - 11)) & 0x3ff);")
        w("int32_t gain = knots[0];")
        with w.block("if (now > 2)"):
            w("gain = (int16_t)(gain + (((((knots[2] * z) >> 5) + knots[1] * 32) * z + 0x4000) >> 15));")
        w(f"const uint64_t product = (uint64_t)(uint32_t){x}[i] * (uint32_t)gain;")
        w(f"const uint32_t ratio = (uint32_t)(product >> {site.attributes.numbers[0]});")
        w(f"{out}[i] = (int32_t)(ratio < 8192 ? ratio * ratio >> 20 : (ratio >> 6) - 64);")
        w.bill(35)


def _logarithm(w: Writer, site: Site[Signal], names: Names) -> None:
    (scale, shift), steps = site.attributes.numbers, names.packed["steps"]
    with w.loop("i", prod(site.shape())):
        w(f"const uint32_t y = (uint32_t){names.inputs[0]}[i] << {shift};")
        w(f"const int32_t bits = 31 - {w.helper('leading_zeros', 'y | 1')};")
        w("const uint32_t part = y - ((uint32_t)1 << bits);")
        w("const uint32_t fraction = bits < 16 ? part << (16 - bits) : part >> (bits - 16);")
        w("const int32_t at = y > 1 ? (int32_t)(fraction >> 9) : 0;")
        w(f"const int32_t low = {steps}[at], slope = {steps}[at + 1] - low;")
        w("const int32_t more = slope * (int32_t)(fraction & 0x1ff) >> 16;")
        w("const uint32_t log2 = ((uint32_t)bits << 16) + fraction + (uint32_t)(low + more);")
        w(f"const uint32_t natural = (uint32_t)(((uint64_t){NATURAL} * log2 + 0x8000U) >> 16);")
        w(f"const uint32_t scaled = (natural * {scale}U + 0x8000U) >> 16;")
        w(f"{names.outputs[0]}[i] = (int16_t)(y <= 1 ? 0 : scaled > {INT16[1]} ? {INT16[1]} : scaled);")
        w.bill(35)


EMIT: dict[str, Callable[[Writer, Site[Signal], Names], None]] = {
    "window": _window,
    "enlarge": _enlarge,
    "transform": _transform,
    "energy": _energy,
    "bands": _bands,
    "less_noise": _less_noise,
    "gain": _gain,
    "logarithm": _logarithm,
}
VARIANTS = (Kernel("scalar", PORTABLE, _accepts, _demand, _emit),)
