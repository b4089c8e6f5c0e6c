"""Bilinear resizing of int8 by words of four channels.

Where a pixel has few parts, as by 2, 4, 8 or 16 between centres, weighted sums of bytes above the least fit 16 bits.
Then a product of a word is that of both its halves: two even channels, or two odd ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names, only_int8
from nnbuild.kernels.loops import resized_pairs
from nnbuild.kernels.loops.resized_pairs import CORNERS, SIDES, Output, pairs_of
from nnbuild.numeric.resize import BITS, ONE
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import Site

WORD, MOST_PARTS = 4, 256
"""Bytes of a word; so many times the largest byte above the least, and a half, fit 16 bits."""
LET = Row("const uint32_t {0} = {1};", 0)
ABOVE = Row("(uint32_t){0} ^ 0x80808080U", 1)
DOWN = Row("{0} * y_far + {1} * y_near", 2, products=2)
START = Row("({0} << {1}) + {2}U", 2)
ACROSS = Row("{0} + ({1} - {2}) * {3}", 2, products=1)
JOINED = Row("(int32_t)((even_{0} | odd_{0} << 8) ^ 0x80808080U)", 2)


@lru_cache(maxsize=256)
def _bits(site: Site[ResizeBilinear]) -> tuple[int, int]:
    """The logarithms of the parts of a pixel: as few as weights down and across allow."""
    found = pairs_of(site)
    weights = (found.rows["y_near"], [*found.columns["x_near"], *found.columns["x_second"]])
    down, across = (ONE // int(np.gcd.reduce([*each, ONE])) for each in weights)
    return down.bit_length() - 1, across.bit_length() - 1


@dataclass(frozen=True)
class ResizedWords:
    """aligned: whether words begin at multiples of four bytes only."""

    v: Vectors
    aligned: bool = False

    def accepts(self, site: Site[ResizeBilinear]) -> str | None:
        if reason := only_int8(site):
            return reason
        if self.aligned and site.shape()[2] % WORD:
            return "its pixels are no whole words"
        parts = 1 << sum(_bits(site))
        return None if 1 < parts <= MOST_PARTS else f"a pixel has {parts} parts, not 2 to {MOST_PARTS}"

    def demand(self, site: Site[ResizeBilinear]) -> Demand:
        plain = resized_pairs.demand(site)
        shifts = {"y_near": BITS - _bits(site)[0]} | dict.fromkeys(("x_near", "x_second"), BITS - _bits(site)[1])
        return replace(plain, packed={n: values >> shifts.get(n, 0) for n, values in plain.packed.items()})

    def emit(self, w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
        whole, rest = divmod(site.shape()[2], WORD)
        for outputs in resized_pairs.steps(w, site, names, "uint32_t"):
            w(f"const uint32_t y_far = {1 << _bits(site)[0]}U - y_near;")
            with w.loop("c", whole * WORD, step=WORD):
                self._channels(w, site, outputs, "c", WORD)
            if rest:
                self._channels(w, site, outputs, str(whole * WORD), rest)

    def _channels(self, w: Writer, site: Site[ResizeBilinear], outputs: tuple[Output, ...], c: str, count: int) -> None:
        w.bill(12)
        for corner in CORNERS:
            word = self.v.call(w, "load_bytes", f"{corner} + {c}", of=(count,))
            w(w.use(LET, f"{corner}_bytes", w.use(ABOVE, word)))
        for half in ("even", "odd"):
            self._half(w, site, outputs, half)
        for to in (output.to for output in outputs):
            word = w.use(JOINED, to)
            if count == WORD:
                w(f"{self.v.call(w, 'write_bytes', f'{to} + {c}', word)};")
                continue
            w(w.use(c99.LET, f"{to}_bytes", word))
            for byte in range(count):
                w(w.use(c99.STORE_BYTE, f"{to}[{c} + {byte}]", f"({to}_bytes >> {8 * byte})"))

    def _half(self, w: Writer, site: Site[ResizeBilinear], outputs: tuple[Output, ...], half: str) -> None:
        """Declares two channels of each output."""
        (down, across), at = _bits(site), partial("{1}_{0}".format, half)
        bits = down + across
        for corner in CORNERS:
            value = self.v.call(w, f"p_{half}_unsigned", f"(int32_t){corner}_bytes")
            w(w.use(LET, at(corner), f"(uint32_t){value}"))
        for side in SIDES:
            w(w.use(LET, at(side), w.use(DOWN, at(f"low_{side}"), at(f"high_{side}"))))
        below_half = ((1 << (bits - 1)) - 1) * 0x10001
        w(w.use(LET, at("start"), w.use(START, at("left"), str(across), str(below_half))))
        for output in outputs:
            total = at(f"{output.to}_total")
            w(w.use(LET, total, w.use(ACROSS, at("start"), at("right"), at("left"), output.near)))
            # Half a step less one; from zero on one more, which rounds halves away from zero.
            more = self.v.call(w, "masked_right", "0x10001", f"(int32_t){total}", of=(bits + 7,))
            value = self.v.call(w, "masked_right", "0xff00ff", f"(int32_t)({total} + (uint32_t){more})", of=(bits,))
            w(w.use(LET, f"{half}_{output.to}", f"(uint32_t){value}"))
