"""The pack as a page: what was proved, compared and covered, and where to find everything."""

from __future__ import annotations

from html import escape
from typing import Any

from nnbuild.base.sanitize import printable
from nnbuild.report.html import Cell, bullets, number, section, table
from nnbuild.report.style import css

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
<a class="skip" href="#certificate">To the content</a>
<header><h1>{title}</h1><p class="soft">{about}</p></header>
<main>
{main}
</main>
<footer><p>Made by nnbuild {version}. <code>python verify.py</code> in this folder re-checks the pack.</p></footer>
</body>
</html>
"""
ARGUMENT = (
    (
        "The generator prints wrong C",
        "The vectors on every target, against a reference that shares no line with the printed C; the bounds of the "
        "proofs; sanitizers over every vector.",
        "A mistake that both share: a misreading of the model's format or of an operation's rule. "
        "verify.py computes convolutions, dense layers, pools and sums again, by an independent implementation.",
    ),
    (
        "A compiler miscompiles it",
        "The same C by several compilers, at several levels of optimization, for several processors: equal bits.",
        "A bug that all of these compilers share, on values that no vector has.",
    ),
    (
        "The program contains wrong constants",
        "verify.py reads them from the ELF file, byte for byte, and finds each weight and number at its place.",
        "Constants printed into the code; only the vectors cover these.",
    ),
    (
        "A layer's numbers round differently from the rule",
        "verify.py proves them at both sides of every step of the rule, from the weights and the format of the input.",
        "Nothing within the range of the sums, which it computes itself.",
    ),
    (
        "The reference is wrong",
        "It is a second implementation: numpy on whole tensors, checked against TensorFlow Lite by nnbuild's tests.",
        "A mistake of TensorFlow Lite itself, whose behaviour is the specification.",
    ),
    (
        "verify.py is wrong",
        "It fails when one number of the pack is changed: nnbuild's tests change some hundreds, with hashes made anew.",
        "A mistake that lets wrong packs pass; the script can be read in half an hour.",
    ),
)
"""For each possible mistake of a tool: the path that would show it, and what this path would miss."""


def page(facts: dict[str, Any], trace: dict[str, Any], proofs: dict[str, Any]) -> str:
    title = f"Evidence for {facts['name']} on {facts['board']}, {facts['precision']}"
    about = f"{facts['vectors']} vectors, {len(facts['replicas'])} targets, model {facts['digest']}"
    parts = [
        section("open", "What is open", bullets(facts["open"]) if facts["open"] else "<p>Nothing.</p>"),
        section("certificate", "Exact replication", *_certificate(facts)),
        section("proofs", "Sums and rounding", _proofs(facts, proofs)),
        section("trace", "From layers to addresses", _layers(trace)),
        section("back", "From symbols to layers", _symbols(trace)),
        section("coverage", "Coverage by the vectors", *_coverage(facts)),
        section("misra", "MISRA C:2012", _misra(facts)),
        section("tools", "If a tool is wrong", _argument()),
        section("limits", "What this pack does not show", bullets(_limits(facts))),
    ]
    return printable(
        FRAME.format(
            title=escape(title), css=css(), about=escape(about), main="\n".join(parts), version=escape(facts["nnbuild"])
        )
    )


def _certificate(facts: dict[str, Any]) -> list[str]:
    exact = [row for row in facts["replicas"] if row["same_bits"]]
    text = f"<p>The same bits on {len(exact)} of {len(facts['replicas'])} targets.</p>"
    rows = [
        [
            row["target"],
            row["kernels"],
            "the same bits" if row["same_bits"] else "within the tolerance",
            Cell(row["outputs_sha256"][:16], code=True),
            "; ".join(tool["version"] or tool["name"] for tool in row["tools"]),
        ]
        for row in facts["replicas"]
    ]
    out = [[row["target"], row["reason"]] for row in facts["left_out"]]
    tables = [table("Targets", ["target", "kernels", "outputs", "their hash", "tools"], rows)]
    return [text, *tables, *([table("Left out", ["target", "why"], out)] if out else [])]


def _proofs(facts: dict[str, Any], proofs: dict[str, Any]) -> str:
    rows = [[p["op"], p["rule"], p["form"], facts["not_placed"].get(p["op"], "each weight")] for p in proofs["layers"]]
    return table("Proved layers", ["operation", "rule", "form", "found in the program"], rows)


def _layers(trace: dict[str, Any]) -> str:
    symbols = trace["symbols"]
    rows = [
        [
            Cell(layer["layer"], ", ".join(layer["ops"])),
            layer["kernel"],
            Cell("; ".join(f"{n} at {symbols[n]['address']:#x}" for n in layer["functions"]), code=True),
            Cell("; ".join(f"{n} at {symbols[n]['address']:#x}" for n in layer["constants"]), code=True),
            number(f"0 to {layer['vectors'][-1]}" if layer["vectors"] else "none"),
        ]
        for layer in trace["layers"]
    ]
    return table("Layers", ["layer", "kernel", "functions", "constants", "vectors"], rows)


def _symbols(trace: dict[str, Any]) -> str:
    names = [layer["layer"] for layer in trace["layers"]]
    rows = [
        [
            name,
            Cell(f"{row['address']:#x}", code=True),
            number(f"{row['size']:,}"),
            row["kind"],
            ", ".join(names[n] for n in row["layers"]) or "the model as a whole",
        ]
        for name, row in trace["symbols"].items()
    ]
    return table("Symbols", ["symbol", "address", "bytes", "kind", "layers"], rows)


def _coverage(facts: dict[str, Any]) -> list[str]:
    c = facts["coverage"]
    text = (
        f"<p>{c['lines_reached']:,} of {c['lines']:,} lines and {c['branches_reached']:,} of {c['branches']:,} "
        "branches of the emitted C are reached. The rest, with reasons:</p>"
    )
    rows = [
        [f"{gap['file']}:{gap['line']}", gap["what"], Cell(gap["text"], code=True), gap["reason"] or "none is known"]
        for gap in c["gaps"]
    ]
    return [text, table("Not reached", ["place", "what", "text", "reason"], rows)]


def _misra(facts: dict[str, Any]) -> str:
    rows = [
        [rule["rule"], number(f"{rule['count']:,}"), rule["why"] or "no justification", ", ".join(rule["places"][:3])]
        for rule in facts["misra"]["rules"]
    ]
    return table(f"Deviations, by {facts['misra']['tool']}", ["rule", "times", "why", "such as"], rows)


def _argument() -> str:
    return table("Two paths", ["if", "this shows it", "what this would miss"], [list(row) for row in ARGUMENT])


def _limits(facts: dict[str, Any]) -> list[str]:
    found = [f"{name}: {why}." for name, why in sorted(facts["not_from_the_model_file"].items())]
    found += [f"{name}: {why}." for name, why in sorted(facts["not_placed"].items())]
    return [*found, "Timing, and what the program around the model does."]
