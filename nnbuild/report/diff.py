"""Differences between two builds: how they were built, their sizes, their costs, and their accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nnbuild.report.facts import Facts, Layer
from nnbuild.report.number_format import figures, whole
from nnbuild.report.table import render


@dataclass(frozen=True)
class Change:
    """A difference in how they were built; empty where only one of them has it."""

    what: str
    a: str
    b: str


@dataclass(frozen=True)
class Figure:
    """A number of both builds. `compared` only if both have it, in one unit."""

    name: str
    unit: str
    a: float | None
    b: float | None
    more_is_better: bool = False
    compared: bool = True

    @property
    def change(self) -> float | None:
        """As a share of a; for shares, the difference itself."""
        if not self.compared or self.a is None or self.b is None:
            return None
        if self.unit == "share":
            return self.b - self.a
        return (self.b - self.a) / self.a if self.a else (0.0 if self.b == self.a else None)

    @property
    def worse(self) -> float:
        """By how much b is worse; 0 if it is not. From zero to anything is infinitely worse."""
        if self.change is None:
            grown = self.compared and self.a == 0 and bool(self.b)
            return float("inf") if grown and not self.more_is_better else 0.0
        return max(0.0, -self.change if self.more_is_better else self.change)


@dataclass(frozen=True)
class LayerChange:
    """A layer of either build; None where a build lacks it."""

    name: str
    op: str
    kernel_a: str | None
    kernel_b: str | None
    cost_a: float | None
    cost_b: float | None
    bytes_a: int | None
    bytes_b: int | None


@dataclass(frozen=True)
class Difference:
    changes: tuple[Change, ...]
    figures: tuple[Figure, ...]
    layers: tuple[LayerChange, ...]
    unit: str
    """The unit of the layers' costs; empty where the builds' units differ."""


def difference(a: Facts, b: Facts) -> Difference:
    unit = a.unit if a.unit == b.unit else ""
    return Difference(tuple(_changes(a, b)), tuple(_figures(a, b)), tuple(_layers(a, b, bool(unit))), unit)


def _changes(a: Facts, b: Facts) -> Iterator[Change]:
    """Options, versions and files, in this order."""
    pairs = [(_described(a), _described(b)), (dict(a.origin.options), dict(b.origin.options))]
    pairs += [(dict(a.origin.versions), dict(b.origin.versions)), (_inputs(a), _inputs(b))]
    pairs += [({"computation": a.origin.digest}, {"computation": b.origin.digest})]
    seen = set()
    for left, right in pairs:
        for what in dict.fromkeys((*left, *right)):
            if what not in seen and left.get(what, "") != right.get(what, ""):
                seen.add(what)
                yield Change(what.replace("_", " "), left.get(what, ""), right.get(what, ""))


def _described(facts: Facts) -> dict[str, str]:
    return {"name": facts.name, "board": facts.board, "precision": facts.precision}


def _inputs(facts: Facts) -> dict[str, str]:
    made = ("generated", "program")
    return {f"{file.role} file": file.sha256[:16] for file in facts.origin.files if file.role not in made}


def _figures(a: Facts, b: Facts) -> Iterator[Figure]:
    same_unit = a.unit == b.unit
    unit = a.unit if same_unit else f"{a.unit} and {b.unit}"
    yield Figure("one run", unit, a.cost, b.cost, compared=same_unit)
    yield Figure("multiply-accumulates", "MACs", a.macs, b.macs)
    for name in ("flash_code", "flash_weights", "arena", "state"):
        yield Figure(name.replace("_", " "), "bytes", getattr(a, name), getattr(b, name))
    yield Figure("stack of a run", "bytes", a.stack.bound, b.stack.bound)
    left, right = ({memory.name: memory.used for memory in facts.memories} for facts in (a, b))
    for name in dict.fromkeys((*left, *right)):
        yield Figure(f"{name} in use", "bytes", left.get(name), right.get(name))
    yield Figure("accuracy", "share", a.accuracy, b.accuracy, more_is_better=True)
    yield Figure("same class as float", "share", a.agreement, b.agreement, more_is_better=True)
    encodings = [_by_encoding(facts) for facts in (a, b)]
    for name in sorted(encodings[0].keys() | encodings[1].keys()):
        left_bytes, right_bytes = (found.get(name, 0) for found in encodings)
        yield Figure(f"weights as {name}", "bytes", left_bytes, right_bytes, compared=False)
    yield Figure("weights that are zero", "share", _zeros(a), _zeros(b), compared=False)
    same = a.weights is not None and b.weights is not None and a.weights.measure == b.weights.measure
    yield Figure("with the weights stored", "%", _stored(a), _stored(b), more_is_better=True, compared=same)
    yield Figure("quantization noise", "dB", _noise(a), _noise(b), more_is_better=True)


def _zeros(facts: Facts) -> float | None:
    return facts.weights.sparsity if facts.weights is not None else None


def _stored(facts: Facts) -> float | None:
    """The accuracy of the stored weights on the calibration samples, where any were changed."""
    path = facts.weights.path if facts.weights is not None else ()
    return path[-1].value if path else None


def _by_encoding(facts: Facts) -> dict[str, int]:
    """Bytes of weights in each special encoding."""
    found: dict[str, int] = {}
    for layer in facts.layers:
        if layer.encoding:
            found[layer.encoding] = found.get(layer.encoding, 0) + layer.weights
    return found


def _noise(facts: Facts) -> float | None:
    """The signal-to-noise ratio of the noisiest layer."""
    known = facts.quantization.layers if facts.quantization is not None else ()
    return min((layer.sqnr for layer in known if layer.sqnr is not None), default=None)


def _layers(a: Facts, b: Facts, comparable: bool) -> Iterator[LayerChange]:
    """Layers that differ, in execution order; matched by name and operation, and by position among equal ones."""
    left, right = _keyed(a.layers), _keyed(b.layers)
    for key in dict.fromkeys((*left, *right)):
        one, other = left.get(key), right.get(key)
        cost_a, cost_b = (layer.weight if layer and comparable else None for layer in (one, other))
        bytes_a, bytes_b = (layer.weights + layer.code if layer else None for layer in (one, other))
        kernel_a, kernel_b = (layer.kernel if layer else None for layer in (one, other))
        row = LayerChange(key[0], key[1], kernel_a, kernel_b, cost_a, cost_b, bytes_a, bytes_b)
        if (row.kernel_a, row.cost_a, row.bytes_a) != (row.kernel_b, row.cost_b, row.bytes_b):
            yield row


def _keyed(layers: Sequence[Layer]) -> dict[tuple[str, str, int], Layer]:
    found: dict[tuple[str, str, int], Layer] = {}
    for layer in layers:
        count = sum(1 for name, op, _ in found if (name, op) == (layer.name, layer.op))
        found[layer.name, layer.op, count] = layer
    return found


def worst(found: Difference) -> Figure:
    return max(found.figures, key=lambda figure: figure.worse)


def as_object(found: Difference) -> dict[str, Any]:
    return {
        "changes": [asdict(change) for change in found.changes],
        "figures": [{**asdict(figure), "change": figure.change} for figure in found.figures],
        "layers": [asdict(layer) for layer in found.layers],
        "unit": found.unit or None,
    }


def as_text(found: Difference) -> str:
    parts = []
    if found.changes:
        rows = [[change.what, change.a or "-", change.b or "-"] for change in found.changes]
        parts.append(render(["differs", "A", "B"], rows, 3))
    shown = [figure for figure in found.figures if figure.a or figure.b]
    parts.append(render(["figure", "A", "B", "change"], [_figure_row(figure) for figure in shown], 1))
    if found.layers:
        heads = [
            "layer",
            "op",
            "kernel A",
            "kernel B",
            f"{found.unit or 'cost'} A",
            "B",
            "change",
            "bytes A",
            "B",
            "change",
        ]
        parts.append(render(heads, [_layer_row(layer) for layer in found.layers], 4))
    if not found.unit:
        parts.append("The costs are in different units and cannot be compared.")
    elif not found.changes and not any(figure.change for figure in found.figures):
        parts.append("A and B are the same build.")
    return "\n\n".join(parts)


def _figure_row(figure: Figure) -> list[str]:
    values = [_value(value, figure.unit) for value in (figure.a, figure.b)]
    change = "" if figure.change is None else _change(figure.change, "points" if figure.unit == "share" else "%")
    unit = "" if figure.unit == "share" else f", {figure.unit}"
    return [f"{figure.name}{unit}", *values, change]


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "share":
        return f"{100 * value:.2f} %"
    return figures(value) if unit == "dB" else whole(value)


def _change(change: float, word: str) -> str:
    return "=" if change == 0 else f"{100 * change:+.2f} {word}"


def _layer_row(layer: LayerChange) -> list[str]:
    cost, size = Figure("", "", layer.cost_a, layer.cost_b), Figure("", "", layer.bytes_a, layer.bytes_b)
    return [
        layer.name,
        layer.op,
        layer.kernel_a or "-",
        layer.kernel_b or "-",
        *(_value(value, "") for value in (layer.cost_a, layer.cost_b)),
        _change(cost.change, "%") if cost.change is not None else "",
        *(_value(value, "") for value in (layer.bytes_a, layer.bytes_b)),
        _change(size.change, "%") if size.change is not None else "",
    ]
