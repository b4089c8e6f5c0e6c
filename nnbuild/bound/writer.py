"""Writes Python code that executes instructions on values that are a number or None, which means unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from nnbuild.bound.register_distance import MARKED, MARKS, advanced

VALUES = (*(f"r{number}" for number in range(13)), "sp", "lr", "nz", "c", "v", *(f"s{n}" for n in range(32)))
"""Everything with a value. `nz` is the number whose sign and zeroness the flags N and Z give."""
REGISTERS = (*VALUES, *MARKS)
"""The contents of a state, in order."""
SLOT = {name: place for place, name in enumerate(REGISTERS)}

CONDITION: dict[str, tuple[str, tuple[str, ...]]] = {
    "eq": ("nz == 0", ("nz",)),
    "ne": ("nz != 0", ("nz",)),
    "hs": ("c == 1", ("c",)),
    "lo": ("c == 0", ("c",)),
    "mi": ("nz > 0x7fffffff", ("nz",)),
    "pl": ("nz <= 0x7fffffff", ("nz",)),
    "vs": ("v == 1", ("v",)),
    "vc": ("v == 0", ("v",)),
    "hi": ("c == 1 and nz != 0", ("c", "nz")),
    "ls": ("c == 0 or nz == 0", ("c", "nz")),
    "ge": ("nz >> 31 == v", ("nz", "v")),
    "lt": ("nz >> 31 != v", ("nz", "v")),
    "gt": ("nz != 0 and nz >> 31 == v", ("nz", "v")),
    "le": ("nz == 0 or nz >> 31 != v", ("nz", "v")),
}
"""Each condition as an expression, and the flags it needs."""

_PAIRS = (("eq", "ne"), ("hs", "lo"), ("mi", "pl"), ("vs", "vc"), ("hi", "ls"), ("ge", "lt"), ("gt", "le"))
OPPOSITE = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}


class Writer:
    """The lines of one block. Tracks which registers are certainly known, or certainly unknown, at the current
    position."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._read: set[str] = set()
        self._written: set[str] = set()
        self._unknown: set[str] = set()
        self._numbers: set[str] = set()
        self._depth = 1
        self._touched: list[set[str]] = []

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def use(self, name: str) -> str:
        """Reads a register."""
        if name in SLOT and name not in self._written:
            self._read.add(name)
        return name

    def is_unknown(self, names: Iterable[str]) -> bool:
        return any(name in self._unknown for name in names)

    def guarded(self, expression: str, needs: Iterable[str]) -> str:
        """The expression; None if something it needs is None."""
        names = list(dict.fromkeys(needs))
        if self.is_unknown(names):
            return "None"
        for name in names:
            self.use(name)
        doubtful = [name for name in names if name not in self._numbers]
        if not doubtful:
            return expression
        return f"None if {' or '.join(f'{name} is None' for name in doubtful)} else {expression}"

    def set(self, name: str, expression: str = "None", needs: Iterable[str] = (), perhaps: bool = False) -> None:
        """Sets a register; `perhaps` means that the expression itself may be None."""
        needed = list(needs)
        text = self.guarded(expression, needed)
        sure = all(each in self._numbers for each in needed) and not perhaps and text != "None"
        self._mark(name)
        self._numbers.discard(name)
        self._unknown.discard(name)
        if text == "None":
            self._unknown.add(name)
            return
        self.line(f"{name} = {text}")
        if sure:
            self._numbers.add(name)

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            self.set(name)

    def _mark(self, name: str) -> None:
        if name in SLOT:
            if self._touched:
                self.use(name)
                self._touched[-1].add(name)
            self._written.add(name)
        if name in MARKED:
            self.forget((f"{name}_mark",))

    def move(self, target: str, source: str, step: int = 0) -> None:
        """target = source + step; for unknown values, their distance stays known."""
        marked = self._mark_of(source, new=target != source) if target in MARKED else "None"
        if marked != "None":
            self.line(f"mark = {marked}")
        self.set(target, f"({source} + {step}) & 0xffffffff" if step else source, (source,))
        if marked != "None":
            self.set(f"{target}_mark", advanced("mark", step) if step else "mark", ("mark",))
            if target != source:
                self.set(f"{source}_mark", "mark", ("mark",))

    def _mark_of(self, name: str, new: bool) -> str:
        """An expression: a register's mark, new where it is unknown and has none."""
        if name not in MARKED or name in self._numbers:
            return "None"
        mark = "None" if self.is_unknown((f"{name}_mark",)) else self.use(f"{name}_mark")
        if not new:
            return mark
        made = "new_mark()" if mark == "None" else f"new_mark() if {mark} is None else {mark}"
        return made if self.is_unknown((name,)) else f"None if {self.use(name)} is not None else {made}"

    def difference(self, a: str, b: str) -> None:
        """Sets `nz` to a - b, where it is unknown but the distance of the two registers is known."""
        marks = [f"{a}_mark", f"{b}_mark"]
        if a not in MARKED or b not in MARKED or self.is_unknown(marks):
            return
        one, other = (self.use(mark) for mark in marks)
        old = "None" if self.is_unknown(("nz",)) else self.use("nz")
        apart = f"None if {one} is None or {other} is None or {one} >> 32 != {other} >> 32 else ({one} - {other})"
        self.set("nz", f"{old} if {old} is not None else {apart} & 0xffffffff", perhaps=True)

    @contextmanager
    def under(self, condition: str) -> Iterator[None]:
        """Code written inside executes only if the condition holds; if it is unknown, perhaps."""
        expression, needs = CONDITION[condition]
        if self.is_unknown(needs):
            self.line("p = None")
        else:
            self.line(f"p = {self.guarded(expression, needs)}")
        before, self._lines = self._lines, []
        unknown, numbers = set(self._unknown), set(self._numbers)
        self._touched.append(set())
        self._depth += 1
        yield
        touched, body = sorted(self._touched.pop()), self._lines
        for name in touched:
            if name in self._unknown:
                body.append("    " * self._depth + f"{name} = None")
        self._depth -= 1
        self._lines = before
        for name in touched:
            if name in unknown:
                self.line(f"{name} = None")
            self.line(f"o_{name} = {name}")
        self.line("if p is not False:")
        self._lines += body or ["    " * (self._depth + 1) + "pass"]
        self.line("if p is None:")
        for name in touched:
            self.line(f"    {name} = {name} if {name} == o_{name} else None")
        self.line("    pass")
        self._unknown = unknown - set(touched)
        self._numbers = numbers - set(touched)

    @property
    def changes_flags(self) -> bool:
        return not self._written.isdisjoint(("nz", "c", "v"))

    @property
    def conditional(self) -> bool:
        return bool(self._touched)

    def finish(self, result: str) -> str:
        """The whole function, which returns `result`."""
        head = [
            "def block(r, m):",
            *(f"    {name} = r[{SLOT[name]}]" for name in sorted(self._read, key=SLOT.__getitem__)),
        ]
        tail = []
        for name in sorted(self._written, key=SLOT.__getitem__):
            value = "None" if name in self._unknown else name
            tail.append(f"    r[{SLOT[name]}] = {value}")
        return "\n".join([*head, *self._lines, *tail, f"    return {result}", ""])
