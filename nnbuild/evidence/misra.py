"""MISRA C:2012 findings of cppcheck's addon in the emitted C, with the justification of each deviation."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nnbuild.base.errors import ToolMissing
from nnbuild.emit.artifact import Artifact

FOUND = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):misra-c2012-(?P<rule>\d+\.\d+)$", re.MULTILINE)
WEIGHTS = "_weights.c"
"""Contains only constants: hours of analysis without a statement."""

_SIGNED = (
    "C99 leaves shifts and masks of negative numbers to the implementation. Every compiler that is supported keeps the "
    "sign and two's complement, which the emitted files require and which every target of this pack was run for."
)
_TYPES = (
    "Operands of one arithmetic type are converted by C's own rules, uncast. The ranges of all sums are proved in "
    "this pack, and the compiler's own -Wconversion finds nothing."
)
_NAMES = (
    "Names say the model, the step and the layer, and may differ after their 63rd character. Every compiler that is "
    "supported tells all characters apart; --name makes them shorter."
)
_EXITS = "A function ends where its result is known. No resource is held, so there is nothing to release at one exit."
DEVIATIONS: dict[str, str] = {
    "2.2": "A term that is zero for this model's sizes stands where others have one; it costs nothing.",
    "2.3": "A type of the interface that a program need not use.",
    "2.4": "A tag of the interface that a program need not use.",
    "2.5": "Macros of the public header say sizes, shapes and scales; a program uses those it needs.",
    "2.7": "All steps have one signature, so that they can be called alike; some need not all of it.",
    "5.1": _NAMES,
    "5.2": _NAMES,
    "5.4": _NAMES,
    "5.5": _NAMES,
    "5.9": "Names of internal functions are unique in the model's files.",
    "8.4": "Definitions of constants come with their declaration in the private header.",
    "8.6": "Definitions stand in another file of the same model.",
    "8.7": "Functions of the public header are called by the program around the model, which was not analysed.",
    "8.9": "A constant that one function uses stands with all others, so that a linker can place them.",
    "8.13": "All steps have one signature, so that they can be called alike.",
    "8.14": "restrict says what the plan of the memory guarantees: buffers do not overlap. Else it is not written.",
    "9.3": "A vector in portable C is a struct with an array, initialized by a function's result or one zero.",
    "10.1": _SIGNED,
    "10.2": _TYPES,
    "10.3": _TYPES,
    "10.4": _TYPES,
    "10.5": _TYPES,
    "10.6": _TYPES,
    "10.7": _TYPES,
    "10.8": _TYPES,
    "11.3": "Buffers of bytes are read as words where the plan has aligned them.",
    "11.4": "Addresses are compared as numbers to find an aligned one.",
    "11.5": "Scratch memory has no type of its own.",
    "11.8": "A pointer to constants is passed to a vector load that takes none to const.",
    "11.9": "A null pointer is written as 0 where there is no such tensor.",
    "12.1": "The precedence of C's operators is relied on where it is that of arithmetic.",
    "12.2": "Amounts of shifts are constants that the generator chose within the width of the type.",
    "12.3": "Several variables of one kind in one declaration.",
    "13.3": "An increment in the same expression as a store to where the pointer was; order is defined.",
    "13.4": "An assignment's value is used where a sequence point orders it.",
    "14.2": "Loops have constant bounds; their counters are stepped by the loop alone.",
    "14.3": "A condition that is known from the sizes of this model is left to the compiler.",
    "15.1": "A jump leaves nested loops, forward and within the function.",
    "15.4": "A loop ends where its work is done.",
    "15.5": _EXITS,
    "15.6": "One statement under an if stands without braces, on its own line.",
    "15.7": "No else is needed: the value keeps what it was.",
    "16.1": "Switches name every step and end in a default.",
    "16.3": "Each clause of a switch ends by a return.",
    "17.7": "memcpy returns the pointer it was given.",
    "17.8": "A parameter is the function's own copy, and is moved on as the work proceeds.",
    "18.4": "Pointers walk through buffers whose bounds the plan fixed; sanitizers ran over every vector of this pack.",
    "19.2": "The arena is one block of memory in which tensors of several types lie, one after the other.",
    "20.1": "The settings for one instruction set are read before its header.",
    "20.7": "A macro's parameter is a name or a number.",
    "20.9": "Macros that compilers predefine are 0 where they are not defined.",
    "20.10": "A macro makes names of functions out of their parts.",
    "21.1": "Names with underscores are the compilers' own.",
    "21.15": "memcpy reads a number's bytes as those of another type, which is the portable way.",
}


@dataclass(frozen=True)
class Misra:
    """Rule -> count, for the rules deviated from; and those without a justification, with a place."""

    version: str
    counts: dict[str, int]
    places: dict[str, list[str]]

    @property
    def unjustified(self) -> list[str]:
        return [rule for rule in self.counts if rule not in DEVIATIONS]


def findings(artifact: Artifact, folder: Path) -> Misra:
    if shutil.which("cppcheck") is None:
        raise ToolMissing(
            "cppcheck", "it checks MISRA C:2012 for the pack, and is not installed.", "apt install cppcheck"
        )
    Artifact(artifact.files).write(folder)
    sources = sorted(name for name in artifact.files if name.endswith(".c") and not name.endswith(WEIGHTS))
    words = ["cppcheck", "--addon=misra", "--std=c99", "-DNN_PORTABLE", "-q", "--template={file}:{line}:{id}", *sources]
    done = subprocess.run(words, cwd=folder, capture_output=True, encoding="utf-8", errors="replace")
    version = subprocess.run(
        ["cppcheck", "--version"], capture_output=True, encoding="utf-8", errors="replace"
    ).stdout.strip()
    return counted(version, done.stderr)


def counted(version: str, said: str) -> Misra:
    found = sorted({(m["rule"], m["file"], int(m["line"])) for m in FOUND.finditer(said)}, key=_order)
    counts = Counter(rule for rule, _, _ in found)
    places = {rule: [f"{file}:{line}" for each, file, line in found if each == rule] for rule in counts}
    return Misra(version, dict(counts), places)


def _order(found: tuple[str, str, int]) -> tuple[Iterable[int], str, int]:
    return [int(part) for part in found[0].split(".")], found[1], found[2]
