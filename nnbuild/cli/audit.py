"""nnbuild audit: what an object, archive or image needs and holds."""

from __future__ import annotations

import argparse

from nnbuild.audit import command
from nnbuild.base.vendored import sources

add_arguments = command.add_arguments


def run(arguments: argparse.Namespace) -> int:
    """What our own library supplies is known beforehand; --supply adds to it."""
    arguments.supply = [f"{symbol}={path}" for symbol, path in sources().items()] + arguments.supply
    return command.run(arguments)
