"""The check's report for a CI server: JUnit XML, one test case per gate."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from nnbuild.device.gates import CheckReport
from nnbuild.report.text import to_text

# Characters that XML 1.0 has no way to write.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(report: CheckReport) -> str:
    suite = ElementTree.Element(
        "testsuite",
        name=clean(f"nnbuild check {report.board} {report.model}"),
        tests=str(len(report.results)),
        failures=str(len(report.misses)),
        errors="0",
        skipped="0",
    )
    for result in report.results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=clean(f"{report.board}.{report.model}"),
            name=clean(f"{result.where}: {result.gate}"),
        )
        if not result.passed:
            failure = ElementTree.SubElement(case, "failure", message=clean(result.detail), type=result.gate)
            failure.text = clean(result.detail)
    ElementTree.SubElement(suite, "system-out").text = clean(to_text(report))
    return as_file(suite)


def as_file(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def clean(text: str) -> str:
    return _UNWRITABLE.sub("?", text)
