"""Whether there is a Rust that can build the crates."""

from __future__ import annotations

import shutil
import subprocess
import tomllib

import pytest

from tests.support.running import ROOT


def needs_rust() -> None:
    """Skips without cargo, or with one that is older than a crate asks for."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    manifest = (ROOT / "nnbuild" / "templates" / "rust" / "Cargo.toml").read_text()
    least = tomllib.loads(manifest)["package"]["rust-version"]
    found = subprocess.run(["cargo", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    if _numbers(found) < _numbers(least):
        pytest.skip(f"cargo is {found}; crates need {least} (in Debian 12: cargo-web)")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split("-")[0].split(".")]
