"""Padding a tensor: each index of the leading axes decides whether it lies inside the input or in the border."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from nnbuild.base.literals import float_literal
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import Names, any_format
from nnbuild.kernels.dsp.input_layouts import copy, fill
from nnbuild.kernels.loops import byte_moves
from nnbuild.kernels.loops.strided import contiguous, item_bytes
from nnbuild.model.graph import Array
from nnbuild.numeric.edge import quantize
from nnbuild.ops.integer import scale_and_limits
from nnbuild.ops.pad import Pad
from nnbuild.ops.site import Site


def levels(site: Site[Pad]) -> int:
    """The number of axes that need a loop, up to the last padded one; the axes behind it are one run."""
    return max((axis + 1 for axis, pair in enumerate(site.attributes.amounts) if any(pair)), default=1)


Place = tuple[str, str]
"""A tensor or constant, and an index in it."""
Move = Callable[[Writer, Place, Place | str, int], None]
"""Copies `count` values from another place, or stores one value `count` times."""
WHOLE_BORDER = 256
"""Largest size of a border row in bytes that is stored in full length, to be copied by words."""


def border(site: Site[Pad]) -> dict[str, Array]:
    """The border values, repeated as often as one copy needs if that is short: along the longest run."""
    if "border" not in site.constants:
        return {}
    values, run = site.constant("border"), _longest_run(site)
    return {"border": np.tile(values, run // len(values)) if values.itemsize * run <= WHOLE_BORDER else values}


def _longest_run(site: Site[Pad]) -> int:
    """The most consecutive border elements."""
    runs, amounts = contiguous(site.output_shape()), site.attributes.amounts
    last = levels(site) - 1
    found = [run for run, pair in zip(runs[:last], amounts, strict=False) if any(pair)]
    return max(*found, runs[last] * max(1, *amounts[last]), 1)


def by_elements(w: Writer, to: Place, source: Place | str, count: int) -> None:
    with w.loop("i", count):
        value = source if isinstance(source, str) else f"{source[0]}[{source[1]} + i]"
        w(w.use(c99.STORE, f"{to[0]}[{to[1]} + i]", value))


def by_vectors(floats: Vectors, w: Writer, to: Place, source: Place | str, count: int) -> None:
    for place, some in in_vectors(w, floats.lanes, count, "i"):
        if isinstance(source, str):
            value = floats.call(w, "f_each", source)
        else:
            value = floats.load(w, f"{source[0]} + {source[1]} + {place}", some)
        floats.store(w, f"{to[0]} + {to[1]} + {place}", value, some)


def by_bytes(v: Vectors, w: Writer, to: Place, source: Place | str, count: int) -> None:
    for place, some in in_vectors(w, 4 * v.lanes, count, "i"):
        target = f"{to[0]} + {to[1]} + {place}"
        if isinstance(source, str):
            byte_moves.fill(w, v, target, source, some)
        else:
            byte_moves.move(w, v, target, f"{source[0]} + {source[1]} + {place}", some)


def by_words(w: Writer, to: Place, source: Place | str, count: int) -> None:
    if isinstance(source, str):
        with w.block(""):
            w(f"int8_t *into = {to[0]} + {to[1]};")
            fill(w, "int8", "into", int(source), count)
        return
    w(f"int8_t *into = {to[0]} + {to[1]};")
    w(f"const int8_t *from = {source[0]} + {source[1]};")
    copy(w, "int8", "into", "from", count)


def of_items(size: int, move: Move, w: Writer, to: Place, source: Place | str, count: int) -> None:
    """Moves elements of this size as bytes; values other than zeros are stored one by one."""
    if isinstance(source, str) and size > 1 and source not in ("0", "0.0f"):
        by_elements(w, to, source, count)
        return
    zeros = "0" if size > 1 else source
    move(w, _bytes(size, "", to), zeros if isinstance(source, str) else _bytes(size, "const ", source), size * count)


def _bytes(size: int, const: str, place: Place) -> Place:
    name, index = place
    return (f"(({const}int8_t *){name})", f"({index}) * {size}") if size > 1 else place


Range = tuple[int | str, int | str]


def with_border(w: Writer, site: Site[Pad], names: Names, move: Move, of: Range = ("begin", "end")) -> None:
    """Copies a range of the first axis, with the border around it."""
    _axis(w, site, names, 0, "0", "0", move, of)


def _axis(
    w: Writer, site: Site[Pad], names: Names, axis: int, to: str, source: str, move: Move, of: Range = (0, 0)
) -> None:
    out, own = contiguous(site.output_shape()), contiguous(site.shape())
    before, after = site.attributes.amounts[axis]
    size, places, run = site.shape()[axis], site.output_shape()[axis], out[axis]
    if 0 < axis == levels(site) - 1:
        if before:
            _outside(w, site, names, to, before * run, move)
        with w.block(""):
            _inside(w, site, names, axis, f"{to} + {before * run}", source, move, size)
        if after:
            _outside(w, site, names, f"{to} + {(before + size) * run}", after * run, move)
        return
    name = f"i{axis}"
    bounds = of if axis == 0 else (0, places)
    with w.loop(name, bounds[1], start=bounds[0], trips=places):
        target = f"{to} + ({name}) * {run}"
        origin = f"{source} + ({name} - {before}) * {own[axis]}"
        inside = [f"{name} >= {before}"] * (before > 0) + [f"{name} < {before + size}"] * (after > 0)
        if not inside:
            _inside(w, site, names, axis, target, origin, move)
            return
        with w.block(f"if ({' && '.join(inside)})"), w.trips(size / places):
            _inside(w, site, names, axis, target, origin, move)
        with w.block("else"), w.trips(1 - size / places):
            _outside(w, site, names, target, run, move)


def _inside(
    w: Writer, site: Site[Pad], names: Names, axis: int, to: str, source: str, move: Move, times: int = 1
) -> None:
    if axis + 1 < levels(site):
        _axis(w, site, names, axis + 1, to, source, move)
        return
    move(w, (names.outputs[0], to), (names.inputs[0], source), times * prod(site.shape()[axis + 1 :]))


def _outside(w: Writer, site: Site[Pad], names: Names, to: str, run: int, move: Move) -> None:
    held = border(site).get("border")
    if held is None:
        move(w, (names.outputs[0], to), _value(site), run)
        return
    size = min(len(held), run)
    with w.loop("at", run, step=size) if size < run else w.block(""):
        move(w, (names.outputs[0], f"{to} + {'at' if size < run else '0'}"), (names.packed["border"], "0"), size)


def _value(site: Site[Pad]) -> str:
    """The border's value; the quantized integer in a quantized border."""
    tensor, value = site.outputs[0], site.attributes.value
    return float_literal(value) if tensor.quant is None else str(quantize(value, *scale_and_limits(tensor)))


WORDS = 8
"""Shortest row in bytes for which copying by words pays."""


def refused(site: Site[Pad]) -> str | None:
    run = prod(site.shape()[max(1, levels(site) - 1) :])
    run *= item_bytes(site)
    if any(values.itemsize != item_bytes(site) for values in border(site).values()):
        return "its border has another type"
    return any_format(site) or (None if run >= WORDS else f"its rows of {run} bytes are short")
