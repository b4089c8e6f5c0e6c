"""Kernels whose weights are copied into the scratch before they are read again and again: flash may be slow."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.base.writer import Row, Writer
from nnbuild.kernels.contract import Demand, K, Kernel, Names
from nnbuild.ops.site import Site

COPY = Row("{0} = {1};", 2, 4)
"""A load and a store of two words."""
AT_ONCE = 4


def staged(kernel: Kernel[K]) -> Kernel[K]:
    """The kernel with its "kernel" constant behind its own scratch, in a memory without wait states."""

    def demand(site: Site[K]) -> Demand:
        own = kernel.demand(site)
        return replace(own, scratch=8 * (_own(own) + own.packed["kernel"].size), copied=own.packed["kernel"].nbytes)

    def emit(w: Writer, site: Site[K], names: Names) -> None:
        own = kernel.demand(site)
        count = own.packed["kernel"].size
        w(f"int64_t *const staged = {names.scratch} + {_own(own)};")
        at_once = next(size for size in range(AT_ONCE, 0, -1) if count % size == 0)
        with w.loop("i", count, step=at_once):
            for at in range(at_once):
                place = f"i + {at}" if at else "i"
                w(w.use(COPY, f"staged[{place}]", f"{names.packed['kernel']}[{place}]"))
        kernel.emit(w, site, replace(names, packed={**names.packed, "kernel": "staged"}))

    return replace(kernel, demand=demand, emit=emit)


def _own(own: Demand) -> int:
    """Where the copy begins, in int64."""
    assert own.scratch_type == "int64", "weights are copied in these"
    return -(-own.scratch // 8)
