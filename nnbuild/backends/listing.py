"""Lists the back ends, each a folder of this package, and their commands, without importing their dependencies."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path


def names() -> list[str]:
    return sorted(path.parent.name for path in Path(__file__).parent.glob("*/backend.py"))


def commands() -> dict[str, tuple[str, str]]:
    """Name -> (summary, module)."""
    packages = [import_module(f"nnbuild.backends.{name}") for name in names()]
    return {name: entry for package in packages for name, entry in getattr(package, "COMMANDS", {}).items()}
