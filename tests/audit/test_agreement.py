"""The audit's tables agree with binutils: symbols and relocations with readelf, sizes with size, FP with objdump."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from nnbuild.audit import fpscan
from nnbuild.audit.archive import open_file
from nnbuild.audit.code import Code
from nnbuild.audit.elf import SHN_ABS, SHN_COMMON, ObjectFile
from nnbuild.audit.relocations import relocation_tables
from nnbuild.audit.sizes import section_sizes
from nnbuild.audit.source_locations import Locator

from .toolchains import parameters

SYSTEM = Path("/usr/lib/x86_64-linux-gnu")
START_FILES = ("crt1.o", "Scrt1.o", "crti.o", "gcrt1.o", "Mcrt1.o")
MEMBERS = {
    "libc.a": (
        "printf.o", "malloc.o", "vfprintf-internal.o", "strtod_l.o", "qsort.o", "getaddrinfo.o", "regex.o",
        "memmove-avx-unaligned-erms.o", "memmove-evex-unaligned-erms.o", "strlen-avx2.o",
    ),
    "libm-2.36.a": ("e_expf.o", "s_sinf.o", "e_pow.o", "s_tanhf.o", "e_powl.o", "s_erff.o", "s_fma-fma.o"),
}  # fmt: skip
NEWER = {60: "R_RISCV_SET_ULEB128", 61: "R_RISCV_SUB_ULEB128"}
"""Relocations by their number."""
LINKED = ("/bin/true", "/bin/ls", "/lib/x86_64-linux-gnu/libm.so.6")
KERNEL_CACHE = Path.home() / ".cache" / "nnbuild"

needs_binutils = pytest.mark.skipif(not shutil.which("readelf"), reason="binutils is not installed")


def system_files(directory: Path) -> list[Path]:
    """Start files, members of the C and mathematics libraries, and linked programs, as files of their own."""
    found = [SYSTEM / name for name in START_FILES if (SYSTEM / name).is_file()]
    found += [Path(name) for name in LINKED if Path(name).is_file()]
    for archive, members in MEMBERS.items():
        if not (SYSTEM / archive).is_file():
            continue
        subprocess.run(["ar", "x", SYSTEM / archive, *members], cwd=directory, check=False, capture_output=True)
        found += [directory / member for member in members if (directory / member).is_file()]
    return found


def read(path: Path) -> ObjectFile:
    (file,) = open_file(path).objects
    return file


def tool(*command: str | Path) -> list[str]:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", check=True)
    return done.stdout.splitlines()


def check_symbols(path: Path, readelf: str = "readelf") -> None:
    file = read(path)
    expected: Counter[tuple[int, int, str]] = Counter()
    tables = 0
    for line in tool(readelf, "-sW", path):
        if line.startswith("Symbol table"):
            tables += ".symtab" in line
            wanted = ".symtab" in line
        parts = line.split()
        if not (parts and re.fullmatch(r"\d+:", parts[0]) and wanted):
            continue
        size = int(parts[2], 16 if parts[2].startswith("0x") else 10)
        parts = re.sub(r"\[[^]]*\]", "", line).split()  # PowerPC's second entry of a function
        expected[int(parts[1], 16), size, section_number(parts[6])] += 1
    found = Counter((s.value, s.size, section_label(s.section)) for s in file.listed_symbols)
    assert found == expected


def section_number(text: str) -> str:
    return {"UND": "0"}.get(text, text)


def section_label(number: int) -> str:
    return {SHN_ABS: "ABS", SHN_COMMON: "COM"}.get(number, str(number))


def check_relocations(path: Path, readelf: str = "readelf") -> None:
    """Offset, type and addend of every relocation, in order."""
    expected = []
    for line in tool(readelf, "-rW", path):
        match = re.match(r"^([0-9a-f]{8,16})\s+[0-9a-f]{8,16}\s+(\S+)\s*(.*)$", line)
        if match is None:
            continue
        addend = re.search(r"(?:^|[+-] )([0-9a-f]+)$", match[3])
        sign = -1 if " - " in match[3] else 1
        kind = match[2]
        if kind == "unrecognized:":  # newer than this readelf, which then says the number
            kind = NEWER[int(match[3].split()[0], 16)]
        expected.append((int(match[1], 16), kind, sign * int(addend[1], 16) if addend else 0))
    found = []
    for table in relocation_tables(read(path)):
        for entry in table.entries():
            found.append((entry.offset, entry.type, entry.addend if table.addends is not None else 0))
    assert [(offset, kind[:22]) for offset, kind, _ in found] == [(offset, kind[:22]) for offset, kind, _ in expected]
    if any(table.addends is not None for table in relocation_tables(read(path))):
        assert [wrap(addend) for _, _, addend in found] == [wrap(addend) for _, _, addend in expected]


def wrap(value: int) -> int:
    return value & 0xFFFFFFFFFFFFFFFF


def check_sizes(path: Path) -> None:
    expected: Counter[str] = Counter()
    for line in tool("size", "-A", path)[2:]:
        parts = line.split()
        if len(parts) == 3 and parts[0] != "Total":
            expected[parts[0]] += int(parts[1])
    # `size` lists a few sections that take no memory, such as notes and debug information.
    found = section_sizes(read(path))
    assert found == {name: expected[name] for name in found}
    allocated = {s.name for s in read(path).sections if s.allocated}
    assert allocated == set(found)


AT_T_FP = re.compile(r"%(?:[xyz]mm\d|mm\d|st\b|k[0-7])")
NO_REGISTERS = frozenset(
    {"emms", "fwait", "ldmxcsr", "stmxcsr", "vldmxcsr", "vstmxcsr", "vzeroupper", "vzeroall", "femms"}
)


BRANCH = re.compile(r"^(?:bl?x?|b\.\w+|cbn?z|tbn?z|j\w+|call)\s")
# objdump shows these as one instruction, capstone as `wait` and another.
FUSED = re.compile(r"^(?:fstcw|fstsw|fstenv|fsave|finit|fclex)\b")


def objdump_lines(objdump: str, path: Path) -> Iterator[tuple[str, int, str]]:
    """Section, address and text of every instruction that objdump prints."""
    section = ""
    for line in tool(objdump, "-dw", "--no-show-raw-insn", path):
        if line.startswith("Disassembly of section "):
            section = line.removeprefix("Disassembly of section ").rstrip(":")
        match = re.match(r"^\s*([0-9a-f]+):\t(.*)$", line)
        if match is not None:
            text = re.sub(r"<[^>]*>", "", match[2].split("#")[0]).strip()
            yield section, int(match[1], 16), "" if BRANCH.match(text) else text


PREFIXES = frozenset(["data16", "cs", "ds", "es", "ss", "fs", "gs", "rep", "repz", "repnz", "lock", "bnd", "notrack"])


def is_fp_text(text: str) -> bool:
    words = [word for word in text.split() if word not in PREFIXES and not word.startswith("rex")]
    mnemonic = words[0] if words else ""
    if AT_T_FP.search(text) or mnemonic in NO_REGISTERS:
        return True
    return mnemonic.startswith("f") and not mnemonic.startswith(("fxsave", "fxrstor"))


def check_fp_x86(path: Path) -> None:
    """As many such instructions in each section as objdump shows."""
    file = read(path)
    expected: Counter[str] = Counter()
    for section, _, text in objdump_lines("objdump", path):
        if is_fp_text(text):
            expected[section] += 2 if FUSED.match(text) else 1
    found: Counter[str] = Counter()
    for use in fpscan.scan(Code(Locator(file))):
        found[use.section] += use.count
    assert found == expected


def check_all(files: Sequence[Path]) -> None:
    for path in files:
        try:
            check_symbols(path)
            check_relocations(path)
            check_sizes(path)
            check_fp_x86(path)
        except AssertionError as difference:
            raise AssertionError(f"{path}: {difference}") from None


@needs_binutils
@pytest.mark.slow
def test_system_objects(tmp_path: Path) -> None:
    files = system_files(tmp_path)
    if not files:
        pytest.skip("no x86-64 system objects here")
    check_all(files)
    assert len(files) >= 20


@pytest.mark.turns(4)
@pytest.mark.kernel
@needs_binutils
def test_kernel_modules() -> None:
    modules = kernel_modules()
    assert len(modules) >= 20
    check_all(modules)


def kernel_modules() -> list[Path]:
    """Modules of Debian's cloud kernel, unpacked once into a cache: vector code, and some of every kind of driver."""
    found = sorted(KERNEL_CACHE.glob("linux-image-*-cloud-amd64/lib/modules/*/kernel/**/*.ko"))
    if not found:
        found = _fetch_kernel()
    chosen = [path for path in found if "arch/x86" in str(path) or path.name in ("xfs.ko", "btrfs.ko", "raid6_pq.ko")]
    return (chosen + [path for path in found if path not in chosen][::40])[:60]


def _fetch_kernel() -> list[Path]:
    if not shutil.which("apt-get"):
        pytest.skip("no apt-get to fetch a kernel image with, and none in the cache")
    listed = tool("apt-cache", "search", r"^linux-image-6\.[0-9.]+-[0-9]+-cloud-amd64$")
    if not listed:
        pytest.skip("no cloud kernel image in the package index")
    name = sorted(line.split()[0] for line in listed)[-1]
    KERNEL_CACHE.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", name], cwd=KERNEL_CACHE, check=True, capture_output=True)
    (package,) = KERNEL_CACHE.glob(f"{name}_*.deb")
    subprocess.run(["dpkg", "-x", package, KERNEL_CACHE / name], check=True)
    package.unlink()
    return sorted(KERNEL_CACHE.glob("linux-image-*-cloud-amd64/lib/modules/*/kernel/**/*.ko"))


MIXED = """\
#include <stdarg.h>
extern float g(float); extern double h(double); int table[4] = {1, 2, 3, 4}; int zeros[9];
float add(float a, float b) { return a + b; }
int plain(int a) { return a * table[a & 3] + zeros[a & 3]; }
double both(double a, float b) { return h(a * 0.3) + g(b) / 3.0f; }
void many(float *a, const float *b, int n) { for (int i = 0; i < n; i++) a[i] = a[i] * 0.5f + b[i]; }
int take(int n, ...) { va_list l; va_start(l, n); int r = va_arg(l, int); va_end(l); return r; }
int pick(int n) { switch (n) { case 0: return 3; case 1: return plain(n); case 2: return plain(3) * 3;
  case 3: return plain(4) - 5; case 4: return plain(n) / 3; case 5: return 99; default: return 0; } }
"""

PPC_TEXT = re.compile(r"^(?!mflr|mfcr|mfctr)(?:[ls]t?f|f|x[sv]|xx|v|[ls]t?v|lx[sv]|stx[sv]|mtv|mfv|mff|mtf)")

# What objdump's text shows where a floating-point or vector register is used.
FP_TEXT = {
    "arm": re.compile(r"^(v\w|fldm|fstm)"),
    "aarch64": re.compile(r"(?:^|[\s,{\[])(?:[bhsdqv]\d+)(?:$|[\s,.}\]-])"),
    "riscv": re.compile(r"^(?:c\.)?f(?!ence)"),
    "powerpc": PPC_TEXT,
    "powerpc64": PPC_TEXT,
}


@needs_binutils
@pytest.mark.parametrize("chain", parameters())
@pytest.mark.parametrize("flags", [("-O2", "-g"), ("-O0",), ("-O3", "-ffunction-sections")])
def test_compiled_objects(chain, flags, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    if not shutil.which(chain.objdump):
        pytest.skip(f"{chain.objdump} is not installed")
    path = chain.compile(tmp_path, "mixed", MIXED, flags)
    readelf = chain.objdump.replace("objdump", "readelf")
    check_symbols(path, readelf)
    check_relocations(path, readelf)
    check_sizes(path)
    if chain.machine == "x86-64":
        check_fp_x86(path)
        return
    pattern = FP_TEXT[chain.machine]
    expected = Counter(section for section, _, text in objdump_lines(chain.objdump, path) if pattern.search(text))
    found: Counter[str] = Counter()
    for use in fpscan.scan(Code(Locator(read(path)))):
        found[use.section] += use.count
    assert found == expected
