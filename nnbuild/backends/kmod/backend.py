"""The back end of kernel modules."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from nnbuild.backends.backend import Backend, Chosen, Line, OwnBuild, RunStack
from nnbuild.backends.kmod.bridge import long_pieces, with_short_pieces
from nnbuild.backends.kmod.build import CHOICES, kernel_of
from nnbuild.backends.kmod.folder import file_names, files, kernel_target, module_file
from nnbuild.backends.kmod.line import KernelTransport
from nnbuild.backends.kmod.module import audit_module, make_module
from nnbuild.backends.kmod.weights import refuse_hidden_weights
from nnbuild.board.board import Board
from nnbuild.device.errors import DeviceMissing
from nnbuild.plan.plan import Plan
from nnbuild.plan.target import Target


def refuse_to_run(board: Board, port: str | None) -> None:
    """A port is the device of a loaded module; without one, a kernel is booted."""
    if port is None:
        return
    if not Path(port).exists():
        step = f"Load the module: sudo insmod {Path(port).name}.ko; its device is /dev/nn_ and the model's name."
        raise DeviceMissing(port, "There is no such device.", step)
    if not os.access(port, os.R_OK | os.W_OK):
        raise DeviceMissing(port, "Permission to open it was denied.", f"Allow it: sudo chmod a+rw {port}")


def open_line(board: Board, program: Path, port: str | None) -> Line:
    if port is None:
        return Line(KernelTransport(board, program))
    refuse_to_run(board, port)
    from nnbuild.device.character_device import CharacterTransport  # POSIX only

    return Line(CharacterTransport(port))


def settle(plan: Plan, target: Target) -> Plan:
    """Chooses kernels with short enough work items; verifies that exchangeable weights affect nothing else."""
    target = replace(target, compact=plan.encoding.compact)
    settled = with_short_pieces(plan, target)
    if target.swappable:
        refuse_hidden_weights(settled, target)
    return settled


def build(board: Board, prefix: str, folder: Path, chosen: Chosen) -> Path:
    return make_module(board, prefix, folder, kernel_of(chosen))


def command(board: Board, folder: str, chosen: Chosen) -> list[str]:
    words = [word for name, value in chosen.items() for word in (f"--{name}", value)]
    return ["module", folder, "--board", board.name, *words]


BACKEND = Backend(
    program=module_file,
    file_names=file_names,
    files=files,
    open_line=open_line,
    own_build=OwnBuild(
        build=build,
        audit=audit_module,
        command=command,
        audit_command=lambda folder: ["module", folder, "--audit"],
        ending=".ko",
    ),
    choices=CHOICES,
    stack=RunStack(
        entry="nn_model_part",
        objects=("{prefix}_kernels", "{prefix}_bridge"),
        never_return=("__stack_chk_fail",),
    ),
    prepare=kernel_target,
    settle=settle,
    notes=long_pieces,
    exchanges_weights=True,
    refuse_to_run=refuse_to_run,
)
