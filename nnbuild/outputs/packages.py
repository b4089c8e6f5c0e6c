"""Forms in which a model's C is delivered: plain files, a library, or a package for another build system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    """The interface of these modules."""

    WEIGHTS: str | None
    """The only form of the constants that it supports, or None where it supports both."""
    ISA: str | None
    """Default instruction set where the user names neither a board nor a set; None means this PC's."""
    EXAMPLE: str | None
    """The folder of its example program, which reads a sample from NAME_sample.h beside it."""

    def files(self, board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]: ...

    def finish(self, board: Board, plan: Plan, folder: Path) -> list[str]:
        """Makes further files from the written ones, and returns their names."""
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

REFUSALS: Mapping[str, Callable[[Board, Plan, Path], None]] = {
    "library": library.refuse,
    "cmsis-pack": cmsis_pack.refuse,
}
"""What some outputs refuse before their files are written."""
