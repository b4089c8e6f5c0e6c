"""The expected tensors of a program and their tolerances: the only place that defines tolerances of a check.

A float may deviate by rounding errors, and no more. The reference is computed again with every floating-point result
off by `ULPS` units of the magnitude of its summands, up or down at random; the resulting change of a tensor is its
tolerance. A tensor that depends on no floating point does not change: it must be equal in every bit. A truth value,
index or count is either right or wrong, so it must be equal, too, except in samples where such a last bit changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from nnbuild.model.graph import Array, Graph, Op
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.arg import Arg
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.convert import Convert
from nnbuild.ops.integer import gives_floats
from nnbuild.ops.pick import Pick
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import Site, site_of
from nnbuild.ops.slice import Slice
from nnbuild.ops.top_k import TopK
from nnbuild.ops.transpose import Transpose

ULPS = 16.0
"""The error of one result, in units in the last place of the magnitude of its summands."""
UNIT = 2.0**-23
"""One unit in the last place of 1; of another number, this share of it."""
SMALLEST = 2.0**-149
"""One unit in the last place of the smallest float numbers."""
FLOAT_CAP = 2.0**-10
"""The share of an output's magnitude above which earlier layers contribute no more tolerance."""
STEP_CAP = 2.0**-7
"""The same cap behind integers that a last bit of a float can change by a whole step: two steps of int8. It does not
hold in samples whose own recomputations show such a change: there, floats may be off by as much."""
BEYOND = 2.0
"""So many times as much where scales are computed at run time: a last bit of one moves many steps, and what comes of
them is one draw of many."""
CHOICES = 16
"""How often truth values, indices, counts and what follows integers behind floats are recomputed: only that shows that
they depend on a last bit."""
LARGEST = 2**26
"""Numbers held at once while independent samples are computed."""


@dataclass(frozen=True, eq=False)
class Standard:
    """The expected values of one tensor; the first axis counts the samples.

    `values` are in a program's format: float32, or the integers of a quantized tensor. `tolerance` is absolute, in the
    values' own units, one number for each sample; 0 requires equal bits.
    """

    values: Array
    tolerance: npt.NDArray[np.float64]


def standards(
    graph: Graph, inputs: Mapping[str, Array], names: Sequence[str], *, reset_each: bool = False
) -> dict[str, Standard]:
    """The standards of the named tensors, for samples in their order."""
    parts = [_of_some(graph, some, names, reset_each) for some in _lots(graph, inputs)]
    return {name: _joined(graph, name, [part[name] for part in parts]) for name in names}


@lru_cache(maxsize=4)
def rounded(graph: Graph) -> frozenset[str]:
    """The tensors that depend on rounded floating point: all others are the same on every machine."""
    sites = [site_of(graph, op) for op in graph.ops]
    return frozenset(_led_to(graph, {name for site in sites if _rounds(site) for name in site.op.outputs}))


@dataclass(frozen=True, eq=False)
class _Part:
    """One tensor for some samples: exact, in float32 where that overflowed, and the changes found."""

    exact: Array
    single: Array
    moved: Array
    """The largest change, by sample."""
    last: Array
    """By sample, the largest magnitude in the operation that made its numbers."""


@dataclass
class _Recorder:
    """Computes exactly, and keeps the magnitude of every result in the order of computation."""

    kept: list[tuple[Array, ...]] = field(default_factory=list)
    largest: dict[str, list[Array]] = field(default_factory=dict)

    def __call__(self, site: Site, inputs: list[Array], dtype: str) -> tuple[Array, ...]:
        outputs = interpret.compute(site, inputs, dtype)
        if _rounds(site):
            op = site.op
            joined, constants = interpret.merged(op, inputs), interpret.floats(site, dtype)
            flat = [y.reshape(-1, *y.shape[1 + len(op.outer) :]) for y in outputs]
            sizes = interpret.parted(op, inputs[0].shape[0], op.attributes.magnitude(joined, constants, flat))
            self.kept.append(tuple(_held(size) for size in sizes))
            for name, size in zip(op.outputs, self.kept[-1], strict=True):
                self.largest.setdefault(name, []).append(_by_sample(_finite(size)))
        elif interpret.in_floats(site):
            self._pass_on(site)
        return outputs

    def _pass_on(self, site: Site) -> None:
        """What only moves or selects numbers errs by as much as the operation that made them."""
        made = [self.largest[name][-1] for name in site.op.inputs if name in self.largest]
        for name in site.op.outputs if made else ():
            self.largest.setdefault(name, []).append(np.maximum.reduce(made))


def _held(size: Array) -> Array:
    """Magnitudes as floats; what is too small for one is still no 0."""
    known = np.nan_to_num(size, posinf=0.0)
    return np.where(known > 0, np.maximum(known, SMALLEST), 0.0).astype(np.float32)


@dataclass
class _Disturber:
    """Disturbs every floating-point result, up or down at random; `alike` disturbs equal numbers equally.

    Equal numbers err equally if the same instructions made them, and may not if others did: equal errors show in their
    sum, different ones in their difference.
    """

    sizes: Iterator[tuple[Array, ...]]
    alike: bool
    chance: np.random.Generator

    def __call__(self, site: Site, inputs: list[Array], dtype: str) -> tuple[Array, ...]:
        if not _rounds(site):
            return interpret.compute(site, inputs, dtype)
        op = site.op
        constants = interpret.floats(site, dtype)
        if isinstance(
            op.attributes, Recurrent
        ):  # its sums are internal, at every time step: disturbed weights stand for them
            constants = {role: values * (1.0 + UNIT * self._by(values)) for role, values in constants.items()}
        found = op.attributes.reference(interpret.merged(op, inputs), constants)
        outputs = interpret.parted(op, inputs[0].shape[0], found)
        return tuple(y + self._by(y) * _unit(size) for y, size in zip(outputs, next(self.sizes), strict=True))

    def _by(self, values: Array) -> Array:
        if self.alike:
            up = _hashed(values, self.chance.integers(0, 2**63, dtype=np.uint64)) < np.uint64(2**63)
        else:
            up = self.chance.integers(0, 2, values.shape, np.bool_)
        return np.where(up, ULPS, -ULPS)


def _hashed(values: Array, key: np.uint64) -> npt.NDArray[np.uint64]:
    """64 random-looking bits of each number, the upper ones best; -0 counts as 0."""
    bits = np.ascontiguousarray(values + 0.0, np.float64).view(np.uint64)
    return np.asarray((bits ^ bits >> np.uint64(29)) * (key << np.uint64(1) | np.uint64(1)))


def _unit(size: Array) -> Array:
    """One unit in the last place of each magnitude; 0 for a magnitude of 0."""
    return np.where(size > 0, np.maximum(size.astype(np.float64) * UNIT, SMALLEST), 0.0)


def _of_some(graph: Graph, inputs: Mapping[str, Array], names: Sequence[str], reset_each: bool) -> dict[str, _Part]:
    with np.errstate(all="ignore"):
        recorder = _Recorder()
        exact = interpret.run(graph, inputs, "float64", reset_each=reset_each, how=recorder)
        single = _single(graph, inputs, exact, reset_each)
        moving = [name for name in names if name in rounded(graph)]
        moved = {name: np.zeros(len(exact[name])) for name in names}
        for turn in range(_turns(graph, moving, len(next(iter(exact.values()))))):
            how = _Disturber(iter(recorder.kept), turn % 2 == 0, np.random.default_rng(turn))
            other = interpret.run(graph, inputs, "float64", reset_each=reset_each, how=how)
            for name in moving:
                change = np.abs(other[name].astype(np.float64) - exact[name])
                moved[name] = np.fmax(moved[name], _by_sample(np.where(_fits(exact[name]), change, 0.0)))
    last = {name: np.concatenate(recorder.largest[name]) for name in names if name in recorder.largest}
    return {
        name: _Part(exact[name], single[name], moved[name], last.get(name, np.zeros(len(exact[name]))))
        for name in names
    }


def _turns(graph: Graph, moving: Sequence[str], count: int) -> int:
    """The number of recomputations: few samples are no measure of what is usual, and a step is found by chance."""
    if not moving:
        return 0
    few = 2 * max(1, min(4, 64 // max(1, count)))
    chosen = any(graph.tensors[name].is_whole or name in _behind_integers(graph) for name in moving)
    return max(few, CHOICES) if chosen else few


def _single(graph: Graph, inputs: Mapping[str, Array], exact: interpret.Values, reset_each: bool) -> interpret.Values:
    """The same in float32 where a float overflows it; others unchanged."""
    count = len(next(iter(exact.values())))
    beyond = np.zeros(count, bool)
    for values in exact.values():
        if values.dtype == np.float64:
            beyond |= ~(_by_sample(np.abs(values), missing=np.inf) <= np.finfo(np.float32).max)
    if not beyond.any():
        return exact
    if graph.states:
        return interpret.run(graph, inputs, "float32", reset_each=reset_each)
    some = interpret.run(graph, {name: values[beyond] for name, values in inputs.items()}, "float32")
    result = {name: values.copy() for name, values in exact.items()}
    for name, values in some.items():
        result[name][beyond] = values
    return result


def _joined(graph: Graph, name: str, parts: Sequence[_Part]) -> Standard:
    part = _Part(*(np.concatenate([getattr(p, key) for p in parts]) for key in ("exact", "single", "moved", "last")))
    tensor = graph.tensors[name]
    if tensor.quant is not None:
        step = np.ceil(_steps(graph).get(name, 0.0) / max(tensor.quant.scales) - 1e-6)
        allowed = np.zeros(len(part.moved)) if name not in rounded(graph) else _of_integers(part, max(1.0, float(step)))
        return Standard(part.single, _of_choices(graph, name, part) if tensor.is_whole else allowed)
    with np.errstate(over="ignore"):
        values = part.exact.astype(np.float32)
    values = np.where(np.isfinite(part.single) & np.isfinite(values), values, part.single.astype(np.float32))
    if name not in rounded(graph):
        return Standard(values, np.zeros(len(values)))
    step = _steps(graph).get(name, 0.0)
    rounded_step = step + _unit(_by_sample(np.abs(_finite(part.exact)))) if step else 0.0
    behind = name in _behind_integers(graph)
    allowed = np.maximum(_of_floats(part, STEP_CAP if behind else FLOAT_CAP), rounded_step)
    flipped = behind & (np.isfinite(part.moved) & (part.moved > allowed))
    allowed = np.where(flipped, part.moved + allowed, allowed)
    return Standard(values, np.maximum(allowed, _of_draws(part)) if name in _behind_scales(graph) else allowed)


def _of_draws(part: _Part) -> npt.NDArray[np.float64]:
    """What many steps that move together may do: some times what they do in the sample's own recomputations."""
    least = ULPS * _unit(np.maximum(part.last, _by_sample(np.abs(_finite(part.exact)))))
    moved = np.where(np.isfinite(part.moved) & (part.moved > least), part.moved, 0.0)
    return np.asarray(np.where(moved > 0, BEYOND * moved + least, 0.0))


STEPPING = ("steps", "even_steps", "floor", "ceil", "round")
JOINS: dict[str, Callable[[Iterable[float]], float]] = {"add": sum, "subtract": sum, "maximum": max, "minimum": max}


@lru_cache(maxsize=4)
def _steps(graph: Graph) -> dict[str, float]:
    """For integers behind floats, and for floats that only hold them again, move or add them: one step of each; 0 for
    all others."""
    steps: dict[str, float] = {}
    for op in graph.ops:
        given = [steps.get(source, 0.0) for source in op.inputs]
        site = site_of(graph, op)
        held = 0.0 if _rounds(site) or gives_floats(site) else max(given, default=0.0)
        join = JOINS.get(op.attributes.function) if isinstance(op.attributes, Binary) else None
        held = join(given) if join else held
        for name in op.outputs:
            tensor = graph.tensors[name]
            known = tensor.quant is not None and not tensor.is_whole and name in rounded(graph)
            own = max(tensor.quant.scales) if tensor.quant is not None and known else held
            steps[name] = max(own, held) if join or _averages(op.attributes) else own
    return steps


def _averages(attributes: Attributes) -> bool:
    """Whether each result lies between numbers that are given: it is off by no more than they are."""
    if isinstance(attributes, Reduce):
        return attributes.function != "sum"
    return isinstance(attributes, Convert | Pool2D | ResizeBilinear | Reshape | Transpose | Slice | Pick | Repeat)


def _of_floats(part: _Part, cap: float) -> npt.NDArray[np.float64]:
    """The sample's change, or the usual change of samples for their magnitude; capped, but at least `ULPS` units of the
    last operation's magnitude. Values that overflow a float do not count."""
    size = _by_sample(np.where(_fits(part.exact), np.abs(part.exact), 0.0))
    least = ULPS * _unit(np.maximum(part.last, size))
    known = np.isfinite(part.moved) & (least > 0)
    usual = float(np.median(part.moved[known] / least[known])) if known.any() else 0.0
    moved = np.maximum(part.moved, usual * least)
    return np.asarray(np.clip(moved, least, np.maximum(least, cap * np.maximum(size, np.median(size)))))


def _of_choices(graph: Graph, name: str, part: _Part) -> npt.NDArray[np.float64]:
    """No deviation, but in samples where a last bit changes something: as far as it did, and any place of an extreme,
    as there may be more equal ones than were found."""
    return np.asarray(np.where(part.moved > 0, np.maximum(part.moved, _last_places(graph).get(name, 0)), 0.0))


@lru_cache(maxsize=4)
def _last_places(graph: Graph) -> dict[str, int]:
    """The largest index in each tensor of places of extremes."""
    last: dict[str, int] = {}
    for op in graph.ops:
        shape = graph.tensors[op.inputs[0]].shape[len(op.outer) :]
        match op.attributes:
            case Arg(axis=axis):
                last[op.outputs[0]] = shape[axis] - 1
            case TopK():
                last[op.outputs[1]] = shape[-1] - 1
            case _ if len(op.outputs) == 1 and op.inputs[0] in last and graph.tensors[op.outputs[0]].is_whole:
                last[op.outputs[0]] = last[op.inputs[0]]
    return last


def _of_integers(part: _Part, step: float) -> npt.NDArray[np.float64]:
    """One step, or an earlier tensor's in steps of this one; more where a last bit of an earlier float changes it by
    more, up to the cap."""
    span = np.ptp(part.exact.reshape(len(part.exact), -1).astype(np.float64), axis=1)
    return np.asarray(np.clip(part.moved, step, np.maximum(step, np.floor(STEP_CAP * span))))


def _finite(values: Array) -> Array:
    return np.asarray(np.where(np.isfinite(values), values, 0.0))


def _fits(values: Array) -> npt.NDArray[np.bool_]:
    """Whether numbers are finite in float32 too; others are compared by kind."""
    with np.errstate(over="ignore"):
        return np.asarray(np.isfinite(values.astype(np.float32)))


def _by_sample(values: Array, missing: float = 0.0) -> Array:
    """The largest number of each sample; NaN counts as `missing`."""
    flat = values.reshape(len(values), -1).astype(np.float64)
    return np.asarray(np.where(np.isnan(flat), missing, flat).max(axis=1, initial=0.0))


def _lots(graph: Graph, inputs: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Batches of samples that fit into memory; all samples at once where they depend on each other."""
    count = len(next(iter(inputs.values()))) if inputs else 0
    held = sum(prod(tensor.shape) for tensor in graph.tensors.values())
    step = max(1, count if graph.states else LARGEST // max(1, held))
    for first in range(0, max(1, count), step):
        yield {name: values[first : first + step] for name, values in inputs.items()}


def _rounds(site: Site) -> bool:
    return interpret.in_floats(site) and site.attributes.rounds()


def _led_to(graph: Graph, begun: set[str]) -> set[str]:
    """These tensors and all that are computed from them, also through states."""
    found = set(begun)
    while True:
        before = len(found)
        for op in graph.ops:
            if not found.isdisjoint(op.inputs):
                found.update(op.outputs)
        found.update(state.before for state in graph.states if state.after in found)
        if len(found) == before:
            return found


@lru_cache(maxsize=4)
def _behind_integers(graph: Graph) -> frozenset[str]:
    """Tensors that depend on integers that themselves depend on floating point, or on floats rounded to such steps."""
    found = rounded(graph)
    held = {name for name in found if graph.tensors[name].quant is not None}
    stepping = {name for op in graph.ops if _in_steps(op) for name in op.outputs}
    return frozenset(_led_to(graph, held | (stepping & found)))


def _in_steps(op: Op) -> bool:
    """As fake quantization rounds."""
    return isinstance(op.attributes, Activation) and op.attributes.function in STEPPING


@lru_cache(maxsize=4)
def _behind_scales(graph: Graph) -> frozenset[str]:
    """Tensors that depend on integers whose scale is computed: quotients of two tensors."""
    divided = {
        name
        for op in graph.ops
        if isinstance(op.attributes, Binary) and op.attributes.function == "divide" and not op.constants
        for name in op.outputs
    }
    found = _led_to(graph, divided) & _behind_integers(graph)
    return frozenset(_led_to(graph, {name for name in found if graph.tensors[name].quant is not None}))
