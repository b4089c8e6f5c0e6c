"""Readers of the two formats of flow facts, written after their published descriptions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NUMBER = r"0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]+|\d+"
ADDRESS = rf'(?:(?:{NUMBER})|"[^"\n]*"(?:\s*[+-]\s*(?:{NUMBER}))?)'


@dataclass
class Facts:
    loops: dict[int, int] = field(default_factory=dict)
    jumps: dict[int, list[int]] = field(default_factory=dict)


def number(text: str) -> int:
    if re.fullmatch(r"0[0-7]+", text):
        return int(text, 8)
    return int(text, 0)


def read_f4(text: str) -> Facts:
    """OTAWA's F4: C++ comments, then directives that end with a semicolon."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    facts = Facts()
    *directives, rest = plain.split(";")
    assert not rest.strip(), f"no semicolon after {rest.strip()!r}"
    for directive in directives:
        words = directive.strip()
        if loop := re.fullmatch(rf"loop\s+({NUMBER})\s+max\s+({NUMBER})", words):
            facts.loops[number(loop[1])] = number(loop[2])
        elif jump := re.fullmatch(rf"multibranch\s+({NUMBER})\s+to\s+((?:{NUMBER})(?:\s*,\s*(?:{NUMBER}))*)", words):
            facts.jumps[number(jump[1])] = [number(part.strip()) for part in jump[2].split(",")]
        else:
            raise ValueError(f"no directive of F4: {words!r}")
    return facts


def read_ais(text: str) -> Facts:
    """aiT's AIS: comments from # to the end of the line, then annotations that end with a semicolon."""
    plain = re.sub(r"#[^\n]*", " ", text)
    facts = Facts()
    *annotations, rest = plain.split(";")
    assert not rest.strip(), f"no semicolon after {rest.strip()!r}"
    for annotation in annotations:
        words = " ".join(annotation.split())
        if loop := re.fullmatch(r"loop (0x[0-9a-f]+) max (\d+)", words):
            facts.loops[int(loop[1], 16)] = int(loop[2])
        elif jump := re.fullmatch(r"instruction (0x[0-9a-f]+) branches to (0x[0-9a-f]+(?:, 0x[0-9a-f]+)*)", words):
            facts.jumps[int(jump[1], 16)] = [int(part, 16) for part in jump[2].split(", ")]
        else:
            raise ValueError(f"no annotation of AIS: {words!r}")
    return facts
