"""Audits every symbol, relocation, instruction and byte of stack of a build against a policy.

Reads object files, archives, linked images and kernel modules; imports nothing of nnbuild but its errors.
"""

from __future__ import annotations

from nnbuild.audit.findings import AuditReport, Budget, Finding, Need
from nnbuild.audit.needs import library_sources
from nnbuild.audit.policy import Policy, load_policy
from nnbuild.audit.report import explain_symbol, render_text, report_json
from nnbuild.audit.run import audit_files, vendored_objects
from nnbuild.audit.source_locations import Place

__all__ = [
    "AuditReport",
    "Budget",
    "Finding",
    "Need",
    "Place",
    "Policy",
    "audit_files",
    "explain_symbol",
    "library_sources",
    "load_policy",
    "render_text",
    "report_json",
    "vendored_objects",
]
