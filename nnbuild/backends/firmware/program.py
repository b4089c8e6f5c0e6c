"""The firmware of a microcontroller: the model, the link, and the parts of firmware/ that the board names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from nnbuild.backends.backend import MEMORY_FUNCTIONS
from nnbuild.backends.cores import CORES, cores_flags, cores_sources
from nnbuild.backends.firmware.layout import layout_of
from nnbuild.backends.firmware.linker_script import linker_script
from nnbuild.backends.link_binding import TARGET_FILE, target
from nnbuild.backends.recipe import WARNINGS, Recipe, choose
from nnbuild.base.errors import UsageError
from nnbuild.base.paths import FIRMWARE
from nnbuild.board.board import Board, Firmware
from nnbuild.plan.plan import Plan

LINK = FIRMWARE / "link"
BARE = FIRMWARE / "platform" / "bare"
LIBM = FIRMWARE / "libm"
APPLICATION = FIRMWARE / "platform" / "application"
PROGRAM, SCRIPT = "program.elf", "program.ld"
OWN_PROGRAM = "application.elf"
IMAGES = ("program.bin", "program.hex")
"""Files for flash tools, made from the ELF."""


def parts(board: Board) -> Firmware:
    assert board.firmware is not None, f"{board.name} is a firmware board"
    return board.firmware


def recipe(board: Board, generated: Iterable[str]) -> Recipe:
    toolchain, part = choose(board), parts(board)
    defines = {"NN_LINK_PAYLOAD": part.link_payload, "NN_BAUD": board.baud, **part.defines}
    if board.code_memory is not None:
        defines["NN_FAST_CODE"] = 1
    flags = [f"-D{name}={value}u" for name, value in defines.items()]
    return Recipe(
        program=PROGRAM,
        toolchain=toolchain,
        generated=tuple(name for name in generated if name.endswith((".c", ".S"))),
        firmware=tuple(sources(board)),
        includes=(
            FIRMWARE / "include",
            LINK,
            BARE,
            FIRMWARE / "soc",
            _part(part, f"arch/{part.architecture}"),
            LIBM,
            CORES,
        ),
        flags=(*WARNINGS, *board.flags, *toolchain.flags, *toolchain.stack_flags, *flags, *cores_flags(board)),
        link_flags=(*board.link_flags, *toolchain.link_flags),
        script=SCRIPT,
    )


def application(board: Board, generated: Iterable[str], own: Sequence[Path]) -> Recipe:
    """The user's program: his sources replace the link to the host."""
    served = recipe(board, generated)
    replaced = {path for path in served.firmware if path.parent == LINK} | {BARE / "main.c"}
    return replace(
        served,
        program=OWN_PROGRAM,
        generated=tuple(name for name in served.generated if name != TARGET_FILE),
        firmware=(*(path for path in served.firmware if path not in replaced), APPLICATION / "nn_app.c"),
        includes=(*served.includes, APPLICATION),
        own=tuple(own),
    )


def sources(board: Board) -> list[Path]:
    """All sources but the model's. The linker drops what is not used."""
    part = parts(board)
    folders = [LINK, BARE, _part(part, f"arch/{part.architecture}"), _part(part, f"soc/{part.soc}")]
    found = [path for folder in folders for path in sorted(folder.glob("*.c"))]
    found.append(_part(part, f"uart/uart_{part.uart}.c"))
    found += cores_sources(board)
    if part.timer is not None:
        found.append(_part(part, f"timer/timer_{part.timer}.c"))
    for name in MEMORY_FUNCTIONS:
        found += [LIBM / f"nn_{name}.c", LIBM / "plain" / f"{name}.c"]
    return found


def _part(part: Firmware, name: str) -> Path:
    """The file in the board's own folder if it exists, otherwise nnbuild's."""
    own = part.folder / name if part.folder is not None else None
    found = own if own is not None and own.exists() else FIRMWARE / name
    if not found.exists():
        cause = f"it names a part of the firmware that does not exist, {name}."
        step = f"Take one of those in {found.parent}, or bring your own in [firmware] folder."
        raise UsageError("the board's table", cause, step)
    return found


def file_names(board: Board, prefix: str) -> list[str]:
    """The files beside the model's own, known before the model is read."""
    return [TARGET_FILE, SCRIPT]


def files(board: Board, plan: Plan) -> dict[str, bytes]:
    script = linker_script(board, layout_of(board, plan))
    return {TARGET_FILE: target(plan, counted=board.cores.runtime is not None).encode(), SCRIPT: script.encode()}
