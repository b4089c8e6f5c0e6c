"""memcpy, memmove, memset and memcmp: right for every alignment, and never a call of themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., str]
Tool = Callable[[str], str]

NAMES = ("memcmp", "memcpy", "memmove", "memset")


@pytest.mark.parametrize("level", ["-O0", "-O3"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_alignment(compiler: str, level: str, libm: Path, run: Run, tool: Tool, tmp_path: Path) -> None:
    program = tmp_path / "memory"
    files = [libm / f"nn_{name}.c" for name in NAMES]
    checks = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")  # which needs no library of the compiler's
    run(
        *(tool(compiler), "-std=c99", level, *checks, f"-I{libm}", Path(__file__).with_name("memory.c"), *files),
        *("-o", program),
    )
    run(program)


def test_the_plain_names_serve_a_program_without_a_c_library(libm: Path, run: Run, tool: Tool, tmp_path: Path) -> None:
    """The compiler's own calls of memcpy and memset are met, and the functions do not call each other forever."""
    (tmp_path / "program.c").write_text(
        "struct big { unsigned char byte[400]; };\n"
        "extern struct big one, two;\n"
        "struct big one = {{1}}, two;\n"
        "void _start(void);\n"
        "void _start(void)\n{\n"
        "    two = one;\n"
        "    __builtin_memset(&one, 0, sizeof one);\n"
        '    __asm__ volatile("syscall" : : "a"(60), "D"(two.byte[0] - 1 + one.byte[0]) : "memory");\n'
        "}\n"
    )
    names = [libm / f"nn_{name}.c" for name in NAMES] + [libm / "plain" / f"{name}.c" for name in NAMES]
    flags = ("-std=c99", "-O2", "-mstringop-strategy=libcall", "-nostdlib", "-static", "-fno-stack-protector")
    run(tool("gcc"), *flags, f"-I{libm}", tmp_path / "program.c", *names, "-o", tmp_path / "program")
    run(tmp_path / "program")
    assert " memcpy" in run("nm", tmp_path / "program")
