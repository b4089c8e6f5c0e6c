"""Detects at run time which of several instruction sets the processor supports.

On x86 it uses CPUID, so no library is needed; the operating system must also save the set's registers on context
switches. On 64-bit Arm it asks Linux.
"""

from __future__ import annotations

from nnbuild.isa.isa import Isa
from nnbuild.plan.plan import Plan

QUERIES = {
    # flag: (leaf, subleaf, register, bit)
    "ssse3": (1, 0, "c", 9),
    "fma": (1, 0, "c", 12),
    "avx2": (7, 0, "b", 5),
    "bmi2": (7, 0, "b", 8),
    "avx512f": (7, 0, "b", 16),
    "avx512dq": (7, 0, "b", 17),
    "avx512bw": (7, 0, "b", 30),
    "avx512vl": (7, 0, "b", 31),
    "avx512_vnni": (7, 0, "c", 11),
    "avx512vbmi": (7, 0, "c", 1),
    "avx_vnni": (7, 1, "a", 4),
}
"""CPUID bits, by the names that Linux uses. Every x86-64 has SSE2."""

ARM64 = {"asimddp": ("AT_HWCAP", 20), "i8mm": ("AT_HWCAP2", 13)}
"""Bits of the auxiliary vector on Linux. Every 64-bit Arm processor has NEON."""

RISCV = {"zvl256b": "__riscv_vlenb() >= 32"}
"""Vector lengths, which the processor reports."""

OSXSAVE = (1, 0, "c", 27)
WIDE, WIDEST = 0x06, 0xE6
"""XCR0 bits of the 256-bit and of the 512-bit registers."""


def detection(plan: Plan) -> str:
    """The function that init calls; empty for a single set."""
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
    vectors = "zve32x" in plan.isas[0].features
    probe = "#include <sys/auxv.h>\n" if arm64 else "#include <riscv_vector.h>\n" if vectors else _probe(p)
    best = f"""\
{probe}{_kept(p) if any(_registers(isa) for isa in plan.isas[:-1]) else ""}
/* The best supported instruction set that has a version. */
static int32_t {p}_detect(void)
{{
{chr(10).join(checks)}
    return 0; /* {plan.isas[-1].name} */
}}
"""
    return f"""\
#if {plan.isas[0].guard}{" && defined(__linux__)" if arm64 else ""}
{best}
#else /* {"no way to ask" if arm64 else "every set's portable C"} */
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

/* Tests a bit of a CPUID leaf. */
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
/* The registers that the operating system saves (XCR0). */
static unsigned {p}_kept(void)
{{
    unsigned low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return low;
}}
"""
