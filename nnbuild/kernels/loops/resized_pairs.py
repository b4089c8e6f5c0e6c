"""The loops of bilinear resizing: two neighbouring outputs between the same four inputs are computed together.

The inputs are blended down their columns first, once for both outputs, then across.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names
from nnbuild.model.graph import Array
from nnbuild.numeric.resize import Taps, parts, taps
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import Site

SIDES, CORNERS = ("left", "right"), ("low_left", "low_right", "high_left", "high_right")
"""Columns, and pointers to the inputs of a step."""


@dataclass(frozen=True)
class Output:
    """The pointer to an output of a step, and the variable that holds the right column's weight."""

    to: str
    near: str


FEW = 1 / 8
"""Of the steps."""
OUTPUTS = (Output("to", "x_near"), Output("second", "x_second"))


@dataclass(frozen=True, eq=False)
class Pairs:
    """rows: the taps of each row. columns: for each step, the places of both columns, the right one's weights for both
    outputs, and whether there are two outputs."""

    rows: dict[str, Array]
    columns: dict[str, Array]

    @property
    def kinds(self) -> tuple[tuple[Output, ...], ...]:
        """The outputs of the kinds of steps that are printed. Where few outputs are alone, they are computed twice."""
        alone = 1 - np.mean(self.columns["apart"])
        return (OUTPUTS[:1],) if alone == 1 else (OUTPUTS,) if alone < FEW else (OUTPUTS, OUTPUTS[:1])


@lru_cache(maxsize=256)
def pairs_of(site: Site[ResizeBilinear]) -> Pairs:
    """With weights in floats for floats, otherwise in 1024ths."""
    rows, columns = zip(site.shape()[:2], site.attributes.size, strict=True)
    mode = site.attributes.mode
    if site.inputs[0].dtype == "float32":
        return Pairs(_named("y", parts(*rows, mode)), _steps(*parts(*columns, mode)))
    return Pairs(_named("y", taps(*rows, mode)), _steps(*columns_of(site)))


def columns_of(site: Site[ResizeBilinear]) -> Taps:
    """Without weight, the right column may be the next one's."""
    width, mode = site.shape()[1], site.attributes.mode
    low, high, share = taps(width, site.attributes.size[1], mode)
    return Taps(low, np.where(share == 0, np.minimum(low + 1, width - 1), high), share)


def same_as_next(low: Array, high: Array) -> list[bool]:
    """Whether an output lies between the same columns as the next one."""
    return [*((np.diff(low) == 0) & (np.diff(high) == 0)).tolist(), False]


def _named(axis: str, found: Iterable[Array]) -> dict[str, Array]:
    return {f"{axis}_{name}": values for name, values in zip(("low", "high", "near"), found, strict=True)}


def _steps(low: Array, high: Array, share: Array) -> dict[str, Array]:
    same = same_as_next(low, high)
    first: list[int] = []
    at = 0
    while at < len(same):
        first.append(at)
        at += 1 + same[at]
    apart = np.array(same)[first]
    return _named("x", (low[first], high[first], share[first])) | {"x_second": share[first + apart], "apart": apart}


def demand(site: Site[ResizeBilinear]) -> Demand:
    found = pairs_of(site)
    unused = () if OUTPUTS in found.kinds else ("x_second", "apart")
    tables = {name: _small(values) for name, values in (found.rows | found.columns).items() if name not in unused}
    return Demand(extent=site.output_shape()[0], packed=tables)


def _small(values: Array) -> Array:
    return values if values.dtype == np.float32 else values.astype(np.int16)


def steps(w: Writer, site: Site[ResizeBilinear], names: Names, share: str) -> Iterator[tuple[Output, ...]]:
    """The loops over rows and steps, with pointers to the four inputs and to the outputs, and with weights `y_near`,
    `x_near` … in variables of the C type `share`; yields the outputs of each kind of steps."""
    (_, width, channels), found = site.shape(), pairs_of(site)
    kind, tables, (source,), (out,) = C_TYPES[site.inputs[0].dtype], names.packed, names.inputs, names.outputs
    cast = f"({share})" if share.startswith("u") else ""
    with w.loop("y", "end", start="begin", trips=site.output_shape()[0]):
        w.bill(8)
        w(f"{kind} *to = {out} + y * {site.output_shape()[1] * channels};")
        for row in ("low", "high"):
            w(f"const {kind} *{row} = {source} + {tables[f'y_{row}']}[y] * {width * channels};")
        w(w.use(c99.LOAD_AS, f"const {share}", "y_near", f"{cast}{tables['y_near']}[y]"))
        with w.loop("x", len(found.columns["x_low"])):
            w.bill(6)
            for row in ("low", "high"):
                for side, column in zip(SIDES, ("x_low", "x_high"), strict=True):
                    w(f"const {kind} *{row}_{side} = {row} + {tables[column]}[x] * {channels};")
            w(w.use(c99.LOAD_AS, f"const {share}", "x_near", f"{cast}{tables['x_near']}[x]"))
            for outputs, within in _kinds(w, found, tables):
                if len(outputs) > 1:
                    w.bill(2)
                    w(f"{kind} *second = to + {within} * {channels};")
                    w(w.use(c99.LOAD_AS, f"const {share}", "x_second", f"{cast}{tables['x_second']}[x]"))
                yield outputs
                w(f"to = {outputs[-1].to} + {channels};")


def _kinds(w: Writer, found: Pairs, tables: Mapping[str, str]) -> Iterator[tuple[tuple[Output, ...], str]]:
    """The outputs of each kind of steps, and the distance of the second output in pixels."""
    first, *others = found.kinds
    if not others:
        yield first, f"{tables.get('apart')}[x]"
        return
    pairs = float(np.mean(found.columns["apart"]))
    with w.block(f"if ({tables['apart']}[x])"), w.trips(pairs):
        yield first, "1"
    with w.block("else"), w.trips(1 - pairs):
        yield others[0], "0"
