"""The report as a page: one self-contained file, made from the facts alone.

Equal facts give equal bytes.
"""

from __future__ import annotations

from html import escape

from nnbuild.report import network, sections
from nnbuild.report.facts import Facts
from nnbuild.report.html import bar, bullets, paragraph, section
from nnbuild.report.listening import listening
from nnbuild.report.number_format import NARROW, duration, kilobytes, percent, short, whole
from nnbuild.report.palette import families
from nnbuild.report.style import css
from nnbuild.report.svg import to_svg
from nnbuild.report.timeline import slivers, timeline

MOST_SLIVERS = 12
FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{css}</style>
</head>
<body>
<a class="skip" href="#network">To the content</a>
{header}
<main>
{main}
</main>
<footer><p>Made by nnbuild {version}. Everything on this page is in this file; the last section says how it was
built.</p></footer>
</body>
</html>
"""


def page(facts: Facts) -> str:
    parts = {
        "Network": section("network", "Network", *_network(facts)),
        "Layers": section("layers", "Layers", *sections.layers(facts)),
        "Device": section("device", "The accelerator", *sections.device(facts)),
        "Listening": section("listening", "Listening", *_listening(facts)),
        "Memory": section("memory", "Memory over one run", *_memory(facts)),
        "Board": section("board", "Flash, RAM and stack", *sections.board(facts)),
        "Quantization": section("quantization", "Quantization", *sections.quantization(facts)),
        "Weights": section("weights", "Weights", *sections.weights(facts)),
        "Check": section("check", "Check", *sections.check(facts)),
        "Audit": section("audit", "Audit", *sections.audit(facts)),
        "Built": section("built", "How it was built", *sections.built(facts)),
    }
    for name, there in (("Device", facts.beside), ("Listening", facts.listening)):
        if there is None:
            del parts[name]
    return FRAME.format(
        title=escape(f"{facts.name} on {facts.board}, {facts.precision}"),
        css=css(),
        header=_header(facts, list(parts)),
        main="\n".join(parts.values()),
        version=escape(dict(facts.origin.versions)["nnbuild"]),
    )


def verdict(facts: Facts) -> tuple[str, str]:
    """(word, tone)"""
    if facts.check is None:
        return "NOT RUN", "warn"
    return ("PASS", "good") if facts.check.passed else ("FAIL", "bad")


def _header(facts: Facts, names: list[str]) -> str:
    word, tone = verdict(facts)
    links = "".join(f'<li><a href="#{name.lower()}">{name}</a></li>' for name in names)
    tiles = "".join(_tile(*tile) for tile in _tiles(facts))
    return (
        f'<header><div class="title"><h1>{escape(facts.name)}</h1><span class="badge {tone}">{word}</span></div>\n'
        f'<p class="soft">{escape(facts.precision)} on {escape(facts.board)}: {escape(facts.board_summary)}</p>\n'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n<dl class="tiles">{tiles}</dl>\n'
        f"{bullets([note[0].upper() + note[1:] for note in facts.notes], 'notes')}</header>"
    )


def _tile(name: str, value: str, under: str, share: float | None, tone: str) -> str:
    css_class = f' class="{tone}"' if tone else ""
    drawn = bar(share) if share is not None else ""
    return (
        f'<div class="tile"><dt>{escape(name)}</dt><dd{css_class}>{escape(value)}</dd>'
        f"<dd>{drawn}{escape(under)}</dd></div>"
    )


def _tiles(facts: Facts) -> list[tuple[str, str, str, float | None, str]]:
    """(name, value, what is under it, share for a bar, tone)"""
    time, how = _time(facts)
    each = f", {facts.cost / facts.macs:.2f} per MAC" if facts.macs else ""
    tiles: list[tuple[str, str, str, float | None, str]] = [
        ("One run", time or short(facts.cost), f"{how}{whole(facts.cost)} {facts.unit}{each}", None, "")
    ]
    for memory in facts.memories:
        name = memory.name.upper() if memory.name == "ram" else memory.name.capitalize()
        share = memory.used / memory.size if memory.size else None
        of = f"{percent(share)} of {kilobytes(memory.size or 0)}" if share is not None else "of the model"
        if memory.used:
            tiles.append((name, kilobytes(memory.used), of, share, ""))
    tiles.append(("Arena", kilobytes(facts.arena), f"the step with the highest use takes {_peak(facts)}", None, ""))
    tiles.append(("Stack of a run", kilobytes(facts.stack.bound), "bound found by static analysis", None, ""))
    if facts.accuracy is not None:
        tiles.append(("Accuracy", percent(facts.accuracy, 2), _against(facts), None, ""))
    elif facts.agreement is not None:
        tiles.append(("Same class as float", percent(facts.agreement, 2), _samples(facts), None, ""))
    if facts.check is not None:
        passed = sum(gate.passed for gate in facts.check.gates)
        word, tone = verdict(facts)
        tiles.append(("Check", f"{passed} of {len(facts.check.gates)}", f"gates passed: {word}", None, tone))
    tiles.append(("Work", short(facts.macs), f"{facts.macs:,} multiply-accumulates", None, ""))
    return tiles


def _time(facts: Facts) -> tuple[str, str]:
    """The time of one run, and its source; empty where the clock is unknown."""
    check = facts.check
    if check is None or check.mean is None:
        time = duration(facts.cost, "cycles", facts.clock)
        return time, f"estimated at {facts.clock / 1e6:g} MHz: " if time else ""
    if check.milliseconds is None:
        return "", "emulated: " if facts.unit == "instructions" else ""
    time = duration(check.milliseconds * 1e3, "cycles", 1_000_000)
    if check.milliseconds_are == "measured":
        return time, ""
    least = f"≥{NARROW}" if check.milliseconds_are == "at least" else ""
    return f"{least}{time}", "estimated for the processor; emulated: "


def _peak(facts: Facts) -> str:
    return kilobytes(facts.peak.size) if facts.peak is not None else "nothing"


def _samples(facts: Facts) -> str:
    count = facts.check.samples if facts.check is not None else 0
    return f"on {count:,} samples"


def _against(facts: Facts) -> str:
    outputs = facts.check.outputs if facts.check is not None else ()
    plain = next((o.float_accuracy for o in outputs if o.float_accuracy is not None), None)
    return f"{_samples(facts)}; float model {percent(plain, 2)}" if plain is not None else _samples(facts)


def _network(facts: Facts) -> tuple[str, ...]:
    pieces = network.strips(facts.nodes, facts.name)
    drawn = "".join(to_svg(piece, f"net{index}") for index, piece in enumerate(pieces))
    what = "measured on the board" if facts.check is not None else "by the plan's estimate"
    return (
        f'<p class="soft">All operations in execution order, each with its share of the cost '
        f"{escape(what)}. Data flows down; data needed again later runs in a separate lane.</p>",
        f'<div class="strips">{drawn}</div>',
        _key(families({node.kind for node in facts.nodes})),
    )


def _listening(facts: Facts) -> tuple[str, ...]:
    return listening(facts.listening, facts.cost, facts.unit) if facts.listening is not None else ()


def _memory(facts: Facts) -> tuple[str, ...]:
    if not facts.buffers:
        return ("<p>This model needs no arena.</p>",)
    key = [("tensor", "tensor"), ("given", "input"), ("output", "output"), ("scratch", "scratch")]
    roles = {"given" if b.role == "input" else b.role for b in facts.buffers}
    key = [entry for entry in key if entry[0] in roles]
    if any(buffer.overlaps for buffer in facts.buffers):
        key.append(("overlap", "bytes of an output that overwrites its input while reading"))
    key.append(("peak", "fullest step"))
    return (
        to_svg(timeline(facts, wide=True), "timeline-wide", "wide"),
        to_svg(timeline(facts, wide=False), "timeline-narrow", "narrow"),
        _key(key),
        _slivers(facts),
        *sections.buffers(facts),
    )


def _slivers(facts: Facts) -> str:
    """A legend of the buffers too thin for a name."""
    found = [f"{buffer.name} ({kilobytes(buffer.size)})" for buffer in slivers(facts)]
    more = f" and {len(found) - MOST_SLIVERS} more" if len(found) > MOST_SLIVERS else ""
    return paragraph(f"Too thin to label: {', '.join(found[:MOST_SLIVERS])}{more}.", "key") if found else ""


def _key(entries: list[tuple[str, str]]) -> str:
    items = "".join(
        f'<li><i aria-hidden="true" style="background:var(--{paint})"></i>{escape(word)}</li>'
        for paint, word in entries
    )
    return f'<ul class="key" aria-label="Colours">{items}</ul>'
