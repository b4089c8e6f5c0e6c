"""The inputs under a convolution's window, copied for one tile of two positions.

Where a window lies inside and its rows are whole words, they are laid out straight from the input. Elsewhere they are
first gathered element by element into two small buffers behind the patch, with the zero point where there is padding.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from nnbuild.kernels.dsp.inputs import C_TYPE, MOVE, copy, expand, fill
from nnbuild.kernels.dsp.weights import padded_taps
from nnbuild.kernels.window_loops import Axis, product, total
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.integer import quant_of
from nnbuild.ops.site import Site
from nnbuild.writer import Writer


@dataclass(frozen=True)
class Window:
    rows: Axis
    columns: Axis
    channels: int
    depth: int
    filters: int
    groups: int
    zero: int
    dtype: str

    @property
    def flat(self) -> bool:
        """Every position is computed alike from its own input alone: they are one long row."""
        axes = (self.rows, self.columns)
        return all(axis.kernel == 1 and axis.stride == 1 and axis.size == axis.places and not axis.pad for axis in axes)

    @property
    def taps(self) -> int:
        return self.rows.kernel * self.columns.kernel * self.depth

    @property
    def pairs(self) -> int:
        return padded_taps(self.taps) // 2

    @property
    def run(self) -> int:
        """Inputs that lie side by side under one row of taps, or under one tap."""
        return self.depth * (self.columns.kernel if self.contiguous else 1)

    @property
    def contiguous(self) -> bool:
        return self.groups == 1 and self.columns.dilation == 1

    @property
    def direct(self) -> bool:
        """Whether runs can be laid out straight from the input."""
        return self.run % 4 == 0

    @property
    def gathers(self) -> bool:
        """Whether the buffers of single elements are ever used."""
        return not (self.direct and self.rows.always_inside and self.columns.always_inside)

    @property
    def buffer(self) -> int:
        """Elements of one position's buffer."""
        return padded_taps(self.taps) if self.gathers else 0

    @property
    def width(self) -> int:
        """Positions in a row."""
        return self.rows.places * self.columns.places if self.flat else self.columns.places

    @property
    def pair_count(self) -> int:
        return -(-self.width // 2)


def window_of(site: Site) -> Window:
    attributes = site.op.attributes
    assert isinstance(attributes, Conv2D)
    kh, kw, depth, filters = site.constant("kernel").shape
    height, width, channels = site.shape()
    rows, columns, _ = site.output_shape()
    (sy, sx), (dy, dx) = attributes.strides, attributes.dilation
    (top, _), (left, _) = attributes.padding
    return Window(
        Axis(height, rows, kh, sy, dy, top),
        Axis(width, columns, kw, sx, dx, left),
        channels,
        depth,
        filters,
        attributes.groups,
        quant_of(site.inputs[0]).zero_point,
        site.inputs[0].dtype,
    )


def declare_buffers(w: Writer, window: Window) -> None:
    """The buffers behind the patch; what fills them up to whole words never changes."""
    if not window.gathers:
        return
    kind = C_TYPE[window.dtype]
    w(f"{kind} *const gathered = ({kind} *)(scratch + {window.pairs});")
    if window.taps < window.buffer:
        with w.loop("i", window.buffer, start=window.taps):
            w(w.use(MOVE, "gathered[i]", f"gathered[{window.buffer} + i] = 0"))


def lay_out(w: Writer, window: Window, source: str, group: str) -> None:
    """Prints what fills the patch for positions x and `next` of output row y."""
    if not window.gathers:
        _inside(w, window, source, group)
        return
    inside = _condition(window)
    if inside is None:
        _inside(w, window, source, group)
        return
    share = _share_inside(window)
    if share > 0:
        with w.block(f"if ({inside})"), w.trips(share):
            _inside(w, window, source, group)
        with w.block("else"), w.trips(1 - share):
            _border(w, window, source, group)
    else:
        _border(w, window, source, group)


def _condition(window: Window) -> str | None:
    """When both positions lie inside; nothing where they always do."""
    rows, columns = window.rows.inside, window.columns.inside
    parts = []
    if rows.start > 0:
        parts.append(f"y >= {rows.start}")
    if rows.stop < window.rows.places:
        parts.append(f"y < {rows.stop}")
    if columns.start > 0:
        parts.append(f"x >= {columns.start}")
    if columns.stop < window.columns.places:
        parts.append(f"next < {columns.stop}")
    return " && ".join(parts) or None


def _share_inside(window: Window) -> float:
    rows, columns = window.rows.inside, window.columns.inside
    pairs = [(x, min(x + 1, window.columns.places - 1)) for x in range(0, window.columns.places, 2)]
    good = sum(first in columns and second in columns for first, second in pairs)
    return good / len(pairs) * len(rows) / window.rows.places


def _inside(w: Writer, window: Window, source: str, group: str) -> None:
    kind = C_TYPE[window.dtype]
    row_size = window.columns.size * window.channels
    top = "0" if window.flat else product(window.rows.position("y"), row_size)
    w(f"const {kind} *a = {source} + {_sum(top, product(window.columns.position('x'), window.channels), group)};")
    w(f"const {kind} *b = a + {product('next - x', window.columns.stride * window.channels)};")
    w.bill(6)
    inner = 1 if window.contiguous else window.columns.kernel
    step = window.columns.dilation * window.channels
    if not window.direct:
        _gather_inside(w, window, row_size, inner, step)
        return
    w("int64_t *to = patch;")
    with _maybe(w, "ky", window.rows.kernel):
        with _maybe(w, "kx", inner):
            expand(w, window.dtype, "to", ("a", "b"), window.run)
            if window.rows.kernel * inner > 1:
                w(f"to += {window.run // 2};")
            if inner > 1:
                w(f"a += {step};")
                w(f"b += {step};")
        _next_row(w, window, row_size - inner * step if inner > 1 else row_size)


def _next_row(w: Writer, window: Window, by: int) -> None:
    if window.rows.kernel > 1:
        extra = (window.rows.dilation - 1) * window.columns.size * window.channels
        w(f"a += {by + extra};")
        w(f"b += {by + extra};")
        w.bill(3)


def _maybe(w: Writer, variable: str, count: int) -> AbstractContextManager[None]:
    return w.loop(variable, count) if count > 1 else w.trips(1)


def _gather_inside(w: Writer, window: Window, row_size: int, inner: int, step: int) -> None:
    kind = C_TYPE[window.dtype]
    w(f"{kind} *to = gathered;")
    with _maybe(w, "ky", window.rows.kernel):
        with _maybe(w, "kx", inner):
            copy(w, window.dtype, "to", "a", window.run)
            copy(w, window.dtype, f"to + {window.buffer}", "b", window.run)
            w(f"to += {window.run};")
            if inner > 1:
                w(f"a += {step};")
                w(f"b += {step};")
        _next_row(w, window, row_size - inner * step if inner > 1 else row_size)
    expand(w, window.dtype, "patch", ("gathered", f"gathered + {window.buffer}"), window.buffer)


def _border(w: Writer, window: Window, source: str, group: str) -> None:
    kind, rows, columns = C_TYPE[window.dtype], window.rows, window.columns
    with w.loop("position", 2):
        w(f"{kind} *to = gathered + {product('position', window.buffer)};")
        w(f"const int32_t left = {columns.position('(position ? next : x)')};")
        with w.loop("ky", rows.kernel):
            w(f"const int32_t row = {total(rows.position('y'), product('ky', rows.dilation))};")
            with w.loop("kx", columns.kernel):
                w(f"const int32_t column = {total('left', product('kx', columns.dilation))};")
                w.bill(9)
                with w.block(f"if (row >= 0 && row < {rows.size} && column >= 0 && column < {columns.size})"):
                    place = product(f"row * {columns.size} + column", window.channels)
                    w(f"const {kind} *from = {source} + {_sum(place, group)};")
                    copy(w, window.dtype, "to", "from", window.depth)
                with w.block("else"), w.trips(0.2):
                    fill(w, window.dtype, "to", window.zero, window.depth)
                w(f"to += {window.depth};")
    expand(w, window.dtype, "patch", ("gathered", f"gathered + {window.buffer}"), window.buffer)


def _sum(*terms: str) -> str:
    return total(*(term for term in terms if term))
