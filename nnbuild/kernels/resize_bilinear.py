"""Bilinear resizing; tables for each axis hold the two inputs of every output and their weights."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.isa.arm import DSP
from nnbuild.isa.riscv import WORDS
from nnbuild.isa.vectors import Vectors, in_vectors
from nnbuild.kernels.contract import (
    PORTABLE,
    Functions,
    Kernel,
    Names,
    kernel_of,
    on_any_floats,
    on_each,
    only_float,
    only_integer,
)
from nnbuild.kernels.lanes.resized_words import ResizedWords
from nnbuild.kernels.loops import resized_runs
from nnbuild.kernels.loops.resized_pairs import CORNERS, SIDES, demand, steps
from nnbuild.kernels.parts.integer_steps import store
from nnbuild.numeric.resize import BITS, ONE
from nnbuild.numeric.rounding import limits
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.site import Site

BLEND = Row("{0} * {2}_rest + {1} * {2}", 2, products=2)
HALF = 1 << (2 * BITS - 1)


def _floats(v: Vectors, w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    def weights(near: str) -> tuple[str, str]:
        v.declare(w, f"{near}_each", v.call(w, "f_each", near))
        v.declare(w, f"{near}_rest", v.call(w, "f_each", f"1.0f - {near}"))
        return f"{near}_rest", f"{near}_each"

    def blend(name: str, low: str, high: str, far: str, near: str) -> None:
        v.declare(w, name, v.use(w, "add", v.use(w, "mul", low, far), v.use(w, "mul", high, near)))

    for outputs in steps(w, site, names, "float"):
        down, across = weights("y_near"), [weights(output.near) for output in outputs]
        for place, count in in_vectors(w, v.lanes, site.shape()[-1], "c"):
            corners = {corner: v.load(w, f"{corner} + {place}", count) for corner in CORNERS}
            for side in SIDES:
                blend(side, corners[f"low_{side}"], corners[f"high_{side}"], *down)
            for output, shares in zip(outputs, across, strict=True):
                value = f"value_{output.to}"
                blend(value, *SIDES, *shares)
                v.store(w, f"{output.to} + {place}", value, count)


def _single(w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    """Integers, in 1024ths of a pixel."""
    is_bytes = site.inputs[0].dtype == "int8"
    kind, wide = ("int32_t", "") if is_bytes else ("int64_t", "(int64_t)")
    for outputs in steps(w, site, names, "int32_t"):
        for near in ("y_near", *(output.near for output in outputs)):
            w(f"const int32_t {near}_rest = {ONE} - {near};")
        with w.loop("c", site.shape()[-1]):
            w.bill(8)
            for side in SIDES:
                w(w.use(c99.LET, side, w.use(BLEND, f"low_{side}[c]", f"high_{side}[c]", "y_near")))
            for output in outputs:
                total = f"total_{output.to}"
                w(f"const {kind} {total} = {w.use(BLEND, *(wide + side for side in SIDES), output.near)};")
                w.bill(4, wides=0.6 * (not is_bytes))
                value = f"(({total} + {HALF} - ({total} < 0)) >> {2 * BITS})"
                value = value if is_bytes else w.helper("rounding_shift", total, str(2 * BITS))
                store(w, f"{output.to}[c]", value, site.outputs[0])


def _in_lanes(v: Vectors, w: Writer, site: Site[ResizeBilinear], names: Names) -> None:
    """The same in vectors, one channel a lane."""
    is_bytes = site.inputs[0].dtype == "int8"
    load, store = ("widen", "store_bytes") if is_bytes else ("widen_words", "store_words")
    for outputs in steps(w, site, names, "int32_t"):
        for near in ("y_near", *(output.near for output in outputs)):
            _declare_weights(v, w, near)
        for place, count in in_vectors(w, v.lanes, site.shape()[-1], "c"):
            for side in SIDES:
                ends = [v.call(w, load, f"{row}_{side} + {place}", of=(count,)) for row in ("low", "high")]
                v.let(w, "sums", side, _blend(v, w, ends, "y_near"))
            for output in outputs:
                value = (_bytes if is_bytes else _words)(v, w, output.near)
                target = f"{output.to} + {place}"
                w(f"{v.call(w, store, target, value, of=(*limits(site.outputs[0].dtype), count))};")


def _by_number(v: Vectors) -> bool:
    return "multiply_add_by" in v.spellings


def _declare_weights(v: Vectors, w: Writer, near: str) -> None:
    if _by_number(v):
        w(f"const int32_t {near}_rest = {ONE} - {near};")
        return
    v.let(w, "sums", f"{near}_each", v.call(w, "each", near))
    v.let(w, "sums", f"{near}_rest", v.call(w, "each", f"{ONE} - {near}"))


def _blend(v: Vectors, w: Writer, ends: Iterable[str], near: str) -> str:
    low, high = ends
    if _by_number(v):
        return v.call(w, "multiply_add_by", v.call(w, "mul_by", low, f"{near}_rest"), high, near)
    return v.call(w, "add", v.call(w, "mul", low, f"{near}_rest"), v.call(w, "mul", high, f"{near}_each"))


def _bytes(v: Vectors, w: Writer, near: str) -> str:
    total = f"total_{near}"
    v.let(w, "sums", total, _blend(v, w, SIDES, near))
    if v.rounds:
        return v.call(w, "round_each", v.call(w, "away", total), 2 * BITS)
    return v.call(w, "shift_right", _lifted(v, w, total, total), of=(2 * BITS,))


def _words(v: Vectors, w: Writer, near: str) -> str:
    """The total has more than 32 bits: its upper part and its last bits are separate sums."""
    upper = [v.call(w, "shift_right", side, of=(BITS,)) for side in SIDES]
    last = [v.call(w, "and", side, ONE - 1) for side in SIDES]
    upper_sum, last_sum, total = (f"{name}_{near}" for name in ("upper", "last", "total"))
    v.let(w, "sums", upper_sum, _blend(v, w, upper, near))
    v.let(w, "sums", last_sum, _blend(v, w, last, near))
    v.let(w, "sums", total, v.call(w, "add", upper_sum, v.call(w, "shift_right", last_sum, of=(BITS,))))
    carried = v.call(w, "shift_right", _lifted(v, w, last_sum, total), of=(BITS,))
    return v.call(w, "shift_right", v.call(w, "add", upper_sum, carried), of=(BITS,))


def _lifted(v: Vectors, w: Writer, value: str, signed: str) -> str:
    """The value plus a half, to round it; plus one unit less where `signed` is negative."""
    half = v.call(w, "each", str(HALF))
    return v.call(w, "add", value, v.call(w, "add", v.call(w, "shift_right", signed, of=(31,)), half))


def _integers(v: Vectors) -> Functions[ResizeBilinear]:
    return Functions(only_integer, demand, partial(_in_lanes, v))


VARIANTS = (
    *on_any_floats(lambda v: Functions(only_float, demand, partial(_floats, v))),
    Kernel("integer", PORTABLE, only_integer, demand, _single),
    Kernel("runs", PORTABLE, resized_runs.accepts, resized_runs.demand, resized_runs.emit),
    on_each("integer", _integers),
    on_each("across", _integers),
    kernel_of("words", frozenset({"armv7em_dsp"}), ResizedWords(DSP)),
    kernel_of("aligned_words", frozenset({"rv32im"}), ResizedWords(WORDS, aligned=True)),
)
