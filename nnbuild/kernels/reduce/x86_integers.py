"""Means and sums of bytes over leading axes on the vectors of x86, as global pools are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from nnbuild.base.writer import Writer
from nnbuild.isa.x86_integers import SETS, IntegerSet
from nnbuild.isa.x86_memory import BYTES, read_bytes, write_bytes
from nnbuild.isa.x86_sums import Scaled, scaled_by
from nnbuild.kernels.contract import Demand, Names, Variant
from nnbuild.kernels.window_loops import product
from nnbuild.kernels.x86_channels import across, refused
from nnbuild.ops.base import around
from nnbuild.ops.integer import quant_of
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.site import Site


def _shape(site: Site[Reduce]) -> tuple[int, int, int]:
    attributes = site.attributes
    return around(site.shape(), attributes.axis, attributes.count)


@lru_cache(maxsize=256)
def _scale(site: Site[Reduce]) -> Scaled | None:
    size = _shape(site)[1]
    zero, out = quant_of(site.inputs[0]).zero_point, quant_of(site.outputs[0]).zero_point
    found = scaled_by(site.attributes.multiplier(site), out, size * 255)
    return Scaled(found.line, found.away, -size * zero) if found else None


@dataclass(frozen=True)
class Mean:
    """The kernel for one set of instructions."""

    set: IntegerSet

    def accepts(self, site: Site[Reduce]) -> str | None:
        if site.dtypes != {"int8"} or site.attributes.function not in ("mean", "sum"):
            return "it computes means and sums of int8 only"
        if _shape(site)[2] == 1:
            return "it does not sum along the last axis"
        return refused(self.set.vectors, _shape(site)[2]) or (None if _scale(site) else "its scale shifts to the left")

    def demand(self, site: Site[Reduce]) -> Demand:
        return Demand(extent=_shape(site)[0])

    def emit(self, w: Writer, site: Site[Reduce], names: Names) -> None:
        before, size, channels = _shape(site)
        with w.loop("row", "end", start="begin", trips=before):
            w(f"const int8_t *from = {names.inputs[0]} + {product('row', size * channels)};")
            w(f"int8_t *to = {names.outputs[0]} + {product('row', channels)};")
            across(w, self.set.vectors, channels, lambda real: self._lanes(w, site, size, channels, real))

    def _lanes(self, w: Writer, site: Site[Reduce], size: int, channels: int, real: int) -> None:
        scale, v = _scale(site), self.set.vectors
        assert scale is not None
        w(f"{v.kind} sum = {v.use(w, f'setzero_si{v.bits}')};")
        with w.loop("i", size):
            value = read_bytes(w, v, f"from + {product('i', channels)} + c", real)
            w(f"sum = {v.use(w, 'add_epi32', 'sum', value)};")
        scale.apply(w, v, "sum")
        write_bytes(w, v, "sum", BYTES, "to + c", real)


def _variant(chosen: IntegerSet) -> Variant:
    kernel = Mean(chosen)
    return Variant(f"{chosen.name}_integers", frozenset({chosen.name}), kernel.accepts, kernel.demand, kernel.emit)


VARIANTS = tuple(_variant(chosen) for chosen in SETS)
