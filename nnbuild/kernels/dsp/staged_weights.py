"""Kernels that copy their weights into scratch before they read them repeatedly: flash may be slow."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.base.writer import Instruction, Row, Writer
from nnbuild.isa.arm import GUARD
from nnbuild.kernels.contract import Demand, K, Kernel, Names
from nnbuild.ops.site import Site

AT_ONCE = 4
"""int64 per iteration."""
TURN, WORDS = 12, 8
"""Instructions per iteration: loads, a store of many words, addition, comparison, branch; the words it stores."""
CALL = 14
SINGLE = Row("{0} = {1};", 2, 4)
HELD = ("r3", "r4", "r5", "r6", "r8", "r9", "r10", "r12")


def _copy_loop() -> str:
    """Single loads: a load of many words waits longer for flash."""
    loads = [f"ldr.w {name}, [%1, #{4 * at}]" for at, name in enumerate(HELD)]
    turn = [".balign 4", "1:", *loads, "add.w %1, %1, #32", f"stmia.w %0!, {{{', '.join(HELD)}}}", "cmp.w %1, %2"]
    code = "\n".join(f'    "{line}\\n\\t"' for line in [*turn, "bne.w 1b"])
    clobbered = ", ".join(f'"{name}"' for name in (*HELD, "cc", "memory"))
    return f"""\
__asm__ volatile(
{code}
    : "+r"(to), "+r"(from)
    : "r"(end)
    : {clobbered});"""


COPY = Instruction(
    "copy_words",
    "void {name}(int64_t *to, const int64_t *from, const int64_t *end)",
    "while (from != end)\n    *to++ = *from++;",
    CALL,
    _copy_loop(),
    GUARD,
    outlined=True,
)


def staged(kernel: Kernel[K]) -> Kernel[K]:
    """The kernel with its "kernel" constant copied behind its own scratch, in a memory without wait states."""

    def demand(site: Site[K]) -> Demand:
        own = kernel.demand(site)
        return replace(
            own, scratch=8 * (_copy_offset(own) + own.packed["kernel"].size), copied=own.packed["kernel"].nbytes
        )

    def emit(w: Writer, site: Site[K], names: Names) -> None:
        own = kernel.demand(site)
        count = own.packed["kernel"].size
        stored, turns = names.packed["kernel"], count // AT_ONCE
        w(f"int64_t *const staged = {names.scratch} + {_copy_offset(own)};")
        if turns:
            w(f"{w.call(COPY, 'staged', stored, f'{stored} + {turns * AT_ONCE}')};")
            with w.trips(turns):
                w.bill(TURN, WORDS)
                w.runs(1)
        for at in range(turns * AT_ONCE, count):
            w(w.use(SINGLE, f"staged[{at}]", f"{stored}[{at}]"))
        kernel.emit(w, site, replace(names, packed={**names.packed, "kernel": "staged"}))

    return replace(kernel, demand=demand, emit=emit)


def _copy_offset(own: Demand) -> int:
    """The offset of the copy, in int64."""
    assert own.scratch_type == "int64", "weights are copied as int64"
    return -(-own.scratch // 8)
