"""Matrix products of two 16-bit tensors in vectors, a column of the right one in each lane.

Sums need more than 32 bits, so the numbers of the left one are split into an upper and a lower part of 8 bits with
signs, whose products with the right one are summed apart. One 64-bit product then scales both sums together. A work
item is a matrix: both are prepared in scratch first.
"""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.base.writer import Row, Writer
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import Demand, Names
from nnbuild.kernels.lanes.layer_sums import layer_of
from nnbuild.kernels.loops.vector_matmul import MOVE, each_matrix, sizes
from nnbuild.numeric.rounding import INT16
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.site import Site

LARGEST = 510
"""The depth at which sums of products of 2^22, and what they carry, fit 32 bits."""
MOST_ROWS = 6
BUSY = 3
"""Registers beside the sums of a tile."""
PART = 8
"""Bits of a lower part."""
POINTER = Row("const int16_t *{0} = {1};", 2)


@dataclass(frozen=True)
class Scale:
    """(((upper sum and carry) * multiplier + rest * factor) >> 32, plus a half) >> shift."""

    multiplier: int
    shift: int

    @property
    def factor(self) -> int:
        return self.multiplier >> PART


def _scale(site: Site[MatMul]) -> Scale | None:
    """None for another rule, or where results may leave 32 bits."""
    (channel,) = layer_of(site).channels
    line = channel.line
    if line is None or channel.rule != "wide" or channel.wraps:
        return None
    left = 31 - line.multiplier.bit_length()
    shift = line.shift + left - 32 - PART
    return Scale(line.multiplier << left, shift) if 1 <= shift <= 31 and left >= PART else None


def refused(site: Site[MatMul]) -> str | None:
    _, rows, depth, _ = sizes(site)
    if rows == 1:
        return "a single row does not repay packing the other matrix"
    if depth > LARGEST:
        return f"32 bits hold {LARGEST} products, not {depth}"
    return None if _scale(site) else "its scale needs more than 32 bits"


@dataclass(frozen=True, eq=False)
class WordMatmul:
    v: Vectors
    site: Site[MatMul]

    @property
    def by_lane(self) -> bool:
        """Whether the set multiplies by one lane's inputs; the first weights of all lanes precede the second ones."""
        return "words_apart_of" in self.v.spellings

    @property
    def side_by_side(self) -> int:
        """Neighbouring numbers of a column that are laid out next to each other."""
        return 1 if self.by_lane else min(self.v.depth, 2)

    @property
    def together(self) -> int:
        """Neighbouring inputs that one step takes."""
        return 2 * self.v.lanes if self.by_lane else self.side_by_side

    @property
    def stride(self) -> int:
        """The inputs of a prepared row, of which the last ones may be zero."""
        return -(-sizes(self.site)[2] // self.together) * self.together

    @property
    def split(self) -> int:
        """The numbers of a matrix's prepared upper or lower parts, with room for a whole vector."""
        rows = sizes(self.site)[1]
        return -(-(rows * self.stride + self.v.lanes) // self.v.lanes) * self.v.lanes

    def demand(self) -> Demand:
        count, _, _, columns = sizes(self.site)
        laid_out = -(-columns // self.v.lanes) * self.v.lanes * self.stride
        return Demand(extent=count, scratch=2 * (2 * self.split + laid_out), scratch_type="int16")

    def emit(self, w: Writer, names: Names) -> None:
        _, rows, _, columns = sizes(self.site)
        w(f"int16_t *const uppers = {names.scratch};")
        w(f"int16_t *const lowers = {names.scratch} + {self.split};")
        w(f"int16_t *const laid = {names.scratch} + {2 * self.split};")
        with each_matrix(w, self.site, names) as (left, right, out):
            w(w.use(POINTER, "left", left))
            w(w.use(POINTER, "right", right))
            w(f"int16_t *const results = {out};")
            self._split(w)
            self._lay_out(w)
            for column, lanes in in_vectors(w, self.v.lanes, columns, "column"):
                for row, tile in in_vectors(w, self._rows(), rows, "row"):
                    self._tile(w, column, lanes, row, tile)

    def _rows(self) -> int:
        return max(1, min(MOST_ROWS, (self.v.registers - self.v.temporaries - BUSY) // 2))

    def _split(self, w: Writer) -> None:
        """Rows without zeros at their ends follow one another like one."""
        _, rows, depth, _ = sizes(self.site)
        if self.stride == depth:
            self._split_run(w, "left", "0", rows * depth)
            return
        with w.loop("row", rows):
            w(w.use(POINTER, "from", f"left + row * {depth}"))
            self._split_run(w, "from", f"row * {self.stride}", depth)
            with w.loop("i", self.stride, start=depth):
                for part in ("uppers", "lowers"):
                    w(w.use(MOVE, f"{part}[row * {self.stride} + i]", "0"))

    def _split_run(self, w: Writer, source: str, to: str, size: int) -> None:
        v = self.v
        half = v.call(w, "each", str(1 << (PART - 1)))
        for i, count in in_vectors(w, v.lanes, size, "i"):
            v.let(w, "sums", "x", v.call(w, "widen_words", f"{source} + {i}", of=(count,)))
            v.let(w, "sums", "upper", v.call(w, "shift_right", v.call(w, "add", "x", half), of=(PART,)))
            lower = v.call(w, "sub", "x", v.call(w, "shift_left", "upper", of=(PART,)))
            for part, value in (("uppers", "upper"), ("lowers", lower)):
                w(f"{v.call(w, 'store_words', f'{part} + {to} + {i}', value, of=(*INT16, count))};")

    def _lay_out(self, w: Writer) -> None:
        """The right matrix as vectors of columns: [depth / side_by_side][lane][side_by_side]."""
        _, _, depth, columns = sizes(self.site)
        step, of_column = (1, depth) if self.site.attributes.turned else (columns, 1)
        lanes, near = self.v.lanes, self.side_by_side
        for column, count in in_vectors(w, lanes, columns, "column"):
            with w.loop("lane", count):
                w(w.use(POINTER, "from", f"right + ({column} + lane) * {of_column}"))
                place = f"({column}) * {self.stride} + lane * {near}"
                w(f"int16_t *const to = laid + {place};")
                for i, some in in_vectors(w, near, depth, "i"):
                    for one in range(some):
                        to = f"({i}) * {lanes} + {one}"
                        w(w.use(MOVE, f"to[{to}]", f"from[({i} + {one}) * {step}]"))
                    if some < near:
                        w(w.use(MOVE, f"to[({i}) * {lanes} + 1]", "0"))
                if self.stride > depth + near:
                    with w.loop("i", self.stride, start=depth):
                        w(w.use(MOVE, f"to[i * {lanes}]", "0"))

    def _tile(self, w: Writer, column: str, lanes: int, row: str, rows: int) -> None:
        v, together = self.v, self.together
        for place in range(rows):
            for part in ("upper", "lower"):
                v.let(w, "sums", f"{part}{place}", v.call(w, "each", "0"), "")
        w(w.use(POINTER, "k", f"laid + ({column}) * {self.stride}"))
        w(w.use(POINTER, "x", f"uppers + ({row}) * {self.stride}"))
        w(w.use(POINTER, "z", f"lowers + ({row}) * {self.stride}"))
        with w.loop("i", self.stride // together):
            (self._by_lane if self.by_lane else self._by_all)(w, rows)
            w(f"k += {v.lanes * together};")
            w(f"x += {together};")
            w(f"z += {together};")
            w.bill(1)
        for place in range(rows):
            at = f"({row} + {place}) * {sizes(self.site)[3]}"
            self._store(w, place, f"results + {at} + {column}", lanes)

    def _by_all(self, w: Writer, rows: int) -> None:
        v, pairs = self.v, self.together == 2
        weights = v.call(w, "inputs", "k", of=(2,)) if pairs else v.call(w, "h_load", "k")
        v.let(w, "words" if pairs else "halves", "weights", weights)
        for name, at in self._sums(rows):
            x = v.call(w, "repeat", at, of=(2,) if pairs else (1, 16))
            w(f"{name} = {v.call(w, 'dot', name, x, 'weights', of=(self.together, 0))};")

    def _by_lane(self, w: Writer, rows: int) -> None:
        v = self.v
        for name, at in self._sums(rows):
            v.let(w, "words", f"{name}_in", v.call(w, "inputs", at, of=(2,)))
        for lane in range(v.lanes):
            v.let(w, "words", f"weights{lane}", v.call(w, "inputs", f"k + {2 * v.lanes * lane}", of=(2,)))
            for name, _ in self._sums(rows):
                row = v.call(w, "words_apart_of", name, f"{name}_in", f"weights{lane}", of=(lane,))
                w(f"{name} = {row};")

    def _sums(self, rows: int) -> list[tuple[str, str]]:
        """The sums of a tile, and the places of their inputs."""
        parts = (("upper", "x"), ("lower", "z"))
        return [
            (f"{part}{place}", f"{pointer} + {place * self.stride}") for place in range(rows) for part, pointer in parts
        ]

    def _store(self, w: Writer, place: int, to: str, lanes: int) -> None:
        v, scale, upper, lower = self.v, _scale(self.site), f"upper{place}", f"lower{place}"
        assert scale is not None
        w(f"{upper} = {v.call(w, 'add', upper, v.call(w, 'shift_right', lower, of=(PART,)))};")
        rest = v.call(w, "and", lower, (1 << PART) - 1)
        rest = v.call(w, "mul", rest, scale.factor)
        if v.apart:
            value = v.call(w, "scaled_apart", upper, scale.multiplier, rest, 0)
        else:
            value = v.call(w, "upper_plus", upper, scale.multiplier, rest)
        value = v.call(w, "add", value, 1 << (scale.shift - 1))
        value = v.call(w, "shift_right", value, of=(scale.shift,))
        w(f"{v.call(w, 'store_words', to, value, of=(*INT16, lanes))};")
