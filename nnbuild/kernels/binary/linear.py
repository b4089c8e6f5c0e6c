"""Sum or difference of two int8 tensors of one shape: two multiplications and a saturating shift an element.

The coefficients are exact for every pair of numbers (see `numeric.linear_sum`), so no table is needed.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from nnbuild.isa import c99
from nnbuild.isa.armv7em_dsp import LOAD_BYTES
from nnbuild.isa.armv7em_dsp_bytes import ssat8_after
from nnbuild.kernels.binary.scalar import demand as demand
from nnbuild.kernels.contract import Names
from nnbuild.numeric.linear_sum import LinearSum, linear_sum, pairs
from nnbuild.numeric.rounding import INT8, saturate
from nnbuild.ops.binary import Binary, Formats, combined, formats, operands
from nnbuild.ops.integer import bounds
from nnbuild.ops.site import Site
from nnbuild.writer import Row, Writer

needs = frozenset({"armv7em_dsp"})
AT_ONCE = 8
"""Elements of one turn of the loop."""
LOAD = Row("const int32_t {0} = {1};", 1)
BYTE = Row("(int8_t)({0} >> {1})", 1)
FIRST_BYTE = Row("(int8_t){0}", 1)
MULTIPLY_ADD = Row("{0} * {1} + {2}", 1)
STORE = Row("{0} = (int8_t){1};", 1)


def accepts(site: Site) -> str | None:
    attributes = site.op.attributes
    assert isinstance(attributes, Binary)
    if attributes.function not in ("add", "subtract"):
        return "it adds and subtracts only"
    if site.dtypes != {"int8"} or any(constant.data.dtype != "int8" for constant in site.constants.values()):
        return "it computes int8 only"
    shapes = [site.shape(i) for i in range(len(site.inputs))] + [c.data.shape for c in site.constants.values()]
    if any(prod(shape) != prod(site.output_shape()) for shape in shapes):
        return "its operands differ in shape"
    return None if _coefficients(site) else "no coefficients give every sum exactly"


def _coefficients(site: Site) -> LinearSum | None:
    attributes = site.op.attributes
    assert isinstance(attributes, Binary)
    return _found(attributes.function, formats(site), bounds(attributes.clamp, site.outputs[0]))


@lru_cache(1000)
def _found(function: str, form: Formats, limits: tuple[int, int]) -> LinearSum | None:
    wanted = saturate(combined(function, *pairs(), form), *limits)
    sign = 1 if function == "add" else -1
    slopes = (form.left.scale / form.out.scale, sign * form.right.scale / form.out.scale)
    return linear_sum(wanted, slopes, limits)


def emit(w: Writer, site: Site, names: Names) -> None:
    left, right = operands(names.inputs, names.packed)
    out, size = names.outputs[0], prod(site.output_shape())
    w("int32_t i = begin;")
    with w.block(f"for (; i <= end - {AT_ONCE}; i += {AT_ONCE})"), w.trips(size // AT_ONCE):
        w.bill(3)
        for at in range(0, AT_ONCE, 4):
            for name, pointer in (("a", left), ("b", right)):
                w(w.use(LOAD, f"{name}{at}", w.call(LOAD_BYTES, f"{pointer} + i{f' + {at}' if at else ''}")))
        for at in range(AT_ONCE):
            word, byte = at - at % 4, at % 4
            a, b = (w.use(BYTE if byte else FIRST_BYTE, f"{name}{word}", str(8 * byte)) for name in "ab")
            _element(w, site, a, b, f"{out}[i{f' + {at}' if at else ''}]")
    with w.block("for (; i < end; ++i)"), w.trips(size % AT_ONCE):
        w.bill(5)
        _element(w, site, f"{left}[i]", f"{right}[i]", f"{out}[i]")


def _element(w: Writer, site: Site, a: str, b: str, target: str) -> None:
    coefficients, attributes = _coefficients(site), site.op.attributes
    assert coefficients is not None and isinstance(attributes, Binary)
    partial = w.use(MULTIPLY_ADD, b, str(coefficients.second), str(coefficients.start))
    value = w.call(ssat8_after(coefficients.shift), w.use(MULTIPLY_ADD, a, str(coefficients.first), partial))
    limits = bounds(attributes.clamp, site.outputs[0])
    if limits == INT8:
        w(w.use(STORE, target, value))
        return
    with w.block(""):
        w(f"int32_t value = {value};")
        c99.bound(w, limits, "value")
        w(w.use(STORE, target, "value"))
