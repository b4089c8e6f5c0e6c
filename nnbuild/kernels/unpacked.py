"""Kernels whose weights are stored by a code for every two bytes, and laid out in scratch as the kernel wants them.

Nothing has to be known of a kernel but that it reads an array called "kernel": words whose halves are among the 256
that occur most are stored as a byte for each half, and stretches of others, such as the constants of channels between
the weights, as they are. What is computed for many positions is hardly slower by it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Instruction, Writer
from nnbuild.encodings.halves import AT_ONCE, Halves, halves
from nnbuild.isa.arm import DSP
from nnbuild.kernels.contract import Demand, K, Kernel, Names
from nnbuild.kernels.sparse import distinct
from nnbuild.ops.site import Site

ALIGNMENT = 64
CALL_CYCLES, WORD_CYCLES, COPY_CYCLES = 30, 7.5, 5
"""Of the routine, and of a word by its codes or as it is."""
FEW = 16
"""Distinct weights, with zero, up to which two of them have a code of a byte."""


@lru_cache(maxsize=64)
def _stored(kernel: Kernel, site: Site) -> tuple[Demand, Halves]:
    """What the kernel demands, and its weights."""
    own = kernel.demand(site)
    return own, halves(own.packed["kernel"])


def _behind(own: Demand) -> int:
    """Bytes of the kernel's own scratch, before the weights."""
    return own.scratch + -own.scratch % ALIGNMENT


def unpacked(kernel: Kernel[K]) -> Kernel[K]:
    def accepts(site: Site[K]) -> str | None:
        if site.constant("kernel").dtype.kind != "i" or distinct(site) > FEW:
            return f"its weights have more than {FEW} values"
        return kernel.accepts(site)

    def demand(site: Site[K]) -> Demand:
        own, found = _stored(kernel, site)
        weights = own.packed["kernel"]
        packed = {role: part for role, part in own.packed.items() if role != "kernel"}
        packed |= {f"kernel_{role}": part for role, part in found.parts.items()}
        kind = own.scratch_type if own.scratch else weights.dtype.name
        size = _behind(own) + weights.nbytes + -weights.nbytes % ALIGNMENT
        return replace(own, scratch=size, scratch_type=kind, packed=packed, copied=weights.nbytes)

    def emit(w: Writer, site: Site[K], names: Names) -> None:
        own, found = _stored(kernel, site)
        kind = C_TYPES[own.packed["kernel"].dtype.name]
        if own.scratch:
            size = np.dtype(own.scratch_type).itemsize
            w(f"{kind} *const unpacked = ({kind} *)(void *)({names.scratch} + {_behind(own) // size});")
        else:
            w(f"{kind} *const unpacked = {names.scratch};")
        routine = _routine()
        w.bill(CALL_CYCLES)
        w.bill(WORD_CYCLES * (len(found.codes) / 2), len(found.codes) * 2)
        w.bill(COPY_CYCLES * len(found.others), len(found.others))
        given = [names.packed[f"kernel_{role}"] for role in found.parts]
        w(f"{w.call(routine, '(int8_t *)unpacked', *given, str(len(found.stretches) // 2))};")
        kernel.emit(w, site, replace(names, packed={**names.packed, "kernel": "unpacked"}))

    name = f"{kernel.name}_unpacked"
    return replace(kernel, name=name, accepts=accepts, demand=demand, emit=emit, encoding="codes")


def _routine() -> Instruction:
    w = Writer("{prefix}")
    with w.block("for (; count > 0; --count)"):
        with w.block("for (int32_t left = stretches[0]; left > 0; --left)"):
            w(f"{DSP.call(w, 'write_bytes', 'to', 'others[0]')};")
            w("others += 1;")
            w("to += 4;")
        with w.block(f"for (int32_t left = stretches[1]; left > 0; left -= {AT_ONCE})"):
            for at in range(AT_ONCE):
                low, high = (f"(uint32_t)table[codes[{2 * at + half}]]" for half in range(2))
                to = f"to + {4 * at}" if at else "to"
                w(f"{DSP.call(w, 'write_bytes', to, f'(int32_t)({low} | {high} << 16)')};")
            w(f"codes += {2 * AT_ONCE};")
            w(f"to += {4 * AT_ONCE};")
        w("stretches += 2;")
    head = (
        "void {name}(int8_t *to, const uint8_t *codes, const uint16_t *table, const int32_t *others, "
        "const uint16_t *stretches, int32_t count)"
    )
    return Instruction("unpack_halves", head, str(w), 0, uses=tuple(w.instructions.values()), outlined=True)
