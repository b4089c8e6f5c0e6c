"""Kernels whose weights are stored in codes and unpacked in scratch, in the layout that the kernel reads.

Any kernel serves that reads an array called "kernel". Words made of its most frequent parts are stored in codes, and
stretches of other words, such as channel constants between the weights, unchanged. A code is a byte per half word or
per word, or a Huffman code per byte. A layer of many positions is hardly slower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Instruction, Writer
from nnbuild.encodings import prefix
from nnbuild.encodings.halves import AT_ONCE, Halves, halves, wholes
from nnbuild.encodings.prefix import LONGEST, Prefix
from nnbuild.isa.arm import DSP
from nnbuild.kernels.compressed.sparse_weights import distinct
from nnbuild.kernels.contract import Demand, K, Kernel, Names
from nnbuild.model.graph import Array
from nnbuild.ops.site import Site

ALIGNMENT = 64
CALL_CYCLES, COPY_CYCLES = 30, 5
"""Cycles of a routine, and of an unencoded word."""
TABLE_CYCLES = 2500
"""Cycles to build the decoding table of LONGEST bits."""


@dataclass(frozen=True)
class Scheme:
    """few: distinct weights, with zero, up to which it is considered; word_cycles, word_loads: the cost of decoding a
    word; room: bytes of scratch besides the unpacked words."""

    name: str
    encoding: str
    few: int
    made: Callable[[Array], Halves | Prefix]
    word_cycles: float
    word_loads: float
    room: int = 0


HALVES = Scheme("unpacked", "codes", 16, halves, 7.5, 4)
"""A byte encodes two of 16 weights."""
WHOLES = Scheme("spread", "word codes", 4, wholes, 4, 2)
"""A byte encodes four of 4 weights."""
PREFIX = Scheme("prefixed", "prefix codes", prefix.MOST, prefix.prefix, 50, 6, 2 << LONGEST)
SCHEMES = (HALVES, WHOLES, PREFIX)


@lru_cache(maxsize=64)
def _stored(kernel: Kernel, site: Site, scheme: Scheme) -> tuple[Demand, Halves | Prefix]:
    """The kernel's demand, and its weights."""
    own = kernel.demand(site)
    return own, scheme.made(own.packed["kernel"])


def _whole(size: int) -> int:
    return size + -size % ALIGNMENT


def unpacked(kernel: Kernel[K]) -> tuple[Kernel[K], ...]:
    """The kernel with its weights stored in each way."""
    return tuple(_kernel(kernel, scheme) for scheme in SCHEMES)


def _kernel(kernel: Kernel[K], scheme: Scheme) -> Kernel[K]:
    def accepts(site: Site[K]) -> str | None:
        if site.constant("kernel").dtype.kind != "i" or distinct(site) > scheme.few:
            return f"its weights have more than {scheme.few} values"
        return kernel.accepts(site)

    def demand(site: Site[K]) -> Demand:
        own, found = _stored(kernel, site, scheme)
        weights = own.packed["kernel"]
        packed = {role: part for role, part in own.packed.items() if role != "kernel"}
        packed |= {f"kernel_{role}": part for role, part in found.parts.items()}
        kind = own.scratch_type if own.scratch else weights.dtype.name
        size = _whole(own.scratch) + _whole(weights.nbytes) + scheme.room
        return replace(own, scratch=size, scratch_type=kind, packed=packed, copied=weights.nbytes)

    def emit(w: Writer, site: Site[K], names: Names) -> None:
        own, found = _stored(kernel, site, scheme)
        weights = own.packed["kernel"]
        kind = C_TYPES[weights.dtype.name]
        size = np.dtype(own.scratch_type).itemsize
        at = f"({names.scratch} + {_whole(own.scratch) // size})" if own.scratch else names.scratch
        w(f"{kind} *const unpacked = {f'({kind} *)(void *){at}' if own.scratch else at};")
        table = f"(int16_t *)(void *)((int8_t *)unpacked + {_whole(weights.nbytes)})"
        codes, given = reader(w, scheme, found, {role: names.packed[f"kernel_{role}"] for role in found.parts}, table)
        others, coded = int(found.turns[0::2].sum()), int(found.turns[1::2].sum())
        w.bill(CALL_CYCLES)
        w.bill(scheme.word_cycles * coded, scheme.word_loads * coded)
        w.bill(COPY_CYCLES * others, others)
        apart, each = "stretches" in found.parts, 3 if isinstance(found, Prefix) else 2
        routine, count = (_decode_stretches(codes, each), len(found.stretches) // each) if apart else (codes, coded)
        between = [names.packed[f"kernel_{role}"] for role in ("others", "stretches")] if apart else ["0"]
        call = w.call(routine, "(int8_t *)unpacked", *given, *between, str(count))
        w(f"{call if apart else f'(void){call}'};")
        kernel.emit(w, site, replace(names, packed={**names.packed, "kernel": "unpacked"}))

    name = f"{kernel.name}_{scheme.name}"
    return replace(kernel, name=name, accepts=accepts, demand=demand, emit=emit, encoding=scheme.encoding)


def reader(
    w: Writer, scheme: Scheme, found: Halves | Prefix, names: Mapping[str, str], table: str
) -> tuple[Instruction, tuple[str, ...]]:
    """The routine that decodes words, and its arguments between the destination and the number of codes read; `table`
    where there is room for one."""
    if not isinstance(found, Prefix):
        return _decode_by_table(scheme is WHOLES), (names["codes"], names["table"])
    w(f"int16_t *const table = {table};")
    w(f"{w.call(_build_table(), 'table', names['lengths'], names['table'], str(len(found.lengths)))};")
    w.bill(TABLE_CYCLES)
    return _decode_prefix(), (names["codes"], "table", str(found.mask))


def _decode_by_table(whole: bool) -> Instruction:
    """Decodes by a table of words or half words. `at` is the number of codes read before."""
    w, each = Writer("{prefix}"), 1 if whole else 2
    w("codes += at;")
    with w.block(f"for (int32_t left = count; left > 0; left -= {AT_ONCE})"):
        for word in range(AT_ONCE):
            low, high = (f"(uint32_t)table[codes[{each * word + half}]]" for half in range(2))
            to = f"to + {4 * word}"
            value = f"(int32_t)table[codes[{word}]]" if whole else f"(int32_t)({low} | {high} << 16)"
            w(f"{DSP.call(w, 'write_bytes', to, value)};")
        w(f"codes += {each * AT_ONCE};")
        w(f"to += {4 * AT_ONCE};")
    w(f"return at + {each} * (uint32_t)count;")
    return _routine(w, f"unpack_{'words' if whole else 'halves'}", f"uint{32 if whole else 16}_t")


def _decode_prefix() -> Instruction:
    """Decodes prefix codes: a table entry has a byte in its upper half and the length of its code in the lower one.
    `at` is the number of bits read before; `mask` keeps or clears the sign of a lower byte."""
    w = Writer("{prefix}")
    of_code = (1 << LONGEST) - 1
    with w.block("for (int32_t left = count; left > 0; --left)"):
        w("uint32_t word = 0;")
        for half in w.each(range(2)):
            loaded = DSP.call(w, "load_bytes", "(const int8_t *)codes + (at >> 3)", of=(4,))
            w(f"const uint32_t bits = (uint32_t){loaded} >> (at & 7);")
            w(f"const int32_t low = table[bits & {of_code}];")
            w(f"const int32_t high = table[bits >> (low & 15) & {of_code}];")
            w("at += (uint32_t)(low & 15) + (uint32_t)(high & 15);")
            both = "(low >> 8 & mask) + (high & -256)"
            w(f"word |= (uint32_t)({both})" + (" << 16;" if half else " & 0xffffU;"))
        w(f"{DSP.call(w, 'write_bytes', 'to', '(int32_t)word')};")
        w("to += 4;")
    w("return at;")
    return _routine(w, "unpack_prefix", "int16_t", "int32_t mask, ")


def _build_table() -> Instruction:
    """Builds the table of all values of LONGEST bits."""
    w = Writer("{prefix}")
    w("uint32_t code = 0;")
    with w.block("for (uint32_t size = 1; size <= longest; ++size)"):
        with w.block("for (int32_t left = *lengths; left > 0; --left)"):
            with w.block(f"for (uint32_t i = code; i < {1 << LONGEST}; i += 1U << size)"):
                w("all[i] = (int16_t)(*table * 256 + (int32_t)size);")
            w("uint32_t bit = 1U << (size - 1);")
            with w.block("while ((code & bit) != 0)"):
                w("code ^= bit;")
                w("bit >>= 1;")
            w("code |= bit;")
            w("table += 1;")
        w("lengths += 1;")
    head = "void {name}(int16_t *all, const uint8_t *lengths, const int8_t *table, uint32_t longest)"
    return w.routine("prefix_table", head)


def _routine(w: Writer, name: str, entries: str, more: str = "") -> Instruction:
    """Writes a number of words, and returns how much of the codes it has read."""
    start = f"uint32_t {{name}}(int8_t *to, const uint8_t *codes, const {entries} *table, {more}"
    head = f"{start}uint32_t at, int32_t count)"
    return w.routine(name, head)


def _decode_stretches(codes: Instruction, each: int) -> Instruction:
    """The same for alternating stretches of encoded and plain words; every third number repeats the two before it."""
    w = Writer("{prefix}")
    arguments = ["to", "codes", "table", *(["mask"] if each > 2 else []), "at", "stretches[1]"]
    w("uint32_t at = 0;")
    with w.block("for (; count > 0; --count)"):
        with w.block("for (int32_t again = stretches[2]; again > 0; --again)") if each > 2 else nullcontext():
            with w.block("for (int32_t left = stretches[0]; left > 0; --left)"):
                w(f"{DSP.call(w, 'write_bytes', 'to', 'others[0]')};")
                w("others += 1;")
                w("to += 4;")
            w(f"at = {w.call(codes, *arguments)};")
            w("to += 4 * stretches[1];")
        w(f"stretches += {each};")
    head = codes.head.replace("uint32_t {name}", "void {name}").replace(
        "uint32_t at", f"const int32_t *others, const uint{8 if each > 2 else 16}_t *stretches"
    )
    name = f"{codes.name}_between"
    return w.routine(name, head)
