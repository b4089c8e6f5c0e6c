"""Fetches Debian packages with apt-get and unpacks them in the user's cache: nothing is installed, and root is not
needed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from nnbuild.base.errors import ToolMissing
from nnbuild.base.paths import cache

DEPENDS = re.compile(r"^ *\|?Depends: (\S+)$", re.MULTILINE)
UNPACKED = ".unpacked"
"""Marker file of completely unpacked packages."""


@lru_cache(maxsize=1)
def native() -> str:
    """Debian's name of this machine's architecture."""
    return _said(["dpkg", "--print-architecture"], "dpkg").strip()


def newest(pattern: str, package: str, debian: str) -> str:
    """The newest package that the metapackage `package` depends on, matching `pattern`; a cached one suffices."""
    there = [path.name for path in cache().glob(pattern) if _is_whole(path)]
    if there:
        return max(there, key=_numbers)
    found = [name for name in depends(package, debian) if fnmatchcase(name, pattern)]
    if not found:
        raise ToolMissing(
            package, "the package sources of this machine do not have it.", f"Add one: apt show {package}"
        )
    return found[0]


def _numbers(name: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", name)]


def depends(package: str, debian: str) -> list[str]:
    text = _said(["apt-cache", *_apt(debian), "depends", package], package)
    return [name.split(":")[0] for name in DEPENDS.findall(text)]


def unpacked(package: str, debian: str) -> Path:
    """The folder with a package's files, as under /; fetched if not yet there."""
    folder = cache() / (package if package.endswith(f"-{debian}") else f"{package}-{debian}")
    if not _is_whole(folder):
        _fetch([package], debian, folder)
    return folder


def unpack_together(packages: Sequence[str], debian: str, folder: Path) -> Path:
    """Unpacks several packages into one folder of the cache."""
    if not (folder / UNPACKED).is_file():
        _fetch(packages, debian, folder)
    return folder


def _is_whole(folder: Path) -> bool:
    """Whether it was unpacked completely, or by hand with a kernel image."""
    return (folder / UNPACKED).is_file() or any((folder / "boot").glob("vmlinuz-*"))


def _fetch(packages: Sequence[str], debian: str, folder: Path) -> None:
    """Fetches into a temporary folder that gets its name only when complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as work:
        download = Path(work) / "download"
        download.mkdir()
        _said(["apt-get", *_apt(debian), "-qq", "download", *packages], " ".join(packages), download)
        whole = Path(work) / "whole"
        for package in sorted(download.glob("*.deb")):
            _said(["dpkg", "-x", str(package), str(whole)], package.name)
        (whole / UNPACKED).write_text("\n".join(packages) + "\n", "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)


def _apt(debian: str) -> list[str]:
    """The apt command; other architectures get separate lists, so that this machine's stay unchanged."""
    if debian == native():
        return []
    state = cache() / f"apt-{debian}"
    settings = {
        "APT::Architecture": debian,
        "APT::Architectures": debian,
        "APT::Sandbox::User": "",
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::State::lists": state / "lists",
        "Dir::Cache": state / "cache",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    if not (state / UNPACKED).is_file():
        for part in ("lists/partial", "cache/archives/partial"):
            (state / part).mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        _said(["apt-get", *options, "-qq", "update"], f"packages for {debian}")
        (state / UNPACKED).touch()
    return options


def _said(command: list[str], what: str, folder: Path | None = None) -> str:
    """The output of a command that must succeed."""
    install = "Debian's tools are needed to fetch kernels; elsewhere give kdir= and boot the module yourself."
    if shutil.which(command[0]) is None:
        raise ToolMissing(what, f"{command[0]} is not installed.", install)
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", cwd=folder)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        cause = said[-1] if said else f"{command[0]} ended with code {done.returncode}"
        raise ToolMissing(what, f"it cannot be fetched: {cause}", "Run apt-get update, and look for the network.")
    return done.stdout
