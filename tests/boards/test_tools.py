"""What is said when a tool or memory is missing, and what stands in for it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from nnbuild.backends.firmware.line import open_line
from nnbuild.backends.recipe import choose, toolchain_for
from nnbuild.base.errors import NnbuildError, ToolMissing, UsageError
from nnbuild.board.tables import boards, find
from nnbuild.device.emulator import EmulatorTransport
from nnbuild.device.errors import DeviceMissing, TransportClosed
from nnbuild.device.session import run_samples
from nnbuild.device.unicorn_board import instructions_in
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.jobs.program_files import program_files
from tests.boards.conftest import MNIST, ROOT
from tests.cli.conftest import Nnbuild, nnbuild  # noqa: F401 - a fixture

MODEL = MNIST / "mnist.h5"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An own PATH with nothing on it but the programs named."""

    def only(*names: str) -> None:
        folder = tmp_path / "tools"
        folder.mkdir(exist_ok=True)
        for name in names:
            found = shutil.which(name)
            if found is None:
                pytest.skip(f"{name} is not installed")
            (folder / name).symlink_to(found)
        monkeypatch.setenv("PATH", str(folder))

    return only


def no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing had been installed by pip."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def test_no_compiler(tools, monkeypatch: pytest.MonkeyPatch) -> None:
    tools()
    no_module(monkeypatch)
    with pytest.raises(ToolMissing) as raised:
        toolchain_for(find("stm32"))
    cause = "board 'stm32f405': none of its compilers is installed (arm-none-eabi-gcc, ziglang)."
    assert str(raised.value) == f"{cause} apt install gcc-arm-none-eabi, or pip install ziglang"
    assert raised.value.exit_code == 3


def test_the_second_compiler_is_said_aloud(tools, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ziglang")
    tools()
    assert choose(find("stm32")).name == "zig"
    assert capsys.readouterr().err == ("nnbuild: arm-none-eabi-gcc is not installed; ziglang compiles for stm32f405\n")


def test_no_emulator(tools, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tools()
    no_module(monkeypatch)
    with pytest.raises(ToolMissing) as raised:
        open_line(find("stm32"), tmp_path / "none.elf", None)
    cause = "board 'stm32f405': the emulator qemu-system-arm is not installed."
    assert str(raised.value) == f"{cause} apt install qemu-system-arm, or pip install unicorn"
    with pytest.raises(ToolMissing) as raised:
        open_line(find("rv32"), tmp_path / "none.elf", None)
    cause = "board 'rv32': the emulator qemu-system-riscv32 is not installed."
    assert str(raised.value) == f"{cause} apt install qemu-system-misc"


def test_no_emulator_has_it(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing) as raised:
        open_line(find("nucleo-f446re"), tmp_path / "none.elf", None)
    cause = "board 'nucleo-f446re': no emulator supports it."
    assert str(raised.value) == f"{cause} Connect the real one and name its port: --port /dev/ttyACM0"


def test_no_such_port(tmp_path: Path) -> None:
    with pytest.raises(DeviceMissing) as raised:
        open_line(find("nucleo-f446re"), tmp_path / "none.elf", str(tmp_path / "ttyACM0"))
    assert "There is no such port." in str(raised.value)


def test_an_emulator_that_ends_at_once_is_quoted(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo it is broken; exit 7", "{port}", "{image}"]
    with pytest.raises(DeviceMissing) as raised:
        EmulatorTransport("emulated x", command, tmp_path / "none.elf")
    assert "The emulator did not start. It ended with code 7; its output: it is broken" in str(raised.value)


def test_an_emulator_that_ends_later_is_quoted(tmp_path: Path) -> None:
    """Its line ends a moment before itself."""
    program = (
        "import socket, sys, time\n"
        "print('it broke')\n"
        "socket.create_connection(('127.0.0.1', int(sys.argv[1]))).close()\n"
        "time.sleep(0.2)\n"
        "sys.exit(7)\n"
    )
    command = [sys.executable, "-c", program, "{port}"]
    with (
        EmulatorTransport("emulated x", command, tmp_path / "none.elf") as line,
        pytest.raises(TransportClosed) as raised,
    ):
        line.read(10.0)
    assert "It ended with code 7; its output: it broke" in str(raised.value)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_emulator_ends_with_us(tmp_path: Path, number: int) -> None:
    """Also when we are ended from outside, where no finally block runs."""
    stand_in = tmp_path / "emulator.py"
    stand_in.write_text(
        "import os, socket, sys, time\n"
        "line = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "line.sendall(b'x')\n"
        "time.sleep(60)\n"
    )
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from nnbuild.device.emulator import EmulatorTransport\n"
        f"line = EmulatorTransport('x', [sys.executable, {str(stand_in)!r}, '{{port}}'], Path('none'))\n"
        "line.read(10.0)\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )
    ours = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT)
    assert ours.stdout is not None
    with ours.stdout:
        assert ours.stdout.readline() == b"up\n"
    pid = int((tmp_path / "pid").read_text())
    assert Path(f"/proc/{pid}").exists()
    ours.send_signal(number)
    ours.wait()
    for _ in range(100):
        if not running(pid):
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("the emulator outlived us")


def running(pid: int) -> bool:
    """A process that has ended but that nobody has waited for does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("command", ["check", "profile"])
def test_a_program_that_is_none(nnbuild: Nnbuild, command: str) -> None:  # noqa: F811
    said = nnbuild(command, MODEL, "--board", "stm32", "--program", "/etc/passwd")
    assert said.status == 2
    assert "nnbuild: /etc/passwd: It is not an ELF program (" in said.err
    said = nnbuild(command, MODEL, "--board", "stm32", "--program", "/none/program.elf")
    assert said.status == 2
    assert "nnbuild: /none/program.elf: There is no such program. Build it first" in said.err


@pytest.mark.turns(4)
@pytest.mark.emulator
def test_a_program_taken_out_of_its_folder(nnbuild: Nnbuild, tools, tmp_path: Path) -> None:  # noqa: F811
    """It runs and is compared; what only its objects tell is left out. Another board's is refused."""
    from nnbuild.jobs.job import build_program, place

    tools("arm-none-eabi-gcc", "qemu-system-arm")
    alone = tmp_path / "alone.elf"
    with place(None, None) as where:
        shutil.copy2(build_program(compile_model(Options(MODEL, "stm32")), where), alone)
    facts = nnbuild("check", MODEL, "--board", "stm32", "--program", alone, "--json").json()
    assert facts["verdict"] == "pass" and facts["stack"]["bound"] is None
    assert "flash_code" not in facts["memory"] and facts["memory"]["flash_used"] > 0
    assert "stack" not in nnbuild("profile", MODEL, "--board", "stm32", "--program", alone, "--json").json()["memory"]
    said = nnbuild("check", MODEL, "--board", "mps2-an386", "--program", alone)
    assert said.status == 2
    assert f"nnbuild: {alone}: It was built for stm32f405, not for mps2-an386." in said.err


def test_unknown_board() -> None:
    with pytest.raises(UsageError) as raised:
        find("stm32f450")
    assert "there is no such board. Did you mean stm32f405" in str(raised.value)


def test_families_are_no_boards() -> None:
    names = {board.name for board in boards()}
    assert {"stm32f405", "rv32", "nucleo-h743zi"} < names
    assert not {"bare", "cortex-m", "cortex-m4f", "stm32f4"} & names
    with pytest.raises(UsageError):
        find("cortex-m4f")


@pytest.mark.slow
def test_too_much_ram() -> None:
    with pytest.raises(NnbuildError) as raised:
        program_files(compile_model(Options(MODEL, "stm32f100", calibrate=MNIST / "calibration.npz")))
    text = str(raised.value)
    assert text.startswith("board 'stm32f100': the model exceeds the RAM by ")
    assert "The peak is at layer 'stem_conv + block1_depthwise + " in text
    assert text.endswith("It would fit with --quantize int8.")
    assert raised.value.exit_code == 2


@pytest.mark.slow
def test_too_much_ram_in_numbers() -> None:
    """The bytes over are those by which the arena is larger than what is free."""
    compiled = compile_model(Options(MODEL, "stm32f100"))
    with pytest.raises(NnbuildError) as raised:
        program_files(compiled)
    numbers = [int(word.replace(",", "")) for word in str(raised.value).split() if word.replace(",", "").isdigit()]
    over, arena, free, ram = numbers[:4]
    assert arena == compiled.plan.arena
    assert over == arena - free
    assert ram == 8192


def test_too_much_flash(tmp_path: Path) -> None:
    from tests.frontend.keras_files import dense, h5_bytes, input_layer, put, random_arrays, sequential

    config = sequential(input_layer("x", [200]), dense("wide", 300))
    model = put(tmp_path / "wide.h5", h5_bytes(config, {"wide": random_arrays((200, 300), (300,))}))
    with pytest.raises(NnbuildError) as raised:
        program_files(compile_model(Options(model, "stm32f100")))
    text = str(raised.value)
    assert "240,000 bytes of weights in float exceed the 131,072 bytes of flash." in text
    assert text.endswith("The weights alone would fit with --quantize int8 or --quantize int16 or --weights-bits 8.")


def test_thumb_instructions_are_counted() -> None:
    nop, wide = bytes.fromhex("00bf"), bytes.fromhex("bff34f8f")
    assert instructions_in(nop + wide + nop + nop) == 4
    assert instructions_in(b"") == 0


@pytest.mark.turns(3)
@pytest.mark.emulator
def test_unicorn_stands_in(tools, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same image, the same bits, and the same number of instructions as in QEMU."""
    from nnbuild.jobs.job import build_program, connected, place, samples_for

    pytest.importorskip("unicorn")
    compiled = compile_model(Options(MODEL, "stm32", "int8", MNIST / "calibration.npz"))
    samples = list(samples_for(compiled, None))[:2]
    tools("arm-none-eabi-gcc", "qemu-system-arm")
    results = []
    with place(None, None) as where:
        program = build_program(compiled, where)
        for emulator in ("qemu", "unicorn"):
            with connected(compiled, program, None) as (link, info):
                runs = run_samples(link, info, samples)
                results.append(runs)
                link.reset()
            if emulator == "qemu":
                (tmp_path / "tools" / "qemu-system-arm").unlink()
    assert "qemu-system-arm is not installed; unicorn runs stm32f405" in capsys.readouterr().err
    np.testing.assert_array_equal(results[0].raw[0], results[1].raw[0])
    for qemu, unicorn in zip(results[0].ticks, results[1].ticks, strict=True):
        assert abs(qemu - unicorn) < 100


@pytest.mark.emulator
def test_memory_that_only_the_device_has(tools, tmp_path: Path) -> None:
    """In the core's own memory the model runs as well, and QEMU, which has not got that, is not asked to run it."""
    from nnbuild.jobs.job import build_program, connected, place, samples_for
    from nnbuild.jobs.memory import memory_of
    from nnbuild.ops import interpret

    pytest.importorskip("unicorn")
    compiled = compile_model(Options(MODEL, "stm32", "int8", MNIST / "calibration.npz", memory="ccm"))
    samples = samples_for(compiled, None)
    tools("arm-none-eabi-gcc", "qemu-system-arm")
    with place(None, None) as where:
        program = build_program(compiled, where)
        memory = memory_of(compiled, program)
        assert memory["ccm_used"] >= memory["arena"] and memory["ccm_size"] == 65536
        assert memory["ram_used"] < 8000
        with pytest.raises(UsageError) as raised, connected(compiled, program, None):
            pass
        used = f"it has {memory['ccm_used']:,} bytes in a memory 'ccm', which qemu-system-arm does not have."
        assert str(raised.value).endswith(f"{used} Name the device's port, or build it without --memory.")
        (tmp_path / "tools" / "qemu-system-arm").unlink()
        with connected(compiled, program, None) as (link, info):
            raw = run_samples(link, info, list(samples)[:2]).raw[0]
    wanted = interpret.run(compiled.graph, {name: x[:2] for name, x in samples.inputs.items()}, "float64")
    np.testing.assert_array_equal(raw, wanted[compiled.graph.outputs[0]])
