"""How many instructions a native spelling of an operation has: on Helium as gcc compiles it, with RISC-V's vectors as
clang does."""

from __future__ import annotations

import re

_CALL = re.compile(r"\b(v[a-z]\w*?q(?:_\w+)?|vpnot|vctp\d+q|__riscv_v\w+)\(")
_FREE = re.compile(r"(__riscv_)?(vreinterpret|vget|vset_|vsetq|vcreate|vundefined|vuninitialized)")
_MORE = {
    r"vldr|vstr": 1,  # its address, which is not computed by the instruction itself
    r"\w*_[zpm]_": 1,  # the predicate is set for one instruction
    r"vdupq_n": -0.5,  # a constant is often made before a loop
    r"vcmp": 3,  # the predicate goes by way of a core register
    r"__riscv_v[ls]\w*e\d+_": 1,  # the address, or that of the next one
    r"__riscv_v(sext|nclip|ncvt|wmacc)": 0.5,  # the width of numbers is set anew, unless it is already
    r"__riscv_vf?mv_v": 1,  # the number, which is not kept in a register
}
_ASSEMBLY = re.compile(r"__asm__[^(]*\(\s*\"([^\"]+)\"")
_ROUNDING = "__RISCV_VXRM"
"""Is set anew for each operation."""
_VARIABLE = re.compile(r"\*\((?:const )?seen \*\)")


def instructions_spelt(native: str) -> float:
    """Of intrinsics, of assembly, and of vectors that are loaded or stored as variables."""
    calls = [name for name in _CALL.findall(native) if not _FREE.match(name)]
    more = sum(number for name in calls for kind, number in _MORE.items() if re.match(kind, name))
    lines: int = sum(text.count("\\n\\t") + 1 for text in _ASSEMBLY.findall(native))
    return len(calls) + more + lines + native.count(_ROUNDING) + len(_VARIABLE.findall(native))
