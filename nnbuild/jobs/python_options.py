"""Converts Python options to fields of `Options`, and refuses wrong ones with an explanation."""

from __future__ import annotations

import math
import operator
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.jobs.options import CHOICES, Options
from nnbuild.quantize.formats import FORMATS

ALSO = {"cores": "threads", "calibration": "method"}
"""Command-line names of options -> fields of `Options`."""
MOST_CORES = 256
LARGEST_SIZE = 2**31 - 1

Converter = Callable[[Any], Any]


def options_from(given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Fields of `Options`; labels in memory are written to a file in the folder."""
    named = {ALSO.get(name, name): value for name, value in given.items()}
    known = {each.name: each.default for each in fields(Options) if each.name not in ("model", "board", "calibrate")}
    for name in sorted(given):
        if name not in known and name not in ALSO:
            raise unknown_name("nnbuild.compile", "option", name, [*known, *ALSO])
    return {
        name: value if value is None and known[name] is None else _converted(name, value, folder)
        for name, value in named.items()
    }


def unknown_name(where: str, kind: str, name: str, known: Sequence[str]) -> UsageError:
    return UsageError(where, f"it has no {kind} {name!r}.", f"{_hint(name, known)}Take one of {', '.join(known)}.")


def number(value: Any) -> float:
    if isinstance(value, str | bool | np.bool_) or not math.isfinite(value):
        raise ValueError
    return float(value)


def path_given(option: str, value: Any) -> Path:
    if not isinstance(value, str | Path):
        raise misfit(option, value, "a path, as str or Path")
    return Path(value)


def misfit(option: str, value: Any, takes: str) -> UsageError:
    return UsageError(f"{option}={reprlib.repr(value)}", f"{option} takes {takes}.", "Change it, or leave it out.")


def _hint(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, 1, 0.6)
    return f"Did you mean {near[0]}? " if near else ""


def _converted(name: str, value: Any, folder: Path) -> Any:
    if name in CHOICES:
        return _chosen(name, value, CHOICES[name])
    if name == "labels" and isinstance(value, list | tuple | np.ndarray):
        return _labels_file(list(value), folder / "labels.txt")
    if name not in KINDS:
        return value  # requests for weights report their own errors
    takes, convert = KINDS[name]
    try:
        return convert(value)
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise misfit(name, value, takes) from None


def _chosen(name: str, value: Any, choices: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        step = f"{_hint(str(value), choices)}Take one of {', '.join(choices)}."
        raise UsageError(f"{name}={reprlib.repr(value)}", "there is no such choice.", step)
    return value


def _labels_file(names: Sequence[Any], file: Path) -> Path:
    for name in names:
        if not isinstance(name, str) or len(name.splitlines()) != 1 or not name.strip():
            raise misfit("labels", names, f"a one-line name for each class, not {reprlib.repr(name)}")
    file.write_text("".join(f"{name}\n" for name in names), "utf-8")
    return file


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _path(value: Any) -> Path:
    return Path(value) if isinstance(value, Path) else Path(_text(value))


def _switch(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


def _whole(value: Any, most: int) -> int:
    if isinstance(value, bool) or not 1 <= operator.index(value) <= most:
        raise ValueError
    return operator.index(value)


def _range(value: Any) -> tuple[float, float]:
    low, high = value
    return number(low), number(high)


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    """Items of a mapping or of a sequence of pairs."""
    for name, what in value.items() if isinstance(value, Mapping) else value:
        yield _text(name), what


def _of(words: Sequence[str] | None = None) -> Converter:
    def convert(value: Any) -> tuple[tuple[str, str], ...]:
        pairs = tuple((name, _text(word)) for name, word in _pairs(value))
        if words is not None and any(word not in words for _, word in pairs):
            raise ValueError
        return pairs

    return convert


def _shapes(value: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((name, tuple(_whole(size, LARGEST_SIZE) for size in sizes)) for name, sizes in _pairs(value))


def _numbers(value: Any) -> tuple[tuple[str, tuple[float, ...]], ...]:
    return tuple((name, tuple(number(each) for each in np.ravel(what).tolist())) for name, what in _pairs(value))


def _isa(value: Any) -> str:
    names = [value] if isinstance(value, str) else [_text(name) for name in value]
    if not all(names) or not names:
        raise ValueError
    return ",".join(names)


def _stream(value: Any) -> str:
    return value if isinstance(value, str) else str(operator.index(value))


KINDS: Mapping[str, tuple[str, Converter]] = {
    "keep": ("a mapping from layers to int8, int16 or float, such as {'dense': 'float'}", _of(FORMATS)),
    "place": ("a mapping from layers to 'cpu' or 'device', such as {'dense': 'cpu'}", _of(("cpu", "device"))),
    "kernels": ("a mapping from operations to kernels, or pairs of them", _of()),
    "shape": ("a mapping from inputs to their sizes, such as {'x': (1, 3, 96, 96)}", _shapes),
    "fix": ("a mapping from inputs to a number, or a list of numbers, such as {'rate': 16000}", _numbers),
    "image_range": ("two numbers, the values of black and white, such as (0, 1)", _range),
    "accuracy_drop": ("a number of percentage points, such as 0.5", number),
    "threads": (f"a whole number of cores, 1 to {MOST_CORES}", lambda value: _whole(value, MOST_CORES)),
    "baud": ("a whole number, the rate of the serial line", lambda value: _whole(value, LARGEST_SIZE)),
    "max_instructions": ("a whole number of instructions", lambda value: _whole(value, 2**63 - 1)),
    "layers": ("True or False", _switch),
    "bias_correction": ("True or False", _switch),
    "swappable": ("True or False", _switch),
    "isa": ("the name of an instruction set, or a list of them", _isa),
    "stream": ("'auto', or an axis, and perhaps ',hop=N' and ',meaning=stream', such as 'auto,hop=2'", _stream),
    "name": ("a string, the prefix of all C identifiers", _text),
    "memory": ("a string, the name of one of the board's memories", _text),
    "labels": ("a file with one name per line, or a list of names", _path),
    "features": ("the path of a front end's settings, a .toml file", _path),
    "device": ("the name of a device, or the folder of its device.toml", lambda value: str(_path(value))),
}
"""Option -> (accepted values in words, converter)."""
