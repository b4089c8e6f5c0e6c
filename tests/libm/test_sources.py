"""The contract of the source files: what they may include, name, call and hold, to be linked or pasted."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nnbuild.base.vendored import definitions, float_rules

Run = Callable[..., str]
Tool = Callable[[str], str]

LIBM = Path(__file__).parents[2] / "firmware" / "libm"
FUNCTIONS = sorted(path.stem for path in LIBM.glob("nn_*.c"))
PLAIN = sorted(path.stem for path in (LIBM / "plain").glob("*.c"))
WITHOUT_PLAIN_NAME = {"nn_logisticf", "nn_logisticpartsf", "nn_logpartsf", "nn_trigf"}
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Wmissing-prototypes", "-Werror")
FLAGS = ("-std=c99", *WARNINGS)
CORTEX_M4F = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
COMPILERS = {
    "x86-64 gcc": ("gcc", "nm"),
    "x86-64 clang": ("clang", "nm"),
    "Cortex-M4F gcc": ("arm-none-eabi-gcc", "arm-none-eabi-nm", *CORTEX_M4F),
    "Cortex-M4F clang": ("clang", "arm-none-eabi-nm", "--target=arm-none-eabi", "-ffreestanding", *CORTEX_M4F),
    "AArch64 gcc": ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-nm"),
    "RISC-V gcc": (
        *("riscv64-unknown-elf-gcc", "riscv64-unknown-elf-nm", "-ffreestanding"),
        *("-march=rv32imafc", "-misa-spec=2.2", "-mabi=ilp32f"),
    ),
}

# Every target at its likely level, and the levels that tempt a compiler to call for help: -O0 and -Os.
BUILDS = [(target, "-O2") for target in COMPILERS] + [
    ("x86-64 gcc", "-O0"),
    ("x86-64 clang", "-O0"),
    ("Cortex-M4F gcc", "-O0"),
    ("Cortex-M4F gcc", "-Os"),
    ("RISC-V gcc", "-Os"),
]


def source(name: str) -> Path:
    return LIBM / f"{name}.c" if name.startswith("nn_") else LIBM / "plain" / f"{name}.c"


def uses(name: str) -> set[str]:
    first = source(name).read_text().splitlines()[0]
    found = re.fullmatch(r"/\* uses: (.+) \*/", first)
    assert found, f"{name}.c does not begin with a line '/* uses: ... */'"
    return set() if found[1] == "none" else set(found[1].split(", "))


@pytest.mark.parametrize("name", [*FUNCTIONS, *PLAIN])
def test_uses_and_includes(name: str) -> None:
    text = re.sub(r"/\*.*?\*/", "", source(name).read_text(), flags=re.DOTALL)
    called = set(re.findall(r"\b(nn_\w+)\(", text))
    own = {word for word in called if word == name or word.startswith(f"{name}_")}
    assert called - own - {"nn_bits_of", "nn_float_of", "nn_product"} == uses(name)
    assert set(re.findall(r'#include ([<"].+[>"])', text)) <= {'"nn_bits.h"', '"nn_libm.h"'}
    assert not re.search(r"\bdouble\b", text)
    assert not re.search(r"#(define|pragma)", text)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_private_names_carry_the_prefix(name: str) -> None:
    text = source(name).read_text()
    for declared in re.findall(r"^(?:static .*?(?=\w+[(\[;])|typedef .* )(\w+)[(\[;]", text, flags=re.MULTILINE):
        assert declared.startswith(f"{name}_"), declared


def test_the_header_declares_every_function_and_no_other() -> None:
    declared = re.findall(r"\b(nn_\w+)\(", (LIBM / "nn_libm.h").read_text())
    assert sorted(declared) == FUNCTIONS


def test_plain_names() -> None:
    assert {f"nn_{name}" for name in PLAIN} == set(FUNCTIONS) - WITHOUT_PLAIN_NAME
    for name in PLAIN:
        assert uses(name) == {f"nn_{name}"}


@pytest.mark.turns(6)
@pytest.mark.slow
@pytest.mark.parametrize(("target", "level"), BUILDS)
def test_objects_need_nothing_else(target: str, level: str, run: Run, tool: Tool, tmp_path: Path) -> None:
    """No warning, no undefined symbol but the functions named in the first line, no writable data."""
    compiler, nm, *flags = COMPILERS[target]
    files = [source(name) for name in (FUNCTIONS + PLAIN if level == "-O2" else FUNCTIONS)]
    objects = [tmp_path / f"{path.stem}.o" for path in files]
    script = [
        f"cd {tmp_path} && {tool(compiler)} {' '.join((*FLAGS, *flags, level))} -I{LIBM} -c {' '.join(map(str, files))}"
    ]
    run("sh", "-c", *script)
    listing = run(tool(nm), "-A", *objects)
    needed: dict[str, set[str]] = {path.stem: set() for path in files}
    for line in listing.splitlines():
        where, kind, symbol = line.rsplit(None, 2)
        name = Path(where.split(":")[0]).stem
        assert kind not in "dDbBcC" or symbol.startswith("$"), f"{name}: writable data {symbol}"
        if kind == "U":
            needed[name].add(symbol)
    sections = run("size", "-A", *objects)
    for size in re.findall(r"^\.s?rodata\S*\s+(\d+)", sections, flags=re.MULTILINE):
        assert int(size) <= 1024, f"a table of {size} bytes"
    # An optimised call of the same file's static function leaves no symbol, so the sets are equal, not just contained.
    assert needed == {name: uses(name) for name in needed}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", ["expf", "fmaxf", "logisticf", "log1pf", "powf", "sinf", "sqrtf", "tanhf", "erff"])
def test_pasted_under_another_prefix(name: str, compiler: str, run: Run, tool: Tool, tmp_path: Path) -> None:
    """A generated model holds the bodies of the functions it needs, static, with its own prefix."""
    body = f"{float_rules()}#include <stdint.h>\n{definitions([name], 'model')}"
    two = name in ("fmaxf", "powf")
    call = f"model_{name}(x, y)" if two else f"model_{name}(x) + y"
    user = f"float model_user(float x, float y);\nfloat model_user(float x, float y)\n{{\n    return {call};\n}}\n"
    (tmp_path / "model.c").write_text(body + user)
    run(tool(compiler), *FLAGS, "-O2", "-c", tmp_path / "model.c", "-o", tmp_path / "model.o")
    symbols = run("nm", tmp_path / "model.o").splitlines()
    assert [line.split()[-2:] for line in symbols if line.split()[-2] in "UTDBC"] == [["T", "model_user"]]


@pytest.mark.parametrize("flags", [("-ffast-math",), ("-m32", "-mfpmath=387")])
def test_flags_that_change_the_bits_are_refused(flags: tuple[str, ...], tool: Tool, tmp_path: Path) -> None:
    command: list[str | Path] = [
        tool("gcc"),
        "-std=c99",
        "-O2",
        "-ffreestanding",
        *flags,
        f"-I{LIBM}",
        "-c",
        source("nn_expf"),
    ]
    done = subprocess.run([*command, "-o", tmp_path / "expf.o"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "float operations must be done as written" in done.stderr
