"""The host program over real lines: pipes, a pty, a socket, a serial port; and that nothing is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from link_devices import SHORT, Faults, SpoiltTransport, fake_outputs, host_program, samples

from nnbuild.device.character_device import CharacterTransport
from nnbuild.device.errors import DeviceFault, DeviceMissing, ModelRefused, TransportClosed
from nnbuild.device.link import Link, Timing
from nnbuild.device.session import open_model, profile_sample, run_samples
from nnbuild.device.transport import (
    Listener,
    ProcessTransport,
    SerialTransport,
    Transport,
    cannot_open,
    connect,
    reap,
)


@contextmanager
def over_pipes(program: Path) -> Iterator[Transport]:
    with ProcessTransport([program]) as line:
        yield line


@contextmanager
def on_pty(program: Path) -> Iterator[str]:
    """The program at one end of a pty; yields the path of the other end, in raw mode."""
    import tty

    master, slave = os.openpty()
    tty.setraw(slave)
    process = subprocess.Popen([program], stdin=master, stdout=master)
    os.close(master)
    try:
        yield os.ttyname(slave)
    finally:
        os.close(slave)
        process.kill()
        process.wait()


@contextmanager
def over_pty(program: Path) -> Iterator[Transport]:
    with on_pty(program) as path, CharacterTransport(path) as line:
        yield line


@contextmanager
def over_serial(program: Path) -> Iterator[Transport]:
    with on_pty(program) as path, SerialTransport(path) as line:
        yield line


@contextmanager
def over_socket(program: Path) -> Iterator[Transport]:
    with Listener() as listener:
        theirs = socket.create_connection(("127.0.0.1", listener.port))
        theirs.setblocking(False)  # the program must wait for such a line, too
        with theirs, listener.accept("device") as line:
            process = subprocess.Popen([program], stdin=theirs, stdout=theirs)
            try:
                yield line
            finally:
                process.kill()
                process.wait()


@pytest.mark.parametrize("line", [over_pipes, over_pty, over_serial, over_socket])
def test_samples_over_a_real_line(line: Callable, program: Path) -> None:
    given = samples(3)
    with line(program) as transport:
        link = Link(transport, SHORT)
        model = open_model(link)
        runs = run_samples(link, model, given, stateful=True)
        for index, sample in enumerate(given):
            assert np.array_equal(runs.raw[1][index], fake_outputs(sample, index)[1])
        assert all(ticks > 0 for ticks in runs.ticks)
        link.reset()
        assert len(profile_sample(link, model, given[0])) == 3


@pytest.mark.slow
@pytest.mark.parametrize("line", [over_pipes, over_pty, over_socket])
def test_a_bad_real_line_gives_the_right_results(line: Callable, program: Path) -> None:
    """The same as on the simulated line, but with real clocks and buffers."""
    given = samples(2)
    timing = Timing(quiet=0.003, first=0.05, longest=0.2)
    with line(program) as transport:
        link = Link(SpoiltTransport(transport, Faults(0.0025, 0.0025, 0.0025, 0.0025), seed=3), timing)
        runs = run_samples(link, open_model(link), given, stateful=True)
    for index, sample in enumerate(given):
        assert np.array_equal(runs.raw[0][index], fake_outputs(sample, index)[0])
        assert np.array_equal(runs.raw[1][index], fake_outputs(sample, index)[1])
    assert link.counters.repeats > 0


def test_stack_use_is_measured(tmp_path: Path) -> None:
    with ProcessTransport([host_program(tmp_path, "-Wl,-z,now")]) as line:
        link = Link(line, SHORT)
        model = open_model(link)
        before = link.stack()
        run_samples(link, model, samples(1))
        after = link.stack()
    assert before.size == after.size == 8 << 20
    assert before.used < 1500 and 3000 <= after.used < 4500


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_host_program_builds_without_a_warning(tmp_path: Path, compiler: str) -> None:
    host_program(tmp_path, "-O2", compiler=compiler)


def test_a_crash_is_told_and_reaped(tmp_path: Path) -> None:
    with ProcessTransport([host_program(tmp_path, "-DFAKE_FAULT")], "fake") as line:
        link = Link(line, SHORT)
        model = open_model(link)
        with pytest.raises(DeviceFault, match=r"fake: The program stopped with SIGSEGV \(Segmentation fault\)"):
            run_samples(link, model, samples(1))
        process = line._process
    assert process.returncode == 128 + signal.SIGSEGV


def test_a_model_that_returns_an_error_is_told(tmp_path: Path) -> None:
    with ProcessTransport([host_program(tmp_path, "-DFAKE_REFUSES")], "fake") as line:
        link = Link(line, SHORT)
        model = open_model(link)
        with pytest.raises(ModelRefused, match="fake: The model returned error -7 while running the model"):
            run_samples(link, model, samples(1))


def test_a_program_that_ends_is_told(tmp_path: Path) -> None:
    line = ProcessTransport([sys.executable, "-c", "raise SystemExit(5)"], "it")
    with (
        line,
        pytest.raises(TransportClosed, match=r"it: The (program ended with code 5|connection ended while sending)"),
    ):
        Link(line, SHORT).hello()
    assert line._process.returncode == 5


@pytest.mark.slow
def test_a_program_that_takes_no_bytes_is_ended(tmp_path: Path) -> None:
    with ProcessTransport([sys.executable, "-c", "import time; time.sleep(100)"]) as line:
        with pytest.raises(DeviceMissing, match="nothing comes back"):
            Link(line, Timing(first=0.05, longest=0.1, patience=0.3, tries=3)).hello()
        process = line._process
    assert process.returncode == -signal.SIGTERM


def test_a_program_that_refuses_to_end_is_killed() -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(100)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    reap(process, patience=0.1)
    process.stdout.close()
    assert process.returncode == -signal.SIGKILL


def test_a_killed_device_is_told(program: Path) -> None:
    with ProcessTransport([program], "it") as line:
        link = Link(line, SHORT)
        model = open_model(link)
        line._process.kill()
        with pytest.raises(
            TransportClosed, match=r"it: The (program ended with signal 9|connection ended while sending)"
        ):
            run_samples(link, model, samples(1))


def test_closing_twice_and_using_a_closed_line(program: Path) -> None:
    line = ProcessTransport([program], "it")
    line.close()
    line.close()
    with pytest.raises(TransportClosed, match="The connection is closed"):
        line.read(0.1)
    with pytest.raises(TransportClosed, match="The connection is closed"):
        line.write(b"x")


def test_the_other_end_of_a_pty_vanishes(program: Path) -> None:
    with on_pty(program) as path:
        line = SerialTransport(path)
        link = Link(line, SHORT)
        link.hello()
    with line, pytest.raises((TransportClosed, DeviceMissing)):
        link.run()


def test_things_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DeviceMissing, match="It cannot be started"):
        ProcessTransport([tmp_path / "none"])
    with pytest.raises(DeviceMissing, match="There is no such port"):
        CharacterTransport(tmp_path / "none")
    with pytest.raises(DeviceMissing, match="There is no such port"):
        SerialTransport(str(tmp_path / "none"))
    with Listener() as free:
        port = free.port
    with pytest.raises(DeviceMissing, match="Nothing answers there"):
        connect("127.0.0.1", port)
    with Listener() as listener, pytest.raises(DeviceMissing, match=r"qemu: It did not connect within 0\.05 s"):
        listener.accept("qemu", timeout=0.05)


def test_a_port_in_use_is_told(program: Path) -> None:
    in_use = pytest.raises(DeviceMissing, match="Another program is using this port")
    with on_pty(program) as path, SerialTransport(path), in_use:
        SerialTransport(path)


@pytest.mark.parametrize("path", ["/dev/null", "/etc/passwd", "/tmp"])
def test_what_is_no_port(path: str) -> None:
    with pytest.raises(DeviceMissing) as raised:
        SerialTransport(path)
    assert str(raised.value) == f"{path}: This is not a serial port. 'ls /dev/tty*' shows the ports."


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (13, "Join the group that owns it"),
        (2, "no such port"),
        (16, "Another program"),
        (21, "This is not a serial port"),
        (25, "This is not a serial port"),
        (22, "It does not support the requested rate or parity."),
        (5, "cannot be opened"),
    ],
)
def test_reasons_for_a_port_that_does_not_open(number: int, text: str) -> None:
    for kind in (OSError, termios.error):
        error = cannot_open("/dev/ttyX", kind(number, os.strerror(number)))
        assert text in str(error)
        assert error.exit_code == 3


def test_a_program_that_ended_leaves_no_zombie(program: Path) -> None:
    for _ in range(5):
        with ProcessTransport([program]) as line:
            process = line._process
        assert process.returncode == 0
