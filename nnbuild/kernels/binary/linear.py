"""Sum or difference of two int8 tensors of one shape: two multiplications and a saturating shift an element.

Bytes are taken two at a time as the upper halves of 16-bit numbers. The coefficients are exact for every pair of
numbers (see `numeric.linear_sum`), so no table is needed.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.armv7em_dsp import DSP
from nnbuild.kernels.binary.scalar import demand as demand
from nnbuild.kernels.contract import Names
from nnbuild.numeric.linear_sum import LinearSum, linear_sum, pairs
from nnbuild.numeric.rounding import INT8, saturate
from nnbuild.ops.binary import Binary, Formats, combined, formats, operands
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site

needs = frozenset({"armv7em_dsp"})
AT_ONCE = 8
"""Elements of one turn of the loop."""
LOAD = Row("const int32_t {0} = {1};", 0)
ODD = Row("{0} & mask", 1)
STEP = Row("{0} += {1};", 1)
STORE = Row("{0} = (int8_t){1};", 1)


def accepts(site: Site[Binary]) -> str | None:
    attributes = site.attributes
    if attributes.function not in ("add", "subtract"):
        return "it adds and subtracts only"
    if site.dtypes != {"int8"} or any(constant.data.dtype != "int8" for constant in site.constants.values()):
        return "it computes int8 only"
    shapes = [site.shape(i) for i in range(len(site.inputs))] + [c.data.shape for c in site.constants.values()]
    if any(prod(shape) != prod(site.output_shape()) for shape in shapes):
        return "its operands differ in shape"
    return None if _coefficients(site) else "no coefficients give every sum exactly"


def _coefficients(site: Site[Binary]) -> LinearSum | None:
    attributes = site.attributes
    return _found(attributes.function, formats(site), bounds(attributes.clamp, site.outputs[0]))


@lru_cache(1000)
def _found(function: str, form: Formats, limits: tuple[int, int]) -> LinearSum | None:
    wanted = saturate(combined(function, *pairs(), form), *limits)
    sign = 1 if function == "add" else -1
    slopes = (form.left.scale / form.out.scale, sign * form.right.scale / form.out.scale)
    return linear_sum(wanted, slopes, limits)


def emit(w: Writer, site: Site[Binary], names: Names) -> None:
    left, right = operands(names.inputs, names.packed)
    size = prod(site.output_shape())
    w(f"const int8_t *left = {left} + begin;")
    w(f"const int8_t *right = {right} + begin;")
    w(f"int8_t *to = {names.outputs[0]} + begin;")
    w(f"const int32_t mask = {0xFF00FF00 - (1 << 32)};")
    w(f"const int8_t *const last = {left} + end;")
    with w.block(f"while (last - left >= {AT_ONCE})"), w.trips(size // AT_ONCE):
        w.bill(3)
        for at in range(0, AT_ONCE, 4):
            _word(w, site, at)
        for pointer in ("left", "right", "to"):
            w(w.use(STEP, pointer, str(AT_ONCE)))
    with w.block("while (left < last)"), w.trips(size % AT_ONCE):
        w.bill(5)
        _element(w, site, "p_wide_low", "*left++ * 256", "*right++ * 256", "*to++")


def _word(w: Writer, site: Site[Binary], at: int) -> None:
    """The four elements of a word: the second and fourth byte are where they should be already."""
    for name, pointer in (("a", "left"), ("b", "right")):
        w(w.use(LOAD, f"{name}{at}", DSP.call(w, "load_bytes", f"{pointer} + {at}" if at else pointer, of=(4,))))
        w(w.use(LOAD, f"even_{name}{at}", DSP.call(w, "masked_left8", "mask", f"{name}{at}")))
        w(w.use(LOAD, f"odd_{name}{at}", w.use(ODD, f"{name}{at}")))
    for byte in range(4):
        part, half = ("even", "odd")[byte % 2], ("p_wide_low", "p_wide_high")[byte // 2]
        _element(w, site, half, f"{part}_a{at}", f"{part}_b{at}", f"to[{at + byte}]")


def _element(w: Writer, site: Site[Binary], half: str, a: str, b: str, target: str) -> None:
    coefficients, attributes = _coefficients(site), site.attributes
    assert coefficients is not None and isinstance(attributes, Binary)
    partial = DSP.call(w, half, str(coefficients.second), b, str(coefficients.start))
    value = DSP.call(w, "saturate", DSP.call(w, half, str(coefficients.first), a, partial), of=(8, coefficients.shift))
    limits = bounds(attributes.clamp, site.outputs[0])
    if limits == INT8:
        w(w.use(STORE, target, value))
        return
    with w.block(""):
        w(f"int32_t value = {value};")
        c99.bound(w, limits, "value")
        w(w.use(STORE, target, "value"))
