"""Results of many boards: a table of verdicts, a JSON object, a JUnit file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from nnbuild.base.sanitize import printable
from nnbuild.device.run_time import Time
from nnbuild.report.junit import as_file, clean
from nnbuild.report.table import render


@dataclass(frozen=True)
class Row:
    """One board's check."""

    name: str
    board: str
    port: str
    verdict: str
    said: str
    report: Mapping[str, Any] | None
    junit: str | None

    @property
    def cost(self) -> str:
        total = self.report.get("total") if self.report is not None else None
        return f"{total:,.0f} {self.report['unit']}" if total is not None and self.report is not None else ""

    @property
    def time(self) -> str:
        report = self.report if self.report is not None else {}
        if report.get("milliseconds") is None:
            return ""
        time = Time(report["milliseconds"], report["milliseconds_are"])
        return f"{time.words}, {'measured' if time.kind == 'measured' else 'estimated'}"

    @property
    def why(self) -> str:
        misses = self.report["misses"] if self.report is not None else []
        return f"{misses[0]['where']}: {misses[0]['detail']}" if misses else self.said


def farm_text(rows: Sequence[Row]) -> str:
    cells = [[row.name, row.board, row.port or "emulator", row.verdict, row.cost, row.time] for row in rows]
    table = render(
        ["device", "board", "port", "verdict", "a run", "time"], [list(map(printable, row)) for row in cells], 4
    )
    told = [f"{row.name}: {row.why}" for row in rows if row.verdict != "PASS"]
    passed = sum(row.verdict == "PASS" for row in rows)
    return "\n".join([table, "", *map(printable, told), f"{passed} of {len(rows)} boards pass"]) + "\n"


def farm_object(rows: Sequence[Row]) -> dict[str, Any]:
    devices = [
        {"name": r.name, "board": r.board, "port": r.port, "verdict": r.verdict, "said": r.why, "report": r.report}
        for r in rows
    ]
    return {"verdict": "pass" if all(row.verdict == "PASS" for row in rows) else "fail", "devices": devices}


def farm_junit(rows: Sequence[Row]) -> str:
    suites = ElementTree.Element("testsuites")
    for row in rows:
        suite = ElementTree.fromstring(row.junit) if row.junit is not None else _not_run(row)
        suite.set("name", clean(f"{row.name}: {suite.get('name', '')}"))
        suites.append(suite)
    return as_file(suites)


def _not_run(row: Row) -> ElementTree.Element:
    suite = ElementTree.Element(
        "testsuite", name=clean(f"nnbuild check {row.board}"), tests="1", failures="0", errors="1", skipped="0"
    )
    case = ElementTree.SubElement(suite, "testcase", classname=clean(row.board), name="the check")
    ElementTree.SubElement(case, "error", message=clean(row.said)).text = clean(row.said)
    return suite
