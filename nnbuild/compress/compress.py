"""The whole of it: what is wished for, layer by layer, what came of it, and what that cost in accuracy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.compress.candidates import (
    DENSITIES,
    FEWEST,
    FEWEST_INPUTS,
    FEWEST_OUTPUTS,
    LIMITS,
    VALUES,
    pattern_for,
    prunable,
    roles_by_op,
    sparsest,
    trials,
)
from nnbuild.compress.classes import Classes, classes_of
from nnbuild.compress.graph import Made, Specs, compressed
from nnbuild.compress.layer import Spec
from nnbuild.compress.measure import Measure, measure_of, outputs_of
from nnbuild.compress.options import AUTO, BY_LAYER, Wishes
from nnbuild.compress.patterns import UNSTRUCTURED
from nnbuild.compress.price import Board
from nnbuild.compress.record import Compression, Stage, described
from nnbuild.compress.samples import Samples, samples_of
from nnbuild.compress.search import Search
from nnbuild.compress.values import LARGEST
from nnbuild.compress.weight_matrices import weighted
from nnbuild.model.graph import Graph
from nnbuild.ops.site import Site, site_of
from nnbuild.quantize.data import Source

TYPICAL = 0.2
"""The density for which a search chooses a layer's pattern."""

Heard = Callable[[str], None]


@dataclass(eq=False)
class _Task:
    """`original` are floats, or the same graph as `dense`."""

    original: Graph
    dense: Graph
    wishes: Wishes
    board: Board
    samples: Samples
    measure: Measure
    classes: Classes | None
    heard: Heard

    def value(self, graph: Graph) -> float:
        return self.measure.value(outputs_of(graph, self.samples.measured))

    def asked(self) -> Made:
        """Every layer as it was asked for."""
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
        values = wishes.share if has_more(site, role, wishes.share) else None
        return Spec(density, pattern, values, wishes.most_of(site.op.layer or site.op.name))

    def by_layer(self) -> Made:
        """Every layer pruned as far as it alone loses little."""
        chosen = sparsest(self.dense, self.samples.fitted, self._forms, self.heard)
        return self._made({(op, r): spec for op, spec in chosen.items() for r in roles_by_op(self.dense)[op]})

    def searched(self) -> Made:
        """As a budget allows."""
        wishes = self.wishes
        found = trials(self.dense, self.samples.fitted, self._options, self.board, self.heard)
        first = self.value(self.original)
        search = Search(self.dense, self.made, self.board, lambda g: first - self.value(g), self.heard)
        return search.within(found, wishes.flash, wishes.drop).made

    def _made(self, specs: Specs) -> Made:
        if not any(spec.changes for spec in specs.values()):
            raise UsageError(self.wishes.said, _unchanged(self.wishes), "Leave it out.")
        return self.made(specs, self.heard)

    def made(self, specs: Specs, heard: Heard) -> Made:
        found = compressed(self.dense, self.samples.fitted, specs, heard)
        return found if self.classes is None or not found.lost else replace(found, graph=self.classes.kept(found.graph))

    def _forms(self, site: Site, roles: list[str]) -> list[Spec]:
        """A layer that is pruned as far as it goes, in all densities."""
        values = self.wishes.share if all(has_more(site, role, self.wishes.share) for role in roles) else None
        densities = [None, *DENSITIES] if all(prunable(site, role) for role in roles) else [None]
        most = self.wishes.most_of(site.op.layer or site.op.name)
        return [Spec(density, UNSTRUCTURED, values, most) for density in densities]

    def _options(self, site: Site, roles: list[str]) -> list[Spec]:
        """What a search may do to a layer: whatever was named, or all there is where nothing was."""
        wishes = self.wishes
        free = not (wishes.prunes or wishes.share or wishes.narrows)
        forms = [
            Spec(values=n) for n in (VALUES if free else (wishes.share,)) if all(has_more(site, r, n) for r in roles)
        ]
        most = wishes.most_of(site.op.layer or site.op.name)
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


def _unchanged(wishes: Wishes) -> str:
    causes = []
    if wishes.prunes:
        least = f"{FEWEST_INPUTS} inputs, {FEWEST_OUTPUTS} outputs and {FEWEST} weights"
        causes.append(f"no layer that is to be pruned has the {least} which that takes at least")
    if wishes.share:
        causes.append(f"no layer has more than {wishes.share} different values in {4 * wishes.share} weights or more")
    return f"{', and '.join(causes)}."


def has_more(site: Site, role: str, count: int | None) -> bool:
    """Whether a layer has more different weights than so many, and enough of them for a list to pay."""
    data = site.constant(role)
    return count is not None and len(np.unique(data)) > count and data.size >= 4 * count


def _site(graph: Graph, name: str) -> Site:
    return site_of(graph, next(op for op in graph.ops if op.name == name))


def compress(
    original: Graph, dense: Graph, source: Source, wishes: Wishes, board: Board, heard: Heard
) -> tuple[Graph, Compression]:
    _refuse(dense, wishes)
    samples = samples_of(source, original)
    outputs = outputs_of(original, samples.measured)
    measure = measure_of(original, samples.measured, outputs, samples.labels)
    classes = classes_of(dense, samples.fitted)
    task = _Task(original, dense, wishes, board, samples, measure, classes, heard)
    if wishes.searched:
        made = task.searched()
    elif wishes.prune == BY_LAYER:
        made = task.by_layer()
    else:
        made = task.asked()
    return made.graph, _record(task, made)


def _refuse(dense: Graph, wishes: Wishes) -> None:
    layers = {op.layer or op.name for op, _ in weighted(dense)}
    if not layers:
        raise UsageError(
            wishes.said,
            "the model has no weights of 8 bits.",
            "Leave it out, or give --quantize int8 to a model with dense layers or convolutions.",
        )
    for option, named in {"--prune": wishes.by_layer, "--weights-bits": wishes.bits_by_layer}.items():
        for layer in named:
            if layer not in layers:
                names = ", ".join(sorted(layers)[:12])
                cause = "the model has no such layer with weights of 8 bits."
                raise UsageError(f"{option} {layer}=", cause, f"Those it has: {names}")


def _record(task: _Task, made: Made) -> Compression:
    graphs = {"float": task.original, "int8": task.dense, "compressed": made.graph}
    if task.original is task.dense:
        del graphs["float"]
    path = tuple(Stage(name, task.value(graph)) for name, graph in graphs.items())
    before, after = task.board.whole(task.dense), task.board.whole(made.graph)
    return Compression(
        described(made.graph, made, before.by_op, after.by_op),
        task.measure.name,
        task.samples.count,
        task.samples.apart,
        path,
        before.bytes,
        after.bytes,
        task.wishes.said,
        task.samples.unlabelled,
    )
