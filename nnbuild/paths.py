"""Where the files that are not Python live: beside the package in a checkout, inside it when installed."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_HOME = _PACKAGE.parent if (_PACKAGE.parent / "firmware").is_dir() else _PACKAGE

FIRMWARE = _HOME / "firmware"
BOARDS = _HOME / "boards"
