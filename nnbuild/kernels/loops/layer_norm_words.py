"""Layer normalization of integers one by one, with two long products a value, by the steps of `layer_norm_vectors`."""

from __future__ import annotations

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.riscv import WORDS
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.loops.strided import each_run
from nnbuild.kernels.parts import layer_norm_steps as steps
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.kernels.parts.layer_norm_steps import HIGH, MOST_RIGHT
from nnbuild.kernels.parts.overlaps import IN_PLACE
from nnbuild.numeric.rounding import limits
from nnbuild.ops.integer import quant_of
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.site import Site


def demand(site: Site[LayerNorm]) -> Demand:
    return Demand(extent=steps.sizes(site)[0], packed={"constants": steps.constants(site)}, overlaps=IN_PLACE)


def emit(w: Writer, site: Site[LayerNorm], names: Names) -> None:
    scales, (rows, size) = site.attributes.scales(site), steps.sizes(site)
    words, kind = site.inputs[0].dtype == "int16", C_TYPES[site.inputs[0].dtype]
    with each_run(w, site, names, rows, size):
        w(w.use(c99.LOAD_AS, "int32_t", "sum", "0"))
        w(w.use(c99.LOAD_AS, "int64_t" if words else "int32_t", "squares", "0"))
        with w.loop("i", size):
            declare(w, "x", "from[i]")
            w(w.use(c99.STEP, "sum", "x"))
            w(w.use(c99.MULTIPLY_ADD, "squares", "x", "x"))
        steps.mean_and_root(w, site, size)
        w.bill(10)
        declare(w, "factor", f"(int32_t){WORDS.call(w, 'kept', '(uint32_t)root')}")
        if words:
            declare(w, "down", f"right > {HIGH} ? right - {HIGH} : 0")
        up, down = (f"({HIGH} - right + down)", " >> down") if words else (f"({HIGH} - right)", "")
        declare(w, "unit", f"{1 << scales.fraction}U << {up}", "const uint32_t")
        declare(w, "origin", f"(uint32_t)mean << {up}", "const uint32_t")
        half = f"INT64_C({1 << (HIGH - 1)})"
        if words:
            declare(w, "half", f"{half} << down", "const int64_t")
        w(f"const {kind} *x = from;")
        w(f"{kind} *y = to;")
        w(f"const int32_t *k = {names.packed['constants']};")
        with w.loop("i", size):
            w.bill(7, 4, 3, wides=2)
            declare(w, "raised", "(int32_t)((uint32_t)*x * unit - origin)")
            product = f"((int64_t)raised * factor + {'half' if words else half}) >> {HIGH}"
            kept = WORDS.call(w, "kept", f"(uint32_t)({product})")
            # Kept, or gcc would extend its sign by the 64 bits that it comes from, and multiply those.
            declare(w, "normal", f"(int32_t){kept}{down}")
            _output(w, site)


def _output(w: Writer, site: Site[LayerNorm]) -> None:
    right, out = site.attributes.scales(site).output.right, site.outputs[0]
    start = "(int64_t)((uint64_t)(uint32_t)k[1] << 32 | (uint32_t)k[0])"
    declare(w, "total", f"{start} + (int64_t)normal * k[2]", "const int64_t")
    late = quant_of(out).zero_point if right > MOST_RIGHT else 0
    declare(w, "value", f"(int32_t)(total >> {right}) + {late}", "int32_t")
    c99.bound(w, limits(out.dtype), "value")
    w(w.use(c99.STORE, "*y", f"({out.dtype}_t)value"))
    for pointer, step in (("x", 1), ("y", 1), ("k", 3)):
        w(w.use(c99.STEP, pointer, str(step)))
