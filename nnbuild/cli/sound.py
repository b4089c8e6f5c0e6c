"""Text and JSON for `check --wav` and `listen`: comparisons, events, cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nnbuild.base.sanitize import printable
from nnbuild.jobs.sound import Event, SoundReport


def event_text(event: Event) -> str:
    return printable(f"{event.at:9.2f} s  {event.label}  {event.score}  {event.sound}")


def sound_text(report: SoundReport) -> str:
    lines = [f"front end  {report.front_end}", ""]
    for each in report.compared.values():
        verdict = "equal" if each.differ == 0 else f"{each.differ:,} differ, first at {each.first}"
        lines.append(f"{each.name:<16} {each.values:>12,} values  {verdict}")
    lines += ["", *([] if report.made_up else map(event_text, report.events))]
    ticks = report.ticks
    cost = f"mean {sum(ticks) / len(ticks):,.0f}, max {max(ticks):,} {report.unit} a step" if ticks else ""
    lines += [f"{len(report.events)} events in {report.steps:,} steps, {report.runs:,} runs of the network; {cost}"]
    lines += [f"{'PASS' if report.passed else 'FAIL'}: {len(report.compared)} values of every step"]
    return "\n".join(lines) + "\n"


def sound_object(report: SoundReport) -> dict[str, Any]:
    ticks = report.ticks
    return {
        **{name: getattr(report, name) for name in ("model", "board", "unit", "front_end", "steps", "runs")},
        "verdict": "PASS" if report.passed else "FAIL",
        "compared": [asdict(each) for each in report.compared.values()],
        "events": events_object(report.events),
        "cost": {"mean": sum(ticks) / max(1, len(ticks)), "max": max(ticks, default=0)},
    }


def events_object(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [asdict(event) for event in events]
