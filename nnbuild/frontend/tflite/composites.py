"""Operators that call subgraphs: each is replaced by the operators of its subgraph, those of a loop for every step.

Of an IF both branches are computed, and the condition selects among their results; a constant one leaves one branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from nnbuild.frontend.assembly import SMALLER
from nnbuild.frontend.tflite import loops
from nnbuild.frontend.tflite.loop_cells import Imported, of_a_cell
from nnbuild.frontend.tflite.loops import within
from nnbuild.frontend.tflite.records import Model, Operator, Tensor

KIND = "STABLEHLO_COMPOSITE"
CHOICE = "IF"
NESTED = {KIND: "composites", loops.KIND: "loops", CHOICE: "branches"}
EFFECTS = ("ASSIGN_VARIABLE", "CALL_ONCE", "RNN", "SVDF")
"""Operators that keep something for the next run: a branch that is not chosen must not."""
DEEPEST, MOST = 16, 20_000
"""Limits of nesting and of all operators, so that a small file cannot claim much memory."""
KEPT = "Keep the state outside of tf.cond."
MOST_TENSORS = 10 * MOST
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
        self.branches = 0
        """How many branches what is read now is in."""

    def put(self, operator: Operator, depth: int) -> None:
        self.seen += 1
        if not self.same.keys().isdisjoint(given.index for given in operator.inputs if given is not None):
            inputs = tuple(None if t is None else self.same.get(t.index, t) for t in operator.inputs)
            operator = replace(operator, inputs=inputs)
        if self.branches and operator.kind in EFFECTS:
            raise operator.error("it keeps a state in a branch, and nnbuild computes both branches.", KEPT)
        if operator.kind not in NESTED:
            self.operators.append(operator)
            return
        if depth == DEEPEST or self.seen > MOST:
            what = NESTED[operator.kind]
            raise operator.error(f"its {what} are nested {depth} deep, of {self.seen} operators.")
        puts = {KIND: self._put_composite, loops.KIND: self._put_loop, CHOICE: self._put_choice}
        puts[operator.kind](operator, depth)

    def _put_composite(self, operator: Operator, depth: int) -> None:
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

    def _put_choice(self, operator: Operator, depth: int) -> None:
        if operator.options_kind != "IfOptions" or operator.options is None or not operator.inputs[:1]:
            raise operator.error("it does not name its subgraphs.")
        condition, options = operator.inputs[0], operator.options
        if condition is None or condition.dtype != "bool" or prod(condition.shape) != 1:
            raise operator.error("its condition is not one truth value.")
        numbers = int(options.ThenSubgraphIndex()), int(options.ElseSubgraphIndex())
        if condition.data is not None:
            number = numbers[0] if condition.values().any() else numbers[1]
            made = self._put_branch(operator, number, depth, operator.outputs)
            ends = zip(operator.outputs, made, strict=True)
            self.same |= {out.index: value for out, value in ends if value is not out}
            return
        self.branches += 1
        branches = [self._put_branch(operator, number, depth) for number in numbers]
        self.branches -= 1
        for out, *values in zip(operator.outputs, *branches, strict=True):
            self.operators.append(Operator(operator.index, "SELECT_V2", (condition, *values), (out,)))

    def _put_branch(self, operator: Operator, number: int, depth: int, named: tuple[Tensor, ...] = ()) -> list[Tensor]:
        """The tensors that hold a branch's results, those `named` where the branch computes them."""
        body = self.called(operator, number)
        _expect_ends(operator, body, operator.inputs[1:])
        copies = self._copies(operator, body)
        swapped = {**copies, **_given(body, operator.inputs[1:])}
        for inside, out in zip(body.outputs, named, strict=False):
            if swapped[inside.index] is copies[inside.index] and inside.data is None:
                swapped[inside.index] = out
        for inner in body.operators:
            self.put(within(inner, operator.index, swapped), depth + 1)
        found = [swapped[inside.index] for inside in body.outputs]
        made = [self.same.get(tensor.index, tensor) for tensor in found if tensor is not None]
        if len(made) != len(found):
            raise operator.error("its branch gives an input that is missing.")
        return made

    def _copies(self, operator: Operator, body: Model) -> dict[int, Tensor | None]:
        """Tensors of its own for every call of a subgraph."""
        first, name = len(self.tensors), operator.outputs[0].name
        if first + len(body.tensors) > MOST_TENSORS:
            raise operator.error(f"its subgraphs have more than {MOST_TENSORS} tensors together.", SMALLER)
        copies = [replace(t, index=first + i, name=f"{name}/{t.name}"[:100]) for i, t in enumerate(body.tensors)]
        self.tensors += copies
        return dict[int, Tensor | None](enumerate(copies))

    def _fresh(self, tensor: Tensor, name: str) -> Tensor:
        made = replace(tensor, index=len(self.tensors), name=f"{tensor.name}/{name}"[-100:])
        self.tensors.append(made)
        return made

    def _swapped(self, operator: Operator, body: Model) -> Mapping[int, Tensor | None]:
        """Replacements for the subgraph's tensors: the operator's own for inputs and outputs, copies for inner ones."""
        _expect_ends(operator, body, operator.inputs)
        copies = self._copies(operator, body)
        swapped = {**copies, **_given(body, operator.inputs)}
        for inside, made in zip(body.outputs, operator.outputs, strict=True):
            if swapped[inside.index] is not copies[inside.index] or inside.data is not None:
                raise operator.error(f"its subgraph does not compute its output {made.name!r}.")
            swapped[inside.index] = made
        return swapped


def _expect_ends(operator: Operator, body: Model, given: Sequence[Tensor | None]) -> None:
    if (len(body.inputs), len(body.outputs)) != (len(given), len(operator.outputs)):
        raise operator.error(
            f"its subgraph takes {len(body.inputs)} tensors and makes {len(body.outputs)}, "
            f"and it {len(given)} and {len(operator.outputs)}."
        )


def _given(body: Model, given: Sequence[Tensor | None]) -> dict[int, Tensor | None]:
    return {inside.index: tensor for inside, tensor in zip(body.inputs, given, strict=True)}
