"""Sums, differences and products of two tensors of bytes on the vectors of x86."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from nnbuild.base.writer import Writer
from nnbuild.isa.x86_integers import SETS, IntegerSet
from nnbuild.isa.x86_memory import read_bytes, reads_parts, write_bytes
from nnbuild.isa.x86_sums import ProductRule, SumRule, product_rule, sum_rule
from nnbuild.kernels.contract import Demand, Names, Overlap, Variant
from nnbuild.kernels.window_loops import product
from nnbuild.ops.binary import Binary
from nnbuild.ops.site import Site


@lru_cache(maxsize=256)
def _rule(site: Site[Binary]) -> SumRule | ProductRule | str:
    attributes = site.attributes
    return product_rule(site) if attributes.function == "multiply" else sum_rule(site)


@dataclass(frozen=True)
class Elementwise:
    """The kernel for one set of instructions. A piece is one vector."""

    set: IntegerSet

    def accepts(self, site: Site[Binary]) -> str | None:
        if site.dtypes != {"int8"}:
            return "it computes int8 only"
        rule = _rule(site)
        if isinstance(rule, str):
            return rule
        whole = prod(site.shape()) % self.set.vectors.lanes == 0 or reads_parts(self.set.vectors)
        return None if whole else "its elements do not fill its vectors"

    def demand(self, site: Site[Binary]) -> Demand:
        pieces = -(-prod(site.shape()) // self.set.vectors.lanes)
        return Demand(extent=pieces, overlaps=(Overlap(0, 0), Overlap(0, 1)))

    def emit(self, w: Writer, site: Site[Binary], names: Names) -> None:
        whole, rest = divmod(prod(site.shape()), self.set.vectors.lanes)
        if rest == 0:
            with w.loop("i", "end", start="begin", trips=whole):
                self._piece(w, site, names, self.set.vectors.lanes)
            return
        with w.loop("i", "end", start="begin", trips=whole):
            with w.block(f"if (i < {whole})"):
                self._piece(w, site, names, self.set.vectors.lanes)
            with w.block("else"), w.trips(0):
                self._piece(w, site, names, rest)

    def _piece(self, w: Writer, site: Site[Binary], names: Names, count: int) -> None:
        rule, v = _rule(site), self.set.vectors
        assert not isinstance(rule, str)
        place = product("i", v.lanes)
        w(f"{v.kind} sum = {read_bytes(w, v, f'{names.inputs[0]} + {place}', count)};")
        w(f"const {v.kind} other = {read_bytes(w, v, f'{names.inputs[1]} + {place}', count)};")
        rule.join(w, v, "sum", "other", "sum")
        write_bytes(w, v, "sum", rule.bounds, f"{names.outputs[0]} + {place}", count)


def _variant(chosen: IntegerSet) -> Variant:
    kernel = Elementwise(chosen)
    return Variant(f"{chosen.name}_integers", frozenset({chosen.name}), kernel.accepts, kernel.demand, kernel.emit)


VARIANTS = tuple(_variant(chosen) for chosen in SETS)
