"""Boards of a user's own: where their tables are found, how they are begun, and that what contradicts is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nnbuild.base.errors import UsageError
from nnbuild.base.paths import BOARDS
from nnbuild.board import search_path
from nnbuild.board.board import Board
from nnbuild.board.consistency import contradictions
from nnbuild.board.tables import boards, find, find_unchecked
from nnbuild.cli import main
from tests.frontend.keras_files import h5_bytes, put, small

F446 = (BOARDS / "nucleo-f446re" / "board.toml").read_text("utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def own(folder: Path, text: str, name: str = "mine") -> Path:
    file = folder / f"{name}.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(re.sub(r"(?m)^aliases = .*\n", "", text), "utf-8")
    return file


PLANTED = {
    "serial clock": ("clock = 45_000_000", "clock = 42_000_000", "every rate would be off by 7 %"),
    "serial bus": ("NN_UART_ON_APB2 = 0", "NN_UART_ON_APB2 = 1", "every rate would be off by 100 %"),
    "processor's clock": (
        "NN_PLL_N = 360",
        "NN_PLL_N = 400",
        "the processor would run at 200 MHz; the part allows 180",
    ),
    "bus clock": ("NN_PLL_N = 360", "NN_PLL_N = 400", "the first peripheral bus would run at 50 MHz"),
    "slow PLL": ("NN_PLL_N = 360", "NN_PLL_N = 90", "its PLL would run at 90 MHz; it must stay from 100 MHz"),
    "fast PLL": ("NN_PLL_N = 360", "NN_PLL_N = 440", "its PLL would run at 440 MHz"),
    "no over-drive asked for": ("NN_OVERDRIVE = 1", "NN_OVERDRIVE = 0", "180 MHz needs NN_OVERDRIVE = 1"),
    "no over-drive there": ('"stm32f446re"', '"stm32f405rg"', "the part has no over-drive"),
    "summary": ("180 MHz", "168 MHz", "its summary says 168 MHz, its clocks make 180 MHz"),
    "wait states": ("NN_UART_AF = 7", "NN_UART_AF = 7\nNN_FLASH_WAITS = 3", "its flash needs 5 wait states at 180 MHz"),
    "voltage": ('"stm32f446re"', '"stm32f411re"', "needs more than the voltage scale 2, which allows 84 MHz"),
    "baud": ("least = 16", "least = 16\nbaud = 2_000_000", "baud = 2_000_000, but the port makes 1_956_522"),
    "interrupt": ("NN_UART_IRQ = 38", "NN_UART_IRQ = 37", "NN_UART_IRQ = 37, but that of USART2 is 38"),
    "enable bit": ("NN_UART_ENABLE_BIT = 17", "NN_UART_ENABLE_BIT = 4", "that of USART2 is 17"),
    "port": ("0x40004400", "0x40004440", "NN_UART_BASE = 0x40004440 is not a serial port that its start code turns on"),
    "one pin": ("NN_UART_RX_PIN = 3", "NN_UART_RX_PIN = 2", "sends and receives on one pin, 2"),
    "pin": ("NN_UART_TX_PIN = 2", "NN_UART_TX_PIN = 16", "NN_UART_TX_PIN = 16; they go from 0 to 15"),
    "flash too long": ("length = 524_288", "length = 1_048_576", "its memory 'flash', 1,048,576 bytes at 0x08000000"),
    "flash elsewhere": ("0x0800_0000", "0x0900_0000", "is not in the part"),
    "RAM too long": ("length = 131_072", "length = 196_608", "its memory 'ram', 196,608 bytes at 0x20000000"),
    "overlap": ("[serial]", "axi = { origin = 0x2001_0000, length = 16 }\n[serial]", "'axi' and 'ram' overlap"),
    "pages": ("[3, 131_072]]", "[4, 131_072]]", "its flash has 524,288 bytes, its pages 655,360"),
    "chip": ("chip = 0x421", "chip = 0x413", "chip = 0x413, but the part's bootloader answers 0x421"),
    "core": ('"stm32f446re"', '"stm32f767zi"', "it is compiled for a cortex-m4, the part is a cortex-m7"),
    "part": ('"stm32f446re"', '"stm32f446xx"', "part = 'stm32f446xx' is not a known part"),
    "memory of the model": ("[serial]", '[firmware]\ncontext_memory = ["ccm"]\n[serial]', "[memory] has no 'ccm'"),
    "missing number": ('extends = "stm32f4"', 'extends = "cortex-m4f"', "does not say"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_contradiction_is_refused(planted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, told = PLANTED[planted]
    assert old in F446
    text = F446.replace(old, new, 1)
    if planted == "missing number":
        text = text.replace(
            "[firmware.defines]", '[firmware]\nsoc = "stm32f4"\nuart = "stm32_usart_v1"\n[firmware.defines]'
        )
        text = text.replace("NN_PLL_N = 360", "NN_FLASH_WAITS = 5")
    file = own(tmp_path, text)
    assert any(told in sentence for sentence in contradictions(find_unchecked(str(file))))
    with pytest.raises(UsageError):
        find(str(file))
    assert main(["board", "check", str(file)]) == 1
    assert told in capsys.readouterr().out


ELSEWHERE = {
    "nucleo-g0b1re": [
        ("NN_UART_IRQ = 28", "NN_UART_IRQ = 38", "NN_UART_IRQ = 38, but that of USART2 is 28"),
        ("NN_UART_AF = 1", "NN_UART_AF = 7", "USART2 cannot send by PA2 with NN_UART_AF = 7: take PA2 with 1"),
        ("NN_FLASH_WAITS = 2", "NN_FLASH_WAITS = 1", "its flash needs 2 wait states at 64 MHz"),
        ("NN_PLL_N = 8 ", "NN_RCC_SWS = 2\nNN_PLL_N = 8 ", "NN_RCC_SWS = 2, but the part's is 3"),
    ],
    "nucleo-g474re": [
        ("NN_BOOST = 1", "NN_BOOST = 0", "170 MHz needs NN_BOOST = 1: the part's voltage allows 150 MHz without"),
        ("NN_UART_BRR_SCALE = 256", "NN_UART_BRR_SCALE = 1", "but that of LPUART1 is 256"),
        ("NN_UART_IRQ = 91", "NN_UART_IRQ = 70", "NN_UART_IRQ = 70, but that of LPUART1 is 91"),
        ("least = 768", "least = 16", "[serial] least = 16, but the port divides by 768 at least"),
        ("NN_PLL_M = 4", "NN_PLL_M = 8", "its PLL would be fed by 2 MHz"),
        ('"stm32g474re"\n', '"stm32l476rg"\n', "NN_RESET_HERTZ = 16000000, but the part's is 4000000"),
    ],
    "nucleo-l476rg": [
        ("NN_UART_ENABLE = 0x40021058", "NN_UART_ENABLE = 0x40021060", "that of USART2 is 0x40021058"),
        ("NN_UART_TX_PIN = 2", "NN_UART_TX_PIN = 4", "USART2 cannot send by PA4 with NN_UART_AF = 7: take PA2 with 7"),
        ("[[512, 2_048]]", "[[256, 4_096]]", "[flash] pages are not the part's, which are [[512, 2048]]"),
        ('pyocd = "stm32l476rgtx"', 'pyocd = "stm32l4r5zitx"', "is another part than 'stm32l476rg'"),
    ],
    "nucleo-u575zi-q": [
        ("NN_UART_IRQ = 61", "NN_UART_IRQ = 37", "NN_UART_IRQ = 37, but that of USART1 is 61"),
        ("NN_FLASH_WAITS = 4", "NN_FLASH_WAITS = 3", "its flash needs 4 wait states at 160 MHz"),
        ("NN_PLL_N = 20", "NN_PLL_N = 40", "its PLL would run at 640 MHz"),
        ("stm32u5x", "stm32l4x", "openocd = 'target/stm32l4x.cfg', but the part's is 'target/stm32u5x.cfg'"),
    ],
    "nucleo-h743zi": [
        ("NN_UART_BASE = 0x40004800", "NN_UART_BASE = 0x40004400", "not a serial port that its start code turns on"),
        ("NN_SUPPLY = 2", "NN_SUPPLY = 4", "NN_SUPPLY = 4, but the part's is 2"),
        ("NN_FLASH_WAITS = 2", "NN_FLASH_WAITS = 1", "its flash needs 2 wait states at 200 MHz"),
        ("NN_GPIO_ENABLE = 0x580244e0", "NN_GPIO_ENABLE = 0x58024540", "but the part's is 0x580244e0"),
        ("[[16, 131_072]]", "[[256, 8_192]]", "[flash] pages are not the part's"),
    ],
    "nucleo-wb55rg": [
        ("NN_UART_PORT = 1", "NN_UART_PORT = 0", "USART1 cannot send by PA6 with NN_UART_AF = 7"),
        ("NN_UART_ENABLE = 0x58000060", "NN_UART_ENABLE = 0x40021060", "that of USART1 is 0x58000060"),
        ("NN_PLL_M = 2", "NN_PLL_M = 1", "the processor would run at 128 MHz; the part allows 64 MHz"),
    ],
    "nucleo-f767zi": [
        ('"stm32_usart_v2"', '"stm32_usart_v1"', "uart = 'stm32_usart_v1', but the part has 'stm32_usart_v2'"),
        ("NN_FLASH_WAITS = 7", "NN_FLASH_WAITS = 5", "its flash needs 7 wait states at 216 MHz"),
        ("NN_UART_RX_PIN = 9", "NN_UART_RX_PIN = 10", "USART3 cannot receive by PD10 with NN_UART_AF = 7"),
        ("NN_HAS_DATA_BUFFER = 0", "NN_HAS_DATA_BUFFER = 1", "NN_HAS_DATA_BUFFER = 1, but the part's is 0"),
    ],
    "nrf52840dk": [
        ("NN_CPU_HERTZ = 64_000_000", "NN_CPU_HERTZ = 16_000_000", "but the part's is 64000000"),
        ("NN_UART_BASE = 0x40002000", "NN_UART_BASE = 0x40028000", "not a serial port that its start code turns on"),
        ("NN_UART_TX_PIN = 6", "NN_UART_TX_PIN = 38", "NN_UART_TX_PIN = 38; it goes from 0 to 31"),
        ("15.2587890625", "30.517578125", "[serial] step = 30.517578125, but the port counts 15.2587890625 baud"),
        ('timer = "nrf51"', 'timer = "stm32_tim2"', "timer = 'stm32_tim2', but the part has 'nrf51'"),
    ],
    "pico": [
        ("NN_UART_BASE = 0x40034000", "NN_UART_BASE = 0x40038000", "UART0 at 0x40034000"),
        ("NN_UART_TX_PIN = 0", "NN_UART_TX_PIN = 4", "UART0 cannot send by pin 4: take 0 or 12 or 16 or 28"),
        ("NN_UART_IRQ = 20", "NN_UART_IRQ = 21", "NN_UART_IRQ = 21, but that of UART0 is 20"),
        ('soc = "rp2040"', 'soc = "rp2350"', "[firmware] soc = 'rp2350', but the part is started by 'rp2040'"),
    ],
    "pico2": [
        ("NN_PSM_BASE = 0x40018000", "NN_PSM_BASE = 0x40010000", "but the part's is 0x40018000"),
        ("NN_UART_IRQ = 33\n", "", "does not say NN_UART_IRQ, which is 33 for UART0"),
    ],
    "metro-m4": [
        ("NN_UART_IRQ = 60", "NN_UART_IRQ = 58", "NN_UART_IRQ = 58, but that of SERCOM3 is 60"),
        ("NN_UART_CHANNEL = 24", "NN_UART_CHANNEL = 23", "that of SERCOM3 is 24"),
        ("NN_UART_TX_PIN = 22", "NN_UART_TX_PIN = 23", "SERCOM3 cannot send by pin 23 with NN_UART_AF = 2"),
        ("NN_PLL_N = 120", "NN_PLL_N = 80", "its PLL would run at 80 MHz"),
    ],
    "lpcxpresso55s69": [
        ("NN_UART_RX_PIN = 29", "NN_UART_RX_PIN = 28", "FLEXCOMM0 cannot receive by pin 28 with NN_UART_AF = 1"),
        ("NN_FLASH_WAITS = 8", "NN_FLASH_WAITS = 5", "its flash needs 8 wait states at 96 MHz"),
        ("NN_RAM_ENABLE_BITS = 0x78", "NN_RAM_ENABLE_BITS = 0x8", "NN_RAM_ENABLE_BITS = 8, but the part's is 120"),
    ],
    "esp32c3-devkitm": [
        ("NN_UART_FSM = 0x6c", "NN_UART_FSM = 0x70", "NN_UART_FSM = 112, but the part's is 108"),
        ("NN_PLL_DIVIDER = 3", "NN_PLL_DIVIDER = 4", "NN_PLL_DIVIDER = 4, but the part's is 3 or 6"),
        ("data = 0x3c00_0000", "data = 0x4200_0000", "not read where its data says: write data = 0x3c000000"),
        ("NN_LOCKED_BEGIN = 0x3fc78000", "NN_LOCKED_BEGIN = 0x3fc70000", "the locked region below the RAM ends at"),
    ],
    "esp32c6-devkitc": [("NN_UART_UPDATE_BIT = 0", "NN_UART_UPDATE_BIT = 31", "but the part's is 0")],
    "ch32v307-evt": [
        ("NN_PLL_BITS = 0 ", "NN_PLL_BITS = 0x4_0000 ", "does not stand for times 18: that is 0x0"),
        ("NN_PLL_DIVIDER = 1", "NN_PLL_DIVIDER = 2", "NN_PLL_DIVIDER = 2, but the part's is 1"),
        ("NN_CPU_HERTZ = 144_000_000", "NN_CPU_HERTZ = 72_000_000", "NN_CPU_HERTZ = 72_000_000, its clocks make 144"),
    ],
    "longan-nano": [
        ("NN_PLL_BITS = 0x2028_0400", "NN_PLL_BITS = 0x0028_0400", "does not stand for times 27: that is 0x20280000"),
        ("NN_PLL_BITS = 0x2028_0400", "NN_PLL_BITS = 0x2028_0000", "the first peripheral bus would run at 108 MHz"),
        ("NN_UART_BASE = 0x40013800", "NN_UART_BASE = 0x40004400", "not a serial port that its start code turns on"),
    ],
}
"""Contradictions planted into our own tables, over all families."""


@pytest.mark.parametrize("like", ELSEWHERE)
def test_every_familys_contradictions_are_refused(like: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (BOARDS / like / "board.toml").read_text("utf-8")
    for at, (old, new, told) in enumerate(ELSEWHERE[like]):
        assert old in text
        file = own(project / "tables", text.replace(old, new, 1), f"mine{at}")
        assert main(["board", "check", str(file)]) == 1, (old, new)
        assert told in capsys.readouterr().out
        with pytest.raises(UsageError, match="Correct "):
            find(str(file))


def test_without_a_part_the_families_are_those_that_its_numbers_fit(project: Path) -> None:
    """Where they fit none, what is told is what all families of the start code agree on."""
    text = re.sub(r"(?m)^part = .*\n", "", F446)
    for old, new, told in (
        ("NN_UART_IRQ = 38", "NN_UART_IRQ = 37", "that of USART2 is 38"),
        ("NN_UART_PORT = 0", "NN_UART_PORT = 0\nNN_HAS_DATA_BUFFER = 0", "uart = 'stm32_usart_v1', but the part has"),
        ("NN_UART_IRQ = 38", "NN_UART_IRQ = 37\nNN_HAS_DATA_BUFFER = 2", "that of USART2 is 38"),
        ("NN_UART_PORT = 0", "NN_UART_PORT = 0\nNN_TIM2_DIVIDER = 4\nNN_HAS_DATA_BUFFER = 2", ""),
    ):
        found = contradictions(find_unchecked(str(own(project / "tables", text.replace(old, new)))))
        assert any(told in sentence for sentence in found) if told else found == (), found
    g474 = re.sub(r"(?m)^part = .*\n", "", (BOARDS / "nucleo-g474re" / "board.toml").read_text("utf-8"))
    found = contradictions(find_unchecked(str(own(project / "tables", g474.replace("IRQ = 91", "IRQ = 70")))))
    assert found == ("NN_UART_IRQ = 70, but that of LPUART1 is 91.",)


@pytest.mark.parametrize("board", boards(), ids=lambda board: board.name)
def test_nothing_in_our_own_tables_contradicts(board: Board) -> None:
    assert contradictions(board) == ()


def test_a_board_is_found_by_its_file_and_in_the_projects_folder(project: Path) -> None:
    file = own(project / "boards", F446)
    by_name, by_file = find("mine"), find(str(file))
    assert by_name.name == by_file.name == "mine"
    assert by_name.memories == find("nucleo-f446re").memories
    assert "mine" in [board.name for board in boards()]


def test_a_table_extends_its_neighbour(project: Path) -> None:
    own(project / "tables", F446, "base")
    file = own(project / "tables", 'extends = "base"\nsummary = "another"\ntested_on = "build only"\n', "other")
    assert find(str(file)).memories == find("nucleo-f446re").memories


def test_a_package_offers_boards(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(project / "package", F446, "theirs")
    monkeypatch.setattr(search_path, "of_packages", lambda: (project / "package",))
    assert find("theirs").name == "theirs"


BROKEN = [
    ("x = [", "is not valid TOML"),
    ('extends = "stm32f44"', "it extends 'stm32f44', which does not exist. Did you mean stm32f4?"),
    ('extends = "mine"', "it extends 'mine', which extends it in turn."),
    ("abstract = true", "it is a family of boards, not a board."),
    ('summary = "x"', "its mine.toml does not define 'build'"),
    ("", "mine.toml is empty. 'nnbuild board new NAME --like BOARD' writes one"),
    ("# later\n", "mine.toml says nothing but comments"),
    ("extends = 5", "it extends 5, which does not exist"),
]


@pytest.mark.parametrize(("text", "told"), BROKEN)
def test_a_broken_table_is_named(text: str, told: str, project: Path) -> None:
    file = own(project, text)
    with pytest.raises(UsageError, match="mine") as raised:
        find(str(file))
    assert told in str(raised.value)


def test_a_table_of_ones_own_harms_no_other_board(project: Path) -> None:
    own(project / "boards", "x = [")
    assert find("stm32f405").name == "stm32f405"


WRONG = {
    "quoted": (
        "NN_PLL_N = 360",
        'NN_PLL_N = "360"',
        "its [firmware.defines] NN_PLL_N = '360' is not valid. Write a whole",
    ),
    "negative": ("NN_UART_IRQ = 38", "NN_UART_IRQ = -1", "NN_UART_IRQ = -1 is not valid. Write a whole number from 0"),
    "true": ("NN_UART_IRQ = 38", "NN_UART_IRQ = true", "NN_UART_IRQ = True is not valid"),
    "clock": (
        "clock = 45_000_000",
        'clock = "45 MHz"',
        "its [serial] clock = '45 MHz' is not valid. Write a number above 0",
    ),
    "memory": ("length = 524_288", 'length = "512K"', "its [memory.flash] length = '512K' is not valid"),
    "no table": ("flash = { origin = 0x0800_0000, length = 524_288 }", "flash = 5", "Write a table, [memory.flash]."),
    "pages": ("[1, 65_536]", '[1, "64K"]', "its [flash] pages = "),
    "tools": ('["openocd", "st-flash", "pyocd", "serial"]', '"openocd"', "Write a list of texts in quotes."),
    "summary": ('summary = "ST', 'architecture = 3\nsummary = "ST', "its architecture = 3 is not valid. Write a text"),
    "section": ("[flash.names]", "[flsh.names]", "no section [flsh.names]. Did you mean [flash.names]?"),
    "lower section": ("[flash.names]", "[flash.nmes]", "no section [flash.nmes]. Did you mean [flash.names]?"),
    "strange section": ("[flash.names]", "[qqq]", "there is no section [qqq]. Write "),
    "key": ("least = 16", "leest = 16", "its [serial] has no leest. Did you mean least?"),
    "top key": ('part = "', 'prt = "', "a board's table has no prt. Did you mean part?"),
    "toolchain": ('part = "', 'toolchains = ["gcc"]\npart = "', "Write a table, [[toolchains]]."),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_field_that_cannot_be_is_named(wrong: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, told = WRONG[wrong]
    assert old in F446
    file = own(project, F446.replace(old, new, 1))
    assert main(["board", "check", str(file)]) == 2
    said = capsys.readouterr().err
    assert "board 'mine': " in said and told in said
    with pytest.raises(UsageError):
        find(str(file))


def test_a_divider_of_0_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", "new", "mine", "--like", "nucleo-h743zi"]) == 0
    file = project / "boards" / "mine.toml"
    file.write_text(re.sub(r"NN_PLL_M = \d+", "NN_PLL_M = 0", file.read_text()))
    assert main(["board", "check", "mine"]) == 1
    assert "divides by one of its [firmware.defines] that is 0: " in capsys.readouterr().out


@pytest.mark.parametrize("folder", ["boards", "tables"])
def test_strays_harm_no_other_board(folder: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = own(project / folder, F446)
    own(project / folder, "note = 1", "my notes")
    own(project / folder, "x = [", "bad")
    own(project / folder, F446, "linux")
    (project / folder / "folder.toml").mkdir()
    assert find(str(file)).name == "mine" and find("stm32f405").name == "stm32f405"
    assert main(["board", "check", str(file)]) == 0
    with pytest.raises(UsageError, match="a board is named after its file"):
        find(str(project / folder / "my notes.toml"))
    with pytest.raises(UsageError, match="is not valid TOML"):
        find(str(project / folder / "bad.toml"))
    if folder == "tables":
        return
    assert find("mine").name == "mine"
    for name, told in (("my notes", "is named after its file"), ("bad", "is not valid TOML"), ("linux", "two tables")):
        with pytest.raises(UsageError, match=told):
            find(name)
    capsys.readouterr()
    assert main(["boards"]) == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
    assert len(notes) == 3
    assert main(["board", "check"]) == 1
    told = capsys.readouterr().out
    assert told.count("skipped, because it is not a board: ") == 2 and "boards/my notes.toml: a board is named" in told
    assert "skipped, because it is not a board: board 'bad': " in told
    assert "linux.toml:\n  two tables have this name" in told  # it was meant as one
    (project / folder / "linux.toml").unlink()
    assert main(["board", "check"]) == 0


def test_a_name_that_is_shipped_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = own(project / "boards", F446, "linux")
    assert main(["board", "check", str(file)]) == 1
    assert "two tables have this name" in capsys.readouterr().out
    for name in ("../x", "a b", "", "-x"):
        assert main(["board", "new", "--like", "stm32f405", "--", name]) == 2
        assert "only letters, digits, '-' and '_'" in capsys.readouterr().err
    assert not (project / "x.toml").exists()


@pytest.mark.parametrize("nested", [False, True])
def test_a_new_project_takes_its_board_along(nested: bool, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(project / "hardware", F446, "base")
    part = project / "hardware" / ("mine/parts" if nested else "parts") / "soc" / "stm32f4" / "nn_soc.c"
    part.parent.mkdir(parents=True)
    part.write_text("int mine;\n")
    text = 'extends = "base"\nsummary = "another"\ntested_on = "build only"\n[firmware]\nfolder = "parts"\n'
    if nested:
        text = text.replace("base", "nucleo-f446re")
    file = own(project / "hardware" / "mine", text, "board") if nested else own(project / "hardware", text)
    assert main(["new", "app", "--board", str(file)]) == 0
    monkeypatch.chdir(project / "app")
    mine = find("mine")
    assert mine.memories == find("nucleo-f446re").memories
    from nnbuild.backends.firmware.program import sources

    assert [each.read_text() for each in sources(mine) if each.name == "nn_soc.c"] == ["int mine;\n"]
    assert (Path("boards") / "base.toml").is_file() == (not nested)


@pytest.mark.slow
def test_a_new_project_of_a_board_found_by_name(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = own(project / "boards", F446)
    assert main(["new", "app", "--board", "mine"]) == 0
    assert (project / "app" / "boards" / "mine.toml").read_bytes() == file.read_bytes()
    assert main(["new", "plain", "--board", "stm32f405"]) == 0
    assert not (project / "plain" / "boards").exists()
    file.write_text(file.read_text().replace("[firmware.defines]", '[firmware]\nfolder = "../x"\n[firmware.defines]'))
    assert main(["new", "other", "--board", "mine"]) == 2
    assert "Put that folder beside the table." in capsys.readouterr().err
    assert not (project / "other").exists()


def test_names(project: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        find("nothing.toml")
    with pytest.raises(UsageError, match="a board is named after its file"):
        find(str(own(project, F446, "my board")))
    own(project / "boards", F446, "stm32f405")
    with pytest.raises(UsageError, match="two tables have this name"):
        find("stm32f405")
    assert find("linux").name == "linux"
    shipped = BOARDS / "stm32f405" / "board.toml"
    (project / "boards" / "stm32f405.toml").write_bytes(shipped.read_bytes())  # as in a checkout of nnbuild
    assert find("stm32f405").name == "stm32f405"


def test_a_new_board_is_like_another_and_sound(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", "new", "mine", "--like", "nucleo-h743zi"]) == 0
    assert main(["board", "check", "mine"]) == 0
    assert "mine: no contradictions" in capsys.readouterr().out
    mine = find("mine")
    assert mine.aliases == () and mine.tested_on == "build only" and mine.summary.startswith("mine (Cortex-M7F")
    for taken in ("mine", "stm32"):  # a board's name, and an alias of one
        assert main(["board", "new", taken, "--like", "stm32"]) == 2
        assert "a board of this name exists:" in capsys.readouterr().err


def test_parts_of_the_firmware_of_ones_own(project: Path) -> None:
    model = put(project / "small.h5", h5_bytes(*small()))
    (project / "parts" / "soc" / "mine").mkdir(parents=True)
    theirs = project / "parts" / "soc" / "mine" / "nn_soc.c"
    theirs.write_text("int mine;\n")
    bring = '[firmware]\nfolder = "parts"\nsoc = "mine"\n[firmware.defines]'
    file = own(project, F446.replace("[firmware.defines]", bring))
    assert main(["compile", str(model), "--board", str(file), "--link", "-o", "out"]) == 0
    from nnbuild.backends.firmware.program import sources

    assert theirs in sources(find(str(file)))
    file.write_text(file.read_text().replace('soc = "mine"', 'soc = "other"'))
    with pytest.raises(UsageError, match="it names a part of the firmware that does not exist, soc/other"):
        sources(find(str(file)))
