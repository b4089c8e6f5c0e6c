"""What an SConstruct says of a model: nodes become paths, and mistakes messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any

from nnbuild.base.errors import UsageError
from nnbuild.jobs.options import CHOICES, Options
from nnbuild.quantize.formats import FORMATS

PAIRS = {
    "shape": ('("x", (1, 3, 96, 96))', "x=1,3,96,96;y=1,8"),
    "fix": ('("rate", [16000])', "rate=16000;mask=1,0,1"),
    "place": ('("layer", "cpu")', "layer=cpu,other=device"),
    "keep": ('("layer", "int16")', "layer=int16,other=float"),
}
"""Options that are lists of pairs, each with an example, and as a text."""
LISTS = ("shape", "fix")
"""Those whose second is a list of numbers."""
PATHS = ("calibrate", "labels", "features")
OTHERS = ("model", "layers", "kernels")
"""What builders do not take."""
SECONDS = {"place": ("cpu", "device"), "keep": FORMATS}
"""What the second of a pair may be."""
NUMBERS = {
    "baud": "the rate of the serial line, for example baud=921600",
    "max_instructions": "the maximum number of instructions per run, for example max_instructions=3000000",
    "threads": "the number of cores that compute a step, for example cores=4",
}


def file_of(env: Any, given: Any, what: str) -> Any:
    """The node of a file, also of one that another builder makes."""
    found = env.Flatten([given])
    if len(found) != 1 or not (isinstance(found[0], str) or hasattr(found[0], "get_internal_path")):
        raise UsageError(f"{what} {given!r}", "it is not one file.", "Give its name, or a builder's result.")
    return env.File(found[0])


def files_of(env: Any, given: Any, what: str) -> list[Any]:
    """The nodes of a builder's result, or of files by their names."""
    return [file_of(env, each, what) for each in env.Flatten([given])]


def options_of(env: Any, source: Any, options: Mapping[str, Any]) -> Options:
    known = {key: value for key, value in options.items() if value not in (None, "")}
    if "cores" in known:
        known["threads"] = known.pop("cores")
    known.update({name: _pairs(name, known[name]) for name in PAIRS if isinstance(known.get(name), str)})
    known.update({name: tuple(known[name].items()) for name in PAIRS if isinstance(known.get(name), Mapping)})
    _expect_known(known)
    known.update({name: tuple(map(_with_numbers, known[name])) for name in LISTS if name in known})
    for name in PATHS:
        if name in known:
            known[name] = real_path(env.Entry(known[name]))
    for name, wanted in NUMBERS.items():
        if name in known:
            known[name] = _number(name, str(known[name]), wanted)
    model = file_of(env, source, "model")
    if model.is_derived():  # its size is unknown before it is built; this form works for any size
        known.setdefault("weights", "binary")
    return replace(Options(real_path(model)), **known)


def _expect_known(options: Mapping[str, Any]) -> None:
    kinds = {
        field.name: str(field.type) for field in fields(Options) if field.name not in ("model", "layers", "kernels")
    }
    for name, value in options.items():
        if name not in kinds:
            raise UsageError(f"option {name}=", "there is no such option.", f"The options are: {', '.join(kinds)}")
        if value not in CHOICES.get(name, (value,)):
            raise UsageError(f"{name}={value}", "there is no such choice.", f"Give one of {', '.join(CHOICES[name])}.")
        is_node = name in PATHS and hasattr(value, "get_internal_path")
        if (kinds[name] in ("str", "str | None") or name in PATHS) and not (isinstance(value, str) or is_node):
            raise UsageError(f"{name}={value!r}", "it is not a text.", f'Give for example {name}="…".')
    for name, (pair, _) in PAIRS.items():
        pairs, example = options.get(name, ()), f"Give for example {name}=[{pair}]."
        if not isinstance(pairs, Sequence) or not all(isinstance(each, Sequence) and len(each) == 2 for each in pairs):
            raise UsageError(f"{name}={pairs!r}", "it needs pairs.", example)
        for layer, value in pairs:
            if name in LISTS and not _are_numbers(value):
                raise UsageError(f"{name}={pairs!r}"[:80], "it needs numbers.", example)
            if name in SECONDS and value not in SECONDS[name]:
                cause = f"for {layer!r} there is no such choice."
                raise UsageError(f"{name}={value}", cause, f"Give one of {', '.join(SECONDS[name])}.")


def _are_numbers(value: Any) -> bool:
    """One number, or a list of them."""
    given = value if isinstance(value, Sequence) else (value,)
    try:
        return bool(given) and all(isinstance(each, int | float) and isfinite(each) for each in given)
    except OverflowError:
        return False


def _pairs(name: str, text: str) -> tuple[tuple[str, Any], ...]:
    """Pairs from a text, as of a command line."""
    lists = name in LISTS
    found: list[tuple[str, Any]] = []
    for part in text.split(";" if lists else ","):
        key, _, value = (each.strip() for each in part.rpartition("="))
        try:
            numbers = tuple(map(_size if name == "shape" else float, value.split(","))) if lists else ()
        except ValueError:
            value = ""
        if not key or not value:
            raise UsageError(f"{name}={text}", f"{part!r} is not a pair.", f"Give for example {name}={PAIRS[name][1]}.")
        found.append((key, numbers if lists else value))
    return tuple(found)


def _with_numbers(pair: Sequence[Any]) -> tuple[str, tuple[float, ...]]:
    """A pair whose second may be one number."""
    name, given = pair
    return name, tuple(given) if isinstance(given, Sequence) else (given,)


def _size(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError(text)
    return int(text)


def real_path(node: Any) -> Path:
    """The real path of a file: among the sources for a variant folder without copies."""
    return Path(str((node if node.is_derived() else node.srcnode()).abspath))


def _number(name: str, text: str, wanted: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(f"{name}={text}", "it is not a positive whole number.", f"Give {wanted}.")
    return int(text)


def plain(options: Options) -> dict[str, Any]:
    """The options that determine the result, without the files' paths."""
    return {key: value for key, value in identity(options).items() if key not in ("model", "calibrate")}


def identity(options: Options) -> dict[str, Any]:
    """What tells one build from another."""
    return {key: str(value) for key, value in asdict(options).items()}


def within(path: Path) -> list[Path]:
    """A file, or the files of a folder."""
    return sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
