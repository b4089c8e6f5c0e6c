"""Finds floating-point and SIMD instructions, including double-precision arithmetic, function by function.

Counts every instruction that reads or writes a floating-point, vector or mask register, the x87 and MMX stack, or their
control registers. Saving and restoring the whole state (fxsave, xsave) does not count: it computes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from nnbuild.audit.code import Chunk, Code

X86_REGISTERS = re.compile(r"\b(?:[xyz]mm\d+|mm[0-7]|st\(\d\)|k[0-7]|tmm[0-7])\b")
X86_STATE = re.compile(r"^(?:fx(?:save|rstor)|xsave|xrstor)")
X86_NO_REGISTERS = frozenset(
    {"emms", "femms", "wait", "ldmxcsr", "stmxcsr", "vldmxcsr", "vstmxcsr", "vzeroupper", "vzeroall"}
)
X86_VECTOR_BYTES = (0x62, 0xC4, 0xC5)
"""First bytes of EVEX and VEX. What capstone cannot decode there is of a newer vector or matrix set: it knows the few
that work on general registers."""
X86_AMBIGUOUS = frozenset({"movsd", "cmpsd"})  # also string instructions
X86_DOUBLE = re.compile(
    r"^v?(?:(?:add|sub|mul|div|sqrt|min|max|round|rndscale|u?comi|cmp\w*|hadd|hsub|addsub|dp|fn?m(?:add|sub)\w*)[sp]d"
    r"|cvt\w*[sp]d\w*)$"
)
ARM_DOUBLE = re.compile(r"^v(?!mov|ldr|str|push|pop|ldm|stm)\w+\.(?:\w+\.)?f64|^vcvt\w*\.f64")
A64_DOUBLE = re.compile(r"^f(?!mov|csel)\w+|^[su]cvtf")
A64_DOUBLE_OPERANDS = re.compile(r"\bd\d+\b|\.2d\b")
RISCV_DOUBLE = re.compile(r"^f(?!s?gnj|sgnj|mv|ld|sd)\w*[\w.]*\.d(?:\.|$)")
RISCV_FP_OPCODES = frozenset({0x07, 0x27, 0x43, 0x47, 0x4B, 0x4F, 0x53, 0x57})
RISCV_FP_COMPRESSED = frozenset({(0, 1), (0, 5), (2, 1), (2, 5)})
RISCV32_FP_COMPRESSED = RISCV_FP_COMPRESSED | {(0, 3), (0, 7), (2, 3), (2, 7)}  # on RV64 these load and store words
PPC_FP_OPCODES = frozenset({4, *range(48, 56), 57, 59, 60, 61, 63})
"""Primary opcodes: AltiVec (or the embedded cores' SPE), loads and stores of floats, arithmetic, VSX. 57 and 61 also
load and store pairs of general registers, depending on their last bits."""
PPC_FP_INDEXED = re.compile(r"^(?:[ls]v|[ls]x?v|lxs|stxs|lf|stf|[ls]tv|stx[sv]|mtv|mfv|mtfpr|mffpr|dst|dss)")
PPC_DOUBLE = re.compile(r"^(?:f(?:add|sub|mul|div|sqrt|n?madd|n?msub|rsqrte|re)\.?$|xs\w*dp$|xv\w*dp$|efd)")
PPC_NO_ARITHMETIC = re.compile(
    r"^x[sv](?:abs|nabs|neg|cpsgn|cmp\w*|ts\w*|xexp\w*|xsig\w*)\w*dp$|^xscvspdpn?$|^xscvdpspn?$"
)
MAX_ADDRESSES = 200


@dataclass(frozen=True)
class FpUse:
    """The floating-point instructions of one function; its name is empty where unknown."""

    function: str
    section: str
    count: int
    first: int
    first_text: str
    doubles: int
    first_double: int
    first_double_text: str
    addresses: tuple[int, ...]
    """Addresses of the first instructions, enough to find the line of most of them."""


Hit = tuple[int, str, bool]


def scan(code: Code) -> tuple[FpUse, ...]:
    """Every function of the file with floating-point instructions, in address order."""
    finder = _finder(code)
    found: dict[tuple[int, int], list[Hit]] = {}
    names: dict[int, str] = {}
    for chunk in code.chunks():
        for hit in finder(chunk):
            extent = code.locator.function_at(hit[0])
            start = extent.start if extent is not None else -1  # static functions may share a name
            names[start] = extent.symbol.name if extent is not None else ""
            found.setdefault((chunk.section.number, start), []).append(hit)
    sections = code.locator.file.sections
    return tuple(_use(names[start], sections[section].name, hits) for (section, start), hits in found.items())


def _use(name: str, section: str, hits: list[Hit]) -> FpUse:
    doubles = [hit for hit in hits if hit[2]]
    double = doubles[0] if doubles else (0, "", True)
    addresses = tuple(hit[0] for hit in hits[:MAX_ADDRESSES])
    return FpUse(name, section, len(hits), hits[0][0], hits[0][1], len(doubles), double[0], double[1], addresses)


def _finder(code: Code) -> Callable[[Chunk], Iterator[Hit]]:
    machine = code.locator.file.machine
    if machine in ("x86", "x86-64"):
        known: dict[str, bool] = {}
        return lambda chunk: _scan_x86(code, chunk, known)
    scanner = {
        "arm": _scan_arm,
        "aarch64": _scan_aarch64,
        "riscv": _scan_riscv,
        "powerpc": _scan_powerpc,
        "powerpc64": _scan_powerpc,
    }[machine]
    return lambda chunk: scanner(code, chunk)


def is_fp_x86(mnemonic: str, operands: str) -> bool:
    name = mnemonic.rsplit(" ", 1)[-1]
    if X86_REGISTERS.search(operands) or name in X86_NO_REGISTERS:
        return True
    return name.startswith("f") and not X86_STATE.match(name)


def _scan_x86(code: Code, chunk: Chunk, known: dict[str, bool]) -> Iterator[Hit]:
    for address, _, mnemonic, operands in code.lines_of(chunk):
        if mnemonic == ".byte":
            raw = chunk.code[address - chunk.start :][:6]
            if raw[0] in X86_VECTOR_BYTES:
                yield address, f"an unknown vector instruction, bytes {raw.hex()}", False
            continue
        fp = known.get(mnemonic)
        if fp is None:
            fp = is_fp_x86(mnemonic, operands)
            if mnemonic.rsplit(" ", 1)[-1] not in X86_AMBIGUOUS:
                known[mnemonic] = fp  # a mnemonic either always or never has such operands
        if fp:
            double = bool(X86_DOUBLE.match(mnemonic)) or (mnemonic[0] == "f" and mnemonic not in ("fnop", "femms"))
            yield address, f"{mnemonic} {operands}".strip(), double


def _scan_arm(code: Code, chunk: Chunk) -> Iterator[Hit]:
    for address, size, mnemonic, operands in code.lines_of(chunk):
        if mnemonic[0] == "v":
            yield address, f"{mnemonic} {operands}", bool(ARM_DOUBLE.match(mnemonic))
        elif chunk.thumb and is_vector_extension(chunk.code, address - chunk.start, mnemonic):
            word = chunk.code[address - chunk.start :][: max(size, 4)].hex()
            yield address, f"a vector (MVE) instruction, bytes {word}", False


def is_vector_extension(code: bytes, at: int, mnemonic: str) -> bool:
    """Whether this is an Armv8.1-M vector instruction, which capstone decodes as unknown or as a coprocessor
    instruction.

    They occupy the space of coprocessors 14 and 15, which the Cortex-M does not use otherwise, and of Advanced SIMD.
    """
    if mnemonic not in (".byte", "ldc", "ldc2", "ldcl", "ldc2l", "stc", "stc2", "stcl", "stc2l", "cdp", "cdp2"):
        return False
    high, low = int.from_bytes(code[at : at + 2], "little"), int.from_bytes(code[at + 2 : at + 4], "little")
    if high & 0xFFC0 == 0xF000 and low == 0xE801:
        return True  # VCTP, which makes a vector predicate
    return high & 0xEC00 == 0xEC00 and (low >> 8 & 15 >= 14 or high & 0xEF00 == 0xEF00 or mnemonic == ".byte")


def is_fp_aarch64(word: int) -> bool:
    """By the top-level encoding table: bits 27 and 26 set are SIMD and FP, class 0010 is SVE, 0000 with bit 31 SME."""
    group = word >> 25 & 15
    return word >> 26 & 3 == 3 or group == 2 or (group == 0 and bool(word >> 31))


def _scan_aarch64(code: Code, chunk: Chunk) -> Iterator[Hit]:
    raw = chunk.code
    places = [at for at in range(0, len(raw) - 3, 4) if is_fp_aarch64(int.from_bytes(raw[at : at + 4], "little"))]
    if not places:
        return
    text = {entry[0]: entry[2:] for entry in code.lines_of(chunk)}
    for at in places:
        mnemonic, operands = text.get(chunk.start + at, ("", raw[at : at + 4].hex()))
        double = bool(A64_DOUBLE.match(mnemonic) and A64_DOUBLE_OPERANDS.search(operands))
        yield chunk.start + at, f"{mnemonic} {operands}".strip(), double


def is_fp_riscv(half: int, wide: bool) -> bool:
    """By the opcode in the first 16 bits of an instruction."""
    if half & 3 == 3:
        return half & 0x7F in RISCV_FP_OPCODES
    return (half & 3, half >> 13) in (RISCV_FP_COMPRESSED if wide else RISCV32_FP_COMPRESSED)


def _scan_powerpc(code: Code, chunk: Chunk) -> Iterator[Hit]:
    order: Literal["little", "big"] = "little" if code.locator.file.little else "big"
    for address, _, mnemonic, operands in code.lines_of(chunk):
        word = int.from_bytes(chunk.code[address - chunk.start :][:4], order)
        opcode = word >> 26
        fp = (
            opcode in PPC_FP_OPCODES
            and not (opcode == 57 and word & 3 < 2)
            and not (opcode == 4 and _ppc_integer(mnemonic))
        )
        if fp or (opcode == 31 and PPC_FP_INDEXED.match(mnemonic)):
            double = bool(PPC_DOUBLE.match(mnemonic)) and not PPC_NO_ARITHMETIC.match(mnemonic)
            text = f"{mnemonic} {operands}" if mnemonic != ".byte" else f"{word:08x}"
            yield address, text.strip(), double


def _ppc_integer(mnemonic: str) -> bool:
    """Multiply-and-add of general registers, which shares AltiVec's opcode."""
    return mnemonic.startswith("madd")


def _scan_riscv(code: Code, chunk: Chunk) -> Iterator[Hit]:
    raw, at, wide = chunk.code, 0, code.locator.file.bits == 64
    places = []
    while at + 1 < len(raw):
        half = raw[at] | raw[at + 1] << 8
        if is_fp_riscv(half, wide):
            places.append(at)
        at += 4 if half & 3 == 3 else 2
    if not places:
        return
    text = {entry[0]: entry[2:] for entry in code.lines_of(chunk)}
    for at in places:
        mnemonic, operands = text.get(chunk.start + at, ("", raw[at : at + 4].hex()))
        yield chunk.start + at, f"{mnemonic} {operands}".strip(), bool(RISCV_DOUBLE.match(mnemonic))
