#!/usr/bin/env python3
"""Writes docs/onnx-coverage.md from what becomes of the onnx package's own cases: script/onnx_table.py"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import onnx
import onnx.defs

from nnbuild.frontend.onnx.folding import FOLDS, SOURCES
from nnbuild.frontend.onnx.importer import OPERATORS
from tests.support.onnx_cases import Outcome, cases, expanded, outcome

PAGE = Path(__file__).resolve().parents[1] / "docs" / "onnx-coverage.md"
HEAD = """\
# ONNX operators

Made by `script/onnx_table.py`, and held by a test: what becomes of the cases that the package onnx {version} has for
each operator. Every case is read as a model of its own, and its outputs are compared within 1e-5 of the largest
(integers exactly); inputs that a network has as constants (weights, axes, sizes) are made constants where they must
be. No case that is read gives anything else than what it should. Refused cases have types that are not read (8-bit
floats, texts), tensors without elements, or options of training; the operators' own limits are in [onnx.md](onnx.md).

**{yes} operators are read** of {all} in ONNX' own domain; {passed} of {cases} cases pass, and the others are refused
in words.

| operator | | cases that pass | remark |
|---|---|---|---|
"""
UNTRIED = "its cases are of sequences, which have no place at a model's edge"


def outcomes() -> list[Outcome]:
    return [outcome(case) for name, case in cases().items() if not expanded(name)]


def page(found: Iterable[Outcome]) -> str:
    by: dict[str, list[Outcome]] = defaultdict(list)
    every = list(found)
    for each in every:
        for kind in each.operators:
            by[kind].append(each)
    schemas = sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == ""})
    claimed = OPERATORS.keys() | FOLDS.keys() | SOURCES.keys()
    rows, yes = [], 0
    for kind in schemas:
        own = by.get(kind, [])
        passed = sum(each.passed for each in own)
        read = kind in claimed and (passed > 0 or not own or all("sequence" in each.refused for each in own))
        counted = kind in claimed and passed > 0
        yes += counted
        constants = passed and all(each.frozen for each in own if each.passed)
        remark = "constants in some inputs" if constants else "" if counted else UNTRIED if read else ""
        rows.append(
            f"| {kind} | {'yes' if counted else 'read' if read else 'no'} | {passed} of {len(own)} | {remark} |"
        )
    head = HEAD.format(
        version=onnx.__version__,
        yes=yes,
        all=len(schemas),
        passed=sum(each.passed for each in every),
        cases=len(every),
    )
    return head + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(outcomes()))
