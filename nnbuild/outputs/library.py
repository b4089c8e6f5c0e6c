"""A static and a shared library with their header and a pkg-config file, built with the board's own compiler."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from nnbuild import __version__
from nnbuild.backends.cores import cores_flags
from nnbuild.backends.recipe import WARNINGS, choose, toolchain_for
from nnbuild.base.errors import NnbuildError, ToolMissing, UsageError
from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact, refuse_foreign
from nnbuild.emit.text import comment_safe
from nnbuild.outputs.cores import run_time, told
from nnbuild.plan.plan import Plan

ISA = None
WEIGHTS = None
EXAMPLE = None
SYSTEM = frozenset(
    "m c g gcc gcc_s gcc_eh gloss nosys semihost rt dl util pthread atomic gomp crypt resolv z anl nsl".split()
)
"""Names of libraries that compilers and systems link themselves."""


def files(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    p = plan.prefix
    if p in SYSTEM:
        cause = f"lib{p}.a would be linked in place of the system's library of that name."
        raise UsageError(f"name {p!r}", cause, "Give another one with --name.")
    found = {f"src/{name}": content for name, content in artifact.files.items() if name != f"{p}.h"}
    return {
        **found,
        f"include/{p}.h": artifact.files[f"{p}.h"],
        f"lib/pkgconfig/{p}.pc": _pkg_config(plan).encode(),
        **(run_time(board, plan, artifact) if plan.parallel else {}),
    }


def _pkg_config(plan: Plan) -> str:
    """The pkg-config file; its paths are relative to itself, so that the whole can be moved."""
    return f"""\
prefix=${{pcfiledir}}/../..
includedir=${{prefix}}/include
libdir=${{prefix}}/lib

Name: {plan.prefix}
Description: the network {comment_safe(plan.graph.name)}, printed by nnbuild
Version: {__version__}
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -l{plan.prefix}{" -pthread" if plan.parallel else ""}
"""


def refuse(board: Board, plan: Plan, folder: Path) -> None:
    """Tools that are missing, and files of somebody else's at the places of the products."""
    archive, *_ = archiver(toolchain_for(board).command)
    if shutil.which(archive) is None:
        raise _missing(f"lib{plan.prefix}.a", archive)
    name, _ = shared_library(plan.prefix, sys.platform)
    for made in (folder / "lib" / f"lib{plan.prefix}.a", folder / "lib" / name, *folder.glob(f"src/{plan.prefix}*.o")):
        refuse_foreign(made, plan.prefix.encode())
    for made in folder.glob("cores/nn_cores*.o"):
        refuse_foreign(made, b"nn_cores")


def finish(board: Board, plan: Plan, folder: Path) -> list[str]:
    """Builds libNAME.a for every board, and a shared library where programs are loaded rather than flashed."""
    p, hosted = plan.prefix, board.output == "host"
    toolchain = choose(board)
    compiler = [*toolchain.command, *WARNINGS, *board.flags, *toolchain.flags]
    objects = []
    sources = [path for path in sorted((folder / "src").glob(f"{p}*")) if path.suffix in (".c", ".S")]
    if plan.parallel:
        sources += [folder / "cores" / "nn_cores.c", folder / "cores" / f"nn_cores_{board.cores.runtime}.c"]
        compiler += cores_flags(board)
        compiler += [f"-D{name}={value}u" for name, value in told(board).items()]
    name, flags = shared_library(p, sys.platform)
    static, shared = folder / "lib" / f"lib{p}.a", folder / "lib" / name
    for source in sources:
        target = source.with_suffix(".o")
        includes = [f"-I{folder / place}" for place in ("include", "src", "cores")]
        _run([*compiler, *(["-fPIC"] if hosted else []), *includes, "-c", str(source), "-o", str(target)], source.name)
        objects.append(str(target))
    static.unlink(missing_ok=True)  # ar only adds to an archive, which may hold a stale file
    _run([*archiver(toolchain.command), "rcs", str(static), *objects], static.name)
    if hosted:
        _run([*toolchain.command, *flags, *objects, "-o", str(shared)], name)
    return [f"lib/{path.name}" for path in (static, shared) if path.is_file()]


def shared_library(prefix: str, platform: str) -> tuple[str, list[str]]:
    """File name and linker options of a shared library on a platform."""
    if platform == "darwin":
        return f"lib{prefix}.dylib", ["-dynamiclib", f"-Wl,-install_name,@rpath/lib{prefix}.dylib"]
    if platform == "win32":
        return f"{prefix}.dll", ["-shared"]
    return f"lib{prefix}.so", ["-shared", f"-Wl,-soname,lib{prefix}.so"]


def archiver(compiler: tuple[str, ...]) -> list[str]:
    """The ar that comes with a compiler: arm-none-eabi-ar beside arm-none-eabi-gcc."""
    *before, last = compiler
    if last == "cc":  # zig is one program for all
        return [*before, "ar"]
    return [*before, f"{last.removesuffix('gcc')}ar" if last.endswith("-gcc") else "ar"]


def _missing(what: str, tool: str) -> ToolMissing:
    return ToolMissing(what, f"{tool} is not installed.", "apt install binutils")


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise _missing(what, command[0]) from None
    if done.returncode != 0:
        raise NnbuildError(what, f"it cannot be built:\n{done.stderr.strip()}\n", f"It was: {' '.join(command)}")
