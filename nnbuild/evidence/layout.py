"""Locates each weight and each number of a proof in a program's packed constants, independently of the kernel.

The kernel repeatedly packs the layer with its channels, and the weights within each channel, permuted. This keeps the
range of each sum, and so only moves numbers: a position in the packed words that always contains the image of one
weight or number is the position of that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nnbuild.evidence.requant_numbers import Numbers, numbers_of
from nnbuild.kernels.contract import Kernel
from nnbuild.kernels.lanes.layer_sums import sums_of
from nnbuild.model.graph import Array, Constant
from nnbuild.numeric.requant import collected
from nnbuild.numeric.rounding import wrap
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site

TRIALS = 8
FEWEST = 4
SCHEMES = ((False, 0), (True, 0), (False, 128))
"""How weights may be stored: shifted as their sums are, or so much too large."""


@dataclass(frozen=True)
class Part:
    """Units of `bits` of the packed constant `role`: unit `units[i]` contains source `first[i]`, and source
    `second[i]` shifted by half of its bits. The sources are the weights in order, then the values of each role, then
    a zero."""

    role: str
    bits: int
    units: Array
    first: Array
    second: Array


@dataclass(frozen=True)
class Place:
    """`lifted`: weights are shifted like their sums; `raised`: the offset added to each."""

    lifted: bool
    raised: int
    roles: tuple[str, ...]
    parts: tuple[Part, ...]
    complete: bool
    """Whether every weight was found."""


@dataclass(frozen=True)
class Packing:
    """One way to pack a layer: its words, its weights and the numbers that scale its sums."""

    packed: Mapping[str, Array]
    weights: Array
    starts: Mapping[str, Array]
    numbers: Numbers

    def source(self, scheme: tuple[bool, int], roles: tuple[str, ...]) -> Array:
        lifted, raised = scheme
        weights = wrap(self.weights + raised, 8) if raised else self.weights
        left = self.numbers.columns.get("left", np.zeros(weights.shape[1], np.int64))
        weights = weights << left if lifted else weights
        return np.concatenate([weights.reshape(-1), *(self.values(role) for role in roles), np.zeros(1, np.int64)])

    def values(self, role: str) -> Array:
        return self.numbers.columns[role] if role in self.numbers.columns else self.starts[role]


def find(site: Site, kernel: Kernel) -> tuple[Numbers, Place | None] | None:
    """The numbers that scale a layer's sums, and the positions of these and of the weights; None where no proof is
    needed."""
    base = next(_packings(site, kernel, [None]), None)
    if base is None:
        return None
    chance = np.random.default_rng(0)
    trials = list(_packings(site, kernel, [chance] * TRIALS, base))
    if len(trials) < FEWEST:
        return base.numbers, None
    packings = [base, *trials]
    roles = tuple(base.numbers.columns) + tuple(base.starts)
    places = [_place(packings, scheme, roles) for scheme in SCHEMES]
    return base.numbers, max(places, key=lambda place: (place.complete, sum(len(part.units) for part in place.parts)))


def _packings(site: Site, kernel: Kernel, turns: list[Any], like: Packing | None = None) -> Iterator[Packing]:
    for chance in turns:
        other = _turned(site, chance) if chance is not None else replace(site)
        try:
            with collected() as found:
                packed = kernel.demand(other).packed
        except (ValueError, AssertionError, TypeError, AttributeError, IndexError):
            continue  # the kernel does not accept the layer with its channels in this order
        sums = sums_of(other)
        numbers = numbers_of(found, packed, len(sums.start))
        if numbers is None or (like is not None and not _alike(packed, numbers, like)):
            continue
        yield Packing(packed, sums.weights, _starts(other, numbers), numbers)


def _alike(packed: Mapping[str, Array], numbers: Numbers, like: Packing) -> bool:
    shapes = {role: (data.dtype, data.size) for role, data in packed.items()}
    return numbers.form == like.numbers.form and shapes == {r: (d.dtype, d.size) for r, d in like.packed.items()}


def _turned(site: Site, chance: np.random.Generator) -> Site:
    kernel = site.constants["kernel"]
    out = site.output_shape()[-1]
    flat = np.moveaxis(kernel.data, 2, 3) if site.op.kind == "conv2d_transpose" else kernel.data
    shape = flat.shape
    flat = flat.reshape(-1, out)
    order = chance.permutation(out)
    turned = chance.permuted(flat, axis=0)[:, order].reshape(shape)
    data = np.moveaxis(turned, 3, 2) if site.op.kind == "conv2d_transpose" else turned
    quant = quant_of(kernel)
    if len(quant.scales) > 1:
        quant = replace(quant, scales=tuple(np.array(quant.scales)[order].tolist()))
    constants = dict(site.constants)
    constants["kernel"] = Constant(kernel.name, np.ascontiguousarray(data), quant)
    if "bias" in constants:
        bias = constants["bias"]
        constants["bias"] = Constant(bias.name, bias.data[order], bias.quant)
    return replace(site, constants=constants)


def _starts(site: Site, numbers: Numbers) -> dict[str, Array]:
    """Initial values of the sums, as in the program."""
    sums = sums_of(site)
    zero = np.zeros(len(sums.start), np.int64)
    left, centre = (numbers.columns.get(role, zero) for role in ("left", "centre"))
    bias = sums.start + quant_of(site.inputs[0]).zero_point * sums.weights.sum(axis=0)
    made = {"bias": bias, "start": sums.start, "bias less centre": bias - centre}
    made["start and pairs"] = sums.start + (len(sums.weights) + 1) // 2
    made["start less centre"] = sums.start - centre
    return made | {f"{role}, lifted": values << left for role, values in made.items() if "less" in role}


def _place(packings: list[Packing], scheme: tuple[bool, int], roles: tuple[str, ...]) -> Place:
    weights = packings[0].weights.size
    factors = np.random.default_rng(1).integers(1, 1 << 62, len(packings), dtype=np.int64) | 1
    sources = [packing.source(scheme, roles) for packing in packings]
    known = _Known(_hashed(sources, factors), weights)
    parts: list[Part] = []
    for role in packings[0].packed:
        parts += _parts(role, [packing.packed[role] for packing in packings], known, factors, sources[0])
    seen = np.zeros(known.zero + 1, bool)
    for part in parts:
        seen[part.first] = seen[part.second] = True
    complete = bool(seen[:weights].all())
    return Place(*scheme, roles, tuple(parts if complete else _without_weights(parts, weights)), complete)


def _without_weights(parts: list[Part], weights: int) -> Iterator[Part]:
    """Transformed weights match only by chance; numbers are words."""
    for part in parts:
        if part.bits >= 32:
            kept = (part.first >= weights) & (part.second >= weights)
            yield replace(part, units=part.units[kept], first=part.first[kept], second=part.second[kept])


def _hashed(rows: list[Array], factors: Array) -> Array:
    """One number per column, over all packings."""
    total = np.zeros(rows[0].size, np.int64)
    for row, factor in zip(rows, factors, strict=True):
        total += row.astype(np.int64) * factor  # wraps around
    return total


class _Known:
    """Finds the source in a unit. Sources that always agree take turns."""

    def __init__(self, hashes: Array, weights: int) -> None:
        self.zero = len(hashes) - 1
        self.weights = weights
        self.order = np.argsort(hashes, kind="stable")
        self.hashes = hashes[self.order]

    def find(self, units: Array) -> Array:
        """-1 where there is none."""
        low, high = (np.searchsorted(self.hashes, units, side) for side in ("left", "right"))
        by_hash = np.argsort(units, kind="stable")
        ranked = units[by_hash]
        rank = np.empty(len(units), np.int64)
        rank[by_hash] = np.arange(len(units)) - np.searchsorted(ranked, ranked, "left")
        there = high > low
        return np.where(there, self.order[np.where(there, low + rank % np.maximum(high - low, 1), 0)], -1)


def _parts(role: str, rows: list[Array], known: _Known, factors: Array, source: Array) -> Iterator[Part]:
    """The widest units first: numbers are words, weights are half-words, pairs in half-words, or bytes. What was found
    must also be equal: hashes say little of numbers that end in many zeros."""
    size = rows[0].dtype.itemsize
    free = np.ones(rows[0].nbytes, bool)
    for bits in (64, 32, 16, 8):
        if bits > 8 * size or (bits == 8 and size == 2):
            continue
        width = bits // 8
        units = np.flatnonzero(free.reshape(-1, width).all(axis=1))
        held = [_units(row, bits)[units] for row in rows]
        first = known.find(_hashed(held, factors))
        second = np.full(len(units), known.zero)
        if bits in (32, 64) and size >= 4:  # a word of zeros, or of small weights, is matched by narrower units
            first = np.where((first >= known.weights) & (first < known.zero), first, -1)
            first = np.where(np.any([row != 0 for row in held], axis=0), first, -1) if len(units) else first
        if bits in (16, 32):
            half = bits // 2
            low = [((row + (1 << half - 1)) & ((1 << half) - 1)) - (1 << half - 1) for row in held]
            pairs = (
                known.find(_hashed(low, factors)),
                known.find(_hashed([(v - a) >> half for v, a in zip(held, low, strict=True)], factors)),
            )
            both = (first < 0) & (pairs[0] >= 0) & (pairs[1] >= 0)
            both &= np.any([row != 0 for row in held], axis=0)
            first, second = np.where(both, pairs[0], first), np.where(both, pairs[1], second)
        found = source[first] + (source[second] << bits // 2)
        hit = (first >= 0) & (held[0] == (found if bits == 64 else wrap(found, bits)))
        if hit.any():
            kept = (units[hit], first[hit], second[hit])
            yield Part(role, bits, *(index.astype(np.int32) for index in kept))
            free.reshape(-1, width)[units[hit]] = False


def _units(data: Array, bits: int) -> Array:
    return np.ascontiguousarray(data).view(f"<i{bits // 8}").astype(np.int64)
