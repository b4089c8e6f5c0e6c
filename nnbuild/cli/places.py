"""Arguments of commands that build a program and run it, or take one that is there: where it runs."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager
from pathlib import Path

from nnbuild.backends.backend import add_choices, chosen
from nnbuild.backends.registry import choices
from nnbuild.cli.arguments import add_baud, add_max_instructions
from nnbuild.jobs.job import Place, place

_PORT = "the device's serial port, or a URL, usb:SERIAL-NUMBER or labgrid:PLACE (default: this PC or an emulator)"


def add_place(parser: argparse.ArgumentParser) -> None:
    device = parser.add_argument_group("the device")
    device.add_argument("--port", help=_PORT)
    add_baud(device)
    device.add_argument("--program", type=Path, help="a program built before (default: build one)")
    add_max_instructions(device)
    add_choices(device, choices())


def place_of(arguments: argparse.Namespace) -> AbstractContextManager[Place]:
    return place(arguments.program, arguments.port, chosen(arguments, choices()))
