"""Names of ports: a device file, a pyserial URL, a probe's serial number, or a labgrid place."""

from __future__ import annotations

import re
import shutil
import subprocess

from nnbuild.device.errors import DeviceMissing

NETWORK_PORT = re.compile(r"NetworkSerialPort[\s\S]*?'host': '([^']+)'[\s\S]*?'port': (\d+)")


def port_of(name: str) -> str:
    """The port in pyserial's form: `usb:SERIAL` and `labgrid:PLACE` are looked up."""
    kind, colon, rest = name.partition(":")
    if kind == "usb" and colon:
        return _by_serial_number(name, rest)
    if kind == "labgrid" and colon:
        return _of_place(name, rest)
    return name


def _by_serial_number(name: str, number: str) -> str:
    from serial.tools.list_ports import comports

    there = {port.serial_number: port.device for port in comports() if port.serial_number is not None}
    for known, device in there.items():
        if known.lower() == number.lower():
            return str(device)
    known = ", ".join(f"{each} ({device})" for each, device in there.items()) or "none"
    raise DeviceMissing(name, f"No serial port has this serial number. Available: {known}.", "Plug the probe in.")


def _of_place(name: str, place: str) -> str:
    """The network serial port of the place's exporter."""
    if shutil.which("labgrid-client") is None:
        raise DeviceMissing(name, "labgrid-client is not installed.", "Install it: pip install labgrid")
    command = ["labgrid-client", "-p", place, "show"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    found = NETWORK_PORT.search(done.stdout)
    if done.returncode or found is None:
        said = (done.stderr.strip().splitlines() or ["it shows no NetworkSerialPort"])[-1]
        raise DeviceMissing(name, f"labgrid does not report its port ({said}).", f"Try: {' '.join(command)}")
    return f"rfc2217://{found[1]}:{found[2]}"
