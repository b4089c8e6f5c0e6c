"""Composite operators: each is replaced by the operators of its subgraph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from nnbuild.frontend.tflite.records import Model, Operator, Tensor

KIND = "STABLEHLO_COMPOSITE"
DEEPEST, MOST = 16, 20_000
"""Limits of nesting and of all operators, so that a small file cannot claim much memory."""
Called = Callable[[Operator, int], Model]


def inlined(model: Model, called: Called) -> Model:
    """The model without composites; `called` reads the subgraph that an operator names."""
    work = _Inlining(model, called)
    for operator in model.operators:
        work.put(operator, 0)
    return replace(model, operators=tuple(work.operators), tensors=tuple(work.tensors))


class _Inlining:
    def __init__(self, model: Model, called: Called) -> None:
        self.called = called
        self.tensors = list(model.tensors)
        self.operators: list[Operator] = []
        self.seen = 0

    def put(self, operator: Operator, depth: int) -> None:
        self.seen += 1
        if operator.kind != KIND:
            self.operators.append(operator)
            return
        if depth == DEEPEST or self.seen > MOST:
            raise operator.error(f"its composites are nested {depth} deep, of {self.seen} operators.")
        if operator.options_kind != "StableHLOCompositeOptions" or operator.options is None:
            raise operator.error("it does not name the subgraph that computes it.")
        body = self.called(operator, int(operator.options.DecompositionSubgraphIndex()))
        swapped = self._swapped(operator, body)
        for inner in body.operators:
            self.put(_within(inner, operator.index, swapped), depth + 1)

    def _swapped(self, operator: Operator, body: Model) -> Mapping[int, Tensor | None]:
        """Replacements for the subgraph's tensors: the operator's own for inputs and outputs, copies for inner ones."""
        if (len(body.inputs), len(body.outputs)) != (len(operator.inputs), len(operator.outputs)):
            raise operator.error(
                f"its subgraph takes {len(body.inputs)} tensors and makes {len(body.outputs)}, "
                f"and it {len(operator.inputs)} and {len(operator.outputs)}."
            )
        first, name = len(self.tensors), operator.outputs[0].name
        copies = [replace(t, index=first + i, name=f"{name}/{t.name}"[:100]) for i, t in enumerate(body.tensors)]
        self.tensors += copies
        swapped: dict[int, Tensor | None] = dict(enumerate(copies))
        swapped |= {inside.index: given for inside, given in zip(body.inputs, operator.inputs, strict=True)}
        for inside, made in zip(body.outputs, operator.outputs, strict=True):
            if swapped[inside.index] is not copies[inside.index] or inside.data is not None:
                raise operator.error(f"its subgraph does not compute its output {made.name!r}.")
            swapped[inside.index] = made
        return swapped


def _within(inner: Operator, index: int, swapped: Mapping[int, Tensor | None]) -> Operator:
    """An operator of the subgraph, with the caller's tensors and position."""
    outputs = [swapped[t.index] for t in inner.outputs]
    inside = [swapped[t.index] for t in inner.intermediates]
    if None in outputs or None in inside:
        raise inner.error("it writes to a missing input.")
    return replace(
        inner,
        index=index,
        inputs=tuple(None if t is None else swapped[t.index] for t in inner.inputs),
        outputs=tuple(t for t in outputs if t is not None),
        intermediates=tuple(t for t in inside if t is not None),
    )
