"""Convolution of integers on the vectors of x86."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from nnbuild.base.writer import Writer
from nnbuild.isa.x86_integers import SETS, IntegerSet, IntegerVectors
from nnbuild.isa.x86_memory import reads_parts
from nnbuild.isa.x86_rules import Rule, rule_of
from nnbuild.isa.x86_sums import SumRule, sum_rule
from nnbuild.kernels.contract import Demand, Names, Variant, only_integer
from nnbuild.kernels.conv2d.windows import Windows, windows_of
from nnbuild.kernels.loops import padded
from nnbuild.ops.base import Clamp
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site


def _pool(site: Site[Conv2D]) -> Pool2D | None:
    attributes = site.tail[0].attributes if site.tail else None
    return attributes if isinstance(attributes, Pool2D) else None


def _clamp(site: Site[Conv2D]) -> Clamp:
    attributes = site.attributes
    return attributes.clamp


@lru_cache(maxsize=256)
def _rule(site: Site[Conv2D]) -> Rule | str:
    return rule_of(site, _clamp(site))


@lru_cache(maxsize=256)
def _added(site: Site[Conv2D]) -> SumRule | str | None:
    """How another tensor is added, with this convolution's outputs as the left operand."""
    if not site.tail or not isinstance(site.tail[0].attributes, Binary):
        return None
    follower = site.tail[0].of(Binary)
    rule = sum_rule(follower) if follower.dtypes == {"int8"} else "it adds int8 only"
    if isinstance(rule, SumRule) and rule.operation != "add_epi32":
        return "it adds another tensor, and subtracts none"
    if isinstance(rule, str) or follower.inputs[0].name == site.outputs[0].name:
        return rule
    return rule.turned()


@dataclass(frozen=True)
class Convolution:
    """The kernel for one set of instructions."""

    set: IntegerSet

    def accepts(self, site: Site[Conv2D]) -> str | None:
        refused = only_integer(site)
        if refused:
            return refused
        if site.constant("kernel").dtype != "int8":
            return "its weights have more than 8 bits"
        refused = _refused_tail(site) or self._refused_sum(site)
        if refused:
            return refused
        rule = _rule(site)
        if isinstance(rule, str):
            return rule
        return self.set.refused(rule)

    def _refused_sum(self, site: Site[Conv2D]) -> str | None:
        rule = _added(site)
        if rule is None or isinstance(rule, str):
            return rule
        attributes = site.attributes
        share = site.output_shape()[2] // attributes.groups
        whole = share % self.set.vectors.lanes == 0 or reads_parts(self.set.vectors)
        return None if whole else "the other tensor's channels do not fill its vectors"

    def _lanes(self, site: Site[Conv2D]) -> IntegerVectors:
        rule = _rule(site)
        assert isinstance(rule, Rule)
        lanes = IntegerVectors(site, _clamp(site), rule, self.set)
        pool = _pool(site)
        if pool is not None:
            lanes.bound_further(pool.clamp, site.tail[0].outputs[0])
        added = _added(site)
        lanes.added = added if isinstance(added, SumRule) else None
        return lanes

    def _windows(self, site: Site[Conv2D]) -> Windows:
        return windows_of(site, _pool(site))

    def demand(self, site: Site[Conv2D]) -> Demand:
        return padded.demand(site, self._windows(site), self._lanes(site))

    def emit(self, w: Writer, site: Site[Conv2D], names: Names) -> None:
        padded.emit(w, site, names, self._windows(site), self._lanes(site))


def _refused_tail(site: Site[Conv2D]) -> str | None:
    if not site.tail:
        return None
    if len(site.tail) > 1:
        return "it takes one pool or one sum with it"
    pool = _pool(site)
    if pool is None:
        return None
    plain = pool.function == "max" and pool.strides == pool.window and pool.padding == ((0, 0), (0, 0))
    return None if plain else "it takes only a maximum over windows that neither overlap nor reach beyond the rows"


def _variant(chosen: IntegerSet) -> Variant:
    kernel = Convolution(chosen)
    return Variant(
        f"{chosen.name}_integers",
        frozenset({chosen.name}),
        kernel.accepts,
        kernel.demand,
        kernel.emit,
        frozenset({"pool2d", "binary"}),
    )


VARIANTS = tuple(_variant(chosen) for chosen in SETS)
