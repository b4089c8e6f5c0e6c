"""The audit: opens the files, applies every rule, and collects the findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from nnbuild.audit.archive import open_file
from nnbuild.audit.elf import GIVE_ELF, ObjectFile, bad_object
from nnbuild.audit.findings import AuditReport, Budget, FileSummary, Finding, Need, SymbolSize
from nnbuild.audit.needs import NeedContext, close_over_sources, defined_symbols, findings_from, needs_of
from nnbuild.audit.policy import Policy
from nnbuild.audit.rules import (
    check_constructors,
    check_data,
    check_instructions,
    check_names,
    check_relocations,
    check_sections,
    is_stripped,
    unknown_relocations,
)
from nnbuild.audit.sizes import section_sizes, sizes_of, symbol_sizes
from nnbuild.audit.source_locations import Locator

NOTHING: Mapping[str, Path] = MappingProxyType({})


def audit_files(
    paths: Sequence[Path],
    policy: Policy,
    *,
    supplied: Mapping[str, Path] = NOTHING,
    budget: Budget | None = None,
    explain: Collection[str] = (),
) -> AuditReport:
    """Audits objects, archives, linked images and kernel modules together.

    `supplied` maps symbols to our source files that define them; `explain` lists symbols whose source lines are wanted
    even where the policy allows them.
    """
    files: list[ObjectFile] = []
    notes: list[str] = []
    for path in paths:
        opened = open_file(Path(path))
        files += opened.objects
        notes += opened.notes
    if not files:
        where = ", ".join(Path(path).name for path in paths)
        raise bad_object(where, "contains no ELF object, so nothing was audited.", GIVE_ELF)
    context = NeedContext(policy, supplied, defined_symbols(files), frozenset(explain))
    needs: list[Need] = []
    findings: list[Finding] = []
    symbols: list[SymbolSize] = []
    for file in files:
        locator = Locator(file)
        own = needs_of(locator, context)
        needs += own
        findings += findings_from(own, policy)
        findings += _rule_findings(locator, policy, notes)
        symbols += symbol_sizes(file)
    summaries = tuple(_summary(file) for file in files)
    held = budget or Budget()
    findings += _budget_findings(summaries, symbols, held)
    return AuditReport(
        policy=policy.name,
        files=summaries,
        needs=tuple(needs),
        findings=tuple(sorted(findings, key=_order)),
        symbols=tuple(sorted(symbols, key=lambda entry: (-entry.size, entry.object, entry.name))),
        budget=held,
        notes=(*notes, *_unknowns(files)),
    )


def _order(finding: Finding) -> tuple[bool, str, str, str, int]:
    place = finding.place
    where = (place.object, place.section, place.offset) if place is not None else ("", "", 0)
    return finding.severity != "violation", where[0], finding.rule, finding.subject, where[2]


def _rule_findings(locator: Locator, policy: Policy, notes: list[str]) -> list[Finding]:
    found = [
        *check_names(locator, policy),
        *check_sections(locator, policy),
        *check_constructors(locator, policy),
        *check_relocations(locator, policy),
        *check_data(locator, policy),
    ]
    instructions, unscanned = check_instructions(locator, policy)
    notes += [*unknown_relocations(locator), *unscanned]
    return found + instructions


def _summary(file: ObjectFile) -> FileSummary:
    machine = f"riscv{file.bits}" if file.machine == "riscv" else file.machine
    if machine == "powerpc64" and file.little:
        machine = "powerpc64le"
    kind = "kernel module" if file.kernel_module else file.kind
    return FileSummary(file.name, machine, kind, sizes_of(file), MappingProxyType(section_sizes(file)))


def _unknowns(files: Iterable[ObjectFile]) -> list[str]:
    """Notes on unknown facts of objects, one note for all objects."""
    with_code = [file for file in files if any(s.executable and s.size for s in file.sections)]
    stripped = [file.name for file in with_code if is_stripped(file)]
    lineless = [file.name for file in with_code if file.section_named(".debug_line") is None]
    notes = []
    if stripped:
        notes.append(f"{_some(stripped)} no symbols (stripped): functions are unknown")
    if lineless:
        notes.append(f"{_some(lineless)} no line table: source lines are unknown; compile with -g")
    return notes


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{shown} {'has' if len(names) == 1 else 'have'}"


def _budget_findings(files: Sequence[FileSummary], symbols: list[SymbolSize], budget: Budget) -> list[Finding]:
    code = [file.sizes for file in files]
    used = {"flash": sum(s.flash for s in code), "ram": sum(s.ram for s in code)}
    kinds = {"flash": ("code", "constants", "data"), "ram": ("data", "bss")}
    found = []
    for name, limit in (("flash", budget.flash), ("ram", budget.ram)):
        if limit is None or used[name] <= limit:
            continue
        counted = sorted((s for s in symbols if s.kind in kinds[name]), key=lambda s: -s.size)
        largest = ", ".join(f"{s.name} {s.size}" for s in counted[:3])
        message = f"{used[name]} bytes of {name} are used, {used[name] - limit} above the limit of {limit}"
        found.append(
            Finding(
                "budget",
                "violation",
                name,
                None,
                f"{message}{'; the largest are ' + largest if largest else ''}.",
                "Use a smaller model or type, optimize=size, a board with more memory, or allow more.",
            )
        )
    return found


def vendored_objects(report: AuditReport, supplied: Mapping[str, Path] = NOTHING) -> tuple[Path, ...]:
    """Our source files that the audited objects need, and no others.

    With `supplied`, also those that these sources need in turn.
    """
    wanted = {need.source for need in report.needs if need.verdict == "supplied" and need.source is not None}
    return close_over_sources(wanted, supplied) if supplied else tuple(sorted(wanted))
