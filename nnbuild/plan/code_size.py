"""Bytes of machine code, estimated from the printed C: a kernel's own, and those it shares."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf

from nnbuild.base.c_metrics import measure_c
from nnbuild.base.vendored import definitions
from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa.encoding import Encoding

_FREE = ("function", "parameter")
"""Costs that an inlined function does not have."""
_FUNCTION = re.compile(r"^(?:static )?(?:inline )?[\w*]+ \**(\w+)\([^;{]*\)\n\{\n.*?^\}$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Code:
    """Bytes of a kernel's own function, and of the routines it shares with others, which a program holds once."""

    own: int = 0
    shared: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Bytes where nothing else uses the same routines."""
        return self.own + sum(self.shared.values())

    def plus(self, other: Code) -> Code:
        return Code(self.own + other.own, {**self.shared, **other.shared})


def total(codes: Iterable[Code]) -> int:
    """Bytes of a program with all of them; every shared routine counts once."""
    together = Code()
    for code in codes:
        together = together.plus(code)
    return together.total


@dataclass(frozen=True)
class _Routine:
    """A function that a kernel calls. `kept`: it is never inlined. `declared`: it is declared inline."""

    text: str
    kept: bool = False
    declared: bool = False


@dataclass(frozen=True)
class Contents:
    """Operation counts of a kernel's own function, and of each routine it shares."""

    own: Counter[str]
    shared: Mapping[str, Counter[str]]


def code_of(w: Writer, encoding: Encoding) -> Code:
    """Code size of the kernel whose body was printed to `w` alone."""
    there = contents(w, encoding)
    return Code(_bytes(there.own, encoding), {name: _bytes(kinds, encoding) for name, kinds in there.shared.items()})


def contents(w: Writer, encoding: Encoding) -> Contents:
    if any(given.pins for given in w.instructions.values()):
        encoding = replace(encoding, inlined_routines=inf)
    routines = {f"{w.prefix}_{name}": _routine(given, w.prefix) for name, given in w.instructions.items()}
    routines |= {name: _Routine(text) for name, text in _vendored(frozenset(w.helpers), w.prefix).items()}
    shared: dict[str, Counter[str]] = {}
    own = _kinds(f"void step(in, out, begin, end)\n{{\n{w}}}\n", routines, shared, encoding)
    return Contents(own, {name.removeprefix(f"{w.prefix}_"): kinds for name, kinds in shared.items()})


def _routine(instruction: Instruction, prefix: str) -> _Routine:
    body = (instruction.native or instruction.meaning).replace("{prefix}", prefix)
    return _Routine(f"{instruction.head}\n{{\n{body}\n}}\n", instruction.outlined, not instruction.outlined)


@lru_cache(maxsize=256)
def _vendored(names: frozenset[str], prefix: str) -> Mapping[str, str]:
    """name -> text of the vendored functions and of those they use."""
    return {found[1]: found[0] for found in _FUNCTION.finditer(definitions(names, prefix))}


def _kinds(
    text: str, routines: Mapping[str, _Routine], shared: dict[str, Counter[str]], encoding: Encoding
) -> Counter[str]:
    """Operation counts of a function with all that is inlined; routines that are called are added to `shared`."""
    there = measure_c(text)
    kinds = Counter(there.kinds)
    for name, times in there.calls.items():
        routine = routines.get(name)
        inner = Counter[str]()
        if routine is not None and name not in shared:
            inner = _kinds(routine.text, routines, shared, encoding)
            limit = encoding.inlined_routines if routine.declared else encoding.inlined
            if routine.kept or sum(inner.values()) > limit:
                shared[name] = inner
        if routine is None or name in shared:
            given = 1 + routine.text.partition("{")[0].count(",") if routine else 1
            kinds += Counter(call=times, argument=times * min(given, 4), pushed=times * max(0, given - 4))
        else:
            kinds.update({kind: times * number for kind, number in inner.items() if kind not in _FREE})
    return kinds


def _bytes(kinds: Mapping[str, int], encoding: Encoding) -> int:
    return round(sum(number * encoding.bytes[kind] for kind, number in kinds.items()))
