"""Dense layers on Cortex-M4 and M7 for a small program: all share two routines with each other.

A row is computed as two equal positions: the second costs time, but a routine for one would cost code.
"""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.dense.patches import overlap_of, rows_of
from nnbuild.kernels.dsp import compact
from nnbuild.kernels.dsp.compact import Compact
from nnbuild.kernels.dsp.scaling import Scaling, scaling_of, sums_of
from nnbuild.kernels.dsp.weights import padded_taps
from nnbuild.kernels.window_loops import product
from nnbuild.ops.dense import Dense
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

needs = frozenset({"armv7em_dsp"})


def _scaling(site: Site[Dense]) -> Scaling | str:
    attributes = site.attributes
    return scaling_of(site, attributes.clamp, sums_of(site))


def _shape(site: Site[Dense], scaling: Scaling) -> Compact:
    depth, outputs = site.constant("kernel").shape
    return Compact(scaling, quant_of(site.outputs[0]).zero_point, padded_taps(depth) // 2, outputs)


def accepts(site: Site[Dense]) -> str | None:
    if site.dtypes != {"int8"}:
        return "it computes int8 only"
    if site.shape()[-1] % 4:
        return "its inputs are no multiple of 4"
    scaling = _scaling(site)
    if isinstance(scaling, str):
        return scaling
    return compact.LAYOUT.refusal(sums_of(site), "int8") or _shape(site, scaling).refusal()


def _chosen(site: Site[Dense]) -> Compact:
    scaling = _scaling(site)
    assert isinstance(scaling, Scaling)
    return _shape(site, scaling)


def demand(site: Site[Dense]) -> Demand:
    shape = _chosen(site)
    return Demand(
        extent=rows_of(site),
        scratch=8 * shape.pairs,
        scratch_type="int64",
        packed=compact.pack(sums_of(site), shape.scaling, slice(0, shape.filters)),
        overlaps=(overlap_of(site),),
    )


def emit(w: Writer, site: Site[Dense], names: Names) -> None:
    shape, depth = _chosen(site), site.shape()[-1]
    w(f"int64_t *const patch = {names.scratch};")
    with w.loop("row", "end", start="begin", step=2, trips=-(-rows_of(site) // 2)):
        w("const int32_t next = row + 1 < end ? row + 1 : row;")
        w.bill(4)
        compact.lay_out(w, depth, tuple(f"{names.inputs[0]} + {product(row, depth)}" for row in ("row", "next")))
        pointers = (names.packed["kernel"], names.packed["scaling"], names.packed["shift"])
        to = tuple(f"{names.outputs[0]} + {product(row, shape.filters)}" for row in ("row", "next"))
        compact.multiply(w, shape, pointers, to)
