"""Layers of integers on the vectors of x86: which of them a set can scale, and its lanes for them."""

from __future__ import annotations

from functools import lru_cache

from nnbuild.isa.x86_integers import IntegerSet, IntegerVectors
from nnbuild.isa.x86_memory import reads_parts
from nnbuild.isa.x86_rules import Rule, rule_of
from nnbuild.isa.x86_sums import SumRule, sum_rule
from nnbuild.kernels.contract import only_integer
from nnbuild.kernels.window import Weighted, window_of
from nnbuild.ops.binary import Binary
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.integer import quant_of
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site
from nnbuild.ops.windows import NO_PADDING


@lru_cache(maxsize=256)
def _rule(site: Site[Weighted]) -> Rule | str:
    return rule_of(site, site.attributes.clamp)


def refused(chosen: IntegerSet, site: Site[Weighted]) -> str | None:
    kernel = site.constants["kernel"]
    reason = only_integer(site)
    if reason:
        return reason
    if kernel.data.dtype != "int8":
        return "its weights have more than 8 bits"
    if quant_of(kernel).zero_point != 0:
        return "its weights have a zero point"
    rule = _rule(site)
    return rule if isinstance(rule, str) else chosen.refused(rule)


def lanes_of(chosen: IntegerSet, site: Site[Weighted]) -> IntegerVectors:
    """They also know of the pool or the sum that the tail asks for."""
    rule = _rule(site)
    assert isinstance(rule, Rule)
    lanes = IntegerVectors(site, site.attributes.clamp, rule, chosen)
    if site.tail and isinstance(pool := site.tail[0].attributes, Pool2D):
        lanes.bound_further(pool.clamp, site.tail[0].outputs[0])
    added = _added(site)
    lanes.added = added if isinstance(added, SumRule) else None
    return lanes


@lru_cache(maxsize=256)
def _added(site: Site[Weighted]) -> SumRule | str | None:
    """How another tensor is added, with this layer's outputs as the left operand."""
    if not site.tail or not isinstance(site.tail[0].attributes, Binary):
        return None
    follower = site.tail[0].of(Binary)
    rule = sum_rule(follower) if follower.dtypes == {"int8"} else "it adds int8 only"
    if isinstance(rule, SumRule) and rule.operation != "add_epi32":
        return "it adds another tensor, and subtracts none"
    if isinstance(rule, str) or follower.inputs[0].name == site.outputs[0].name:
        return rule
    return rule.turned()


def refused_tail(chosen: IntegerSet, site: Site[Conv2D]) -> str | None:
    """Why a convolution cannot take what follows with it."""
    if not site.tail:
        return None
    if len(site.tail) > 1:
        return "it takes one pool or one sum with it"
    pool = site.tail[0].attributes
    if isinstance(pool, Pool2D):
        plain = pool.function == "max" and pool.strides == pool.window and pool.padding == NO_PADDING
        return None if plain else "it takes only a maximum over windows that neither overlap nor reach beyond the rows"
    rule = _added(site)
    if rule is None or isinstance(rule, str):
        return rule
    whole = window_of(site).share % chosen.vectors.lanes == 0 or reads_parts(chosen.vectors)
    return None if whole else "the other tensor's channels do not fill its vectors"
