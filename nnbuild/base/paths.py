"""Locations of files other than Python: beside the package in a checkout, inside it when installed. Nothing is ever
written there; what outlives a build goes to the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_HOME = _PACKAGE.parent if (_PACKAGE.parent / "firmware").is_dir() else _PACKAGE

FIRMWARE = _HOME / "firmware"
BOARDS = _HOME / "boards"
DEVICES = _HOME / "devices"
DOCS = _HOME / "docs"
EXAMPLE = _HOME / "examples" / "mnist"
TEMPLATES = _PACKAGE / "templates"
CMAKE = _PACKAGE / "builds" / "cmake"
PLATFORMIO = _PACKAGE / "builds" / "platformio" / "nnbuild_platformio.py"


def cache() -> Path:
    """The user's cache: $XDG_CACHE_HOME/nnbuild, else ~/.cache/nnbuild."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nnbuild"


def measured_costs() -> Path:
    """The folder of the costs that the user has measured and saved."""
    return cache() / "measured"


def generator_files() -> list[Path]:
    """All files of nnbuild that can change what is printed; builds use them to detect what is out of date."""
    patterns = (
        *((_PACKAGE, "*.py"), (TEMPLATES, "*"), (BOARDS, "*.toml"), (FIRMWARE, "*.[chS]")),
        *((DEVICES, "*.toml"), (DEVICES, "*.py"), (DEVICES, "*.[ch]")),
        (measured_costs(), "*.json"),
    )
    return sorted(path for folder, pattern in patterns for path in folder.rglob(pattern) if path.is_file())
