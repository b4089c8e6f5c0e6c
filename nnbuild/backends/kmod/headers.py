"""Finds or unpacks the headers of a kernel, which a module is built against."""

from __future__ import annotations

import re
from pathlib import Path

from nnbuild.backends.kmod.packages import depends, native, newest, unpack_together
from nnbuild.backends.kmod.versions import Kernels, Version
from nnbuild.base.errors import ToolMissing
from nnbuild.base.paths import cache

HEADERS = "linux-headers-"
UTS_RELEASE = re.compile(r'#define UTS_RELEASE "([^"]+)"')
ABSOLUTE = re.compile(r"(?<![\w/])/usr/src(?=/linux-headers)")


def folder_of(kernels: Kernels, version: Version) -> Path:
    """The folder for `make -C`: the installed headers, otherwise those unpacked in the cache."""
    package = newest(f"{HEADERS}{version.release}", version.headers, kernels.debian)
    installed = Path("/lib/modules") / package.removeprefix(HEADERS) / "build"
    return installed if installed.is_dir() and kernels.debian == native() else _unpacked(package, kernels)


def release_of(folder: Path) -> str:
    """The kernel release of these headers, as in `uname -r`."""
    found = UTS_RELEASE.search((folder / "include" / "generated" / "utsrelease.h").read_text("utf-8"))
    assert found is not None, f"{folder} says no release"
    return found[1]


def given(path: Path) -> Path:
    """The user's own headers; if they do not exist, the error names their package."""
    if not (path / "Makefile").is_file():
        release = path.parent.name if path.name == "build" else path.name.removeprefix(HEADERS)
        install = f"Install them: apt install {HEADERS}{release}, or give" if release[:1].isdigit() else "Give"
        raise ToolMissing(
            f"KDIR {path}", "there are no kernel headers.", f"{install} others with --kdir, or kdir= for scons."
        )
    if not (path / "include" / "generated" / "autoconf.h").is_file() and not (path / "arch").is_dir():
        raise ToolMissing(f"KDIR {path}", "these headers are not complete.", "Install the whole package again.")
    return path


def refuse(path: str) -> None:
    """Refuses a folder that holds no headers."""
    given(Path(path))


def _unpacked(package: str, kernels: Kernels) -> Path:
    """The headers, those common to all flavours, and the build tools, which must run here: in one folder, since they
    refer to each other by relative links and, in one place, by an absolute path that is patched."""
    folder = cache() / package
    source = folder / "usr" / "src" / package
    if not source.is_dir():
        wanted = [name for name in depends(package, kernels.debian) if name.startswith((HEADERS, "linux-kbuild"))]
        own = [name for name in wanted if name.startswith(HEADERS)]
        tools = [name for name in wanted if name.startswith("linux-kbuild")]
        unpack_together([package, *own], kernels.debian, folder)
        _add_tools(folder, tools)
        makefile = source / "Makefile"
        makefile.write_text(ABSOLUTE.sub(str(folder / "usr" / "src"), makefile.read_text("utf-8")), "utf-8")
    return source


def _add_tools(folder: Path, packages: list[str]) -> None:
    """Adds programs that the build calls, always those for this machine."""
    for package in packages:
        tools = unpack_together([package], native(), cache() / package)
        for path in (tools / "usr" / "lib").glob("linux-kbuild-*"):
            link = folder / "usr" / "lib" / path.name
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(path)
