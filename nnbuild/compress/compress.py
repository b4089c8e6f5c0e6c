"""Compresses a model's weights as requested, and records the result and its cost in accuracy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.compress.candidates import (
    DENSITIES,
    LIMITS,
    MIN_INPUTS,
    MIN_OUTPUTS,
    MIN_WEIGHTS,
    VALUES,
    find_candidates,
    pattern_for,
    prunable,
    roles_by_op,
    sparsest,
)
from nnbuild.compress.classes import Classes, classes_of
from nnbuild.compress.graph import Compressed, Specs, compressed
from nnbuild.compress.layer import Spec
from nnbuild.compress.measure import Measure, measure_of, outputs_of
from nnbuild.compress.options import AUTO, BY_LAYER, WeightOptions
from nnbuild.compress.patterns import UNSTRUCTURED
from nnbuild.compress.price import Board
from nnbuild.compress.record import Compression, Stage, described
from nnbuild.compress.samples import Samples, samples_of
from nnbuild.compress.search import Search
from nnbuild.compress.values import LARGEST
from nnbuild.compress.weight_matrices import weight_roles
from nnbuild.model.graph import Graph
from nnbuild.ops.site import Site, site_of
from nnbuild.quantize.data import Source

TYPICAL = 0.2
"""The density at which a search chooses a layer's pattern."""

Report = Callable[[str], None]


@dataclass(eq=False)
class _Task:
    """`original` is the float graph, or the same graph as `dense`."""

    original: Graph
    dense: Graph
    wishes: WeightOptions
    board: Board
    samples: Samples
    measure: Measure
    classes: Classes | None
    report: Report

    def value(self, graph: Graph) -> float:
        return self.measure.value(outputs_of(graph, self.samples.measured))

    def asked(self) -> Compressed:
        """Compresses every layer as requested."""
        specs: dict[tuple[str, str], Spec] = {}
        for op, roles in roles_by_op(self.dense).items():
            site = _site(self.dense, op)
            specs |= {(op, role): self._spec(site, [r for r in roles if prunable(site, r)], role) for role in roles}
        return self._made(specs)

    def _spec(self, site: Site, roles: list[str], role: str) -> Spec:
        wishes = self.wishes
        share = wishes.share_of(site.op.layer or site.op.name)
        pattern, density = UNSTRUCTURED, None
        if share and role in roles:
            density = 1 - share
            pattern = pattern_for(site, roles, density, self.board)
        values = wishes.share if has_more_values(site, role, wishes.share) else None
        return Spec(density, pattern, values, wishes.max_integer(site.op.layer or site.op.name))

    def by_layer(self) -> Compressed:
        """Prunes every layer as far as it alone loses little."""
        chosen = sparsest(self.dense, self.samples.fitted, self._forms, self.report)
        return self._made({(op, r): spec for op, spec in chosen.items() for r in roles_by_op(self.dense)[op]})

    def searched(self) -> Compressed:
        """Compresses as the budget allows; not at all where the model fits as it is."""
        wishes = self.wishes
        room = None if wishes.changes_weights or wishes.drop is not None else wishes.flash
        if room is not None and self.board.whole(self.dense).bytes <= room:
            return Compressed(self.dense, {}, {})
        found = find_candidates(self.dense, self.samples.fitted, self._options, self.board, self.report)
        first = self.value(self.original)
        search = Search(self.dense, self.made, self.board, lambda g: first - self.value(g), self.report)
        return search.within(found, wishes.flash, wishes.drop).made

    def _made(self, specs: Specs) -> Compressed:
        if not any(spec.changes for spec in specs.values()):
            raise UsageError(self.wishes.given, _unchanged(self.wishes), "Leave it out.")
        return self.made(specs, self.report)

    def made(self, specs: Specs, report: Report) -> Compressed:
        found = compressed(self.dense, self.samples.fitted, specs, report)
        return (
            found
            if self.classes is None or not found.lost
            else replace(found, graph=self.classes.with_adjusted_bias(found.graph))
        )

    def _forms(self, site: Site, roles: list[str]) -> list[Spec]:
        """A layer's specs in all densities."""
        values = self.wishes.share if all(has_more_values(site, role, self.wishes.share) for role in roles) else None
        densities = [None, *DENSITIES] if all(prunable(site, role) for role in roles) else [None]
        most = self.wishes.max_integer(site.op.layer or site.op.name)
        return [Spec(density, UNSTRUCTURED, values, most) for density in densities]

    def _options(self, site: Site, roles: list[str]) -> list[Spec]:
        """A layer's specs for a search: those requested, or all where none was."""
        wishes = self.wishes
        free = not (wishes.prunes or wishes.share or wishes.limits_bits)
        forms = [
            Spec(values=n)
            for n in (VALUES if free else (wishes.share,))
            if all(has_more_values(site, r, n) for r in roles)
        ]
        most = wishes.max_integer(site.op.layer or site.op.name)
        limits = LIMITS if free or wishes.bits == AUTO else (most,) if most < LARGEST else ()
        forms += [Spec(most=most) for most in limits]
        share = wishes.share_of(site.op.layer or site.op.name)
        densities = (1 - share,) if share else DENSITIES if free or wishes.prune in (AUTO, BY_LAYER) else ()
        if not densities or not all(prunable(site, role) for role in roles):
            return forms
        patterns = dict.fromkeys([UNSTRUCTURED, pattern_for(site, roles, TYPICAL, self.board)])
        fewer = [form for form in forms if form.values is not None][:1] if free or wishes.share else []
        return forms + [
            Spec(density, pattern, form.values)
            for pattern in patterns
            for form in [Spec(), *fewer]
            for density in densities
        ]


def _unchanged(wishes: WeightOptions) -> str:
    causes = []
    if wishes.prunes:
        least = f"{MIN_INPUTS} inputs, {MIN_OUTPUTS} outputs and {MIN_WEIGHTS} weights"
        causes.append(f"no layer to be pruned has the required {least}")
    if wishes.share:
        causes.append(f"no layer has more than {wishes.share} different values in {4 * wishes.share} weights or more")
    return f"{', and '.join(causes)}."


def has_more_values(site: Site, role: str, count: int | None) -> bool:
    """Whether a layer has more than `count` different weights, and enough weights for a codebook to pay."""
    data = site.constant(role)
    return count is not None and len(np.unique(data)) > count and data.size >= 4 * count


def _site(graph: Graph, name: str) -> Site:
    return site_of(graph, next(op for op in graph.ops if op.name == name))


def compress(
    original: Graph, dense: Graph, source: Source, wishes: WeightOptions, board: Board, report: Report
) -> tuple[Graph, Compression]:
    _refuse(dense, wishes)
    samples = samples_of(source, original)
    outputs = outputs_of(original, samples.measured)
    measure = measure_of(original, samples.measured, outputs, samples.labels)
    classes = classes_of(dense, samples.fitted)
    task = _Task(original, dense, wishes, board, samples, measure, classes, report)
    if wishes.needs_search:
        made = task.searched()
    elif wishes.prune == BY_LAYER:
        made = task.by_layer()
    else:
        made = task.asked()
    return made.graph, _record(task, made)


def _refuse(dense: Graph, wishes: WeightOptions) -> None:
    layers = {op.layer or op.name for op, _ in weight_roles(dense)}
    if not layers:
        raise UsageError(
            wishes.given,
            "the model has no 8-bit weights.",
            "Leave it out, or give --quantize int8, without --keep, to a model with dense layers or convolutions.",
        )
    for option, named in {"--prune": wishes.by_layer, "--weights-bits": wishes.bits_by_layer}.items():
        for layer in named:
            if layer not in layers:
                names = ", ".join(sorted(layers)[:12])
                cause = "the model has no such layer with 8-bit weights."
                raise UsageError(f"{option} {layer}=", cause, f"Its layers: {names}")


def _record(task: _Task, made: Compressed) -> Compression:
    given = [] if task.original is task.dense else [("float", task.original)]
    graphs = [*given, (_format(task.dense), task.dense), ("compressed", made.graph)]
    path = tuple(Stage(name, task.value(graph)) for name, graph in graphs)
    before, after = task.board.whole(task.dense), task.board.whole(made.graph)
    return Compression(
        described(made.graph, made, before.by_op, after.by_op),
        task.measure.name,
        task.samples.count,
        task.samples.apart,
        path,
        before.bytes,
        after.bytes,
        task.wishes.given,
        task.samples.unlabelled,
    )


def _format(graph: Graph) -> str:
    """The format of most operations with 8-bit weights: float, int8 or int16."""
    formats = Counter(graph.tensors[op.outputs[0]].dtype for op, _ in weight_roles(graph))
    return formats.most_common(1)[0][0].replace("float32", "float")
