"""The common part of LSTM, GRU and SimpleRNN kernels, and that of floats: units are lanes, a block of them at a time.

The states live in the operation's state outputs. All sums of a block's gates accumulate together, so that each input is
loaded once. With several blocks, new hidden states wait in scratch until the last block has read the old state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa import vector_functions as math
from nnbuild.isa.arm import FEATURES, FPU
from nnbuild.isa.vector_lanes import vector_lanes
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.compressed.narrow_floats import narrow
from nnbuild.kernels.contract import Demand, Kernel, Names, OnEach, Overlap, kernel_of, on_any_floats, only_float
from nnbuild.kernels.loops.tiling import stall
from nnbuild.kernels.parts.float_functions import missing, spell
from nnbuild.model.graph import Array
from nnbuild.ops.base import NO_CLAMP
from nnbuild.ops.functions import Function
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.site import Site

SUMS = 8
"""Accumulators that hide the latency of additions."""
AT_ONCE = 2
"""Inputs per iteration, for fewer instructions between the sums and their use."""


def demand(
    site: Site[Recurrent], packed: dict[str, Array], scratch_vectors: int = 1, scratch_type: str = "float32"
) -> Demand:
    """An initial state may share storage with the state: it is read before it is written."""
    attributes = site.attributes
    first = int(attributes.sequences)
    shared = tuple(Overlap(first + i, 1 + i) for i in range(len(attributes.initial(site.inputs))))
    return Demand(
        extent=site.shape()[0],
        scratch=scratch_vectors * attributes.units * np.dtype(scratch_type).itemsize,
        scratch_type=scratch_type,
        packed={name: np.ascontiguousarray(value).reshape(-1) for name, value in packed.items()},
        overlaps=shared,
    )


def state_names(site: Site[Recurrent], names: Names) -> Sequence[str]:
    return names.outputs[int(site.attributes.sequences) :]


@contextmanager
def time_steps(w: Writer, site: Site[Recurrent], names: Names) -> Iterator[None]:
    """The loop over time: `x` is the step's input. A masked step only writes its row of the sequence."""
    attributes, units, (steps, features) = site.attributes, site.attributes.units, site.shape()
    with w.loop("t", "end", start="begin", trips=steps):
        step = f"{steps - 1} - t" if attributes.backwards else "t"
        w(f"const {C_TYPES[site.inputs[0].dtype]} *x = {names.inputs[0]} + ({step}) * {features};")
        if not attributes.masked:
            yield
            return
        with w.block(f"if ({names.inputs[-1]}[{step}] != 0)"):
            yield
        if attributes.sequences:
            row = f"{names.outputs[0]} + t * {units}"
            value = "0" if attributes.zero_rows else f"t > 0 ? row[unit - {units}] : 0"
            with w.block("else"), w.trips(0.0):
                w(f"{C_TYPES[site.outputs[0].dtype]} *row = {row};")
                with w.loop("unit", units):
                    w(w.use(c99.STORE, "row[unit]", value))


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
        """[rows, gates * units] -> [blocks, rows, gates, width], with units padded with zeros."""
        rows = matrix.shape[0]
        whole = np.zeros((rows, gates, self.blocks * self.width), matrix.dtype)
        whole[:, :, : self.units] = matrix.reshape(rows, gates, self.units)
        ordered: Array = whole.reshape(rows, gates, self.blocks, self.width).transpose(2, 0, 1, 3)
        return np.ascontiguousarray(ordered).reshape(-1)


R = TypeVar("R", bound=Recurrent)


@dataclass(frozen=True, eq=False)
class Step(Generic[R]):
    """Prints one time step of a layer on floats."""

    w: Writer
    site: Site[R]
    names: Names
    units: Units

    @property
    def floats(self) -> Vectors:
        return self.units.floats

    @property
    def states(self) -> Sequence[str]:
        return state_names(self.site, self.names)

    @property
    def fresh(self) -> str:
        """The destination of a block's new hidden state: in place, if no other block reads the old one."""
        return self.names.scratch if self.units.blocks > 1 else self.states[0]

    @contextmanager
    def each_step(self) -> Iterator[None]:
        """The loop over time. Before it, the states take their initial values."""
        w, attributes = self.w, self.site.attributes
        given = attributes.initial(self.names.inputs)
        with w.block("if (begin == 0)"):
            for index, state in enumerate(self.states):
                with w.block(f"if ({state} != {given[index]})") if given else nullcontext():
                    self._copy(state, given[index] if given else "")
        with time_steps(w, self.site, self.names):
            yield
            if self.units.blocks > 1:
                self._copy(self.states[0], self.names.scratch)
            if attributes.sequences:
                self._copy(f"{self.names.outputs[0]} + t * {attributes.units}", self.fresh)

    def _copy(self, to: str, source: str) -> None:
        vector_lanes(self.floats, {}, NO_CLAMP).copy(self.w, to, source, self.units.units)

    def each_unit(
        self,
        body: Callable[[int, str, int], None],
        of_x: Sequence[str],
        of_h: Sequence[str] = (),
        state: str = "",
        suffix: str = "",
    ) -> None:
        """The body for every vector of units, after its block's sums: (index in the block, first unit, count).

        A sum has a vector for each gate, and starts with its bias. of_x are the sums of the input, of_h those of a
        state, the same if not given. `suffix` distinguishes the constants of some gates.
        """
        w, units = self.w, self.units
        for place, real in in_vectors(w, units.width, units.units, "unit"):
            if place != "unit":
                w(f"const int32_t unit = {place};")
            self._sums(of_x, of_h or of_x, state or self.states[0], suffix)
            for vector, first in w.each(enumerate(range(0, real, self.floats.lanes))):
                body(vector, f"unit + {first}", min(self.floats.lanes, real - first))

    def _sums(self, of_x: Sequence[str], of_h: Sequence[str], state: str, suffix: str) -> None:
        w, floats = self.w, self.floats
        declared, bias = list(dict.fromkeys((*of_x, *of_h))), self.names.packed.get(f"bias{suffix}")
        for name, place in self._places(declared):
            start = floats.load(w, f"{bias} + {place}") if bias and not self.narrow else floats.each(w, 0.0)
            floats.declare(w, name, start)
        for sums, role, inputs in ((of_x, "kernel", "x"), (of_h, "recurrent", state)):
            self._accumulate(sums, inputs, self.site.constant(role).shape[0], self.names.packed[f"{role}{suffix}"])
            if self.narrow:
                self._apply("mul", sums, self.names.packed[f"{role}_factor{suffix}"])
        if bias and self.narrow:
            self._apply("add", declared, bias)

    @property
    def narrow(self) -> bool:
        """Whether weights are bytes, and the sums have factors."""
        return self.site.constant("kernel").dtype == np.int8

    def _places(self, sums: Sequence[str]) -> Iterator[tuple[str, str]]:
        """A block's vectors of sums, and where their constants are."""
        for gate, name in enumerate(sums):
            for vector in range(self.units.vectors):
                at = gate * self.units.width + vector * self.floats.lanes
                yield f"{name}{vector}", f"unit * {len(sums)} + {at}"

    def _apply(self, operation: str, sums: Sequence[str], constants: str) -> None:
        """Each sum with its constant. Where registers are few, one after the other, or constants would wait there."""
        w, floats = self.w, self.floats
        for name, place in self._places(sums):
            value = floats.use(w, operation, name, floats.load(w, f"{constants} + {place}"))
            w(f"{name} = {floats.call(w, 'f_settled', value) if floats.unsaved and floats.sparing else value};")

    def _accumulate(self, sums: Sequence[str], pointer: str, size: int, weights: str) -> None:
        """Adds a vector of inputs, times the block's weights [inputs][gate][width], to the sums."""
        w, floats, units, kind = self.w, self.floats, self.units, "int8_t" if self.narrow else "float"
        with w.block(""):
            w(f"const {kind} *k = {weights} + unit * {size * len(sums)};")
            together = AT_ONCE if floats is not c99.SINGLE and size % AT_ONCE == 0 else 1
            with w.loop("i", size, step=together):
                for step in range(together):
                    self._add(sums, f"{pointer} + i + {step}", step * len(sums) * units.width)
                w(f"k += {together * len(sums) * units.width};")

    def _add(self, sums: Sequence[str], source: str, place: int) -> None:
        """Adds the input at `source`, times its weights at `k` + `place`, to the sums."""
        w, floats, units = self.w, self.floats, self.units
        with w.block(""):
            floats.declare_factor(w, "value", source)
            for gate, name in enumerate(sums):
                for vector in range(units.vectors):
                    at = f"k + {place + gate * units.width + vector * floats.lanes}"
                    loaded = floats.load_bytes(w, at) if self.narrow else floats.load(w, at)
                    floats.accumulate_by(w, f"{name}{vector}", "value", loaded)
            w.bill(stall(1, len(sums) * units.vectors))

    def apply(self, name: str, function: Function, argument: str) -> None:
        """Declares `name` = function(argument)."""
        short = CELLS.get(function[0]) if self.floats.lanes > 1 else None
        call = self.w.call(short(self.floats), argument) if short else spell(self.w, self.floats, function, argument)
        self.floats.declare(self.w, name, call)


CELLS = {"tanh": math.cell_tanh, "sigmoid": math.cell_sigmoid}
"""Faster vector functions, as the next time step waits for them."""


@dataclass(frozen=True)
class Cells(ABC, Generic[R]):
    """The kernel of a kind of layer on one set; a unit has `sums` sums."""

    floats: Vectors
    sums: ClassVar[int]

    def units(self, site: Site[R]) -> Units:
        needed = -(-site.attributes.units // self.floats.lanes)
        most = 1 if self.floats is c99.SINGLE else max(1, SUMS // self.sums)
        return Units(self.floats, site.attributes.units, -(-needed // -(-needed // most)))

    def held(self, site: Site[R]) -> int:
        """Values per unit in scratch, behind the new state."""
        return 0

    def matrices(self, site: Site[R], apart: int = 0) -> dict[str, Array]:
        """The weights and, where these are bytes, the factors of the sums. Those of the inputs are multiplied again by
        the state's, but for the last columns, whose sums are `apart`."""
        found = {role: site.constant(role) for role in ("kernel", "recurrent")}
        if "kernel_factor" not in site.constants:
            return found
        of_x, of_h = (site.constant(f"{role}_factor") for role in found)
        again = np.where(np.arange(len(of_h)) < len(of_h) - apart, of_h, np.float32(1))
        return found | {"kernel_factor": (of_x / again)[None], "recurrent_factor": of_h[None]}

    def pack(self, site: Site[R], units: Units) -> dict[str, Array]:
        packed = {role: units.pack(matrix, self.sums) for role, matrix in self.matrices(site).items()}
        if "bias" in site.constants:
            packed["bias"] = units.pack(site.constant("bias").reshape(1, -1), self.sums)
        return packed

    @abstractmethod
    def step(self, step: Step[R]) -> None:
        """Prints one time step."""

    def accepts(self, site: Site[R]) -> str | None:
        functions = (site.attributes.activation[0], site.attributes.gate_activation[0])
        return only_float(site) or next(filter(None, (missing(self.floats, name) for name in functions)), None)

    def demand(self, site: Site[R]) -> Demand:
        units, held = self.units(site), self.held(site)
        return demand(site, self.pack(site, units), held + 1 if held or units.blocks > 1 else 0)

    def emit(self, w: Writer, site: Site[R], names: Names) -> None:
        step = Step(w, site, names, self.units(site))
        with step.each_step():
            self.step(step)


def on_floats(cells: Callable[[Vectors], Cells[R]]) -> tuple[Kernel[R] | OnEach[R], ...]:
    """The kernels of portable C, of several units at a time on Cortex-M4 and up, and of every set."""
    found = (*on_any_floats(cells), kernel_of("fpu", FEATURES, cells(FPU)))
    return (*found, *narrow(found))
