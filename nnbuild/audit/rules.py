"""Rules about sections, data, constructors, relocations and instructions. Each takes one file and returns findings."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

import numpy as np

from nnbuild.audit import fpscan
from nnbuild.audit.code import INSTALL_HINT, Code, find_capstone
from nnbuild.audit.elf import (
    PF_W,
    PF_X,
    PT_GNU_STACK,
    PT_LOAD,
    SHN_COMMON,
    SHT_INIT_ARRAY,
    SHT_NOBITS,
    SHT_PREINIT_ARRAY,
    STT_OBJECT,
    STT_TLS,
    ObjectFile,
    Section,
    Symbol,
)
from nnbuild.audit.findings import Finding, Severity
from nnbuild.audit.literal_pools import LiteralPools
from nnbuild.audit.policy import Policy, Verdict
from nnbuild.audit.relocations import RelocationTable
from nnbuild.audit.source_locations import Locator, Place
from nnbuild.base.errors import ToolMissing

CONSTRUCTOR_SECTIONS = (".init_array", ".ctors", ".preinit_array")
CONSTANT_SECTIONS = (".rodata", ".srodata", ".data.rel.ro", ".constdata")
DATA_SECTIONS = (".data", ".sdata", ".bss", ".sbss", ".tdata", ".tbss", ".ldata", ".lbss")
# Tables that compilers, linkers and the kernel's macros make writable; no variable of the model is in them.
TABLE_SECTIONS = (
    *CONSTRUCTOR_SECTIONS, ".fini_array", ".dtors", ".eh_frame", ".tm_clone_table", ".got", ".jcr", ".gcc_except_table",
    ".gnu.linkonce.this_module", ".dynamic",
)  # fmt: skip


def severity(verdict: Verdict) -> Severity:
    return "violation" if verdict == "forbid" else "warning"


def section_place(locator: Locator, section: Section) -> Place:
    return Place(locator.file.name, section.name, 0)


def is_stripped(file: ObjectFile) -> bool:
    """Whether there is code, but no symbol table."""
    return not file.symbols and not file.dynamic_symbols and any(s.executable and s.size for s in file.sections)


def check_names(locator: Locator, policy: Policy) -> Iterator[Finding]:
    """Unknown never counts as clean: in a stripped file, a call of malloc looks like any other call."""
    if is_stripped(locator.file) and "forbid" in policy.symbols.values():
        yield Finding(
            "symbols-unknown", "violation", locator.file.name, Place(locator.file.name, "symbol table", 0),
            f"there is code but no symbol table (stripped), so it cannot be checked for symbols that the "
            f"policy {policy.name} forbids.",
            "Audit the file before it is stripped.",
        )  # fmt: skip


def check_sections(locator: Locator, policy: Policy) -> Iterator[Finding]:
    """Memory that is both writable and executable."""
    if policy.writable_executable != "allow":
        for section in locator.file.sections:
            if section.allocated and section.writable and section.executable and section.size:
                yield Finding(
                    "writable-executable", severity(policy.writable_executable), section.name,
                    section_place(locator, section), f"section {section.name} is both writable and executable.",
                    "Remove the section attribute, or the `w` in the assembly's .section flags.",
                )  # fmt: skip
    if policy.writable_executable_segments != "allow":
        for segment in locator.file.segments:
            if segment.kind in (PT_LOAD, PT_GNU_STACK) and segment.flags & PF_W and segment.flags & PF_X:
                name = "the stack" if segment.kind == PT_GNU_STACK else f"the segment at 0x{segment.virtual:x}"
                yield Finding(
                    "writable-executable", severity(policy.writable_executable_segments), name,
                    Place(locator.file.name, "program headers", 0), f"{name} is both writable and executable.",
                    "Link with -z noexecstack and a linker script that puts code and data in separate segments.",
                )  # fmt: skip


def check_constructors(locator: Locator, policy: Policy) -> Iterator[Finding]:
    """Functions that run automatically before main."""
    if policy.constructors == "allow":
        return
    for section in locator.file.sections:
        named = section.name.startswith(CONSTRUCTOR_SECTIONS)
        if not section.size or not (named or section.kind in (SHT_INIT_ARRAY, SHT_PREINIT_ARRAY)):
            continue
        if not section.allocated or section.kind == SHT_NOBITS:
            continue
        for address, name in _constructor_entries(locator, section):
            if name not in policy.expected_constructors:
                place = locator.place(address, opening=True) if address else section_place(locator, section)
                yield Finding(
                    "constructor", severity(policy.constructors), name or section.name, place,
                    f"{name or 'an unknown function'} runs before main, from section {section.name}.",
                    "Do the work in the model's init function; in C++, avoid static objects with constructors.",
                )  # fmt: skip


def _constructor_entries(locator: Locator, section: Section) -> list[tuple[int, str]]:
    """Address (0 if unknown) and name of each function in a table of constructors."""
    file, base = locator.file, locator.file.bases[section.number]
    found: list[tuple[int, str]] = []
    for table in locator.relocations:
        if file.relocatable and (table.target is None or table.target.number != section.number):
            continue
        inside = np.arange(len(table.offsets))
        if not file.relocatable:
            inside = np.flatnonzero((table.offsets >= base) & (table.offsets < base + section.size))
        for entry in table.entries(inside):
            start = file.address_of(entry.symbol) if entry.symbol is not None else 0
            address = (start + entry.addend) if start is not None else 0
            found.append(_named(locator, address, entry.symbol))
    if found or file.relocatable:
        return found or [(0, "")]
    width, content = file.bits // 8, file.content(section)
    order = "little" if file.little else "big"
    words = [int.from_bytes(content[at : at + width], order) for at in range(0, len(content) - width + 1, width)]  # type: ignore[arg-type]
    return [_named(locator, word, None) for word in words if word not in (0, (1 << file.bits) - 1)]


def _named(locator: Locator, address: int, symbol: Symbol | None) -> tuple[int, str]:
    extent = locator.function_at(address & ~1 if locator.file.machine == "arm" else address) if address else None
    if extent is not None:
        return extent.start, extent.symbol.name
    return 0, symbol.name if symbol is not None else ""


def check_relocations(locator: Locator, policy: Policy) -> Iterator[Finding]:
    """Relocations that the target cannot resolve: through a global offset table, a PLT, thread-local storage."""
    for table in locator.relocations:
        if table.target is not None and not table.target.allocated:
            continue
        for number in np.unique(table.types).tolist():
            name = table.type_name(number)
            if any(fnmatchcase(name, pattern) for pattern in policy.forbidden_relocations):
                yield from _forbidden_relocations(locator, policy, table, number)


def _forbidden_relocations(locator: Locator, policy: Policy, table: RelocationTable, number: int) -> Iterator[Finding]:
    """One finding per function and symbol."""
    base = locator.file.bases[table.target.number] if table.target is not None else 0
    pools = LiteralPools(locator)
    seen: set[tuple[int, str]] = set()
    for entry in table.entries(np.flatnonzero(table.types == number)):
        address = base + entry.offset
        extent = locator.function_at(address)
        symbol = entry.symbol.name if entry.symbol is not None else ""
        key = (extent.start if extent is not None else -1, symbol)
        if key in seen:
            continue
        seen.add(key)
        target = f" to {symbol}" if symbol else ""
        yield Finding(
            "relocation", "violation", entry.type, locator.place(pools.user(address)),
            f"the relocation {entry.type}{target} is not allowed by the policy {policy.name}.",
            "Compile with -fno-pic -fno-pie (and -mcmodel=kernel for kernel objects), without thread-local variables.",
        )  # fmt: skip


def unknown_relocations(locator: Locator) -> Iterator[str]:
    """Notes about relocation types without a name; for an unknown machine, one note elsewhere covers all."""
    if locator.file.machine.startswith("unknown"):
        return
    for table in locator.relocations:
        for number in np.unique(table.types).tolist():
            if table.type_name(number).startswith("unknown"):
                what = f"{table.table.name} holds the {table.type_name(number)}"
                yield f"{locator.file.name}: {what}, which was not checked"


def check_data(locator: Locator, policy: Policy) -> Iterator[Finding]:
    """Writable variables in model objects, and constants that would take up RAM."""
    file = locator.file
    model = file.relocatable and not file.kernel_module and policy.is_model_object(file.name)
    writable = policy.writable_data if model else "allow"
    if writable == "allow" and policy.constants_in_ram == "allow":
        return
    covered: set[int] = set()
    for symbol in file.symbols:
        if symbol.kind not in (STT_OBJECT, STT_TLS) and symbol.section != SHN_COMMON:
            continue
        common = symbol.section == SHN_COMMON
        section = file.sections[symbol.section] if 0 < symbol.section < len(file.sections) else None
        if not common and (section is None or not section.allocated or not section.writable):
            continue
        if section is not None:
            covered.add(section.number)
        yield from _check_variable(locator, policy, symbol, section, writable)
    for section in file.sections:
        if section.allocated and section.writable and section.size and section.number not in covered:
            yield from _check_nameless(locator, policy, section, writable)
    if not file.relocatable and policy.constants_in_ram != "allow":
        yield from _copied_constants(locator, policy)


def _check_variable(
    locator: Locator, policy: Policy, symbol: Symbol, section: Section | None, writable: Verdict
) -> Iterator[Finding]:
    if section is not None and section.name.startswith(TABLE_SECTIONS):
        return
    address = locator.file.address_of(symbol) if section is not None else None
    constant = section is not None and section.name.startswith(CONSTANT_SECTIONS) and locator.file.relocatable
    if not constant and address is not None and (policy.constants_in_ram, writable) != ("allow", "allow"):
        constant = bool(locator.is_const(address))
    if address is not None and (constant or writable != "allow"):
        place = locator.place(address)
    else:
        place = Place(
            locator.file.name,
            section.name if section is not None else "common",
            symbol.value,
            symbol.name,
            is_data=True,
        )
    if constant and policy.constants_in_ram != "allow":
        yield _constant_in_ram(policy, symbol.name, symbol.size, place)
    elif not constant and writable != "allow":
        yield _writable(writable, symbol.name, symbol.size, place)


def _check_nameless(locator: Locator, policy: Policy, section: Section, writable: Verdict) -> Iterator[Finding]:
    """Bytes of a data section without a symbol."""
    place = section_place(locator, section)
    if section.name.startswith(CONSTANT_SECTIONS) and locator.file.relocatable:
        if policy.constants_in_ram != "allow":
            yield _constant_in_ram(policy, section.name, section.size, place)
    elif section.name.startswith(DATA_SECTIONS) and writable != "allow":
        yield _writable(writable, section.name, section.size, place)


def _writable(verdict: Verdict, name: str, size: int, place: Place) -> Finding:
    return Finding(
        "writable-data", severity(verdict), name, place,
        f"{name} is {size} bytes of writable static data in a model object.",
        "Declare it const if it never changes; otherwise move it to the model's context.",
    )  # fmt: skip


def _constant_in_ram(policy: Policy, name: str, size: int, place: Place) -> Finding:
    small = place.section.startswith(".sdata")
    return Finding(
        "constant-in-ram", severity(policy.constants_in_ram), name, place,
        f"{name} is {size} bytes of constant data in the writable section {place.section}, so it takes up RAM.",
        "Compile with -msdata=none, so that small constants stay in .rodata." if small else
        "Leave it in .rodata: no section attribute, -fno-pic, and a linker script that places .rodata in flash.",
    )  # fmt: skip


def _copied_constants(locator: Locator, policy: Policy) -> Iterator[Finding]:
    """Read-only sections that a linker script loads at one address and runs at another: start-up copies them to RAM,
    unless the script says that the RAM lies elsewhere, as on parts that read flash at another address."""
    ends = {symbol.name: symbol.value for symbol in locator.file.symbols if symbol.name in RAM_ENDS}
    ram = range(*(ends.get(name, default) for name, default in zip(RAM_ENDS, (0, 1 << 64), strict=True)))
    for section in locator.file.sections:
        if not section.allocated or section.writable or section.executable or not section.size:
            continue
        if section.address not in ram:
            continue
        for segment in locator.file.segments:
            inside = segment.virtual <= section.address < segment.virtual + segment.memory_size
            if segment.kind == PT_LOAD and inside and segment.physical != segment.virtual:
                yield Finding(
                    "constant-in-ram", severity(policy.constants_in_ram), section.name, section_place(locator, section),
                    f"{section.name} is {section.size} bytes of constant data that start-up code copies to "
                    f"0x{section.address:x}, so it takes up RAM.",
                    "Place the section in flash in the linker script.",
                )  # fmt: skip


RAM_ENDS = ("nn_ram_begin", "nn_ram_end")
"""Symbols by which nnbuild's linker scripts say where the RAM lies."""


def check_instructions(locator: Locator, policy: Policy) -> tuple[list[Finding], list[str]]:
    """Findings about forbidden floating-point and double-precision instructions, and notes on what was not scanned."""
    if policy.floating_point == "allow" and policy.double == "allow":
        return [], []
    file, code = locator.file, Code(locator)
    if not any(section.executable and section.size for section in file.sections):
        return [], []
    if not code.readable:
        note = f"{file.name}: {file.machine}, whose instructions nnbuild cannot read: not scanned for floating point"
        unscanned = Finding(
            "floating-point", severity(policy.floating_point), file.machine, Place(file.name, "?", 0),
            f"floating-point use is unknown: instructions of {file.machine} cannot be read.",
            "Audit objects for x86, ARM, AArch64 or RISC-V.",
        )  # fmt: skip
        return ([unscanned] if policy.floating_point == "forbid" else []), [note]
    if find_capstone() is None:
        if policy.floating_point == "forbid":
            cause = f"the policy {policy.name} forbids floating point, and the scan for it needs the package capstone."
            raise ToolMissing(file.name, cause, INSTALL_HINT)
        return [], [f"{file.name}: not scanned for floating point or double: capstone is missing. {INSTALL_HINT}"]
    findings: list[Finding] = []
    for use in fpscan.scan(code):
        findings += _instruction_findings(locator, policy, use)
    return findings, []


def _without_floats(file: ObjectFile) -> str:
    """Compilers' options against floating-point and vector registers."""
    if file.machine in ("powerpc", "powerpc64"):
        return "-msoft-float -mno-altivec -mno-vsx"
    return "-march without f and d" if file.machine == "riscv" else "-mgeneral-regs-only"


def _instruction_findings(locator: Locator, policy: Policy, use: fpscan.FpUse) -> Iterator[Finding]:
    name = use.function or use.section
    place = locator.place(locator.busiest(use.addresses))
    if not policy.fp_allowed(locator.file.name, use.function):
        yield Finding(
            "floating-point", "violation", name, place,
            f"{name} holds {use.count} floating-point or SIMD instruction{'s' if use.count > 1 else ''}, "
            f"the first is `{use.first_text}`.",
            "Keep floating point in the objects built for it; compile the others with "
            f"{_without_floats(locator.file)}.",
        )  # fmt: skip
    elif policy.floating_point == "warn":
        yield Finding(
            "floating-point", "warning", name, place,
            f"{name} holds {use.count} floating-point or SIMD instructions.", "Check that this is intended.",
        )  # fmt: skip
    if use.doubles and policy.double != "allow":
        yield Finding(
            "double", severity(policy.double), name, locator.place(use.first_double),
            f"{name} computes in double precision {use.doubles} times, first in `{use.first_double_text}`.",
            "Write constants as 0.5f, call the float functions (expf, not exp), compile with -Wdouble-promotion.",
        )  # fmt: skip
