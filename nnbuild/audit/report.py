"""An audit report as text and as JSON."""

from __future__ import annotations

from typing import Any

from nnbuild.audit.findings import AuditReport, Finding, Need, Sizes
from nnbuild.audit.source_locations import Place

SHOWN_PLACES = 3
SHOWN_SYMBOLS = 10


def render_text(report: AuditReport, beside: int = 0) -> str:
    """`beside`: violations that are told behind it, of the stack."""
    lines = [f"Audit of {len(report.files)} object{'s' if len(report.files) != 1 else ''}, policy {report.policy}"]
    for title, severity in (("Violations", "violation"), ("Warnings", "warning")):
        chosen = [finding for finding in report.findings if finding.severity == severity]
        if chosen:
            lines += ["", f"{title}: {len(chosen)}"]
            for finding in chosen:
                lines += _finding_lines(finding)
    supplied = [need for need in report.needs if need.verdict == "supplied"]
    if supplied:
        lines += ["", "Supplied by nnbuild's own library:"]
        lines += [f"  {explain_need(report, need)}" for need in supplied]
    lines += ["", *_size_lines(report)]
    if report.notes:
        lines += ["", "Notes:", *(f"  {note}" for note in report.notes)]
    violations = len(report.violations) + beside
    lines += ["", f"Violations: {violations}." if violations else "The audit found no violation."]
    return "\n".join(lines) + "\n"


def _finding_lines(finding: Finding) -> list[str]:
    where = f"{finding.place.text()}: " if finding.place is not None else ""
    return [f"  [{finding.rule}] {where}{finding.message}", f"      {finding.fix}"]


def _size_lines(report: AuditReport) -> list[str]:
    width = max([len(file.object) for file in report.files] + [6])
    lines = [f"{'object':<{width}} {'code':>9} {'constants':>9} {'data':>9} {'bss':>9}"]
    rows = [(file.object, file.sizes) for file in report.files]
    if len(rows) > 1:
        rows.append(("total", report.total))
    for name, sizes in rows:
        lines.append(f"{name:<{width}} {sizes.code:>9} {sizes.constants:>9} {sizes.data:>9} {sizes.bss:>9}")
    for name, used, limit in _budget_rows(report):
        lines.append(f"{name}: {used} of {limit} bytes ({100 * used / limit if limit else 0:.1f} %)")
    largest = report.symbols[:SHOWN_SYMBOLS]
    if largest:
        lines.append("largest symbols: " + ", ".join(f"{symbol.name} {symbol.size}" for symbol in largest))
    return lines


def _budget_rows(report: AuditReport) -> list[tuple[str, int, int]]:
    rows = []
    if report.budget.flash is not None:
        rows.append(("flash", report.total.flash, report.budget.flash))
    if report.budget.ram is not None:
        rows.append(("ram", report.total.ram, report.budget.ram))
    return rows


def explain_symbol(report: AuditReport, symbol: str) -> str:
    """The origin of a symbol, one line per object that needs it."""
    needs = [need for need in report.needs if need.symbol == symbol]
    if not needs:
        return f"{symbol}: no audited object needs it"
    return "\n".join(explain_need(report, need) for need in needs)


def explain_need(report: AuditReport, need: Need) -> str:
    places = [place.text() for place in need.places[:SHOWN_PLACES]]
    more = len(need.places) - len(places)
    where = " and ".join(places) if places else "declared, but unused"
    where += f" and {more} more" if more > 0 else ""
    answer = {
        "forbidden": f"forbidden by the policy {report.policy}",
        "warned": f"the policy {report.policy} warns of it",
        "supplied": f"supplied by {need.source}",
        "resolved": f"defined in {need.resolved_by or 'this file'}",
        "allowed": f"allowed by the policy {report.policy}",
    }[need.verdict]
    return f"{need.symbol}: {where}; {answer}"


def _place_json(place: Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {
        "object": place.object,
        "section": place.section,
        "offset": place.offset,
        "function": place.function or None,
        "file": place.file or None,
        "line": place.line,
        "inlined": list(place.inlined),
    }


def _sizes_json(sizes: Sizes) -> dict[str, int]:
    plain = {"code": sizes.code, "constants": sizes.constants, "data": sizes.data, "bss": sizes.bss}
    return {**plain, "flash": sizes.flash, "ram": sizes.ram}


def report_json(report: AuditReport) -> dict[str, Any]:
    """One machine-readable object; docs/audit.md lists its fields."""
    return {
        "policy": report.policy,
        "clean": report.clean,
        "findings": [
            {
                "rule": finding.rule,
                "severity": finding.severity,
                "subject": finding.subject,
                "place": _place_json(finding.place),
                "message": finding.message,
                "fix": finding.fix,
            }
            for finding in report.findings
        ],
        "needs": [
            {
                "symbol": need.symbol,
                "group": need.group,
                "verdict": need.verdict,
                "weak": need.weak,
                "source": str(need.source) if need.source is not None else None,
                "resolved_by": need.resolved_by or None,
                "places": [_place_json(place) for place in need.places],
            }
            for need in report.needs
        ],
        "objects": [
            {
                "object": file.object,
                "machine": file.machine,
                "kind": file.kind,
                "sizes": _sizes_json(file.sizes),
                "sections": dict(file.sections),
            }
            for file in report.files
        ],
        "symbols": [
            {"object": symbol.object, "name": symbol.name, "kind": symbol.kind, "size": symbol.size}
            for symbol in report.symbols
        ],
        "total": _sizes_json(report.total),
        "budget": {"flash": report.budget.flash, "ram": report.budget.ram, "stack": report.budget.stack},
        "notes": list(report.notes),
    }
