"""The frozen values of an audit's report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from nnbuild.audit.source_locations import Place

Severity = Literal["violation", "warning"]
NeedVerdict = Literal["forbidden", "warned", "supplied", "resolved", "allowed"]


@dataclass(frozen=True)
class Finding:
    """One violated rule at one place."""

    rule: str
    severity: Severity
    subject: str
    place: Place | None
    message: str
    fix: str


@dataclass(frozen=True)
class Need:
    """A symbol that the audited objects do not define, or, in a linked image, a forbidden one that was linked in."""

    symbol: str
    group: str
    verdict: NeedVerdict
    places: tuple[Place, ...]
    source: Path | None = None
    """Our source file that supplies it."""
    resolved_by: str = ""
    weak: bool = False


@dataclass(frozen=True)
class Sizes:
    code: int = 0
    constants: int = 0
    data: int = 0
    bss: int = 0

    @property
    def flash(self) -> int:
        return self.code + self.constants + self.data

    @property
    def ram(self) -> int:
        return self.data + self.bss

    def __add__(self, other: Sizes) -> Sizes:
        return Sizes(
            self.code + other.code, self.constants + other.constants, self.data + other.data, self.bss + other.bss
        )


@dataclass(frozen=True)
class SymbolSize:
    object: str
    name: str
    kind: Literal["code", "constants", "data", "bss"]
    size: int


@dataclass(frozen=True)
class Budget:
    """Limits in bytes; None where unlimited."""

    flash: int | None = None
    ram: int | None = None
    stack: int | None = None


@dataclass(frozen=True)
class FileSummary:
    object: str
    machine: str
    kind: str
    sizes: Sizes
    sections: Mapping[str, int]


@dataclass(frozen=True)
class AuditReport:
    policy: str
    files: tuple[FileSummary, ...]
    needs: tuple[Need, ...]
    findings: tuple[Finding, ...]
    symbols: tuple[SymbolSize, ...]
    budget: Budget
    notes: tuple[str, ...] = field(default=())

    @property
    def violations(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "violation")

    @property
    def clean(self) -> bool:
        return not self.violations

    @property
    def total(self) -> Sizes:
        return sum((file.sizes for file in self.files), Sizes())
