"""Tensors of bytes each of whose channels is a function of its input: a table of 256 results per channel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import PORTABLE, Demand, K, Kernel, Names, Overlap, only_int8, reason_of
from nnbuild.kernels.loops.strided import Loops
from nnbuild.kernels.parts import byte_tables
from nnbuild.model.graph import Array
from nnbuild.numeric.rounding import INT8, Ints, ints
from nnbuild.ops.site import Site

MOST = 64
"""Channels at most: 16 KB of tables."""


def rows_of(loops: Loops) -> tuple[int, int] | None:
    """(rows, channels) where the constants follow the innermost axis, or there is a single one."""
    sizes, out, own = loops.sizes, loops.walks[0].strides, loops.walks[-1].strides
    if len(sizes) > 2 or out[-1] != 1 or (len(sizes) == 2 and out[0] != sizes[1]):
        return None
    if not any(own):
        return int(np.prod(sizes)), 1
    if own[-1] != 1 or any(own[:-1]):
        return None
    return (sizes[0], sizes[1]) if len(sizes) == 2 else (1, sizes[0])


def sizes_of(loops: Loops) -> tuple[int, int]:
    found = rows_of(loops)
    assert found is not None
    return found


def pointers(w: Writer, names: Names, channels: int) -> None:
    """Declares pointers to a channel of the first row, and the number of rows."""
    w.bill(12)
    for kind, pointer, base in (("const ", "from", names.inputs[0]), ("", "to", names.outputs[0])):
        w(f"{kind}int8_t *{pointer} = {base} + begin * {channels} + c;")
    w("int32_t left = end - begin;")


def every_input() -> Ints:
    """All bytes, ascending."""
    return ints(np.arange(INT8[0], INT8[1] + 1))


def kernel(results: Callable[[Site[K], Ints], Array | str], walks: Callable[[Site[K]], Loops]) -> Kernel[K]:
    """Channel after channel; a work item is a row.

    results: the results of these inputs in each channel, [inputs, channels], or why they depend on more than the input.
    walks: loops whose first walk is that of output and input, and whose last is that of the channels' constants.
    """

    def accepts(site: Site[K]) -> str | None:
        found = rows_of(walks(site))
        if found is None:
            return "its channels are not contiguous"
        if found[1] > MOST:
            return f"tables of more than {MOST} channels are too large"
        return only_int8(site) or reason_of(results(site, every_input()))

    def demand(site: Site[K]) -> Demand:
        rows, channels = sizes_of(walks(site))
        outputs = np.asarray(results(site, every_input()), np.int8)
        packed = {"table": byte_tables.table(outputs).T.reshape(-1)}
        return Demand(extent=rows, packed=packed, overlaps=(Overlap(step=rows * channels),))

    def emit(w: Writer, site: Site[K], names: Names) -> None:
        rows, channels = sizes_of(walks(site))
        with w.loop("c", channels):
            pointers(w, names, channels)
            w(f"const int8_t *table = {names.packed['table']} + c * 256;")
            byte_tables.lookups(w, "table", ("from", "to", "left"), rows, channels)

    return Kernel("tables", PORTABLE, accepts, demand, emit)
