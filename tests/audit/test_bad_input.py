"""Files that are damaged, odd or unknown: an error that names what is wrong, or a note that says what is unknown."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from nnbuild.audit import AuditReport, audit_files, load_policy
from nnbuild.audit.elf import SHT_RELA, SHT_SYMTAB, read_elf
from nnbuild.base.errors import NnbuildError, ToolMissing

from .toolchains import ALL, Toolchain

SOURCE = """\
extern float expf(float);
int counted(int n) { return n + 1; }
float run(float x) { return expf(x) + 1.0f; }
"""


@pytest.fixture(scope="module")
def chain() -> Toolchain:
    for candidate in ALL:
        if not candidate.missing and candidate.machine == "x86-64":
            return candidate
    pytest.skip("no compiler for x86-64")


@pytest.fixture
def good(chain: Toolchain, tmp_path: Path) -> Path:
    return chain.compile(tmp_path, "good", SOURCE)


def audit(path: Path, policy: str = "mcu") -> AuditReport:
    return audit_files([path], load_policy(policy))


def refused(path: Path, policy: str = "mcu") -> str:
    with pytest.raises(NnbuildError) as problem:
        audit(path, policy)
    return str(problem.value)


def changed(path: Path, at: int, form: str, value: int) -> Path:
    data = bytearray(path.read_bytes())
    struct.pack_into(form, data, at, value)
    target = path.with_name("bad.o")
    target.write_bytes(data)
    return target


def section_header(path: Path, name: str) -> int:
    """Where in the file the header of a section stands."""
    data = path.read_bytes()
    section = read_elf(path.name, data).section_named(name)
    assert section is not None
    return int(struct.unpack_from("<Q", data, 40)[0]) + 64 * section.number


def test_no_such_file(tmp_path: Path) -> None:
    assert (
        refused(tmp_path / "none.o")
        == f"{tmp_path}/none.o: cannot be read (No such file or directory). Check the path."
    )


def test_a_directory(tmp_path: Path) -> None:
    assert "cannot be read (Is a directory)" in refused(tmp_path)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x7fEL", b"\x7fELF"])
def test_not_an_elf_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text.o"
    path.write_bytes(content)
    expected = {
        b"\x7fELF": "text.o: the ELF header is truncated or damaged. Rebuild it, or give another file.",
    }.get(content, "text.o: is not an ELF file or an archive of them. Give .o, .a, .ko or linked ELF files.")
    assert refused(path) == expected


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_truncated(good: Path, part: float) -> None:
    data = good.read_bytes()
    good.write_bytes(data[: int(len(data) * part)])
    assert "good.o: the section table reaches past the end of the file: it is truncated or damaged." in refused(good)


def test_a_section_past_the_end(good: Path) -> None:
    bad = changed(good, section_header(good, ".text") + 24, "<Q", 1 << 40)
    assert "bad.o: section .text reaches past the end of the file: it is truncated or damaged." in refused(bad)


def test_a_symbol_table_with_odd_entries(good: Path) -> None:
    bad = changed(good, section_header(good, ".symtab") + 56, "<Q", 7)
    assert "bad.o: the symbol table has entries of an impossible size." in refused(bad)


def test_a_symbol_table_without_names(good: Path) -> None:
    bad = changed(good, section_header(good, ".symtab") + 40, "<I", 0)
    assert "bad.o: the symbol table names a string table that does not exist." in refused(bad)


def test_relocations_for_a_section_that_is_not_there(good: Path) -> None:
    bad = changed(good, section_header(good, ".rela.text") + 44, "<I", 999)
    assert "bad.o: the relocations in .rela.text are for a section that does not exist." in refused(bad)


def test_a_relocation_of_a_symbol_that_is_not_there(good: Path) -> None:
    at = struct.unpack_from("<Q", good.read_bytes(), section_header(good, ".rela.text") + 24)[0]
    bad = changed(good, at + 12, "<I", 999)
    assert "bad.o: a relocation in .rela.text names a symbol that does not exist." in refused(bad)


def test_no_section_table(good: Path) -> None:
    assert "bad.o: has no section table, so nothing in it can be audited." in refused(changed(good, 40, "<Q", 0))


def test_damaged_debug_information_only_costs_the_lines(good: Path) -> None:
    at, size = struct.unpack_from("<QQ", good.read_bytes(), section_header(good, ".debug_line") + 24)
    data = bytearray(good.read_bytes())
    data[at : at + size] = b"\xff" * size
    good.write_bytes(data)
    (finding,) = [f for f in audit(good).findings if f.subject == "expf"]
    assert finding.place is not None
    assert (finding.place.function, finding.place.line) == ("run", None)
    assert "line unknown" in finding.place.text()


def test_a_stripped_object_says_so(good: Path) -> None:
    """Without a symbol table: code is still scanned, and what is unknown is marked."""
    data = bytearray(good.read_bytes())
    for section in read_elf(good.name, bytes(data)).sections:
        if section.kind in (SHT_SYMTAB, SHT_RELA):
            struct.pack_into("<I", data, section_header(good, section.name) + 4, 0)
    good.write_bytes(data)
    report = audit(good, "kernel")
    assert "good.o has no symbols (stripped): functions are unknown" in report.notes
    floats = [finding for finding in report.findings if finding.rule == "floating-point"]
    assert [finding.subject for finding in floats] == [".text"]


def test_a_stripped_object_cannot_pass(tmp_path: Path) -> None:
    """Its call of malloc looks like any other: nothing was found, but nothing was shown either."""
    source, path = tmp_path / "m.c", tmp_path / "m.o"
    source.write_text("void *malloc(unsigned long); void *f(void); void *f(void) { return malloc(3); }\n")
    subprocess.run(["gcc", "-c", str(source), "-o", str(path)], check=True)
    subprocess.run(["strip", str(path)], check=True)
    (finding,) = audit(path, "mcu").findings
    assert (finding.rule, finding.severity) == ("symbols-unknown", "violation")
    assert finding.message == (
        "there is code but no symbol table (stripped), so it cannot be checked for symbols that the policy mcu forbids."
    )


def test_an_unknown_machine_cannot_pass_where_floating_point_is_forbidden(good: Path) -> None:
    bad = changed(good, 18, "<H", 22)
    report = audit(bad, "kernel")
    assert [(f.rule, f.subject) for f in report.violations if f.rule == "floating-point"] == [
        ("floating-point", "unknown machine 22")
    ]
    assert (
        "bad.o: unknown machine 22, whose instructions nnbuild cannot read: not scanned for floating point"
        in report.notes
    )
    assert "expf" in {need.symbol for need in report.needs}


def test_an_unknown_relocation_is_noted(good: Path) -> None:
    at = struct.unpack_from("<Q", good.read_bytes(), section_header(good, ".rela.text") + 24)[0]
    report = audit(changed(good, at + 8, "<I", 200))
    assert "bad.o: .rela.text holds the unknown relocation 200, which was not checked" in report.notes


def archive(*members: tuple[str, bytes], thin: bool = False) -> bytes:
    data = b"!<thin>\n" if thin else b"!<arch>\n"
    for name, content in members:
        data += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        if not thin or name == "//":
            data += content + (b"\n" if len(content) & 1 else b"")
    return data


def test_an_archive_with_odd_members(good: Path, tmp_path: Path) -> None:
    elf = good.read_bytes()
    bsd = ("#1/12", b"long_name.o\0" + elf)
    path = tmp_path / "lib.a"
    path.write_bytes(
        archive(
            ("/", b"\0\0\0\0"),
            ("//", b"a_rather_long_name.o/\n"),
            ("good.o/", elf),
            ("odd.txt/", b"odd"),
            ("/0", elf),
            bsd,
            ("notes.txt/", b"text"),
        )
    )
    report = audit(path)
    names = ["lib.a(good.o)", "lib.a(a_rather_long_name.o)", "lib.a(long_name.o)"]
    assert [file.object for file in report.files] == names
    assert "lib.a(notes.txt): not an ELF object, so not audited" in report.notes
    assert sum(finding.subject == "expf" for finding in report.findings) == 3


def test_a_thin_archive(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "thin.a"
    path.write_bytes(archive(("//", b"good.o/\n"), ("/0", good.read_bytes()), thin=True))
    assert [file.object for file in audit(path).files] == ["thin.a(good.o)"]
    good.unlink()
    assert "thin.a: the thin archive's member good.o cannot be read." in refused(path)


def test_damaged_archives(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "lib.a"
    whole = archive(("good.o/", good.read_bytes()))
    path.write_bytes(whole[:100])
    assert "lib.a: the archive is truncated inside its member 'good.o/'." in refused(path)
    path.write_bytes(whole + b"junk")
    assert "lib.a: the archive is truncated or damaged at byte" in refused(path)
    path.write_bytes(archive(("/77", b"x")))
    assert "lib.a: a member's name lies outside the archive's table of names (/77)." in refused(path)
    path.write_bytes(archive(("bad.o/", b"\x7fELF")))
    assert "lib.a(bad.o): the ELF header is truncated or damaged." in refused(path)


@pytest.mark.parametrize("members", [(), (("notes.txt/", b"text"),)])
def test_archives_without_objects(good: Path, tmp_path: Path, members: tuple[tuple[str, bytes], ...]) -> None:
    """An audit of nothing finds nothing wrong, which would be taken for a verdict."""
    path = tmp_path / "lib.a"
    path.write_bytes(archive(*members))
    told = "lib.a: contains no ELF object, so nothing was audited. Give .o, .a, .ko or linked ELF files."
    assert refused(path) == told
    assert "lib.a: the archive contains no ELF object" in audit_files([good, path], load_policy("mcu")).notes


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_intermediate_code(tmp_path: Path, compiler: str) -> None:
    """Objects for link-time optimization hold no machine code yet."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    source, path, library = (tmp_path / name for name in ("f.c", "f.o", "lib.a"))
    source.write_text("float expf(float);\nfloat f(float x) { return expf(x); }\n")
    flags = ["-flto", "-fno-fat-lto-objects"] if compiler == "gcc" else ["-flto"]
    subprocess.run([compiler, "-O2", *flags, "-c", source, "-o", path], check=True)
    library.write_bytes(archive(("f.o/", path.read_bytes())))
    cause = "contains the compiler's intermediate code (-flto) and no machine code, so nothing in it can be audited."
    step = "Compile it without -flto, or audit the linked program."
    assert refused(path) == f"f.o: {cause} {step}"
    assert refused(library) == f"lib.a(f.o): {cause} {step}"


def test_without_capstone(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nnbuild.audit.rules.find_capstone", lambda: None)
    with pytest.raises(ToolMissing) as problem:
        audit(good, "kernel")
    assert str(problem.value) == (
        "good.o: the policy kernel forbids floating point, and the scan for it needs the package capstone. "
        "Install it with `pip install capstone`."
    )
    notes = audit(good, "hosted").notes
    missing = "good.o: not scanned for floating point or double: capstone is missing."
    assert f"{missing} Install it with `pip install capstone`." in notes


def test_short_addresses_on_long_registers_are_refused(tmp_path: Path) -> None:
    header = struct.pack("<4sBBB9xHHI", b"\x7fELF", 1, 1, 1, 1, 183, 1)
    path = tmp_path / "ilp32.o"
    path.write_bytes(header + bytes(52 - len(header)))
    said = refused(path)
    assert "contains AArch64 code for ILP32 (32-bit addresses), whose relocations nnbuild does not know" in said
    assert "leave out -mabi=ilp32" in said
