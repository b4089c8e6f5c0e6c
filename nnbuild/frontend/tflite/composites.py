"""Operators that call subgraphs: each is replaced by the operators of its subgraph, those of a loop for every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from nnbuild.frontend.tflite import loops
from nnbuild.frontend.tflite.loop_cells import Imported, of_a_cell
from nnbuild.frontend.tflite.loops import within
from nnbuild.frontend.tflite.records import Model, Operator, Tensor

KIND = "STABLEHLO_COMPOSITE"
DEEPEST, MOST = 16, 20_000
"""Limits of nesting and of all operators, so that a small file cannot claim much memory."""
Called = Callable[[Operator, int], Model]


def inlined(model: Model, called: Called, imported: Imported) -> Model:
    """The model without composites and loops; `called` reads the subgraph that an operator names, `imported` imports a
    loop's body."""
    work = _Inlining(model, called, imported)
    for operator in model.operators:
        work.put(operator, 0)
    outputs = tuple(work.same.get(made.index, made) for made in model.outputs)
    return replace(model, outputs=outputs, operators=tuple(work.operators), tensors=tuple(work.tensors))


class _Inlining:
    def __init__(self, model: Model, called: Called, imported: Imported) -> None:
        self.called = called
        self.imported = imported
        self.same: dict[int, Tensor] = {}
        """Results of loops that are other tensors."""
        self.tensors = list(model.tensors)
        self.operators: list[Operator] = []
        self.seen = 0

    def put(self, operator: Operator, depth: int) -> None:
        self.seen += 1
        if not self.same.keys().isdisjoint(given.index for given in operator.inputs if given is not None):
            inputs = tuple(None if t is None else self.same.get(t.index, t) for t in operator.inputs)
            operator = replace(operator, inputs=inputs)
        if operator.kind not in (KIND, loops.KIND):
            self.operators.append(operator)
            return
        if depth == DEEPEST or self.seen > MOST:
            what = "composites" if operator.kind == KIND else "loops"
            raise operator.error(f"its {what} are nested {depth} deep, of {self.seen} operators.")
        if operator.kind == loops.KIND:
            self._put_loop(operator, depth)
            return
        if operator.options_kind != "StableHLOCompositeOptions" or operator.options is None:
            raise operator.error("it does not name the subgraph that computes it.")
        body = self.called(operator, int(operator.options.DecompositionSubgraphIndex()))
        swapped = self._swapped(operator, body)
        for inner in body.operators:
            self.put(within(inner, operator.index, swapped), depth + 1)

    def _put_loop(self, operator: Operator, depth: int) -> None:
        if operator.options_kind != "WhileOptions" or operator.options is None:
            raise operator.error("it does not name its subgraphs.")
        options = operator.options
        cond, body = (self.called(operator, int(n)) for n in (options.CondSubgraphIndex(), options.BodySubgraphIndex()))
        loop = loops.loop_of(operator, cond, body)
        steps = of_a_cell(loop, self.imported, self._fresh) or loops.unrolled(loop, self._fresh)
        for step in steps:
            if isinstance(step, Operator):
                self.put(step, depth + 1)
            else:
                self.same |= step

    def _fresh(self, tensor: Tensor, name: str) -> Tensor:
        made = replace(tensor, index=len(self.tensors), name=f"{tensor.name}/{name}"[-100:])
        self.tensors.append(made)
        return made

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
