"""Dense layers on Cortex-M4 and M7 for a small program: all share two routines with each other.

A row is computed as two equal positions: the second costs time, but a routine for one would cost code.
"""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.dense.patches import overlap_of, rows_of
from nnbuild.kernels.dsp import compact
from nnbuild.kernels.dsp.compact import Compact
from nnbuild.kernels.dsp.weights import padded_taps
from nnbuild.kernels.sums import sums_of
from nnbuild.kernels.window_loops import product
from nnbuild.ops.site import Site

needs = frozenset({"armv7em_dsp"})


def accepts(site: Site) -> str | None:
    if site.dtypes != {"int8"}:
        return "it computes int8 only"
    if site.shape()[-1] % 4:
        return "its inputs are no multiple of 4"
    scaling = compact.scaling_of(site)
    return scaling if isinstance(scaling, str) else None


def _chosen(site: Site) -> Compact:
    depth, outputs = site.constant("kernel").shape
    return compact.shape_of(site, padded_taps(depth) // 2, outputs)


def demand(site: Site) -> Demand:
    shape = _chosen(site)
    return Demand(
        extent=rows_of(site),
        scratch=8 * shape.pairs,
        scratch_type="int64",
        packed=compact.pack(sums_of(site), shape, slice(0, shape.filters)),
        overlaps=(overlap_of(site),),
    )


def emit(w: Writer, site: Site, names: Names) -> None:
    shape, depth = _chosen(site), site.shape()[-1]
    w(f"int64_t *const patch = {names.scratch};")
    with w.loop("row", "end", start="begin", step=2, trips=-(-rows_of(site) // 2)):
        w("const int32_t next = row + 1 < end ? row + 1 : row;")
        w.bill(4)
        compact.lay_out(w, depth, tuple(f"{names.inputs[0]} + {product(row, depth)}" for row in ("row", "next")))
        pointers = (names.packed["kernel"], names.packed["scaling"], names.packed["shift"])
        to = tuple(f"{names.outputs[0]} + {product(row, shape.filters)}" for row in ("row", "next"))
        compact.multiply(w, shape, pointers, to)
