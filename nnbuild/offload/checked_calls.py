"""Calls the functions of users' device files, and reports their failures and wrong results as errors."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from nnbuild.base.errors import NnbuildError, UsageError
from nnbuild.offload.device import Functions


def checked_functions(module: ModuleType, where: str, file: Path) -> Functions:
    """The functions of a device's file, each checked for its return type."""

    def guarded(name: str) -> Callable[..., Any]:
        return _checked(getattr(module, name), name, where, file)

    extra = {name: guarded(name) for name in ("link", "simulated") if hasattr(module, name)}
    return Functions(*(guarded(name) for name in ("pack", "describe", "cycles", "compute")), **extra)


RETURNS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "pack": ("bytes", lambda value: isinstance(value, bytes)),
    "describe": ("bytes", lambda value: isinstance(value, bytes)),
    "cycles": ("a number from 0 on", lambda value: _is_number(value) and math.isfinite(value) and value >= 0),
    "compute": ("a tuple of arrays", lambda value: isinstance(value, tuple)),
    "link": ("a list of words", lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value)),
    "simulated": ("a path", lambda value: isinstance(value, Path)),
}


def _checked(function: Callable[..., Any], name: str, where: str, file: Path) -> Callable[..., Any]:
    form, holds = RETURNS[name]

    @wraps(function)
    def checked(*arguments: Any) -> Any:
        try:
            value = function(*arguments)
        except NnbuildError:
            raise
        except Exception as error:
            frame = next(
                (f for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == str(file)), None
            )
            place = f"line {frame.lineno}" if frame is not None else "its call"
            cause = f"{name}() in {file.name} fails at {place}: {type(error).__name__}: {error}."
            raise UsageError(where, cause, "Correct that function.") from error
        if not holds(value):
            raise UsageError(
                where, f"{name}() in {file.name} returns {str(value)[:60]}, which is not {form}.", "Mend that function."
            )
        return value

    return checked


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__float__")
