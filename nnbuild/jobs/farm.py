"""Checks many boards in parallel. A farm file lists the boards; every check is its own process, so that a board that
hangs, dies or is missing does not disturb the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nnbuild.base.errors import UsageError
from nnbuild.report.farm import Row

KEYS = {"name": str, "board": str, "port": str, "memory": str, "quantize": str, "baud": int, "options": list}
SAID = 300
"""Maximum characters of a failed check's last message."""


@dataclass(frozen=True)
class Seat:
    """One board of a farm. Without a port it is this PC or an emulator; `options` are extra arguments for its check."""

    name: str
    board: str
    port: str | None
    options: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """`report` and `junit` are the files of the check, if it got that far."""

    seat: Seat
    exit_code: int
    said: str
    report: Mapping[str, Any] | None
    junit: str | None

    @property
    def verdict(self) -> str:
        return {0: "PASS", 1: "FAIL"}.get(self.exit_code, "ERROR") if self.report is not None else "ERROR"


def read_farm(path: Path) -> tuple[Seat, ...]:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(
            str(path), f"it is not a farm file ({error}).", "`nnbuild docs farm` shows an example."
        ) from None
    devices = table.get("device")
    if not isinstance(devices, list) or not devices or set(table) != {"device"}:
        raise UsageError(
            str(path),
            "a farm file contains [[device]] tables and nothing else.",
            "`nnbuild docs farm` shows an example.",
        )
    seats = tuple(_seat(path, number, device) for number, device in enumerate(devices, 1))
    _refuse_twice(path, "name", [seat.name for seat in seats])
    _refuse_twice(path, "port", [seat.port for seat in seats if seat.port is not None])
    return seats


def _seat(path: Path, number: int, device: Any) -> Seat:
    where = f"{path}, device {number}"
    if not isinstance(device, dict) or "board" not in device:
        raise UsageError(where, "it names no board.", 'Write board = "stm32", for example.')
    for key, value in device.items():
        if key not in KEYS:
            raise UsageError(where, f"it says {key!r}.", f"Use one of {', '.join(KEYS)}.")
        if type(value) is not KEYS[key]:
            raise UsageError(where, f"its {key} is {value!r}.", f"Write a {KEYS[key].__name__}.")
    words = [word for key in ("memory", "quantize", "baud") if key in device for word in (f"--{key}", str(device[key]))]
    words += [str(word) for word in device.get("options", ())]
    return Seat(device.get("name", f"{device['board']} {number}"), device["board"], device.get("port"), tuple(words))


def _refuse_twice(path: Path, what: str, values: Sequence[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise UsageError(str(path), f"two devices have the {what} {value!r}.", "Make each different.")


def check_on(farm: Path, words: Sequence[str], say: Callable[[str, str], None]) -> list[Row]:
    """Checks every board of a farm; calls `say` with each verdict as it arrives."""
    outcomes = check_farm(words, read_farm(farm), lambda outcome: say(outcome.seat.name, outcome.verdict))
    return [
        Row(each.seat.name, each.seat.board, each.seat.port or "", each.verdict, each.said, each.report, each.junit)
        for each in outcomes
    ]


def check_farm(words: Sequence[str], seats: Sequence[Seat], say: Callable[[Outcome], None]) -> list[Outcome]:
    """Runs `nnbuild check` with these arguments on all boards in parallel; calls `say` as each one ends."""

    def one(seat: Seat) -> Outcome:
        outcome = _check(words, seat)
        say(outcome)
        return outcome

    with ThreadPoolExecutor(len(seats)) as pool:
        return list(pool.map(one, seats))


def _check(words: Sequence[str], seat: Seat) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="nnbuild-") as folder:
        report, junit = Path(folder) / "report.json", Path(folder) / "junit.xml"
        own = ["--board", seat.board, *(["--port", seat.port] if seat.port is not None else []), *seat.options]
        command = [sys.executable, "-m", "nnbuild", "check", *words, *own, "--json", str(report), "--junit", str(junit)]
        quiet = {**os.environ, "NNBUILD_QUIET": "1"}
        done = subprocess.run(command, env=quiet, capture_output=True, encoding="utf-8", errors="replace", check=False)
        ended = f"signal {-done.returncode} ended the check" if done.returncode < 0 else ""
        lines = [line for line in done.stderr.splitlines() if line and not line.startswith("nnbuild: note:")]
        said = ended or (lines[-1].removeprefix("nnbuild: ") if lines else "")
        return Outcome(
            seat=seat,
            exit_code=done.returncode,
            said=said[:SAID],
            report=json.loads(report.read_text("utf-8")) if report.is_file() else None,
            junit=junit.read_text("utf-8") if junit.is_file() else None,
        )
