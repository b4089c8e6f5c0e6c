"""The origin in the model file of each constant of the computed graph, found by its bytes."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from nnbuild.model.graph import Array, Constant, Graph

LARGEST_AXES = 5
OF_ZEROS = 1e300
"""The factor of channels without weights: no other number than 0 becomes 0 by it."""


@dataclass(frozen=True)
class Spot:
    """An array in a file or archive member; transposing its axes by `axes` gives the constant."""

    member: str | None
    offset: int
    dtype: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    def of(self, data: Array) -> Array:
        """The file's array in the constant's axis order."""
        return data.reshape(self.shape).transpose(self.axes)


@dataclass(frozen=True)
class Origin:
    """`ratio` multiplies the file's numbers before rounding; None where they are equal."""

    constant: str
    spot: Spot
    ratio: Array | None


def origins(imported: Graph, graph: Graph, model: bytes) -> tuple[list[Origin], dict[str, str]]:
    """The constants that were found, and the reasons why others were not."""
    members = _members(model)
    spots = {name: spot for name, constant in imported.constants.items() if (spot := _spot(constant.data, members))}
    found, missing = [], {}
    begun = {state.initial for state in graph.states if state.initial is not None}
    for name in sorted(begun.union(*(op.constants.values() for op in graph.ops))):
        origin = _origin(graph.constants[name], imported, spots, members)
        if origin is not None:
            found.append(origin)
        else:
            missing[name] = _reason(name, graph, spots)
    return found, missing


def _reason(name: str, graph: Graph, spots: Mapping[str, Spot]) -> str:
    roles = {role for op in graph.ops for role, each in op.constants.items() if each == name}
    if not roles:
        return "what a state begins with; program and vectors contain it"
    if not spots:
        return "the model file stores its arrays compressed or in pieces"
    if "bias" in roles:
        return "a bias that was rounded, folded or corrected; sums, program and vectors contain it"
    return "computed from several arrays of the model file, or with a term of a sum; program and vectors contain it"


def _members(model: bytes) -> dict[str | None, bytes]:
    if not model.startswith(b"PK"):
        return {None: model}
    with zipfile.ZipFile(io.BytesIO(model)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _spot(data: Array, members: Mapping[str | None, bytes]) -> Spot | None:
    """The first occurrence of its bytes, in any axis order."""
    little = data.astype(data.dtype.newbyteorder("<"))
    squeezed = little.reshape([size for size in data.shape if size != 1])
    if squeezed.ndim > LARGEST_AXES or little.size == 0:
        return None
    for order in permutations(range(squeezed.ndim)):
        stored = squeezed.transpose(order)
        raw = stored.tobytes()  # in the order of the axes
        for member, content in members.items():
            at = content.find(raw)
            if at >= 0:
                back = tuple(int(axis) for axis in np.argsort(order))
                return Spot(member, at, little.dtype.str, stored.shape, back)
    return None


def _origin(
    constant: Constant, imported: Graph, spots: Mapping[str, Spot], members: Mapping[str | None, bytes]
) -> Origin | None:
    for name in _likely(constant, imported, spots):
        spot = spots[name]
        raw = np.frombuffer(members[spot.member], spot.dtype, math.prod(spot.shape), spot.offset)
        there = spot.of(raw).reshape(constant.data.shape)
        if there.dtype == constant.data.dtype and there.tobytes() == constant.data.tobytes():
            return Origin(constant.name, spot, None)
        ratio = _ratio(there, constant.data)
        if ratio is not None:
            return Origin(constant.name, spot, ratio)
    return None


def _likely(constant: Constant, imported: Graph, spots: Mapping[str, Spot]) -> Iterator[str]:
    """The array of the same name first, then all of the same size."""
    same = [name for name in spots if imported.constants[name].data.size == constant.data.size]
    yield from sorted(same, key=lambda name: (name != constant.name, name))


def _ratio(there: Array, data: Array) -> Array | None:
    """One factor per output channel that, after rounding, converts the first array to the second; the middle of the
    possible range."""
    if there.dtype.kind != "f" or data.ndim < 2 or not (np.isfinite(there).all() and np.isfinite(data).all()):
        return None
    half = 0.5 if data.dtype.kind == "i" else np.abs(np.spacing(data)).astype(np.float64) / 2
    shapes = [data.shape[-1:]] + ([data.shape[-2:]] if data.ndim == 4 else [])
    for shape in shapes:
        flat = (-1, math.prod(shape))
        steps = data.astype(np.float64)
        found = _factors(there.reshape(flat), (steps - half).reshape(flat), (steps + half).reshape(flat))
        if found is not None:
            ratio: Array = found.reshape(shape)
            made = there * ratio
            made = (np.rint(made) if data.dtype.kind == "i" else made).astype(data.dtype)
            if made.tobytes() == data.tobytes():
                return ratio
    return None


def _factors(there: Array, least: Array, most: Array) -> Array | None:
    values = there.astype(np.float64)
    known = values != 0
    if ((least > 0) | (most < 0))[~known].any():
        return None
    with np.errstate(all="ignore"):
        ends = np.stack([least / values, most / values])
    low = np.where(known, ends.min(axis=0), -np.inf).max(axis=0, initial=-np.inf)
    high = np.where(known, ends.max(axis=0), np.inf).min(axis=0, initial=np.inf)
    if (low > high).any():
        return None
    some = np.isfinite(low) & np.isfinite(high)
    return np.where(some, (np.where(some, low, 0) + np.where(some, high, 0)) / 2, OF_ZEROS)
