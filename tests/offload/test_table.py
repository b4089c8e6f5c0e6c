"""A device's table: what is read, and that every field is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.base.errors import UsageError
from nnbuild.offload.table import find_device
from tests.offload.made_up import made_up


def test_a_folder_anywhere_is_a_device(tmp_path: Path) -> None:
    device = find_device(str(made_up(tmp_path / "mine")))
    assert (device.name, device.channels, device.depth) == ("mine", 4, 3)
    assert device.memory("constants").begin == 0x1000
    assert device.operators["conv2d"].limits["kernel_height"] == (1, 5)
    assert device.operators["add"].arithmetic.acc_bits == 24
    driver = device.driven("host").driver()
    assert driver is not None
    assert driver.sources[0].name == "driver.c"
    assert device.driven("kmod").driver() is None


WRONG = {
    "a field": ("margin =", "marign =", "marign is no field. Did you mean margin?"),
    "a quantity": ("out_width =", "out_with =", "operators.conv2d.out_with is no quantity"),
    "a limit": ("out_width = [1, 40]", "out_width = [40, 1]", "operators.conv2d.out_width = [40, 1] is no [least"),
    "an operator": ("[operators.add]", "[operators.plus]", "there is no operator 'plus'. Operators: conv2d"),
    "a rounding": ('"floor", "none"', '"down", "none"', "arithmetic.rounding = ['down', 'none'] is no pair"),
    "a scale": ('scale = "pow2"', 'scale = "pow3"', "arithmetic.scale = 'pow3' is none of int32x31"),
    "a number": ("size = 0x18000", 'size = "large"', "memory.ram.size = 'large' is no whole number"),
    "a missing number": ("size = 0x18000", "", "memory.ram.size is missing"),
    "a memory's use": ('"exchange"]', '"nothing"]', "memory.ram.holds = ['constants', 'tensors', 'nothing'] is no"),
    "no exchange": ('"tensors", "exchange"]', '"tensors"]', "no memories hold exchange; exactly one must"),
    "no host": ("host = true", "host = false", "need host = true"),
    "a source": ('"driver.c"', '"diver.c"', "driver.software.sources names diver.c, which is not there"),
    "a board": ('"host", "firmware"', '"hots"', "driver.software.boards = ['hots'] is no list of host, firmware"),
    "a file": ('file = "device.py"', 'file = "gone.py"', "its file gone.py is not there"),
    "the form": ("depth = 3", "depth = ", "is no TOML"),
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
