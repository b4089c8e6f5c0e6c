"""The check's report for a CI server: JUnit XML, one test case per gate."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from nnbuild.device.check import CheckReport
from nnbuild.report.text import to_text

# Characters that XML 1.0 has no way to write.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(report: CheckReport) -> str:
    suite = ElementTree.Element(
        "testsuite",
        name=_clean(f"nnbuild check {report.board} {report.model}"),
        tests=str(len(report.results)),
        failures=str(len(report.misses)),
        errors="0",
        skipped="0",
    )
    for result in report.results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_clean(f"{report.board}.{report.model}"),
            name=_clean(f"{result.where}: {result.gate}"),
        )
        if not result.passed:
            failure = ElementTree.SubElement(case, "failure", message=_clean(result.detail), type=result.gate)
            failure.text = _clean(result.detail)
    ElementTree.SubElement(suite, "system-out").text = _clean(to_text(report))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    return _UNWRITABLE.sub("?", text)
