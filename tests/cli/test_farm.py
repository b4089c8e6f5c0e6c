"""Many boards at once through one farm file: emulated ones, some behind sockets, one that dies."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nnbuild.base.errors import UsageError
from nnbuild.board.tables import find
from nnbuild.cli import main
from nnbuild.device.errors import DeviceMissing
from nnbuild.device.ports import port_of
from nnbuild.jobs.farm import read_farm
from tests.frontend.keras_files import h5_bytes, put, small

EMULATED = ("stm32f405", "stm32f100", "microbit", "mps2-an386", "mps2-an500", "mps3-an547")
DIES_AFTER = 400
"""Bytes that the dying board still sends."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return put(tmp_path / "small.h5", h5_bytes(*small()))


@contextmanager
def served(program: Path, board: str, after: int | None = None) -> Iterator[str]:
    """A board's emulator behind a TCP port, as a terminal server has it; its line is cut after so many bytes."""
    emulator = find(board).emulator
    assert emulator is not None
    inner = free_port()
    command = [word.format(port=f"{inner},server=on,wait=off", image=program) for word in emulator.command]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with socket.create_server(("127.0.0.1", 0)) as outer:
        thread = threading.Thread(target=bridge, args=(outer, inner, after), daemon=True)
        thread.start()
        try:
            yield f"socket://127.0.0.1:{outer.getsockname()[1]}"
        finally:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def bridge(outer: socket.socket, inner: int, after: int | None) -> None:
    with suppress(OSError):
        client, _ = outer.accept()
        with client, connected(inner) as device:
            threading.Thread(target=pump, args=(client, device, None), daemon=True).start()
            pump(device, client, after)


def connected(port: int) -> socket.socket:
    while True:
        with suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port))


def pump(source: socket.socket, sink: socket.socket, after: int | None) -> None:
    sent = 0
    with suppress(OSError):
        while (data := source.recv(4096)) and (after is None or sent < after):
            sink.sendall(data)
            sent += len(data)


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.skipif(not shutil.which("qemu-system-arm"), reason="qemu-system-arm is not installed")
def test_eight_boards_at_once_of_which_one_dies(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", str(model), "--board", "mps2-an386", "-o", str(tmp_path / "fw")]) == 0
    program = tmp_path / "fw" / "program.elf"
    with served(program, "mps2-an386") as sound, served(program, "mps2-an386", DIES_AFTER) as dying:
        devices = "".join(f'[[device]]\nboard = "{board}"\n' for board in EMULATED)
        for name, port in (("far", sound), ("dying", dying)):
            devices += f'[[device]]\nname = "{name}"\nboard = "mps2-an386"\nport = "{port}"\n'
        farm, report, junit = (tmp_path / name for name in ("farm.toml", "farm.json", "farm.xml"))
        farm.write_text(devices)
        words = ["check", str(model), "--on", str(farm), "--json", str(report), "--junit", str(junit)]
        assert main(words) == 1
    verdicts = {device["name"]: device["verdict"] for device in json.loads(report.read_text())["devices"]}
    assert len(verdicts) == 8 and verdicts.pop("dying") == "ERROR"
    assert set(verdicts.values()) == {"PASS"}
    assert "7 of 8 boards pass" in capsys.readouterr().out
    suites = ElementTree.parse(junit).getroot().findall("testsuite")
    assert [suite.get("errors") for suite in suites] == ["0"] * 7 + ["1"]


WRONG = [
    ("", "a farm file contains [[device]] tables and nothing else."),
    ("x = [", "it is not a farm file"),
    ("[[device]]\nport = 'a'", "it names no board."),
    ("[[device]]\nboard = 'linux'\nspeed = 3", "it says 'speed'."),
    ("[[device]]\nboard = 3", "its board is 3."),
    ("[[device]]\nboard = 'a'\nport = 'p'\n[[device]]\nboard = 'b'\nport = 'p'", "two devices have the port 'p'."),
    ("[[device]]\nboard = 'a'\nname = 'n'\n[[device]]\nboard = 'b'\nname = 'n'", "two devices have the name 'n'."),
]


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_a_wrong_farm_is_named(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "farm.toml").write_text(text)
    with pytest.raises(UsageError) as raised:
        read_farm(tmp_path / "farm.toml")
    assert told in str(raised.value)


def test_a_farm_names_its_ports_itself(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(model), "--on", "farm.toml", "--port", "/dev/null"]) == 2
    assert "the farm file already gives each board's port" in capsys.readouterr().err


LABGRID = """#!{python}
print("Place 'desk':\\nAcquired resource 'port' (lab/desk/NetworkSerialPort):")
print({{'acquired': 'me', 'cls': 'NetworkSerialPort', 'params': {{'host': 'lab', 'port': 4711}}}})
"""


def test_what_a_port_may_be_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from serial.tools import list_ports

    probe = type("Port", (), {"serial_number": "066BFF", "device": "/dev/ttyACM3"})
    monkeypatch.setattr(list_ports, "comports", lambda: [probe])
    assert port_of("usb:066bff") == "/dev/ttyACM3"
    with pytest.raises(DeviceMissing, match=r"Available: 066BFF \(/dev/ttyACM3\)"):
        port_of("usb:1234")
    assert [port_of(name) for name in (r"\\.\COM12", "socket://lab:7")] == [r"\\.\COM12", "socket://lab:7"]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeviceMissing, match="labgrid-client is not installed"):
        port_of("labgrid:desk")
    client = tmp_path / "labgrid-client"
    client.write_text(LABGRID.format(python=sys.executable))
    client.chmod(0o755)
    assert port_of("labgrid:desk") == "rfc2217://lab:4711"
