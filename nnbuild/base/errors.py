"""Errors for users: where, why, and what to do next."""

from __future__ import annotations

from nnbuild.base.sanitize import printable


class NnbuildError(Exception):
    """An expected failure. `where` names a layer, tensor, file or device; `next_step` is what the user can do."""

    exit_code = 2

    def __init__(self, where: str, cause: str, next_step: str) -> None:
        super().__init__(where, cause, next_step)
        self.where = where
        self.cause = cause
        self.next_step = next_step

    def __str__(self) -> str:
        return printable(f"{self.where}: {self.cause} {self.next_step}")


class UsageError(NnbuildError):
    """The command or its options cannot be used as given."""


class ModelError(NnbuildError):
    """The model file is broken, or contains something that nnbuild does not support."""


class CheckFailed(NnbuildError):
    """A check, a gate or an audit did not pass."""

    exit_code = 1


class ToolMissing(NnbuildError):
    """A compiler, emulator, flash tool or device that the command needs is not there."""

    exit_code = 3
