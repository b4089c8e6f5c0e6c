"""Mutants of a program: small changes of its constants and code, each applied to the built program.

Numbers in the code are printed as a selection, by a constant of the program, between themselves and another number; so
one build contains all mutants of the code. A mutant of either kind is then a few replaced bytes of the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from nnbuild.audit.elf import ObjectFile, read_elf
from nnbuild.base.errors import NnbuildError
from nnbuild.base.literals import is_packed
from nnbuild.emit.weights import block_offsets
from nnbuild.model.graph import Array
from nnbuild.plan.plan import WEIGHTS, Plan

KINDS = ("weight", "bias", "multiplier", "shift", "table", "index", "bound", "number")
ROLES = {"kernel": "weight", "recurrent": "weight", "bias": "bias", "multiplier": "multiplier", "shift": "shift"}
"""Kinds of constants by the words in their names; all others are tables."""
CHOICE = "mutant"
"""The constant that selects which number of the code is changed; 0 for none."""
QUIET = ("-Wconversion", "-Wsign-conversion", "-Wtype-limits")
"""Warnings that a selection between numbers can cause although a single number would not."""


@dataclass(frozen=True)
class Mutant:
    """One change: the bytes of the constant `symbol` from `offset` on become `data`."""

    kind: str
    where: str
    change: str
    symbol: str
    offset: int
    data: bytes


@dataclass(frozen=True)
class Spot:
    """A number in the code: its place in the file, and its replacement."""

    kind: str
    function: str
    line: int
    begin: int
    end: int
    old: str
    new: str


def of_constants(plan: Plan, chance: np.random.Generator, wanted: Mapping[str, int]) -> Iterator[Mutant]:
    """Yields as many mutants of each kind as wanted, if the program has such constants."""
    readers = {name: step.layer for step in plan.steps for v in step.versions for name in v.names.packed.values()}
    inside = {name: at for name, _, at in block_offsets(plan)}
    for kind, count in wanted.items():
        held = {name: data for name, data in plan.constants.items() if kind_of(name) == kind and data.size}
        sizes = np.array([data.size for data in held.values()], float)
        for _ in range(count if held else 0):
            name = list(held)[int(chance.choice(len(held), p=sizes / sizes.sum()))]
            index, old, new = _changed(held[name], kind, chance)
            symbol, at = (f"{plan.prefix}_{WEIGHTS}", inside[name]) if plan.swappable else (name, 0)
            where = readers.get(name, name)
            yield Mutant(
                kind,
                where,
                f"{name}[{index}]: {old} becomes {new}",
                symbol,
                at + index * new.dtype.itemsize,
                new.tobytes(),
            )


def kind_of(name: str) -> str:
    words = name.split("_")
    return next((kind for word, kind in ROLES.items() if word in words[-3:]), "table")


def _changed(data: Array, kind: str, chance: np.random.Generator) -> tuple[int, np.generic, np.generic]:
    """Picks an element; returns its index, old value and new value. Several integers in one word are changed one at
    a time."""
    flat = np.ascontiguousarray(data).reshape(-1)
    flat = flat.view(np.int8) if is_packed(data) else flat
    index = int(chance.integers(flat.size))
    old = flat[index]
    if flat.dtype.kind == "f":
        options = [-old, 2 * old, np.zeros_like(old), old + np.copysign(max(abs(old), 2.0**-7) / 8, old)]
    elif kind == "multiplier":
        whole = int(old)
        options = [whole + (whole >> int(chance.integers(1, 12))), whole - (whole >> int(chance.integers(1, 12)))]
    else:
        options = [int(old) + 1, int(old) - 1, -int(old), int(old) ^ (1 << int(chance.integers(8 * flat.itemsize)))]
    new = _stored(options[int(chance.integers(len(options)))], flat.dtype)
    return index, old, new if new != old else _stored(int(old) ^ 1 if flat.dtype.kind != "f" else old + 1, flat.dtype)


def _stored(value: Any, dtype: np.dtype[np.generic]) -> np.generic:
    """The value in little-endian bytes; an out-of-range value wraps around."""
    if dtype.kind == "f":
        single: np.generic = np.asarray(value).astype(dtype.newbyteorder("<")).reshape(1)[0]
        return single
    raw = int(value) & ((1 << 8 * dtype.itemsize) - 1)
    whole: np.generic = np.frombuffer(raw.to_bytes(dtype.itemsize, "little"), dtype.newbyteorder("<"))[0]
    return whole


NUMBER = re.compile(r"(?<![\w.#])(\d+\.\d+(?:e[-+]?\d+)?f|\d+u?)(?![\w.])")
FUNCTION = re.compile(r"^(?:\w+ )*void (\w+)\(", re.MULTILINE)
"""Behind `static`, and what has the compiler use a set's instructions."""
FIXED = re.compile(r"^\s*(#|case\b|static\b|/?\*|goto\b)|__|\"|\w+ \w+\[\d+\](;| =)|return;")
"""Lines that need compile-time constants, or are not code."""


def of_code(plan: Plan, source: str, chance: np.random.Generator, count: int) -> list[Spot]:
    """Finds up to `count` numbers in the functions of the steps, as many of each kind as there are."""
    found: dict[str, list[Spot]] = {}
    for spot in _spots(plan, source, chance):
        found.setdefault(spot.kind, []).append(spot)
    turns = [[there[int(index)] for index in chance.permutation(len(there))] for there in found.values()]
    in_turn = [spot for turn in zip_longest(*turns) for spot in turn if spot is not None]
    return sorted(in_turn[:count], key=lambda spot: (spot.line, spot.begin))


def _spots(plan: Plan, source: str, chance: np.random.Generator) -> Iterator[Spot]:
    names = {version.function for step in plan.steps for version in step.versions}
    inside = ""
    for number, line in enumerate(source.splitlines()):
        begun = FUNCTION.match(line)
        if begun:
            inside = begun[1] if begun[1] in names else ""
        elif line.startswith("}"):
            inside = ""
        elif inside and not FIXED.search(line):
            code = line.split("/*")[0]
            for match in NUMBER.finditer(code):
                new = _other(code, match, chance)
                yield Spot(_kind_in(code, match), inside, number, match.start(), match.end(), match[0], new)


def _kind_in(code: str, number: re.Match[str]) -> str:
    before, after = code[: number.start()].rstrip("(- "), code[number.end() :].lstrip(") ")
    if before.endswith(("<<", ">>")):
        return "shift"
    if before.endswith(("<", ">", "<=", ">=", "==", "?", ":")) or after.startswith(("<", ">", "?", ":")):
        return "bound"
    pointer = re.search(r"\*(?:restrict )?\w+ = |^\s*\w+ [-+]= [\w *]+;", code)
    if code[: number.start()].count("[") > code[: number.start()].count("]") or pointer:
        return "index"
    return "number"


def _other(code: str, number: re.Match[str], chance: np.random.Generator) -> str:
    """The number plus or minus one; a loop's step never becomes 0, which would not end."""
    text = number[0]
    if "." in text:
        value = float(text[:-1])
        return f"{np.float32(value * 1.25 + (value == 0) * 0.25)!s}f" if value == 0 or value * 1.25 < 1e38 else "1.5f"
    value, mark = int(text.rstrip("u")), "u" if text.endswith("u") else ""
    least = 2 if re.search(r"[-+*/]= \w*$", code[: number.start()]) else 1
    down = value >= least and chance.integers(2) == 0
    return f"{value - 1 if down else value + 1}{mark}"


def with_choices(plan: Plan, source: str, spots: Sequence[Spot]) -> str:
    """The code with a selection at every spot; 1 selects the first."""
    name = f"{plan.prefix}_{CHOICE}"
    lines = source.splitlines()
    for number, spot in reversed(list(enumerate(spots, 1))):
        line = lines[spot.line]
        lines[spot.line] = f"{line[: spot.begin]}({name} == {number} ? {spot.new} : {spot.old}){line[spot.end :]}"
    quiet = "".join(f'\n#pragma GCC diagnostic ignored "{each}"' for each in QUIET)
    include = next(index for index, line in enumerate(lines) if line.startswith(f'#include "{plan.prefix}_private.h"'))
    lines[include] += f"{quiet}\nextern const int32_t {name};"
    return "\n".join(lines) + "\n"


def with_constant(plan: Plan, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Adds the selecting constant to the weights' file: in another file than the code, so that no compiler knows its
    value."""
    name = f"{plan.prefix}_{CHOICE}"
    c = f"\nextern const int32_t {name};\nconst int32_t {name} = 0;\n"
    assembly = (
        f"    .section .rodata\n    .balign 4\n    .globl {name}\n    .type {name}, %object\n    .size {name}, 4\n"
    )
    added = {".c": c, ".S": f"{assembly}{name}:\n    .long 0\n"}
    weights = {f"{plan.prefix}_weights{ending}": text.encode() for ending, text in added.items()}
    return {file: content + weights.get(file, b"") for file, content in files.items()}


def chosen(plan: Plan, spots: Sequence[Spot]) -> list[Mutant]:
    layers = {v.function: step.layer for step in plan.steps for v in step.versions}
    return [
        Mutant(
            spot.kind,
            layers[spot.function],
            f"{spot.function}, line {spot.line + 1}: {spot.old} becomes {spot.new}",
            f"{plan.prefix}_{CHOICE}",
            0,
            number.to_bytes(4, "little"),
        )
        for number, spot in enumerate(spots, 1)
    ]


def applied(program: bytes, name: str, mutant: Mutant) -> bytes:
    """The program with the mutant's bytes in place."""
    at = _place(read_elf(name, program), mutant)
    return program[:at] + mutant.data + program[at + len(mutant.data) :]


def _place(file: ObjectFile, mutant: Mutant) -> int:
    symbol = next((each for each in file.symbols if each.name == mutant.symbol and not each.undefined), None)
    if symbol is None:
        raise NnbuildError(
            file.name, f"it has no symbol {mutant.symbol!r}.", "Choose a board whose programs keep symbols."
        )
    section = file.sections[symbol.section]
    start = symbol.value if file.relocatable else symbol.value - section.address
    return section.offset + start + mutant.offset


def without(spots: Sequence[Spot], refused: frozenset[int]) -> list[Spot]:
    """The spots that are not on lines refused by the compiler, counted from 0 in the source without selections."""
    return [replace(spot) for spot in spots if spot.line not in refused]
