"""nnbuild audit: checks the symbols, sections and stack of an object, archive or image."""

from __future__ import annotations

import argparse

from nnbuild.audit import command
from nnbuild.base.vendored import sources

add_arguments = command.add_arguments


def run(arguments: argparse.Namespace) -> int:
    """nnbuild's own library counts as a supplier of symbols; --supply adds to it."""
    arguments.supply = [f"{symbol}={path}" for symbol, path in sources().items()] + arguments.supply
    return command.run(arguments)
