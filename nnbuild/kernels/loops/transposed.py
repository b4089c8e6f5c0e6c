"""Transposed convolutions by the kernels of convolutions.

Output `o` of an axis with stride s receives the taps t with o + crop - t * dilation divisible by s. All outputs with
the same remainder by s form a phase, and each phase is a plain convolution of the input. Phases of rows are computed
one after the other, straight into their output rows. Phases of columns are further channels of one convolution,
whose results then lie in the order of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from math import gcd, prod
from typing import Any

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.names import unique
from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import FLOATS_IN_BYTES, Demand, Kernel, Names, OnEach, each_changed
from nnbuild.kernels.dsp.input_layouts import copy
from nnbuild.kernels.parts.kernel_function import block_of, kernel_function
from nnbuild.model.graph import Array, Constant, Op, Quant, Tensor
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.site import Site

ALIGNMENT = 64
"""Bytes from a multiple of which a row of all columns begins."""


@dataclass(frozen=True)
class Along:
    """A transposed convolution along one axis."""

    inputs: int
    outputs: int
    taps: int
    stride: int
    dilation: int
    crop: int

    def offsets(self, phase: int) -> dict[int, int]:
        """Tap -> the input under it, for output `phase` of the first stride of outputs."""
        places = {tap: phase + self.crop - tap * self.dilation for tap in range(self.taps)}
        return {tap: place // self.stride for tap, place in places.items() if place % self.stride == 0}

    def joint(self, first: int, count: int) -> Joint:
        """`count` neighbouring phases from `first` on, as one convolution."""
        offsets = [self.offsets(phase) for phase in range(first, first + count)]
        inputs = sorted({0, *(place for each in offsets for place in each.values())})
        apart = gcd(*(place - inputs[0] for place in inputs)) or 1
        taps = [{tap: (place - inputs[0]) // apart for tap, place in each.items()} for each in offsets]
        places = -(-(self.outputs - first) // self.stride)
        return Joint(first, places, (inputs[-1] - inputs[0]) // apart + 1, apart, -inputs[0], tuple(taps))

    @cached_property
    def whole(self) -> Joint:
        """All phases as one convolution, from the phase on that gives the shortest window."""
        found = (self.joint(-before, self.stride) for before in range(self.stride))
        return min(found, key=lambda joint: joint.kernel * joint.places)


@dataclass(frozen=True)
class Joint:
    """Phases that one convolution computes together: `taps` has, for each, where every tap lies in its window."""

    first: int
    places: int
    kernel: int
    dilation: int
    pad: int
    taps: tuple[dict[int, int], ...]

    def behind(self, inputs: int, places: int) -> int:
        """Places of padding behind the last input."""
        return max(0, places + (self.kernel - 1) * self.dilation - self.pad - inputs)

    def alone(self, inputs: int) -> bool:
        """Whether every output is made of the input at its own place."""
        return self.kernel == 1 and self.places <= inputs


@dataclass(frozen=True, eq=False)
class Split:
    """A transposed convolution as one convolution for each phase of rows."""

    site: Site[Conv2DTranspose]
    rows: Along
    columns: Along

    @cached_property
    def phases(self) -> tuple[Joint, ...]:
        return tuple(self.rows.joint(phase, 1) for phase in range(min(self.rows.outputs, self.rows.stride)))

    @cached_property
    def whole(self) -> tuple[Site[Conv2D], ...]:
        """All rows of each phase."""
        return tuple(self._convolution(rows, rows.places, self.rows.inputs) for rows in self.phases)

    @cached_property
    def single(self) -> tuple[Site[Conv2D], ...]:
        """One row of each phase whose rows are made of one row of inputs each; all rows of the others."""
        return tuple(
            self._convolution(rows, 1, 1) if rows.alone(self.rows.inputs) else whole
            for rows, whole in zip(self.phases, self.whole, strict=True)
        )

    @property
    def size(self) -> int:
        """Elements of an output row."""
        return prod(self.site.output_shape()[1:])

    @property
    def line(self) -> int:
        """Elements of a row of the convolutions."""
        return prod(self.whole[0].output_shape()[1:])

    @property
    def before(self) -> int:
        """Of these, how many lie before the row of the output."""
        return -self.columns.whole.first * self.site.output_shape()[2]

    @property
    def exact(self) -> bool:
        """Whether a row of the convolutions is a row of the output."""
        return self.line == self.size

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return np.dtype(self.site.outputs[0].dtype).itemsize

    def _convolution(self, rows: Joint, places: int, height: int) -> Site[Conv2D]:
        site, columns, (_, width, channels) = self.site, self.columns.whole, self.site.shape()
        filters, phases = site.output_shape()[2], len(columns.taps)
        x, out, constants = site.inputs[0], site.outputs[0], {"kernel": self._taps(rows)}
        if "bias" in site.constants:
            constants["bias"] = np.tile(site.constant("bias"), phases)
        how = Conv2D(
            dilation=(rows.dilation, columns.dilation),
            padding=((rows.pad, rows.behind(height, places)), (columns.pad, columns.behind(width, columns.places))),
            clamp=site.attributes.clamp,
            once=site.attributes.once,
        )
        names = {role: f"{role}/{rows.first}" for role in constants}
        return Site(
            Op(f"{site.op.name}_{rows.first}", how, (x.name,), (out.name,), names, site.op.layer),
            (replace(x, shape=(height, width, channels)),),
            (Tensor(out.name, (places, columns.places, phases * filters), out.dtype, out.quant),),
            {
                role: Constant(names[role], data, _repeated(site.constants[role].quant, phases))
                for role, data in constants.items()
            },
        )

    def _taps(self, rows: Joint) -> Array:
        """[rows, columns, in, phases of columns * out]; what no tap of the transposed convolution meets means zero."""
        constant, columns = self.site.constants["kernel"], self.columns.whole
        filters, channels = constant.data.shape[2:]
        shape = (rows.kernel, columns.kernel, channels, len(columns.taps), filters)
        found = np.full(shape, constant.quant.zero_point if constant.quant else 0, constant.data.dtype)
        for row, y in rows.taps[0].items():
            for phase, taps in enumerate(columns.taps):
                for column, x in taps.items():
                    found[y, x, :, phase] = constant.data[row, column].T
        return found.reshape(*shape[:3], -1)


@lru_cache(maxsize=64)
def split(site: Site[Conv2DTranspose]) -> Split:
    how, kernel = site.attributes, site.constant("kernel")
    rows, columns = (
        Along(site.shape()[i], how.size[i], kernel.shape[i], how.strides[i], how.dilation[i], how.crop[i])
        for i in (0, 1)
    )
    return Split(site, rows, columns)


@dataclass(frozen=True, eq=False)
class Phases:
    """All phases by one kernel of convolutions: row by row where it computes single rows, else phase by phase."""

    kernel: Kernel[Any]
    split: Split

    @property
    def straight(self) -> bool:
        """Whether one convolution computes the output as it lies."""
        return self.split.rows.stride == 1 and self.split.exact

    def accepts(self) -> str | None:
        return next(filter(None, map(self.kernel.accepts, (*self.split.whole, *self.split.single))), None)

    @cached_property
    def by_rows(self) -> bool:
        demands = [(part.output_shape()[0], self.kernel.demand(part)) for part in self.split.single]
        return all(rows == 1 or (own.rows and own.extent % rows == 0 and not own.copied) for rows, own in demands)

    @cached_property
    def parts(self) -> tuple[Site[Conv2D], ...]:
        return self.split.single if self.by_rows else self.split.whole

    @cached_property
    def demands(self) -> tuple[Demand, ...]:
        return tuple(map(self.kernel.demand, self.parts))

    @property
    def held(self) -> int:
        """Rows of the convolutions that wait in scratch to be copied."""
        return max(rows.places for rows in self.split.phases) if not self.by_rows else 0 if self.split.exact else 1

    @property
    def start(self) -> int:
        """Where they lie, behind what the kernel itself needs."""
        return -(-max(each.scratch for each in self.demands) // ALIGNMENT) * ALIGNMENT

    def demand(self) -> Demand:
        if self.straight:
            return replace(self.kernel.demand(self.split.whole[0]), rows=False, each=0, bands=())
        packed = {f"{role}{n}": data for n, each in enumerate(self.demands) for role, data in each.packed.items()}
        scratch = self.start + self.held * self.split.line * self.split.item
        extent = self.split.rows.outputs if self.by_rows else len(self.parts)
        return Demand(extent, scratch, "int64", packed, copied=sum(each.copied for each in self.demands))

    def emit(self, w: Writer, names: Names) -> None:
        if self.straight:
            self.kernel.emit(w, self.split.whole[0], names)
            return
        kind, step = C_TYPES[self.split.site.outputs[0].dtype], self.split.rows.stride
        if self.held:
            w(f"{kind} *const lines = ({kind} *)(void *)({names.scratch} + {self.start // 8});")
        for phase, (part, demand) in enumerate(zip(self.parts, self.demands, strict=True)):
            packed = {role: names.packed[f"{role}{phase}"] for role in demand.packed}
            inner = Names(("in",), ("out",), packed, block=names.block)
            share, name = 1 / part.output_shape()[0] if self.by_rows else 1.0, f"phase_{unique(part.op.name)}"
            routine = kernel_function(w, name, self.kernel, part, inner, demand, share, apart=True)
            call = partial(self._call, w, names, routine, demand)
            rows = self.split.phases[phase].places
            if self.by_rows:
                first, behind = (f"({name} + {step - 1 - phase}) / {step}" for name in ("begin", "end"))
                with w.loop("row", behind, start=first, trips=rows):
                    self._row(w, names, phase, call)
                continue
            with w.block(f"if (begin <= {phase} && end > {phase})"):
                w(f"{call(names.inputs[0], 'lines', '0', str(demand.extent))};")
                with w.loop("row", rows):
                    self._declare(w, names, phase)
                    self._copy(w, f"lines + row * {self.split.line} + {self.split.before}")

    def _row(self, w: Writer, names: Names, phase: int, call: Callable[..., str]) -> None:
        """A kernel that computes rows of a whole result is told where that would begin."""
        split, part, demand = self.split, self.parts[phase], self.demands[phase]
        rows, kind = part.output_shape()[0], C_TYPES[split.site.outputs[0].dtype]
        source, to, ends = names.inputs[0], "to" if split.exact else "lines", ("0", str(demand.extent))
        self._declare(w, names, phase)
        if rows > 1:
            ends = (f"row * {demand.extent // rows}", f"(row + 1) * {demand.extent // rows}")
            to = f"({kind} *)((uintptr_t){to} - (uintptr_t)row * {split.line * split.item})"
        else:
            source = f"{source} + row * ({prod(split.site.shape()[1:])})"
        w(f"{call(source, to, *ends)};")
        if not split.exact:
            self._copy(w, f"lines + {split.before}")

    def _declare(self, w: Writer, names: Names, phase: int) -> None:
        place = f"(row * {self.split.rows.stride} + {phase}) * {self.split.size}"
        w(f"{C_TYPES[self.split.site.outputs[0].dtype]} *const to = {names.outputs[0]} + {place};")

    def _copy(self, w: Writer, source: str) -> None:
        """A row of outputs, where it belongs."""
        w("int8_t *into = (int8_t *)(void *)to;")
        w(f"const int8_t *from = (const int8_t *)(const void *)({source});")
        copy(w, "int8", "into", "from", self.split.size * self.split.item)

    def _call(
        self, w: Writer, names: Names, routine: Instruction, demand: Demand, source: str, to: str, *ends: str
    ) -> str:
        scratch = [f"({C_TYPES[demand.scratch_type]} *)(void *){names.scratch}"] if demand.scratch else []
        return w.call(routine, source, to, *scratch, *block_of(names, demand), *ends)


def _repeated(quant: Quant | None, times: int) -> Quant | None:
    if quant is None or len(quant.scales) == 1:
        return quant
    return replace(quant, scales=quant.scales * times, axis=3)


def kernels(of: Iterable[Kernel[Any] | OnEach[Any]]) -> Iterator[Kernel[Conv2DTranspose] | OnEach[Conv2DTranspose]]:
    """A kernel of transposed convolutions for each of convolutions that stores its weights one after the other."""
    return each_changed(of, _changed)


def _changed(kernel: Kernel[Any], _: Vectors | None) -> Iterator[Kernel[Conv2DTranspose]]:
    if kernel.encoding not in ("", FLOATS_IN_BYTES) or kernel.device_arithmetic or kernel.joins:
        return
    yield replace(
        kernel,
        name=f"{kernel.name}_phases",
        accepts=lambda site: Phases(kernel, split(site)).accepts(),
        demand=lambda site: Phases(kernel, split(site)).demand(),
        emit=lambda w, site, names: Phases(kernel, split(site)).emit(w, names),
        fuses=frozenset(),
    )
