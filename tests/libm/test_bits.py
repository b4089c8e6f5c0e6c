"""The same bits on every machine: one digest a function, equal for every compiler, level and processor."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., str]
Tool = Callable[[str], str]

HERE = Path(__file__).parent
ZIG = (sys.executable, "-m", "ziglang", "cc")
DIGESTS = HERE / "digests.txt"
COMMON = (f"-I{HERE}",)
TEMPTING = ("", "-march=native", "-ffp-contract=fast", "-mfma", "-mfma -ffp-contract=fast")
LEVELS = ("-O0", "-O2", "-O3", "-Os")
OFTEN = (("-O3", "-mfma -ffp-contract=fast"), ("-Os", ""))
"""The others are tested in full runs."""
CORTEX_M4F = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")


def sources(libm: Path) -> list[Path]:
    return [HERE / "digest.c", *sorted(libm.glob("nn_*.c"))]


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.slow)])
def test_the_most_tempting_flags(compiler: str, libm: Path, run: Run, tool: Tool, tmp_path: Path) -> None:
    digest((tool(compiler),), "-O2 -march=native -ffp-contract=fast", libm, run, tmp_path)


@pytest.mark.turns(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "flags"),
    [
        pytest.param(level, flags, marks=() if (level, flags) in OFTEN else pytest.mark.full)
        for level in LEVELS
        for flags in TEMPTING
    ],
)
@pytest.mark.parametrize("compiler", [("gcc",), ("clang",), ZIG], ids=["gcc", "clang", "zig"])
def test_this_machine(
    compiler: tuple[str, ...], level: str, flags: str, libm: Path, run: Run, tool: Tool, tmp_path: Path
) -> None:
    tool(compiler[0])
    digest(compiler, f"{level} {flags}", libm, run, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["-funsafe-math-optimizations", "-fassociative-math -fno-signed-zeros"])
def test_clang_reassociates_nothing(flags: str, libm: Path, run: Run, tool: Tool, tmp_path: Path) -> None:
    """It defines no macro by which these could be refused. Linking is without: it would flush small numbers to zero."""
    objects = [tmp_path / f"{source.stem}.o" for source in sources(libm)]
    for source, made in zip(sources(libm), objects, strict=True):
        run(tool("clang"), *COMMON, "-O2", "-march=native", *flags.split(), f"-I{libm}", "-c", source, "-o", made)
    run("clang", *objects, "-o", tmp_path / "digest")
    assert run(tmp_path / "digest") == DIGESTS.read_text()


def digest(compiler: tuple[str, ...], flags: str, libm: Path, run: Run, folder: Path) -> None:
    program = folder / "digest"
    run(*compiler, *COMMON, *flags.split(), f"-I{libm}", *sources(libm), "-o", program)
    assert run(program) == DIGESTS.read_text()


@pytest.mark.turns(3)
@pytest.mark.emulator
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((*CORTEX_M4F, "-O2"), id="hard-float"),
        pytest.param((*CORTEX_M4F, "-O2", "-ffp-contract=fast"), id="fused"),
        pytest.param(("-mcpu=cortex-m3", "-Os"), id="soft-float"),
    ],
)
def test_cortex_m4(flags: tuple[str, ...], libm: Path, run: Run, tool: Tool, tmp_path: Path) -> None:
    image = tmp_path / "digest.elf"
    compiler = tool("arm-none-eabi-gcc")
    layout = ("-nostdlib", "-ffreestanding", "-T", HERE / "cortex_m4.ld")
    inputs = [*sources(libm), HERE / "cortex_m4.c", "-lgcc"]
    run(compiler, *flags, *COMMON, "-DBARE", f"-I{libm}", *layout, *inputs, "-o", image)
    text = ("-chardev", "stdio,id=text", "-semihosting-config", "enable=on,target=native,chardev=text")
    quiet = ("-display", "none", "-monitor", "none", "-serial", "none")
    machine = (tool("qemu-system-arm"), "-M", "netduinoplus2", *quiet)
    assert run(*machine, *text, "-kernel", image) == DIGESTS.read_text()


@pytest.mark.emulator
def test_aarch64(libm: Path, run: Run, tool: Tool, tmp_path: Path) -> None:
    program = tmp_path / "digest"
    run(tool("aarch64-linux-gnu-gcc"), "-static", "-O2", *COMMON, f"-I{libm}", *sources(libm), "-o", program)
    assert run(tool("qemu-aarch64"), program) == DIGESTS.read_text()


@pytest.mark.emulator
def test_riscv32(libm: Path, run: Run, tool: Tool, tmp_path: Path) -> None:
    program = tmp_path / "digest"
    machine = ("-march=rv32imafc", "-misa-spec=2.2", "-mabi=ilp32f", "-nostdlib", "-ffreestanding", "-Wl,--no-relax")
    inputs = [*sources(libm), HERE / "riscv32.c", "-lgcc"]
    run(tool("riscv64-unknown-elf-gcc"), *machine, "-O2", *COMMON, "-DBARE", f"-I{libm}", *inputs, "-o", program)
    assert run(tool("qemu-riscv32"), program) == DIGESTS.read_text()
