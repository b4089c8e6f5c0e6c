"""Lines and branches of the emitted C that the vectors reach, by gcov; the rest needs a reason."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nnbuild.base.errors import CheckFailed
from nnbuild.emit.artifact import Artifact
from nnbuild.evidence.harness import Compiler, compiled, run
from nnbuild.model.graph import Array
from nnbuild.plan.plan import Plan

COMPILER = Compiler("gcc with gcov", ("gcc",), ("-O0", "--coverage", "-dumpdir", "./"))


@dataclass(frozen=True)
class Gap:
    """A line or a branch that no vector reaches; `reason` is empty where unknown."""

    file: str
    line: int
    function: str
    what: str
    text: str
    reason: str


@dataclass(frozen=True)
class Coverage:
    lines: int
    lines_reached: int
    branches: int
    branches_reached: int
    gaps: tuple[Gap, ...]

    @property
    def unexplained(self) -> tuple[Gap, ...]:
        return tuple(gap for gap in self.gaps if not gap.reason)


def measure(plan: Plan, artifact: Artifact, vectors: dict[str, Array], count: int, folder: Path) -> Coverage:
    program = compiled(COMPILER, plan, artifact, folder)
    run(COMPILER, program, plan, vectors, count)
    if subprocess.run([str(program), "ends"], cwd=folder).returncode:
        raise CheckFailed("coverage", "an invalid tensor number was accepted.", "Please report it.")
    sources = sorted(name for name in artifact.files if name.endswith(".c"))
    found = [_counted(folder, name) for name in sources]
    return _joined(plan, artifact, [each for each in found if each])


def _counted(folder: Path, source: str) -> list[dict[str, Any]]:
    notes = sorted(folder.glob(f"*{Path(source).stem}.gcno"), key=lambda path: len(path.name))
    if not notes:
        return []
    words = ["gcov", "--json-format", "--stdout", "--branch-probabilities", notes[0].name]
    done = subprocess.run(words, cwd=folder, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        raise CheckFailed("gcov", done.stderr.strip(), "Check that gcov and gcc have the same version.")
    files: list[dict[str, Any]] = json.loads(done.stdout)["files"]
    return [each for each in files if Path(each["file"]).name == source]


def _joined(plan: Plan, artifact: Artifact, files: Iterable[list[dict[str, Any]]]) -> Coverage:
    steps = frozenset(version.function for step in plan.steps for version in step.versions)
    lines = reached = branches = taken = 0
    gaps: list[Gap] = []
    for each in (file for some in files for file in some):
        name = Path(each["file"]).name
        texts = artifact.files[name].decode().splitlines()
        rows: dict[int, list[dict[str, Any]]] = {}
        for row in each["lines"]:
            rows.setdefault(row["line_number"], []).append(row)
        for number, some in sorted(rows.items()):
            lines += 1
            hit = any(row["count"] for row in some)
            reached += hit
            ways = [branch for row in some for branch in row["branches"]]
            hits = sum(bool(branch["count"]) for branch in ways)
            branches, taken = branches + len(ways), taken + hits
            if not hit or hits < len(ways):
                what = "line" if not hit else f"{len(ways) - hits} of {len(ways)} branches"
                function = some[0].get("function_name", "")
                text = texts[number - 1].strip()
                gaps.append(Gap(name, number, function, what, text, reason(texts, number - 1, function, steps)))
    return Coverage(lines, reached, branches, taken, tuple(gaps))


STATUS = "No step of this program fails; the callers check the return value all the same."
LIBRARY = "A function of nnbuild's library, tested with every argument; this model uses only some."
BOUND = "A bound of the output's type or of an activation, which no vector's sums exceed; the proofs hold beyond it."
SIGN = "The rounding of sums of one sign, which no vector has; the rule is the same for both signs."
SIZES = "Decided by this model's sizes, or by the range that a caller asks for; no tensor's values matter."
REASONS = (
    (r"\bstatus\b", STATUS),
    (r"^(else )?if \(\w+ [<>]=? -?[\d.]+f?\) \w+ = -?[\d.]+f?;$", BOUND),
    (r"\(?sum\w* > 0 \? sum\w* \+ \d+ : sum\w* - \d+\)?", SIGN),
    (r"return \w+ < -?\w+ \? -?\w+ : \w+ > \w+ \? \w+ : \w+;", BOUND),
)
INDEX = re.compile(
    r"\b(first|last|left|right|x|y|i|k|n|row|rows|column|next|upper|lower|top|bottom|tile|tiles|begin|end|blocks?|group|"
    r"channel|count|from|to|out|in|line|part|step|position|places?|real_end|size|even|whole|strip|piece|unit|turn|rest|"
    r"matrix|c|j|t|kx|ky)(_?\d+)?\b"
)
CONDITION = re.compile(r"^(?:\} )?(?:else )?(?:if|while|for) \((.*)\) ?\{?|= (.*) \?")
CHOICE = re.compile(r"\(([^()]*) \?")
"""A condition within an argument."""
DATA = re.compile(r"\[|\*\w|\bsum|\bvalue|\bresult|\blargest|\bmost\b|\.\d|\dF\b")


def reason(texts: list[str], at: int, function: str, steps: frozenset[str]) -> str:
    """Why no vector reaches a place, by its own text or by that of its enclosing statement."""
    text = texts[at].strip()
    if function not in steps and not re.search(r"_(init|run|step|input|output)$", function):
        return LIBRARY
    known = next((why for pattern, why in REASONS if re.search(pattern, text)), "")
    return known or (SIZES if _by_sizes(text) else _above(texts, at, function, steps))


def _by_sizes(text: str) -> bool:
    """Whether a condition depends only on indices and numbers."""
    found = CONDITION.search(text)
    asked = [found[1] or found[2] or ""] if found else CHOICE.findall(text)
    return bool(asked) and all(map(_of_indices, asked))


def _of_indices(asked: str) -> bool:
    words = set(re.findall(r"[A-Za-z_]\w*", asked)) - {"int32_t", "const"}
    return bool(words) and not DATA.search(asked) and all(INDEX.fullmatch(word) for word in words)


def _above(texts: list[str], at: int, function: str, steps: frozenset[str]) -> str:
    """The reason of the line that controls this one."""
    depth = _depth(texts[at])
    for line in range(at - 1, -1, -1):
        if texts[line].strip() and _depth(texts[line]) < depth:
            return reason(texts, line, function, steps) if _depth(texts[line]) else ""
    return ""


def _depth(text: str) -> int:
    return len(text) - len(text.lstrip())
