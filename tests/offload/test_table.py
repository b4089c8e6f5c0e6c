"""A device's table: what is read, and that every field is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.base.errors import UsageError
from nnbuild.board.tables import find
from nnbuild.jobs.options import Options, device_of
from nnbuild.offload.table import find_device
from tests.offload.made_up import made_up


def test_a_folder_anywhere_is_a_device(tmp_path: Path) -> None:
    device = find_device(str(made_up(tmp_path / "mine")))
    assert (device.name, device.channels, device.depth) == ("mine", 4, 3)
    assert device.memory("constants").begin == 0x1000
    assert device.operators["conv2d"].limits["kernel_height"] == (1, 5)
    assert device.operators["add"].arithmetic.acc_bits == 24
    driver = device.with_driver(frozenset({"host"})).driver()
    assert driver is not None
    assert driver.sources[0].name == "driver.c"
    assert device.with_driver(frozenset({"kmod"})).driver() is None


WRONG = {
    "a field": ("margin =", "marign =", "marign is not a known field. Did you mean margin?"),
    "a quantity": ("out_width =", "out_with =", "operators.conv2d.out_with is not a known quantity"),
    "a limit": ("out_width = [1, 40]", "out_width = [40, 1]", "operators.conv2d.out_width = [40, 1] is not [least"),
    "an operator": ("[operators.add]", "[operators.plus]", "there is no operator 'plus'. Operators: conv2d"),
    "a rounding": ('"floor", "none"', '"down", "none"', "arithmetic.rounding = ['down', 'none'] is not a pair"),
    "a number for a memory": (
        "[memory.ram]",
        "[memory]\nother = 4096\n[memory.ram]",
        "memory.other is not a table",
    ),
    "a list of scales": ('scale = "pow2"', 'scale = ["pow2"]', "arithmetic.scale = ['pow2'] is not one of int32x31"),
    "a scale": ('scale = "pow2"', 'scale = "pow3"', "arithmetic.scale = 'pow3' is not one of int32x31"),
    "a number": ("size = 0x18000", 'size = "large"', "memory.ram.size = 'large' is not an integer"),
    "a missing number": ("size = 0x18000", "", "memory.ram.size is missing"),
    "a memory's use": ('"exchange"]', '"nothing"]', "memory.ram.holds = ['constants', 'tensors', 'nothing'] is no"),
    "no exchange": ('"tensors", "exchange"]', '"tensors"]', "no memories hold exchange; exactly one must"),
    "no host": ("host = true", "host = false", "need host = true"),
    "an alignment": ("alignment = 4", "alignment = 3", "memory.ram.alignment = 3 is not a power of two"),
    "a begin": (
        "begin = 0x1000",
        "begin = 0x1001",
        "memory.ram.begin = 0x1001 is not a multiple of its alignment of 4",
    ),
    "two in one place": (
        'host = true\nholds = ["constants", "tensors", "exchange"]\nreserved = 64\n',
        'host = true\nholds = ["tensors", "exchange"]\nreserved = 64\n\n[memory.twin]\nbegin = 0x2000\nsize = 0x18000\n'
        'host = true\nholds = ["constants"]\n',
        "memory.ram and memory.twin overlap",
    ),
    "a clock": ("clock = 1.0", "clock = 0", "clock and copying.bytes_per_cycle must be more than 0"),
    "a source": ('"driver.c"', '"diver.c"', "driver.software.sources: diver.c does not exist"),
    "a board": ('"host", "firmware"', '"hots"', "driver.software.boards = ['hots'] is not a list of host, native"),
    "a file": ('file = "device.py"', 'file = "gone.py"', "its file gone.py does not exist"),
    "the form": ("depth = 3", "depth = ", "is not valid TOML"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named(case: tuple[str, str, str], tmp_path: Path) -> None:
    old, new, said = case
    folder = made_up(tmp_path / "mine", **{old: new})
    with pytest.raises(UsageError) as caught:
        find_device(str(folder))
    assert said in str(caught.value)
    assert "device 'mine'" in str(caught.value)


def test_a_python_file_that_fails_or_lacks_a_function(tmp_path: Path) -> None:
    folder = made_up(tmp_path / "mine")
    (folder / "device.py").write_text("raise KeyError('no')\n")
    with pytest.raises(UsageError, match=r"device\.py fails: KeyError: 'no'"):
        find_device(str(folder))
    (folder / "device.py").write_text("def pack(task): ...\ndef describe(task, addresses): ...\n")
    with pytest.raises(UsageError, match=r"device\.py has no function cycles"):
        find_device(str(folder))


def test_unknown_names_and_drivers(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such device"):
        find_device("nothing-of-that-name")
    with pytest.raises(UsageError, match="cannot be read"):
        find_device(str(tmp_path))
    folder = made_up(tmp_path / "mine")
    assert find_device(f"{folder}:software").chosen == "software"
    with pytest.raises(UsageError, match=r"it has no driver 'mmio'. Its drivers: software\."):
        find_device(f"{folder}:mmio")


def test_a_driver_serves_kinds_of_boards() -> None:
    """The simulator is linked with this PC's own object, which programs of other processors cannot take."""
    systolic = find_device("systolic")
    for board, driver in {"linux": "simulator", "linux-arm64": "uio", "linux-rv64": "uio", "rv32": "mmio"}.items():
        assert systolic.with_driver(find(board).kinds).chosen == driver
    options = Options(Path("net.h5"), board="linux-arm64", device="systolic:simulator")
    with pytest.raises(UsageError, match=r"the driver 'simulator' is not for a board like 'linux-arm64'\."):
        device_of(options, find("linux-arm64"))


FAILING = {
    "cycles": ("1 / 0", "cycles() in device.py fails at line 1: ZeroDivisionError: division by zero"),
    "pack": ("None", "pack() in device.py returns None, which is not bytes"),
    "describe": ("5", "describe() in device.py fails at its call: TypeError"),
}


@pytest.mark.parametrize("name", FAILING)
def test_functions_that_fail_are_named(name: str, tmp_path: Path) -> None:
    result, said = FAILING[name]
    folder = made_up(tmp_path / "mine")
    others = [f"def {other}(*a): return b''" for other in ("pack", "describe", "cycles", "compute") if other != name]
    (folder / "device.py").write_text("\n".join([f"def {name}(task): return {result}", *others]))
    functions = find_device(str(folder)).functions
    with pytest.raises(UsageError) as caught:
        getattr(functions, name)(*([None, None] if name == "describe" else [None]))
    assert said in str(caught.value)


@pytest.mark.parametrize("value", ["-5", "'x'", "float('nan')", "True"])
def test_cycles_are_numbers(value: str, tmp_path: Path) -> None:
    folder = made_up(tmp_path / "mine")
    text = (folder / "device.py").read_text()
    (folder / "device.py").write_text(f"{text}\n\ndef cycles(task):\n    return {value}\n")
    with pytest.raises(UsageError, match=r"cycles\(\) in device\.py returns .*, which is not a number from 0 on"):
        find_device(str(folder)).functions.cycles(None)  # type: ignore[arg-type]
