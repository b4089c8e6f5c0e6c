"""The same bits on every machine: one digest a function, equal for every compiler, level and processor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., str]
Tool = Callable[[str], str]

HERE = Path(__file__).parent
DIGESTS = HERE / "digests.txt"
COMMON = ("-std=c99", "-ffp-contract=off", f"-I{HERE}")
CORTEX_M4F = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")


def sources(libm: Path) -> list[Path]:
    return [HERE / "digest.c", *sorted(libm.glob("nn_*.c"))]


@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_this_machine(compiler: str, level: str, libm: Path, run: Run, tool: Tool, tmp_path: Path) -> None:
    program = tmp_path / "digest"
    run(tool(compiler), *COMMON, level, f"-I{libm}", *sources(libm), "-o", program)
    assert run(program) == DIGESTS.read_text()


@pytest.mark.emulator
@pytest.mark.parametrize(
    "flags",
    [pytest.param((*CORTEX_M4F, "-O2"), id="hard-float"), pytest.param(("-mcpu=cortex-m3", "-Os"), id="soft-float")],
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
