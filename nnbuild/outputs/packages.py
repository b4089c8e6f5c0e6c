"""What a model's C can be handed over as: plain files, a library, or a package of another build."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, cast

from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact
from nnbuild.outputs import (
    arduino,
    bazel,
    cmsis_pack,
    cubeide,
    espidf,
    library,
    meson,
    plain,
    rtthread,
    rust,
    single_file,
    zephyr,
)
from nnbuild.plan.plan import Plan


class Package(Protocol):
    """What each of these modules can do."""

    WEIGHTS: str | None
    """The one form of the constants that it can hold, or None where it holds both."""
    ISA: str | None
    """What its C is printed for where the user names neither a board nor an instruction set; None is this PC."""
    EXAMPLE: str | None
    """The folder of its program, which takes a sample from NAME_sample.h beside it."""

    def files(self, board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]: ...

    def finish(self, board: Board, plan: Plan, folder: Path) -> list[str]:
        """Makes what is made of the written files, and names it."""
        ...


PACKAGES: Mapping[str, Package] = {
    "c": cast(Package, plain),
    "single-file": cast(Package, single_file),
    "library": cast(Package, library),
    "arduino": cast(Package, arduino),
    "rtthread": cast(Package, rtthread),
    "zephyr": cast(Package, zephyr),
    "espidf": cast(Package, espidf),
    "cmsis-pack": cast(Package, cmsis_pack),
    "cubeide": cast(Package, cubeide),
    "meson": cast(Package, meson),
    "bazel": cast(Package, bazel),
    "rust": cast(Package, rust),
}
