"""Every board builds, with each toolchain it names; the images hold what the ELF holds."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.backends.firmware import program as firmware
from nnbuild.backends.firmware.image import hex_lines, read_image, used_bytes
from nnbuild.backends.firmware.layout import layout_of
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import CheckFailed, NnbuildError
from nnbuild.base.paths import FIRMWARE
from nnbuild.board.board import Board
from nnbuild.board.tables import find
from nnbuild.jobs.job import Place, build_program, connected, place
from nnbuild.jobs.memory import memory_of
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from tests.boards.conftest import EMULATED, FIRMWARE_BOARDS, MNIST, needs_tools
from tests.frontend.keras_files import dense, h5_bytes, input_layer, layer, put, random_arrays, sequential, small

pytestmark = pytest.mark.slow

FAST = "stm32f405"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """x[12, 12, 1] -> Conv2D(4) -> Flatten -> Dense(3): small enough for every board."""
    config = sequential(
        input_layer("x", [12, 12, 1]),
        layer("Conv2D", "conv", filters=4, kernel_size=[3, 3], strides=[2, 2], padding="valid", activation="relu"),
        layer("Flatten", "flat"),
        dense("head", 3),
    )
    weights = {"conv": random_arrays((3, 3, 1, 4), (4,)), "head": random_arrays((100, 3), (3,))}
    return put(tmp_path_factory.mktemp("model") / "tiny.h5", h5_bytes(config, weights))


def with_toolchain(board: Board, name: str) -> Board:
    return replace(board, toolchains=tuple(chain for chain in board.toolchains if chain.name == name))


def build(model: Path, board: Board, folder: Path, quantize: str = "float") -> Path:
    compiled = replace(compile_model(Options(model, board.name, quantize)), board=board)
    with place(None, None) as where:
        return build_program(compiled, replace(where, folder=folder))


@pytest.mark.turns(9)
@pytest.mark.emulator
@pytest.mark.parametrize("name", FIRMWARE_BOARDS)
def test_every_board_builds_with_its_first_compiler(tiny: Path, tmp_path: Path, name: str) -> None:
    board = find(name)
    needs_tools(board)
    program = build(tiny, with_toolchain(board, board.toolchains[0].name), tmp_path, "int8")
    flash = board.memory("flash")
    assert read_image(program).address == flash.origin


@pytest.mark.turns(4)
@pytest.mark.emulator
@pytest.mark.parametrize("name", [FAST, "rv32", "microbit", "mps3-an547", "mps2-an505"])
@pytest.mark.parametrize(
    ("toolchain", "quantize"),
    [
        ("gcc", "float"),
        ("gcc", "int8"),
        ("zig", "int8"),
        *(
            pytest.param(*more, marks=pytest.mark.full)
            for more in (("gcc", "int16"), ("zig", "float"), ("zig", "int16"))
        ),
    ],
)
def test_toolchains_give_the_same_results(tiny: Path, tmp_path: Path, name: str, toolchain: str, quantize: str) -> None:
    needs_tools(find(name))
    compiled = compile_model(Options(tiny, name, quantize))
    check(replace(compiled, board=with_toolchain(compiled.board, toolchain)), tmp_path)


@pytest.mark.turns(9)
@pytest.mark.emulator
@pytest.mark.parametrize("quantize", ["float", "int8", "int16"])
@pytest.mark.parametrize("name", EMULATED)
def test_a_small_model_runs_everywhere(tiny: Path, tmp_path: Path, name: str, quantize: str) -> None:
    needs_tools(find(name))
    check(compile_model(Options(tiny, name, quantize)), tmp_path)


def check(compiled, folder: Path) -> None:
    from nnbuild.device.session import run_samples
    from nnbuild.jobs.job import samples_for
    from nnbuild.ops import interpret

    samples = samples_for(compiled, None)
    with place(None, None) as where:
        program = build_program(compiled, replace(where, folder=folder))
        with connected(compiled, program, None) as (link, info):
            raw = run_samples(link, info, list(samples)[:3]).raw
    wanted = interpret.run(compiled.graph, {k: v[:3] for k, v in samples.inputs.items()}, "float64")
    for name, values in zip(compiled.graph.outputs, raw, strict=True):
        if compiled.options.quantize == "float":
            np.testing.assert_allclose(values, wanted[name], rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(values, wanted[name])


@pytest.fixture(scope="session")
def built(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_tools(find(FAST))
    return build(tiny, with_toolchain(find(FAST), "gcc"), tmp_path_factory.mktemp("built"))


def test_the_binary_is_what_objcopy_makes(built: Path, tmp_path: Path) -> None:
    objcopy = shutil.which("arm-none-eabi-objcopy")
    assert objcopy is not None
    for form, ending in (("binary", ".bin"), ("ihex", ".hex")):
        subprocess.run([objcopy, "-O", form, built, tmp_path / f"by{ending}"], check=True)
    assert built.with_suffix(".bin").read_bytes() == (tmp_path / "by.bin").read_bytes()
    ours, theirs = hex_content(built.with_suffix(".hex")), hex_content(tmp_path / "by.hex")
    assert theirs.items() <= ours.items()
    assert all(ours[address] == 0 for address in ours.keys() - theirs.keys()), "what aligns the next section"


def hex_content(path: Path) -> dict[int, int]:
    """Address -> byte, of a .hex file whose checksums are right."""
    content: dict[int, int] = {}
    upper = 0
    for line in path.read_text().split():
        record = bytes.fromhex(line[1:])
        assert sum(record) % 256 == 0
        size, address, kind, data = record[0], int.from_bytes(record[1:3], "big"), record[3], record[4:-1]
        assert size == len(data)
        if kind == 4:
            upper = int.from_bytes(data, "big") << 16
        elif kind == 0:
            content.update((upper + address + index, byte) for index, byte in enumerate(data))
    return content


def test_a_hex_file_ends_with_its_end(built: Path) -> None:
    lines = list(hex_lines(read_image(built)))
    assert lines[-1] == ":00000001FF"
    assert lines[0] == ":020000040800F2"


def test_the_layout_is_an_upper_bound(tiny: Path, built: Path) -> None:
    """What is promised to fit before compiling is no less than what the linker then needs of RAM."""
    board = find(FAST)
    compiled = compile_model(Options(tiny, FAST))
    layout, used = layout_of(board, compiled.plan), used_bytes(built, board.memories)
    assert used["ram"] <= layout.used["ram"] <= used["ram"] + 256


@pytest.mark.parametrize("name", ["stm32f100", "microbit", "mps3-an547"])
def test_the_layout_is_an_upper_bound_on_small_parts(tiny: Path, tmp_path: Path, name: str) -> None:
    board = find(name)
    needs_tools(board)
    program = build(tiny, with_toolchain(board, "gcc"), tmp_path)
    layout, used = layout_of(board, compile_model(Options(tiny, name)).plan), used_bytes(program, board.memories)
    assert used["ram"] <= layout.used["ram"] <= used["ram"] + 256


def test_memory_of_the_whole_part(tiny: Path, built: Path) -> None:
    memory = memory_of(compile_model(Options(tiny, FAST)), built)
    assert memory["flash_size"] == 1 << 20
    assert memory["flash_code"] + memory["flash_weights"] < memory["flash_used"] < 40_000
    assert memory["arena"] + memory["state"] < memory["ram_used"] < memory["ram_size"] == 128 << 10


def test_a_full_memory_is_said_in_our_words(tmp_path: Path) -> None:
    """The estimate before compiling lets this pass, and the code turns out larger."""
    board = find(FAST)
    needs_tools(board)
    plan = compile_model(Options(MNIST / "mnist.h5", FAST, "int8")).plan
    length = layout_of(board, plan).used["flash"] + 100
    small = tuple(replace(m, length=length) if m.name == "flash" else m for m in board.memories)
    with pytest.raises(NnbuildError) as raised:
        build(MNIST / "mnist.h5", replace(with_toolchain(board, "gcc"), memories=small), tmp_path, "int8")
    assert "bytes larger than the memory 'flash' of the board. Take a smaller model" in str(raised.value)


def test_a_stack_over_the_budget_is_refused(tiny: Path, tmp_path: Path) -> None:
    board = find(FAST)
    needs_tools(board)
    compiled = compile_model(Options(tiny, FAST))
    with pytest.raises(CheckFailed, match=r"(?s)a run is not within its bound.*above the limit of 16"):
        build_program(replace(compiled, board=replace(board, stack_budget=16)), Place(tmp_path))
    assert not (tmp_path / "program.elf").exists()


def test_every_file_a_build_makes_is_named_before() -> None:
    board = find(FAST)
    assert backend_of(board).file_names(board, "m") == ["nn_target.c", firmware.SCRIPT]
    assert backend_of(board).finished_names == ("program.bin", "program.hex")


def test_the_first_bytes_of_an_rp2040_are_what_its_rom_proves() -> None:
    """CRC-32 of 252 bytes, highest bit first, as the data sheet says (2.8.1.3.1)."""
    text = (FIRMWARE / "soc" / "rp2040" / "nn_boot.c").read_text()
    words = [int(word, 16) for word in re.findall(r"0x([0-9a-f]{4})u,", text)]
    code = b"".join(word.to_bytes(2, "little") for word in words).ljust(252, b"\0")
    crc = 0xFFFFFFFF
    for byte in code:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc >> 31 else 0)) & 0xFFFFFFFF
    assert f".check = 0x{crc:08x}u" in text


def test_a_compiler_cache_that_keeps_objects_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ccache does with what gcc says of calls: what the stack's bound is read from is made anew."""
    from nnbuild.cli import main

    model = put(tmp_path / "small.h5", h5_bytes(*small()))
    cache = tmp_path / "bin" / "gcc"
    cache.parent.mkdir()
    forget = '[ -n "$CCACHE_DISABLE" ] || for word; do case $word in *.o) rm -f "${word%.o}.ci";; esac; done'
    cache.write_text(f'#!/bin/sh\n{shutil.which("gcc")} "$@" && {{ {forget}; }}\n')
    cache.chmod(0o755)
    monkeypatch.setenv("PATH", str(cache.parent), prepend=":")
    for folder in ("first", "again"):
        assert main(["build", str(model), "-o", str(tmp_path / folder)]) == 0
