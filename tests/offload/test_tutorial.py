"""The page about devices, followed word by word."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.offload.made_up import HERE
from tests.support.running import NNBUILD, ROOT, well

PAGE = (ROOT / "docs" / "devices.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_table_of_the_page_is_that_of_the_example() -> None:
    assert tomllib.loads("\n".join(blocks("toml"))) == tomllib.loads((HERE / "device.toml").read_text())


def test_its_functions_are_those_of_the_example() -> None:
    (functions,) = blocks("python")
    told = set(re.findall(r"^def (\w+)\(", functions, re.MULTILINE))
    own = set(re.findall(r"^def (\w+)\(", (HERE / "device.py").read_text(), re.MULTILINE))
    assert told - own == {"link"}


@pytest.mark.turns(4)
@pytest.mark.slow
def test_what_it_says_to_try_works(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "mnist", tmp_path / "examples" / "mnist")
    shutil.copytree(HERE, tmp_path / "examples" / HERE.name)
    lines = next(block for block in blocks("sh") if block.startswith("cp ")).splitlines()
    said = []
    for line in lines:
        program, *words = shlex.split(line)
        said.append(well(*(NNBUILD if program == "nnbuild" else [program]), *words, folder=tmp_path))
    assert "made-up-device computes 8 of 10 steps" in said[1]
    assert "DIFFERS" not in said[2]
    assert "layers of made-up-device" in said[3]
