"""One row of a dense layer whose weights are stored in codes and unpacked output by output, where scratch has no room
for all: the fewest bytes of RAM and constants, and much time.

The place of a code depends on all codes before it, so all outputs are one work item.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.encodings.halves import AT_ONCE, Halves, all_coded
from nnbuild.encodings.prefix import MOST, Prefix, prefix
from nnbuild.isa.c99 import IntegerLanes
from nnbuild.kernels.compressed.sparse_weights import distinct
from nnbuild.kernels.compressed.unpacked import CALL_CYCLES, PREFIX, SCHEMES, Scheme, reader
from nnbuild.kernels.contract import PORTABLE, Demand, Names, variant
from nnbuild.kernels.lanes.layer_sums import integer_lanes
from nnbuild.kernels.loops import dot
from nnbuild.kernels.loops.window import WindowNest, window_of
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site

WORD = 4
FEWEST = 256
"""Weights below which a table of codes does not pay."""


@lru_cache(maxsize=64)
def _stored(site: Site[Dense], scheme: Scheme) -> Halves | Prefix:
    """The weights of every output, padded with zeros."""
    rows = site.constant("kernel").T
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % (WORD * _at_once(scheme)))))
    values = np.ascontiguousarray(rows).reshape(-1)
    return prefix(values, whole=True) if scheme is PREFIX else scheme.made(values)


def _at_once(scheme: Scheme) -> int:
    """Words unpacked together."""
    return 1 if scheme is PREFIX else AT_ONCE


@dataclass(frozen=True, eq=False)
class UnpackedRow(WindowNest[IntegerLanes]):
    scheme: Scheme

    @property
    def _words(self) -> int:
        """Words of one output's weights."""
        each = WORD * _at_once(self.scheme)
        return -(-self.window.depth // each) * each // WORD

    def demand(self) -> Demand:
        packed = {name: dot.pack_channels(values, self.lanes) for name, values in self.lanes.channels.items()}
        packed |= {f"kernel_{role}": part for role, part in _stored(self.site, self.scheme).parts.items()}
        row = WORD * self._words
        return Demand(extent=1, scratch=self.scheme.room + row, scratch_type="int16", packed=packed, copied=row)

    def emit(self, w: Writer, names: Names) -> None:
        w("(void)begin;")
        w("(void)end;")
        lanes, window, found = self.lanes, self.window, _stored(self.site, self.scheme)
        given = {role: names.packed[f"kernel_{role}"] for role in found.parts}
        codes, arguments = reader(w, self.scheme, found, given, names.scratch)
        start = f"{names.scratch} + {self.scheme.room // 2}"
        w(f"int8_t *const weights = (int8_t *)({start});")
        w("uint32_t at = 0;")
        dot.declare_channels(w, lanes, names.packed)
        w()
        with w.loop("block", window.filters):
            w.bill(CALL_CYCLES)
            w.bill(self.scheme.word_cycles * self._words, self.scheme.word_loads * self._words)
            w(f"at = {w.call(codes, 'weights', *arguments, 'at', str(self._words))};")
            block = dot.Block(1, 1)
            dot.start(w, lanes, 1, block)
            with w.loop("i", window.depth):
                dot.multiply(w, lanes, block, [f"{names.inputs[0]} + i"], "weights + i")
            dot.store(w, lanes, block, [f"{names.outputs[0]} + block"])
            dot.next_block(w, lanes, block)


def _refused(scheme: Scheme, site: Site[Dense]) -> str | None:
    if site.constant("kernel").dtype != "int8" or distinct(site) > min(scheme.few, MOST):
        return f"its weights have more than {scheme.few} values"
    if site.constant("kernel").size < FEWEST:
        return f"it has fewer than {FEWEST} weights"
    if window_of(site).rows.places > 1:
        return "it computes one row only"
    return None if all_coded(_stored(site, scheme).turns) else "not all of its weights have codes"


def _nest(scheme: Scheme, site: Site[Dense]) -> UnpackedRow:
    return UnpackedRow(site, integer_lanes(site, 1), scheme)


VARIANTS = tuple(
    variant(
        f"rows_{scheme.name}", PORTABLE, partial(_refused, scheme), partial(_nest, scheme), encoding=scheme.encoding
    )
    for scheme in SCHEMES
)
