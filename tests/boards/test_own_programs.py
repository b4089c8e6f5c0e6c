"""Programs of a user's own on bare chips: built, run, and heard in the emulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.base.depfile import prerequisites
from nnbuild.base.paths import EXAMPLE
from nnbuild.board.tables import find
from nnbuild.cli import main
from tests.boards.conftest import needs_tools

PRINTS = """
#include "mnist.h"
#include "nn_app.h"

static mnist_context model NN_CONTEXT;
static int zeros = 0, three = 3;

int main(void)
{
    mnist_init(&model);
    nn_print_whole(mnist_run(&model) + zeros + three);
    nn_print(" ");
    nn_print_whole(-2147483647 - 1);
    nn_print("\\n");
    nn_print_real(-3.14159f, 4);
    nn_print(" ");
    nn_print_real(0.99999f, 3);
    nn_print(" ");
    nn_print_real(1.5e12f, 2);
    nn_print(" ");
    nn_print_real(7.0f, 0);
    nn_print("\\n");
    return 0;
}
"""
SAYS = "3 -2147483648\n-3.1416 1.000 1.50e+12 7\n"
FAULTS = """
#include "nn_app.h"

int main(void)
{
    nn_print("so far\\n");
    __asm__ volatile(".short 0xdeff");
    return 0;
}
"""


def built(folder: Path, board: str, text: str) -> str:
    source = folder / "main.c"
    source.write_text(text)
    model = str(EXAMPLE / "mnist.h5")
    words = [model, "--board", board, "--quantize", "int8", "-o", str(folder / "out")]
    assert main(["build", *words, "--application", str(source)]) == 0
    return str(folder / "out" / "application.elf")


@pytest.mark.turns(4)
@pytest.mark.emulator
@pytest.mark.parametrize("board", ["stm32f405", "microbit", "rv32", "mps2-an505"])
def test_what_it_prints(board: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs_tools(find(board))
    program = built(tmp_path, board, PRINTS)
    capsys.readouterr()
    assert main(["monitor", program, "--board", board]) == 0
    assert capsys.readouterr().out == SAYS
    assert (tmp_path / "out" / "application.hex").is_file()


@pytest.mark.emulator
def test_a_fault_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs_tools(find("mps2-an386"))
    assert main(["monitor", built(tmp_path, "mps2-an386", FAULTS), "--board", "mps2-an386"]) == 1
    said = capsys.readouterr()
    assert "so far\n\nfault: r0 r1" in said.out and "the processor faulted" in said.err


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(EXAMPLE / "mnist.h5"), "-o", str(tmp_path / "out"), "--application", str(tmp_path / "none.c")]
    for board, said in (("linux", "the system's own compiler builds"), ("stm32f405", "there is no such file")):
        assert main(["build", *words, "--board", board]) == 2
        assert said in capsys.readouterr().err
    assert main(["monitor", "none.elf", "--board", "linux"]) == 2
    assert "your program prints where you start it" in capsys.readouterr().err
    assert main(["monitor", "none.elf", "--board", "stm32f405"]) == 2
    assert "none.elf: there is no such file" in capsys.readouterr().err


@pytest.mark.emulator
def test_its_headers_are_dependencies_and_two_sources_may_have_one_name(tmp_path: Path) -> None:
    needs_tools(find("stm32f405"))
    texts = {"a b": '#include "hello.h"\nint main(void)\n{\n    return other();\n}\n'}
    texts["lib"] = "int other(void);\nint other(void)\n{\n    return 0;\n}\n"
    for folder, text in texts.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "main.c").write_text(text)
    (tmp_path / "a b" / "hello.h").write_text("int other(void);\n")
    sources = [str(tmp_path / folder / "main.c") for folder in ("a b", "lib")]
    words = [str(EXAMPLE / "mnist.h5"), "--board", "stm32f405", "--quantize", "int8", "-o", str(tmp_path / "out")]
    assert main(["build", *words, "--application", *sources, "--depfile", str(tmp_path / "deps")]) == 0
    named = prerequisites((tmp_path / "deps").read_text())
    assert tmp_path / "a b" / "hello.h" in named
    assert not [path for path in named if path.parent == tmp_path / "out"]
