"""Debug information in unusual dress: several units in one file, compressed sections, RISC-V's label differences."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nnbuild.audit import audit_files, load_policy
from nnbuild.audit.archive import open_file
from nnbuild.audit.dwarf import DebugSections

from .toolchains import Toolchain, by_name

UNIT = """\
extern float expf(float);
float first_{n}(float x) {{ return x + 2.0f; }}
static inline float act_{n}(float x) {{
    return expf(x) * 3.0f;
}}
float run_{n}(float x) {{
    return act_{n}(x);
}}
int fixed_{n} = 3;
"""


def needed(name: str) -> Toolchain:
    chain = by_name(name)
    if chain.missing:
        pytest.skip(chain.missing)
    return chain


def places(path: Path) -> list[tuple[str, str, int | None, tuple[str, ...]]]:
    findings = [f for f in audit_files([path], load_policy("mcu")).findings if f.subject == "expf"]
    return sorted(
        (f.place.function, f.place.file, f.place.line, f.place.inlined) for f in findings if f.place is not None
    )


@pytest.mark.parametrize("dwarf", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("name", ["x86-64-gcc", "x86-64-clang"])
def test_several_units_in_one_object(name: str, dwarf: str, tmp_path: Path) -> None:
    chain = needed(name)
    units = [chain.compile(tmp_path, f"unit{n}", UNIT.format(n=n), ("-O2", dwarf)).name for n in (1, 2, 3)]
    subprocess.run(["ld", "-r", *units, "-o", "all.o"], cwd=tmp_path, check=True)
    assert places(tmp_path / "all.o") == [
        (f"run_{n}", f"unit{n}.c", 4, (f"act_{n}, called at unit{n}.c:7",)) for n in (1, 2, 3)
    ]
    data = [f for f in audit_files([tmp_path / "all.o"], load_policy("mcu")).findings if f.rule == "writable-data"]
    assert [(f.subject, f.place.source) for f in data if f.place is not None] == [
        (f"fixed_{n}", f"unit{n}.c:9") for n in (1, 2, 3)
    ]


@pytest.mark.parametrize("name", ["x86-64-gcc", "aarch64-gcc", "arm-gcc"])
def test_compressed_debug_sections(name: str, tmp_path: Path) -> None:
    path = needed(name).compile(tmp_path, "unit", UNIT.format(n=1), ("-O2", "-g", "-gz"))
    assert any(section.flags & 0x800 for section in open_file(path).objects[0].sections)
    assert places(path) == [("run_1", "unit.c", 4, ("act_1, called at unit.c:7",))]


DIFFERENCES = """\
    .text
    .zero 3
start: .zero 7
end:
    .section .debug_test
    .byte 0, 0, 0, 0, 0, 0, 0, 0
    .reloc 0, R_RISCV_SUB8, start
    .reloc 0, R_RISCV_SET8, end
    .reloc 1, R_RISCV_ADD16, end
    .reloc 1, R_RISCV_SUB16, start
    .reloc 4, R_RISCV_32, end + 1
"""


def test_risc_v_differences_of_labels(tmp_path: Path) -> None:
    compiler = needed("riscv-gcc").command
    (tmp_path / "labels.s").write_text(DIFFERENCES)
    subprocess.run([*compiler, "-c", "labels.s", "-o", "labels.o"], cwd=tmp_path, check=True)
    (file,) = open_file(tmp_path / "labels.o").objects
    text = file.section_named(".text")
    assert text is not None
    content = DebugSections(file).get(".debug_test")
    assert content[:4] == bytes((7, 7, 0, 0))
    assert int.from_bytes(content[4:8], "little") == file.bases[text.number] + 3 + 7 + 1


def test_a_file_name_keeps_its_directory(tmp_path: Path) -> None:
    chain = needed("x86-64-gcc")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "act.h").write_text(
        "extern float expf(float);\nstatic inline float act(float x) {\n    return expf(x);\n}\n"
    )
    source = '#include "lib/act.h"\nfloat zero(void) { return 0; }\nfloat run(float x) { return act(x) + 1.0f; }\n'
    for dwarf in ("-gdwarf-4", "-gdwarf-5"):
        path = chain.compile(tmp_path, "unit", source, ("-O2", dwarf))
        assert places(path) == [("run", "lib/act.h", 3, ("act, called at unit.c:3",))]


def test_big_endian_objects(tmp_path: Path) -> None:
    if not shutil.which("clang"):
        pytest.skip("clang is not installed")
    chain = Toolchain("aarch64-be", "aarch64", ("clang", "--target=aarch64_be-none-elf"), "")
    path = chain.compile(tmp_path, "unit", UNIT.format(n=1))
    assert places(path) == [("run_1", "unit.c", 4, ("act_1, called at unit.c:7",))]
    floats = [f for f in audit_files([path], load_policy("kernel")).findings if f.rule == "floating-point"]
    assert [finding.subject for finding in floats] == ["first_1", "run_1"]
    assert "the first is `fmov s1, #2.00000000`" in floats[0].message
