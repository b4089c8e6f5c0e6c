"""The boards' tables, and what is made of them without any compiler or emulator: rates, layouts, linker scripts."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from nnbuild.backends.firmware import program as firmware
from nnbuild.backends.firmware.layout import (
    HANDLER_STACK,
    LINK_STACK,
    DoesNotFit,
    Layout,
    fixed_ram,
    flash_bytes,
    layout_of,
)
from nnbuild.backends.firmware.linker_script import linker_script
from nnbuild.backends.recipe import raise_if_full
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import UsageError
from nnbuild.base.paths import FIRMWARE
from nnbuild.board.board import STANDARD_RATES, Board, with_baud, with_context_memory
from nnbuild.board.tables import boards, find
from nnbuild.jobs.options import Options, board_of
from nnbuild.jobs.pipeline import compile_model
from nnbuild.plan.plan import Plan
from tests.boards.conftest import FIRMWARE_BOARDS, ROOT
from tests.frontend.keras_files import h5_bytes, put, small

TESTED_ON = {"hardware", "emulator", "build only"}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """Of a model with one Dense(3), 12 bytes of arena and more."""
    config, weights = small()
    model = put(tmp_path_factory.mktemp("model") / "small.h5", h5_bytes(config, weights))
    return compile_model(Options(model, "stm32f405", "int8")).plan


@pytest.mark.parametrize("board", boards(), ids=lambda board: board.name)
def test_every_table_says_what_it_is(board: Board) -> None:
    assert board.summary and board.tested_on in TESTED_ON
    emulated = board.emulator is not None or board.output == "kmod"  # of which QEMU boots a whole kernel
    assert emulated == (board.tested_on == "emulator")
    assert backend_of(board).file_names(board, "kws")
    named = [name for other in boards() for name in (other.name, *other.aliases)]
    assert len(named) == len(set(named)), "a name stands for one board"


@pytest.mark.parametrize("name", FIRMWARE_BOARDS)
def test_every_part_that_a_table_names_is_there(name: str) -> None:
    board = find(name)
    assert board.firmware is not None
    assert all(path.is_file() for path in firmware.sources(board))
    assert {"flash", "ram", *board.firmware.context_memory} <= {memory.name for memory in board.memories}
    for one in board.memories:
        assert not [other for other in board.memories if other is not one and other.origin in one]
    if board.flash is not None and board.flash.pages:
        assert sum(board.flash.pages) == board.memory("flash").length


def test_the_page_of_boards_has_them_all() -> None:
    page = (ROOT / "docs" / "boards.md").read_text()
    assert [name for name in FIRMWARE_BOARDS if f"| `{name}`" not in page] == []


# Line rates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIRMWARE_BOARDS)
def test_a_port_makes_its_own_boards_rate(name: str) -> None:
    board = find(name)
    assert board.rates is not None and board.rates.makes(board.baud)
    assert with_baud(board, None) is board


@pytest.mark.parametrize("name", FIRMWARE_BOARDS)
def test_the_clock_of_a_port_is_the_firmwares(name: str, tmp_path: Path) -> None:
    """The table's clock is that of the firmware's own source, as the compiler sees it."""
    board = find(name)
    part, rates = board.firmware, board.rates
    assert part is not None and rates is not None
    scales = {"ns16550": 1 / 16, "flexcomm": 1 / 16, "pl011": 4, "esp32": 16}
    scale = scales.get(part.uart, part.defines.get("NN_UART_BRR_SCALE", 1))
    macro = {
        "fixed": "NN_UART_HERTZ",
        "nrf51": "UART_HERTZ",
        "stm32f4": "UART_HERTZ",
        "stm32h7": "UART_HERTZ",
        "samd51": "UART_HERTZ",
        "lpc55s69": "UART_HERTZ",
        "esp32c3": "UART_HERTZ",
        "esp32c6": "UART_HERTZ",
    }
    hertz = round(rates.hertz / scale)
    test = tmp_path / "clock.c"
    source = FIRMWARE / "soc" / part.soc / "nn_soc.c"
    check = f'_Static_assert({macro.get(part.soc, "PLL_HERTZ")} == {hertz}u, "the clock");\n'
    test.write_text(f'#include "{source}"\n{check}')
    defines = [f"-D{key}={value}u" for key, value in part.defines.items()]
    folders = [f"-I{FIRMWARE / folder}" for folder in ("platform/bare", "soc")]
    subprocess.run(["gcc", "-std=c11", "-fsyntax-only", *defines, *folders, str(test)], check=True)


RATES = [
    ("stm32f405", 2_000_000, 2_000_000),
    ("stm32f405", 921_600, 84e6 / 91),
    ("nucleo-f446re", 115_200, 45e6 / 391),
    ("nucleo-l4r5zi", 2_000_000, 2_000_000),
    ("rv32", 230_400, 230_400),
    ("microbit", 115_200, 7550 * 16e6 / 2**20),
]


@pytest.mark.parametrize(("name", "baud", "made"), RATES)
def test_rates_as_the_divider_makes_them(name: str, baud: int, made: float) -> None:
    rates = find(name).rates
    assert rates is not None and rates.nearest(baud) == pytest.approx(made)
    assert with_baud(find(name), baud).baud == baud


NO_RATES = [
    (
        "nucleo-f446re",
        2_000_000,
        "its serial port runs at 1,956,522 baud instead of 2,000,000, 2.2 % off; at most 2 % is tolerable.",
    ),
    ("rv32", 921_600, "its serial port runs at 230,400 baud instead of 921,600, 75.0 % off; at most 2 % is tolerable."),
    (
        "microbit",
        1_500_000,
        "its serial port runs at 1,000,000 baud instead of 1,500,000, 33.3 % off; at most 2 % is tolerable.",
    ),
    (
        "stm32f100",
        2_000_000,
        "its serial port runs at 1,500,000 baud instead of 2,000,000, 25.0 % off; at most 2 % is tolerable.",
    ),
    ("stm32f405", 9_600, "9,600 baud is not between 115,200 and 2,000,000."),
    ("stm32f405", 3_000_000, "3,000,000 baud is not between 115,200 and 2,000,000."),
    ("linux", 115_200, "it runs on this PC and has no serial rate."),
]


@pytest.mark.parametrize(("name", "baud", "cause"), NO_RATES)
def test_rates_that_cannot_be_made(name: str, baud: int, cause: str) -> None:
    with pytest.raises(UsageError) as raised:
        with_baud(find(name), baud)
    assert str(raised.value).startswith(f"board {name!r}: {cause} ")
    offered = re.findall(r"[\d,]+\d{3}", raised.value.next_step)
    rates = find(name).rates
    assert offered == [f"{rate:,}" for rate in STANDARD_RATES if rates is not None and rates.makes(rate)]


def test_the_rate_is_built_in(tmp_path: Path) -> None:
    board = board_of(Options(tmp_path / "net.h5", "stm32f405", baud=921_600))
    assert "-DNN_BAUD=921600u" in backend_of(board).recipe(board, []).flags


# Memory ----------------------------------------------------------------------------------------------------------


def test_a_model_lies_in_the_first_memory_it_fits_in(plan: Plan) -> None:
    board = find("stm32f405")
    assert layout_of(board, plan).context == "ccm"
    small_ccm = tuple(replace(m, length=8) if m.name == "ccm" else m for m in board.memories)
    assert layout_of(replace(board, memories=small_ccm), plan).context == "ram"


def test_an_emulator_is_not_asked_for_what_it_lacks(plan: Plan, tmp_path: Path) -> None:
    assert layout_of(with_context_memory(find("stm32f405"), None), plan).context == "ram"
    usual, fast = (board_of(Options(tmp_path / "x.h5", "stm32", memory=name)) for name in (None, "ccm"))
    assert usual.firmware is not None and usual.firmware.context_memory == ("ram",)
    assert fast.firmware is not None and fast.firmware.context_memory == ("ccm",)
    assert with_context_memory(find("linux"), None) == find("linux")


@pytest.mark.parametrize(("name", "step"), [("stm32f405", "Take one of ccm, ram."), ("linux", "Leave the memory out.")])
def test_a_memory_that_is_not_there(name: str, step: str) -> None:
    with pytest.raises(UsageError) as raised:
        with_context_memory(find(name), "sdram")
    assert str(raised.value) == f"board {name!r}: a model cannot use a memory 'sdram' there. {step}"


def test_a_layout_counts_everything(plan: Plan) -> None:
    board = find("stm32f405")
    stack = 2048 + LINK_STACK
    layout = layout_of(with_context_memory(board, None), plan)
    assert layout.stack == stack
    context = -(-(plan.arena + plan.state) // plan.alignment) * plan.alignment
    assert layout.used == {"flash": flash_bytes(plan), "ram": fixed_ram(board, plan, stack) + context}
    assert fixed_ram(board, plan, stack) > stack + HANDLER_STACK + 2 * 1024


@pytest.mark.parametrize("memory", ["ram", "flash"])
def test_one_byte_too_few(plan: Plan, memory: str) -> None:
    """What just fits, fits; with a byte less there is an error that says so."""
    board = with_context_memory(find("stm32f405"), None)
    needed = layout_of(board, plan).used[memory]

    def with_length(length: int) -> Board:
        return replace(
            board, memories=tuple(replace(m, length=length) if m.name == memory else m for m in board.memories)
        )

    layout_of(with_length(needed), plan)
    with pytest.raises(DoesNotFit) as raised:
        layout_of(with_length(needed - 1), plan)
    assert raised.value.over == 1
    name = memory.upper() if memory == "ram" else memory
    assert f"the model exceeds the {name} by 1 bytes: " in str(raised.value)


def test_a_linker_script(plan: Plan) -> None:
    board = find("stm32f405")
    script = linker_script(board, layout_of(board, plan))
    assert "    flash : ORIGIN = 0x08000000, LENGTH = 1048576\n" in script
    assert "    ram : ORIGIN = 0x20000000, LENGTH = 131072\n" in script
    assert "    ccm : ORIGIN = 0x10000000, LENGTH = 65536\n" in script
    assert "nn_board_stm32f405 = 0;" in script and "nn_ram_end = 0x20020000;" in script
    homes = dict(re.findall(r"^    \.(\w+)[^\n]*\n    \{\n(?:        [^\n]*\n)*    \} > (\w+)", script, re.MULTILINE))
    assert homes == {
        "text": "flash", "rodata": "flash", "stack": "ram", "handler_stack": "ram", "data": "ram", "context": "ccm",
        "bss": "ram",
    }  # fmt: skip
    assert list(homes)[2] == "stack", "an overflow of the stack must leave the RAM"


@pytest.mark.parametrize("name", FIRMWARE_BOARDS)
def test_every_linker_script_has_the_parts_limits(name: str) -> None:
    board = find(name)
    script = linker_script(board, Layout("ram", 2048, {}))
    found = re.findall(r"^    (\w+) : ORIGIN = (\w+), LENGTH = (\d+)$", script, re.MULTILINE)
    flash = board.memory("flash")
    twice = [("flash_data", flash.data, flash.length)] if flash.data is not None else []
    assert [(m, int(o, 16), int(length)) for m, o, length in found] == [
        *((m.name, m.origin, m.length) for m in board.memories),
        *twice,
    ]


LINKERS = {
    "ld": (
        "ld: program.elf section `.rodata' will not fit in region `flash'\n"
        "ld: region `flash' overflowed by 5440 bytes\n"
    ),
    "lld": (
        "ld.lld: error: section '.text' will not fit in region 'flash': overflowed by 132 bytes\n"
        "ld.lld: error: section '.rodata' will not fit in region 'flash': overflowed by 5440 bytes\n"
    ),
}


@pytest.mark.parametrize("linker", LINKERS)
def test_a_linkers_complaint_in_our_words(linker: str) -> None:
    with pytest.raises(UsageError) as raised:
        raise_if_full("program.elf", LINKERS[linker])
    cause = "the program is 5,440 bytes larger than the memory 'flash' of the board."
    assert str(raised.value) == f"program.elf: {cause} Take a smaller model, --optimize size, or a larger board."
    raise_if_full("program.elf", "ld: undefined reference to `expf'\n")
