"""The tables of the page, section by section."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from nnbuild.device.accelerator import layer_cells, use_lines
from nnbuild.report.facts import Check, Comparison, Facts, Gate, Layer, Memory, Option, Output
from nnbuild.report.html import Cell, Row, bullets, number, paragraph, table
from nnbuild.report.number_format import TIMES, duration, figures, percent, short, signed, whole
from nnbuild.report.weights import per_kilobyte

MOST_CLASSES = 24
"""A larger confusion matrix is replaced by its most frequent confusions."""
CONFUSED = 20
PARTS = ("tensor", "output", "scratch", "given")
"""Paints for the parts of a memory, in turn."""


def layers(facts: Facts) -> tuple[str, ...]:
    total = sum(layer.weight for layer in facts.layers)
    most = max((layer.weight for layer in facts.layers), default=0.0) or 1.0
    rows = [_layer(layer, total, most) for layer in facts.layers]
    weights, code = (sum(getattr(layer, what) for layer in facts.layers) for what in ("weights", "code"))
    foot: Row = [
        "total",
        number(whole(total)),
        number(f"{facts.macs:,}", _per_mac(total, facts.macs)),
        number(f"{facts.flash_weights:,}", "shared ones once" if facts.flash_weights != weights else ""),
        number(f"{facts.flash_code:,}", "including shared code" if facts.flash_code != code else ""),
        "",
        "",
    ]
    measured = f"measured in {facts.unit}" if facts.check is not None else f"in {facts.unit}, not measured"
    heads: Row = [
        "layer",
        number(facts.unit),
        number("MACs"),
        number("weights"),
        number("code"),
        number("output"),
        Cell("kernel, and the runner-up", "by the plan's estimates"),
    ]
    return (table(f"Cost {measured}, and bytes, layer by layer", heads, rows, foot),)


def _per_mac(cost: float, macs: int) -> str:
    return f"{cost / macs:.2f} per MAC" if macs else ""


def _layer(layer: Layer, total: float, most: float) -> Row:
    """The bar is relative to the costliest layer."""
    share = layer.weight / total if total else 0.0
    words = ["in place"] if layer.in_place else []
    words += [f"scratch {layer.scratch:,}"] if layer.scratch else []
    words += [f"{layer.parts} parts at once"] if layer.parts > 1 else []
    return [
        Cell(layer.name, f"{layer.op} → {layer.shape} {layer.format}"),
        number(whole(layer.weight), percent(share), layer.weight / most),
        number(f"{layer.macs:,}" if layer.macs else "", _per_mac(layer.weight, layer.macs)),
        number(f"{layer.weights:,}" if layer.weights else "", _beside_parameters(layer)),
        number(f"{layer.code:,}" if layer.code else ""),
        number(f"{layer.output:,}", ", ".join(words)),
        Cell(_kernels(layer), _runner_up(layer)),
    ]


def _beside_parameters(layer: Layer) -> str:
    """How its constants are stored; where they are much larger than its parameters, also the cycles that this saves."""
    words, found = [layer.encoding] if layer.encoding else [], layer.stored
    if found is not None and found.much:
        gained = f", {short(found.gained)} cycles less" if found.instead and found.gained > 0 else ""
        words.append(f"{found.times:.2f} of its {found.parameters:,} B{gained}")
    return ", ".join(words)


def _kernels(layer: Layer) -> str:
    """The kernel; one per instruction set, where the program contains several."""
    if len({kernel for _, kernel in layer.versions}) < 2:
        return layer.kernel
    return ", ".join(f"{kernel} for {isa}" for isa, kernel in layer.versions)


def _runner_up(layer: Layer) -> str:
    """The next best kernel with its price, or why there is none."""
    if not layer.options:
        return ""
    own, *others = layer.options
    priced = [option for option in others if option.cycles is not None]
    if not others:
        return "no alternative for this operation"
    if priced:
        return f"next best {priced[0].kernel}: {_difference(own, priced[0])}"
    return "; ".join(f"not {option.kernel}: {option.reason}" for option in others[:2])


def _difference(own: Option, other: Option) -> str:
    """The cost of the other kernel relative to the selected one."""
    words = [_cycles(own.cycles or 0.0, other.cycles or 0.0)]
    words += [f"{signed(other.weights - own.weights)} B of weights"] if other.weights != own.weights else []
    words += [f"{signed(other.scratch - own.scratch)} B of scratch"] if other.scratch != own.scratch else []
    return ", ".join(words) + (" (measured)" if own.measured and other.measured else "")


def _cycles(own: float, other: float) -> str:
    if own and other >= 2 * own:
        return f"{other / own:.1f}{TIMES} the cycles"
    return f"{signed(100 * (other - own) / own, 1)} % cycles" if own else f"{short(other)} cycles"


def buffers(facts: Facts) -> tuple[str, ...]:
    at_peak = set(facts.peak.alive) if facts.peak is not None else set()
    rows: list[Row] = [
        [
            Cell(buffer.name, f"shares bytes with {', '.join(buffer.overlaps)}" if buffer.overlaps else ""),
            buffer.role,
            number(f"{buffer.offset:,}"),
            number(f"{buffer.size:,}"),
            number("before" if buffer.first < 0 else str(buffer.first)),
            number("after" if buffer.last >= len(facts.layers) else str(buffer.last)),
            "yes" if buffer.name in at_peak else "",
        ]
        for buffer in facts.buffers
    ]
    heads: Row = ["buffer", "role", number("offset"), number("bytes"), number("from"), number("to"), "at the peak"]
    words = f"The arena has {facts.arena:,} bytes."
    if facts.peak is not None:
        words += f" It is fullest at step {facts.peak.step}, {facts.peak.layer}: {facts.peak.size:,} bytes are in use."
    if facts.state:
        words += f" In addition, {facts.state:,} bytes of state persist between runs."
    return (paragraph(words, "after"), table("All buffers: address range and steps", heads, rows))


def board(facts: Facts) -> tuple[str, ...]:
    return (*(_memory(memory) for memory in facts.memories), _stack(facts))


def _memory(memory: Memory) -> str:
    whole_size = memory.size or memory.used or 1
    parts = "".join(
        f'<b style="width:{100 * size / whole_size:.2f}%;background:var(--{PARTS[index % 4]})"></b>'
        for index, (_, size) in enumerate(memory.parts)
    )
    key = "".join(
        f'<li><i style="background:var(--{PARTS[index % 4]})"></i>{escape(name)} {size:,} B</li>'
        for index, (name, size) in enumerate(memory.parts)
    )
    of = f" of {memory.size:,} ({percent(memory.used / memory.size)})" if memory.size else ""
    free = f", {memory.size - memory.used:,} free" if memory.size else ""
    return (
        f'<div class="memory"><p><strong>{escape(memory.name)}</strong>: {memory.used:,}{of} bytes{free}</p>'
        f'<div class="stack" aria-hidden="true">{parts}</div><ul class="key">{key}</ul></div>'
    )


def _stack(facts: Facts) -> str:
    stack = facts.stack
    rows: list[Row] = [[Cell(name, code=True), number(f"{size:,}")] for name, size in stack.path]
    words = f"A run takes at most {stack.bound:,} bytes of stack"
    words += f", of the {stack.budget:,} that the board reserves" if stack.budget else ""
    words += "; found by static analysis of all calls, not by measurement."
    if stack.size:
        words += f" Measured, including the link: {stack.used:,} of {stack.size:,} bytes."
    foot: Row = ["deepest chain", number(f"{stack.bound:,}")]
    return paragraph(words) + table("The deepest chain of calls", ["function", number("bytes")], rows, foot, "fit")


def _same_class(share: float | None) -> str:
    return "" if share is None else f"same class as the float model on {percent(share, 2)} of the samples, "


def quantization(facts: Facts) -> tuple[str, ...]:
    loss = facts.quantization
    if loss is None:
        if facts.precision == "float":
            return (paragraph("This model computes in float32: nothing was quantized."),)
        return (paragraph("The model's file is already quantized, so there is no float model to compare with."),)
    rows: list[Row] = [
        [
            Cell(layer.layer, layer.format),
            number(f"{layer.sqnr:.1f} dB" if layer.sqnr is not None else "exact", bar=min(1, (layer.sqnr or 90) / 90)),
            number(figures(layer.max_error)),
            number(f"{figures(layer.low)} … {figures(layer.high)}"),
            number("" if layer.scale is None else figures(layer.scale)),
            number(f"{layer.saturated:,}", percent(layer.saturated / layer.values, 2) if layer.saturated else ""),
        ]
        for layer in loss.layers
    ]
    heads: Row = [
        "layer",
        number("signal to noise"),
        number("largest error"),
        number("range"),
        number("scale"),
        number("saturated"),
    ]
    words = [
        f"Output {o.name}: {_same_class(o.agreement)}rmse {figures(o.rmse)}, cosine {o.cosine:.6f}."
        for o in loss.outputs
    ]
    worst = min((x for x in loss.layers if x.sqnr is not None), key=lambda x: x.sqnr or 0.0, default=None)
    words += [f"The layer with the most noise is {worst.layer}, {worst.sqnr:.1f} dB."] if worst is not None else []
    caption = f"Error against the float model, layer by layer, over {loss.samples:,} calibration samples"
    return (paragraph(" ".join(words)), table(caption, heads, rows))


def weights(facts: Facts) -> tuple[str, ...]:
    found = facts.weights
    if facts.precision == "float" and facts.quantization is not None:
        return (paragraph("Weights were rounded to 8 bits. Kernels whose names end in “narrow” store them in bytes."),)
    if found is None or not (found.asked or any(row.kind for row in found.rows)):
        return (paragraph("All weights are stored unencoded: few are zero, and they take many values."),)
    words = f"{percent(found.sparsity, 1)} of the weights are zero."
    if found.asked:
        words += (
            f" Changed for {found.asked}: {found.bytes_before:,} → {found.bytes_after:,} bytes of flash. {found.words}."
        )
    rows: list[Row] = []
    for row in found.rows:
        cost = per_kilobyte(row)
        rows.append(
            [
                Cell(row.layer, row.role if row.role != "kernel" else ""),
                row.asked or row.kind or "as it is",
                number(f"{row.count:,}"),
                number(percent(row.zeros / max(1, row.count), 1), bar=row.zeros / max(1, row.count)),
                number(f"{row.distinct:,}"),
                number(
                    f"{row.bytes_after:,}" if row.bytes_after else "", f"of {row.bytes_before:,}" if row.asked else ""
                ),
                number(
                    f"{100 * row.lost:.2f} %" if row.asked else "", f"{100 * cost:.2f} a KB" if cost is not None else ""
                ),
            ]
        )
    heads: Row = ["layer", "stored", *map(number, ("weights", "zeros", "values", "bytes", "signal lost"))]
    return (
        paragraph(words),
        table("The weights, layer by layer, and the accuracy cost of each byte saved", heads, rows),
    )


def check(facts: Facts) -> tuple[str, ...]:
    found = facts.check
    if found is None:
        return (paragraph(f"Nothing was run: {facts.check_missing}. Costs on this page are estimates."),)
    samples = "seeded random samples" if found.drawn else "samples"
    words = f"{found.samples:,} {samples} were run on the board and compared with the reference on the host."
    if found.drawn:
        words += " Random samples show that the program computes correctly; they say nothing about accuracy."
    tables = [_gates(found.gates)]
    for output in found.outputs:
        tables += [_comparisons(output), *_accuracy(output)]
    return (paragraph(words), paragraph(_timing(facts, found)), *tables)


def device(facts: Facts) -> tuple[str, ...]:
    """The layers that the accelerator computes, and its counters where something ran."""
    found = facts.beside
    if found is None:
        return ()
    heads: Row = ["layer", *map(number, ("tasks", "cycles", "use", "bytes copied"))]
    rows: list[Row] = [[name, *map(number, cells)] for name, *cells in layer_cells(found)]
    refused = [f"{layer} stays on the processor: {reason}." for layer, reason in found.refused]
    caption = f"Layers that {found.name} computes, in its own cycles, estimated; use is the share of its multipliers"
    return (
        paragraph(" ".join(line.removeprefix("device").strip() for line in use_lines(found)) + "."),
        table(caption, heads, rows),
        bullets(refused),
    )


def _timing(facts: Facts, found: Check) -> str:
    if found.mean is None or found.low is None or found.high is None:
        return ""
    time = duration(found.mean, facts.unit, found.hertz)
    clock = f" at {found.hertz / 1e6:g} MHz" if time and facts.unit == "cycles" else ""
    spread = f", between {whole(found.low)} and {whole(found.high)}" if found.low < found.high else ", every time"
    part = f" {found.modelled}" if found.modelled else ""
    return f"One run takes {whole(found.mean)} {facts.unit}{f' = {time}' if time else ''}{clock}{spread}.{part}"


def _gates(gates: Sequence[Gate]) -> str:
    rows: list[Row] = [
        [
            Cell("pass" if gate.passed else "FAIL", tone="good" if gate.passed else "bad"),
            Cell(gate.gate, gate.where),
            gate.detail,
        ]
        for gate in gates
    ]
    return table("Gates: the requirements of the check", ["verdict", "gate", "found"], rows)


def _comparisons(output: Output) -> str:
    words = {"reference": "integer or float reference", "float": "float model", "golden": "golden outputs"}
    heads: Row = ["against", *(number(n) for n in ("differ", "rmse", "mae", "largest error", "cosine", "same class"))]
    rows: list[Row] = [_comparison(words.get(c.against, c.against), c) for c in output.comparisons]
    return table(f"Output {output.name}", heads, rows)


def _comparison(against: str, c: Comparison) -> Row:
    return [
        Cell(against, "in integers" if c.differ is not None else ""),
        number(f"{c.differ:,}" if c.differ is not None else ""),
        number(figures(c.rmse)),
        number(figures(c.mae)),
        number(figures(c.max_error)),
        number(f"{c.cosine:.6f}"),
        number(percent(c.agreement, 2) if c.agreement is not None else ""),
    ]


def _accuracy(output: Output) -> list[str]:
    if output.accuracy is None or output.confusion is None:
        return []
    plain = f", of the float model {percent(output.float_accuracy, 2)}" if output.float_accuracy is not None else ""
    return [
        paragraph(f"Accuracy on the labels {percent(output.accuracy, 2)}{plain}."),
        _matrix(output.confusion) if len(output.confusion) <= MOST_CLASSES else _confused(output.confusion),
    ]


def _matrix(matrix: Sequence[Sequence[int]]) -> str:
    rows: list[Row] = []
    for label, counts in enumerate(matrix):
        most = sum(counts) or 1
        cells = [
            Cell(str(c) if c else "·", number=True, heat=0.75 * c / most, tone="hit" if k == label else "")
            for k, c in enumerate(counts)
        ]
        rows.append([str(label), *cells, number(percent(counts[label] / most) if sum(counts) else "")])
    heads: Row = ["label \\ class", *(number(str(k)) for k in range(len(matrix))), number("right")]
    return table(
        "Confusion matrix: one row per label, one column per predicted class", heads, rows, css="confusion fit"
    )


def _confused(matrix: Sequence[Sequence[int]]) -> str:
    pairs = [(n, a, b) for a, row in enumerate(matrix) for b, n in enumerate(row) if n and a != b]
    pairs.sort(key=lambda pair: (-pair[0], pair[1:]))
    rows: list[Row] = [[str(a), str(b), number(f"{n:,}")] for n, a, b in pairs[:CONFUSED]]
    caption = f"Most frequent confusions, of {len(matrix):,} classes"
    return table(caption, ["label", "class found", number("samples")], rows) if rows else paragraph("None is confused.")


def audit(facts: Facts) -> tuple[str, ...]:
    found = facts.audit
    words = (
        f"The model's objects comply with the policy “{found.policy}”: no forbidden symbol, relocation or instruction."
    )
    rows: list[Row] = [[Cell("warning", tone="warn"), text] for text in found.warnings]
    rows += [["supplied", Cell(text, "from nnbuild's own library")] for text in found.supplied]
    rows += [["note", text] for text in found.notes]
    return (paragraph(words), table("Findings of the audit", ["kind", "finding"], rows) if rows else "")


def built(facts: Facts) -> tuple[str, ...]:
    origin = facts.origin
    versions: list[Row] = [[name, Cell(value, code=True)] for name, value in origin.versions]
    versions.append(["computation", Cell(origin.digest, code=True)])
    options: list[Row] = [[name.replace("_", " "), Cell(value, code=True)] for name, value in origin.options if value]
    files: list[Row] = [
        [file.name, file.role, number(f"{file.size:,}"), Cell(file.sha256, code=True, tone="hash")]
        for file in origin.files
    ]
    again = "The same files, options and versions reproduce the same bytes"
    again += "; measured nanoseconds differ from run to run." if facts.unit == "ns" else "."
    return (
        f"<pre><code>{escape(origin.command)}</code></pre>",
        paragraph(again),
        table("Versions", ["what", "which"], versions, css="fit"),
        table("Options", ["option", "value"], options, css="fit"),
        table("Files", ["file", "role", number("bytes"), "SHA-256"], files),
    )
