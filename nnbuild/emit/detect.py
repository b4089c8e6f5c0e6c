"""Finding out, when the program runs, which of several instruction sets the processor has.

On x86 it asks the processor itself, so no library is needed; the operating system must keep the registers of a set,
too, when it switches between programs. On 64-bit Arm it asks Linux.
"""

from __future__ import annotations

from nnbuild.isa.isa import Isa
from nnbuild.plan.plan import Plan

QUERIES = {
    # ability: (leaf, subleaf, register, bit)
    "ssse3": (1, 0, "c", 9),
    "fma": (1, 0, "c", 12),
    "avx2": (7, 0, "b", 5),
    "avx512f": (7, 0, "b", 16),
    "avx512dq": (7, 0, "b", 17),
    "avx512bw": (7, 0, "b", 30),
    "avx512vl": (7, 0, "b", 31),
    "avx512_vnni": (7, 0, "c", 11),
    "avx512vbmi": (7, 0, "c", 1),
    "avx_vnni": (7, 1, "a", 4),
}
"""Where the processor tells of what Linux calls by this name. SSE2 belongs to every x86-64."""

ARM64 = {"asimddp": ("AT_HWCAP", 20), "i8mm": ("AT_HWCAP2", 13)}
"""Where Linux tells of it. NEON belongs to every 64-bit Arm processor."""

RISCV = {"zvl256b": "__riscv_vlenb() >= 32"}
"""How long vectors are, which the processor says itself."""

OSXSAVE = (1, 0, "c", 27)
WIDE, WIDEST = 0x06, 0xE6
"""The registers of 256 and of 512 bits, as the operating system says that it keeps them."""


def detection(plan: Plan) -> str:
    """The function that init calls; empty where there is one set only."""
    if len(plan.isas) == 1:
        return ""
    p = plan.prefix
    levels = list(enumerate(reversed(plan.isas)))
    checks = [
        f"    if ({_condition(p, isa)}) {{\n        return {level}; /* {isa.name} */\n    }}"
        for level, isa in reversed(levels)
        if level
    ]
    arm64 = "aarch64" in plan.isas[0].architectures
    vectors = "rvv" in plan.isas[0].features
    probe = "#include <sys/auxv.h>\n" if arm64 else "#include <riscv_vector.h>\n" if vectors else _probe(p)
    best = f"""\
{probe}{_kept(p) if any(_registers(isa) for isa in plan.isas[:-1]) else ""}
/* The best instruction set of which there is a version. */
static int32_t {p}_detect(void)
{{
{chr(10).join(checks)}
    return 0; /* {plan.isas[-1].name} */
}}
"""
    return f"""\
#if {plan.isas[0].guard}{" && defined(__linux__)" if arm64 else ""}
{best}
#else /* {"nobody to ask" if arm64 else "the sets' meanings in portable C, all alike"} */
static int32_t {p}_detect(void)
{{
    return 0;
}}
#endif
"""


def _condition(p: str, isa: Isa) -> str:
    queries = [_has(p, QUERIES[flag]) for flag in isa.cpu_flags if flag in QUERIES]
    queries += [RISCV[flag] for flag in isa.cpu_flags if flag in RISCV]
    queries += [f"(getauxval({w}) >> {bit} & 1UL)" for w, bit in (ARM64[f] for f in isa.cpu_flags if f in ARM64)]
    kept = _registers(isa)
    if kept:
        queries = [_has(p, OSXSAVE), f"({p}_kept() & 0x{kept:x}) == 0x{kept:x}", *queries]
    return " &&\n        ".join(queries)


def _registers(isa: Isa) -> int:
    return WIDEST if "avx512f" in isa.cpu_flags else WIDE if "avx2" in isa.cpu_flags else 0


def _has(p: str, query: tuple[int, int, str, int]) -> str:
    leaf, subleaf, register, bit = query
    return f"{p}_cpuid({leaf}, {subleaf}, {'abcd'.index(register)}, {bit})"


def _probe(p: str) -> str:
    return f"""\
#include <cpuid.h>

/* Whether a bit is set in what the processor says of itself. */
static int {p}_cpuid(unsigned leaf, unsigned subleaf, int index, int bit)
{{
    unsigned registers[4] = {{0, 0, 0, 0}};

    if (!__get_cpuid_count(leaf, subleaf, &registers[0], &registers[1], &registers[2], &registers[3])) {{
        return 0;
    }}
    return (int)(registers[index] >> bit & 1U);
}}
"""


def _kept(p: str) -> str:
    return f"""
/* Which registers the operating system keeps. */
static unsigned {p}_kept(void)
{{
    unsigned low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return low;
}}
"""
