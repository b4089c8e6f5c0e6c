"""What the kernels of LSTM, GRU and SimpleRNN share; those of floats: units are lanes, a block of them at a time.

The states live in the operation's state outputs. All sums of a block's gates grow together, so that each input is
loaded once for all of them. Where there are several blocks, their new hidden states wait in scratch until the last one
has read the old state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import vector_functions as math
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names, Overlap, only_float
from nnbuild.kernels.functions import missing, spell
from nnbuild.kernels.loops.tiling import stall
from nnbuild.kernels.window_loops import product, total
from nnbuild.model.graph import Array
from nnbuild.ops.functions import Function
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.site import Site

SUMS = 8
"""So many sums keep a core from waiting for them."""


def demand(
    site: Site[Recurrent], packed: dict[str, Array], scratch_vectors: int = 1, scratch_type: str = "float32"
) -> Demand:
    """An initial state may be the very storage of the state: it is read before it is written."""
    attributes = site.attributes
    first = int(attributes.sequences)
    shared = tuple(Overlap(first + i, 1 + i) for i in range(attributes.states)) if len(site.inputs) > 1 else ()
    return Demand(
        extent=site.shape()[0],
        scratch=scratch_vectors * attributes.units * np.dtype(scratch_type).itemsize,
        scratch_type=scratch_type,
        packed={name: np.ascontiguousarray(value).reshape(-1) for name, value in packed.items()},
        overlaps=shared,
    )


def state_names(site: Site[Recurrent], names: Names) -> Sequence[str]:
    return names.outputs[int(site.attributes.sequences) :]


@dataclass(frozen=True)
class Units:
    """The units of a layer as lanes: `vectors` in a block."""

    floats: Vectors
    units: int
    vectors: int

    @property
    def width(self) -> int:
        return self.vectors * self.floats.lanes

    @property
    def blocks(self) -> int:
        return -(-self.units // self.width)

    def pack(self, matrix: Array, gates: int) -> Array:
        """[rows, gates * units] -> [blocks, rows, gates, width], the units filled up with zeros."""
        rows = matrix.shape[0]
        whole = np.zeros((rows, gates, self.blocks * self.width), matrix.dtype)
        whole[:, :, : self.units] = matrix.reshape(rows, gates, self.units)
        ordered: Array = whole.reshape(rows, gates, self.blocks, self.width).transpose(2, 0, 1, 3)
        return np.ascontiguousarray(ordered).reshape(-1)


R = TypeVar("R", bound=Recurrent)


@dataclass(frozen=True)
class Cells(ABC, Generic[R]):
    """The kernel of a kind of layer on one set, which computes `sums` of a unit at once."""

    floats: Vectors
    sums: ClassVar[int]

    def units(self, site: Site[R]) -> Units:
        needed = -(-site.attributes.units // self.floats.lanes)
        most = max(1, SUMS // self.sums) if self.floats.lanes > 1 else 1
        return Units(self.floats, site.attributes.units, -(-needed // -(-needed // most)))

    def held(self, site: Site[R]) -> int:
        """How many values of each unit are kept in scratch behind the place of the new state."""
        return 0

    def pack(self, site: Site[R], units: Units) -> dict[str, Array]:
        packed = {role: units.pack(site.constant(role), self.sums) for role in ("kernel", "recurrent")}
        if "bias" in site.constants:
            packed["bias"] = units.pack(site.constant("bias").reshape(1, -1), self.sums)
        return packed

    @abstractmethod
    def step(self, w: Writer, site: Site[R], names: Names, units: Units) -> None:
        """Prints one time step."""

    def accepts(self, site: Site[R]) -> str | None:
        functions = (site.attributes.activation[0], site.attributes.gate_activation[0])
        return only_float(site) or next(filter(None, (missing(self.floats, name) for name in functions)), None)

    def demand(self, site: Site[R]) -> Demand:
        units, held = self.units(site), self.held(site)
        return demand(site, self.pack(site, units), held + 1 if held or units.blocks > 1 else 0)

    def emit(self, w: Writer, site: Site[R], names: Names) -> None:
        units = self.units(site)
        with time_steps(w, site, names, units):
            self.step(w, site, names, units)


@contextmanager
def time_steps(w: Writer, site: Site[Recurrent], names: Names, units: Units) -> Iterator[None]:
    """The loop over time: `x` is the step's input. Before the first step the states take their initial values."""
    attributes, (steps, features) = site.attributes, site.shape()
    states = state_names(site, names)
    given = names.inputs[1:]
    with w.block("if (begin == 0)"):
        for index, state in enumerate(states):
            with w.block(f"if ({state} != {given[index]})") if given else nullcontext():
                copy(w, units, state, given[index] if given else "")
    with w.loop("t", "end", start="begin", trips=steps):
        step = f"{steps - 1} - t" if attributes.backwards else "t"
        w(f"const float *x = {names.inputs[0]} + {product(step, features)};")
        yield
        if units.blocks > 1:
            copy(w, units, states[0], names.scratch)
        if attributes.sequences:
            copy(w, units, f"{names.outputs[0]} + {product('t', attributes.units)}", fresh_state(site, names, units))


def fresh_state(site: Site[Recurrent], names: Names, units: Units) -> str:
    """Where a block's new hidden state goes: where the old one is, if no other block will read that."""
    return names.scratch if units.blocks > 1 else state_names(site, names)[0]


def copy(w: Writer, units: Units, to: str, source: str) -> None:
    """A value a unit from one pointer to another; without a source, zeros."""
    floats = units.floats

    def one(place: str, count: int) -> None:
        value = floats.load(w, total(source, place), count) if source else floats.each(w, 0.0)
        floats.store(w, total(to, place), value, count)

    whole = units.units // floats.lanes
    if whole > 4:
        with w.loop("i", whole * floats.lanes, step=floats.lanes):
            one("i", floats.lanes)
    else:
        for i in range(whole):
            one(str(i * floats.lanes), floats.lanes)
    if units.units % floats.lanes:
        one(str(whole * floats.lanes), units.units % floats.lanes)


def blocks(w: Writer, units: Units, body: Callable[[int], None]) -> None:
    """The body for every block, which is told how many units there really are; `unit` is the first of them."""
    full, rest = divmod(units.units, units.width)
    if full > 1:
        with w.loop("block", full):
            w(f"const int32_t unit = {product('block', units.width)};")
            body(units.width)
    elif full:
        with w.block(""):
            w("const int32_t unit = 0;")
            body(units.width)
    if rest:
        with w.block(""):
            w(f"const int32_t unit = {full * units.width};")
            body(rest)


def sums(
    w: Writer,
    units: Units,
    site: Site[Recurrent],
    names: Names,
    of_x: Sequence[str],
    of_h: Sequence[str] = (),
    state: str = "",
    suffix: str = "",
) -> None:
    """Declares the sums of a block, a vector for each gate, which begin with its bias: of the input, and of a state.

    Where `of_h` is not given both go into the same ones. `suffix` tells the constants of some gates from others.
    """
    of_h = of_h or of_x
    declared, bias = list(dict.fromkeys((*of_x, *of_h))), names.packed.get(f"bias{suffix}")
    for gate, name in enumerate(declared):
        for vector in range(units.vectors):
            place = f"unit * {len(declared)} + {gate * units.width + vector * units.floats.lanes}"
            value = units.floats.load(w, f"{bias} + {place}") if bias else units.floats.each(w, 0.0)
            units.floats.declare(w, f"{name}{vector}", value)
    accumulate(w, units, of_x, ("x", site.shape()[1]), names.packed[f"kernel{suffix}"])
    state = state or state_names(site, names)[0]
    accumulate(w, units, of_h, (state, units.units), names.packed[f"recurrent{suffix}"])


def accumulate(w: Writer, units: Units, sums: Sequence[str], inputs: tuple[str, int], weights: str) -> None:
    """sums += the vector `inputs` of so many values by the weights of the block, laid out [inputs][gate][width]."""
    floats, (pointer, size) = units.floats, inputs
    step = len(sums) * units.width
    with w.block(""):
        w(f"const float *k = {weights} + {product('unit', size * len(sums))};")
        with w.loop("i", size):
            floats.declare(w, "value", floats.broadcast(w, f"{pointer} + i", 1))
            for gate, name in enumerate(sums):
                for vector in range(units.vectors):
                    at = gate * units.width + vector * floats.lanes
                    loaded = floats.load(w, f"k + {at}" if at else "k")
                    floats.accumulate(w, f"{name}{vector}", "value", loaded)
            w.bill(stall(1, len(sums) * units.vectors))
            w(f"k += {step};")


def each_vector(w: Writer, units: Units, real: int, body: Callable[[int, str, int], None]) -> None:
    """The body for every vector of a block of `real` units: (vector, its first unit, how many of its lanes count)."""
    for vector, first in enumerate(range(0, real, units.floats.lanes)):
        with w.block(""):
            body(vector, total("unit", str(first)), min(units.floats.lanes, real - first))


CELLS = {"tanh": math.cell_tanh, "sigmoid": math.cell_sigmoid}
"""Shorter ways to functions that the next time step waits for."""


def apply(w: Writer, units: Units, name: str, function: Function, argument: str) -> None:
    """Declares `name` = function(argument)."""
    short = CELLS.get(function[0]) if units.floats.lanes > 1 else None
    value = w.call(short(units.floats), argument) if short else spell(w, units.floats, function, argument)
    units.floats.declare(w, name, value)
