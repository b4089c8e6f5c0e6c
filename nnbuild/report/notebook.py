"""Results in a notebook: small tables in the notebook's colours, without scripts or page styles. Text is escaped
here, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from nnbuild.device.gates import CheckReport
from nnbuild.device.layers import LayerCost, shares
from nnbuild.device.profile import Profile
from nnbuild.device.run_time import time_of
from nnbuild.report.cycles import CycleProfile
from nnbuild.report.number_format import kilobytes, percent, whole

RIGHT = ' style="text-align:right"'
GOOD, BAD = "#1a7f37", "#cf222e"
MOST_ROWS = 200


def check_html(report: CheckReport) -> str:
    """The verdict, the cost of a run, every gate, and the layers, collapsed."""
    tone, word = (GOOD, "PASS") if report.passed else (BAD, "FAIL")
    what = f"{report.model} on {report.board}, {report.quantize}, {report.samples:,} samples"
    head = f'<p><b style="color:{tone}">{word}</b> {escape(what)}{_cost(report)}</p>'
    gates = [
        ["passed" if gate.passed else "MISSED", escape(gate.where), escape(gate.detail)]
        for gate in sorted(report.results, key=lambda gate: gate.passed)
    ]
    table = _table(["gate", "where", "found"], gates)
    layers = _folded(f"{len(report.layers)} layers", _layers(report.layers, report.unit)) if report.layers else ""
    return f"<div>{head}{table}{layers}</div>"


def profile_html(found: Profile) -> str:
    """The cost of a run, and each layer's share as a bar."""
    what = f"{found.model} on {found.board}, {found.quantize}"
    return f"<div><p><b>{escape(what)}</b>{_cost(found)}</p>{_layers(found.layers, found.unit)}</div>"


def cycles_html(found: CycleProfile) -> str:
    costs = [LayerCost(each.name, each.op, each.kernel, each.macs, each.time.cycles) for each in found.layers]
    time = f"{whole(found.cycles.whole.cycles)} cycles of a {found.cycles.core}, {found.cycles.milliseconds:.3g} ms"
    head = f"<p><b>{escape(f'{found.model} on {found.board}')}</b>: {escape(time)}, estimated</p>"
    return f"<div>{head}{_layers(costs, 'cycles')}</div>"


def files_html(title: str, notes: Sequence[str], files: Sequence[tuple[str, int]]) -> str:
    """A compiled model and its C files."""
    rows = [[f"<code>{escape(name)}</code>", kilobytes(size)] for name, size in files]
    told = "".join(f"<li>{escape(note)}</li>" for note in notes)
    listed = _folded(f"{len(files)} files", _table(["file", "size"], rows, numbers=(1,)))
    return f"<div><p><b>{escape(title)}</b></p>{f'<ul>{told}</ul>' if told else ''}{listed}</div>"


def _cost(report: CheckReport | Profile) -> str:
    time = report.duration
    if time is None:
        return ""
    took = time_of(report.unit, time.mean, report.hertz, report.modelled)
    told = f", {took.words} {'measured' if took.kind == 'measured' else 'estimated'}" if took is not None else ""
    emulated = ", emulated" if report.unit == "instructions" else ""
    return escape(f": one run {whole(time.mean)} {report.unit}{emulated}{told}")


def _layers(layers: Sequence[LayerCost], unit: str) -> str:
    most = max((layer.cost for layer in layers), default=0) or 1
    rows = [
        [escape(layer.name), escape(layer.op), escape(layer.kernel), whole(layer.cost), _bar(layer.cost / most, share)]
        for layer, (share, _) in zip(layers, shares(layers), strict=True)
    ]
    return _table(["layer", "op", "kernel", escape(unit), "share"], rows, numbers=(3,))


def _bar(length: float, share: float) -> str:
    """The costliest layer's bar is full."""
    bar = f'<span style="display:inline-block;height:.7em;background:#4c78a8;width:{6 * length:.2f}em"></span>'
    return f"{bar} {percent(share / 100)}"


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    head = "".join(f"<th>{each}</th>" for each in heads)
    right = [RIGHT if at in numbers else "" for at in range(len(heads))]
    cells = ["".join(f"<td{css}>{cell}</td>" for css, cell in zip(right, row, strict=True)) for row in rows[:MOST_ROWS]]
    shown = "".join(f"<tr>{each}</tr>" for each in cells)
    more = f"<p>and {len(rows) - MOST_ROWS:,} more</p>" if len(rows) > MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{shown}</tbody></table>{more}"
