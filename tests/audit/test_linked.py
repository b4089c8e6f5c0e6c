"""Linked images, where relocations are gone: forbidden functions linked in, imports, segments, copied constants."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nnbuild.audit import AuditReport, audit_files, explain_symbol, load_policy

from .toolchains import Toolchain, by_name

SCRIPT = """\
MEMORY { FLASH (rx) : ORIGIN = 0x08000000, LENGTH = 64K  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 16K }
SECTIONS {
    .text : { *(.vectors) *(.text*) } > FLASH
    .rodata : { *(.rodata*) } > %s
    .data : { *(.data*) } > RAM AT> FLASH
    .bss : { *(.bss*) *(COMMON) } > RAM
}
"""

FIRMWARE = """\
const int table[8] = {1, 2, 3};
int total;
__attribute__((noinline)) void *malloc(__SIZE_TYPE__ n) {
    static char heap[64];
    total += (int)n;
    return heap;
}
__attribute__((noinline)) int use(int n) {
    char *p = malloc((__SIZE_TYPE__)n); /* the call */
    p[0] = 1;
    return p[n & 63] + table[n & 7];
}
void start(void) { for (;;) total += use(total); }
"""


def compiler(name: str) -> Toolchain:
    chain = by_name(name)
    if chain.missing:
        pytest.skip(chain.missing)
    return chain


def firmware(name: str, directory: Path, rodata: str = "FLASH") -> Path:
    chain = compiler(name)
    (directory / "firmware.ld").write_text(SCRIPT % rodata)
    obj = chain.compile(directory, "firmware", FIRMWARE, ("-O2", "-g", "-fno-builtin"))
    image = directory / "firmware.elf"
    # clang would look for a linker of its own; the objects are alike, so gcc's driver links them.
    command = [
        *compiler(name.replace("clang", "gcc")).command,
        "-nostdlib",
        "-T",
        "firmware.ld",
        "-Wl,-e,start,--build-id=none",
    ]
    subprocess.run([*command, obj.name, "-o", image.name], cwd=directory, check=True, capture_output=True)
    return image


def audit(path: Path, policy: str = "mcu", *explain: str) -> AuditReport:
    return audit_files([path], load_policy(policy), explain=explain)


@pytest.mark.parametrize("name", ["arm-gcc", "arm-clang", "riscv-gcc", "riscv-clang"])
def test_who_calls_a_forbidden_function_that_was_linked_in(name: str, tmp_path: Path) -> None:
    report = audit(firmware(name, tmp_path))
    (finding,) = report.findings
    assert (finding.rule, finding.subject) == ("symbol:heap", "malloc")
    assert finding.place is not None
    line = next(n for n, text in enumerate(FIRMWARE.splitlines(), 1) if "the call" in text)
    assert (finding.place.function, finding.place.file, finding.place.line) == ("use", "firmware.c", line)


def test_where_a_function_of_the_image_comes_from(tmp_path: Path) -> None:
    report = audit(firmware("arm-gcc", tmp_path), "mcu", "use")
    assert explain_symbol(report, "use") == "use: firmware.elf, start(), firmware.c:13; defined in firmware.elf"


def test_constants_that_start_up_code_copies_to_ram(tmp_path: Path) -> None:
    image = firmware("arm-gcc", tmp_path, "RAM AT> FLASH")
    found = [finding for finding in audit(image).findings if finding.rule == "constant-in-ram"]
    assert [(finding.subject, finding.severity) for finding in found] == [(".rodata", "violation")]
    assert "copies to 0x20000000" in found[0].message


PROGRAM = """\
#include <math.h>
#include <stdio.h>
__attribute__((noinline)) float activate(float x) {
    return expf(x) + 1.0f; /* the import */
}
int main(int argc, char **argv) {
    printf("%d %s\\n", (int)activate((float)argc), argv[0]);
    return 0;
}
"""


@pytest.mark.parametrize("flags", [(), ("-fno-plt",), ("-no-pie", "-fno-pie")], ids=["plt", "no-plt", "no-pie"])
@pytest.mark.parametrize("command", ["gcc", "clang", "aarch64-linux-gnu-gcc"])
def test_what_a_program_imports(command: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    if not shutil.which(command):
        pytest.skip(f"{command} is not installed")
    (tmp_path / "program.c").write_text(PROGRAM)
    words = [command, "-O2", "-g", *flags, "program.c", "-o", "program", "-lm"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    if "aarch64" in command and done.returncode:
        pytest.skip("no C library for AArch64 to link with")
    assert done.returncode == 0, done.stderr
    report = audit(tmp_path / "program", "hosted")
    found = [finding for finding in report.violations if finding.subject == "expf"]
    places = [(f.place.function, f.place.file, f.place.line) for f in found if f.place is not None]
    assert len(found) == 1
    if command.startswith("aarch64") and "-fno-plt" in flags:
        return  # the call loads the table's entry far ahead of the branch; the import itself is what can be told
    assert places == [("activate", "program.c", 4)]


def test_a_stack_that_is_executable(tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    (tmp_path / "program.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-z", "execstack", "program.c", "-o", "program"], cwd=tmp_path, check=True)
    found = [finding for finding in audit(tmp_path / "program", "hosted").violations]
    assert [(finding.rule, finding.subject) for finding in found] == [("writable-executable", "the stack")]
    subprocess.run(["gcc", "program.c", "-o", "program"], cwd=tmp_path, check=True)
    assert audit(tmp_path / "program", "hosted").findings == ()
