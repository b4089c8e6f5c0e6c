"""Exports the proof's facts on loops and jumps to two analysers of worst-case execution time.

OTAWA reads F4 (`.ff`), aiT reads AIS (`.ais`). Both count iterations at a loop's head; a head that is reached n times
per entry leads to n - 1 further iterations, so the number is safe under either way of counting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nnbuild.bound.walk import Bound

REASON = "proved by nnbuild for all inputs, from this program's code"


def otawa(program: str, bound: Bound, name_of: Callable[[int], str]) -> str:
    lines = [f"// Flow facts of {bound.entry} in {program}, {REASON}."]
    for loop in bound.loops:
        lines.append(f"loop {loop.head:#010x} max {loop.rounds} ; // {name_of(loop.head)}")
    for address, targets in bound.jumps:
        places = ", ".join(f"{target:#010x}" for target in targets)
        lines.append(f"multibranch {address:#010x} to {places} ; // {name_of(address)}")
    return "\n".join([*lines, *(f"// {text}" for text in _left_out(bound, name_of)), ""])


def ait(program: str, bound: Bound, name_of: Callable[[int], str]) -> str:
    lines = [f"# Flow facts of {bound.entry} in {program}, {REASON}."]
    for loop in bound.loops:
        lines.append(f"loop {loop.head:#010x} max {loop.rounds}; # {name_of(loop.head)}")
    for address, targets in bound.jumps:
        places = ", ".join(f"{target:#010x}" for target in targets)
        lines.append(f"instruction {address:#010x} branches to {places}; # {name_of(address)}")
    return "\n".join([*lines, *(f"# {text}" for text in _left_out(bound, name_of)), ""])


def _left_out(bound: Bound, name_of: Callable[[int], str]) -> Iterator[str]:
    for head in bound.irregular:
        yield f"No fact: the loop at {head:#010x}, {name_of(head)}, has several entries, or only a jump table shows it."
