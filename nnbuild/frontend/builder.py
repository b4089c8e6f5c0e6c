"""Collects tensors, constants and operations into a graph while a model is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod

from nnbuild.base.errors import ModelError
from nnbuild.model.graph import Array, Constant, Graph, Op, Shape, State, Tensor
from nnbuild.ops.activation import Activation
from nnbuild.ops.base import Attributes

MAX_OPS = 20_000
"""Shared models that call shared models multiply; no real network comes near this."""
MAX_ELEMENTS = 2**28
MAX_LETTERS = 2**25
"""Of all names together; those of nested models grow with every level."""
CHECK = "Check the layer's options and its input shape; if Keras itself runs this model, please report it."
SIMPLIFY = "No microcontroller or PC program of a sensible size can hold it; use a smaller model."


class GraphBuilder:
    def __init__(self, name: str) -> None:
        self.name = name
        self.layer = ""
        self.notes: list[str] = []
        self._outer: Shape = ()
        self._tensors: dict[str, Tensor] = {}
        self._constants: dict[str, Constant] = {}
        self._shared: dict[tuple[str, ...], str] = {}
        self._ops: list[Op] = []
        self._inputs: list[str] = []
        self._states: dict[tuple[str, ...], tuple[str, str]] = {}
        self._names: set[tuple[str, str]] = set()
        self._letters = 0
        self._counts: dict[tuple[str, str], int] = {}

    def shape(self, tensor: str) -> Shape:
        """Without the axes an enclosing `along` takes away."""
        return self._tensors[tensor].shape[len(self._outer) :]

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def input(self, name: str, shape: Shape) -> str:
        tensor = self._tensor(name, shape, layer=name)
        self._inputs.append(tensor)
        return tensor

    def constant(self, key: tuple[str, ...], make: Callable[[], Array]) -> str:
        """The constant of this key, made at its first use: shared layers share it."""
        if key not in self._shared:
            name = self._unique("/".join(key))
            self._constants[name] = Constant(name, make())
            self._shared[key] = name
        return self._shared[key]

    def add(
        self, attributes: Attributes, inputs: Sequence[str], constants: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        """One more operation; its outputs, whose shapes follow from the operation's own rule."""
        if len(self._ops) >= MAX_OPS:
            raise ModelError(f"layer {self.layer!r}", f"the model has more than {MAX_OPS} operations.", SIMPLIFY)
        constants = dict(constants or {})
        given = {role: self._constants[name].data.shape for role, name in constants.items()}
        try:
            shapes = attributes.shapes([self.shape(name) for name in inputs], given)
        except ValueError as error:
            raise ModelError(f"layer {self.layer!r}", str(error), CHECK) from None
        base = f"{self.layer}/{attributes.kind}"
        outputs = tuple(self._tensor(base, self._outer + shape) for shape in shapes)
        name = self._unique(base, "operation")
        op = Op(name, attributes, tuple(inputs), outputs, constants, self.layer, self._outer)
        self._ops.append(op)
        return outputs

    def one(self, attributes: Attributes, inputs: Sequence[str], constants: Mapping[str, str] | None = None) -> str:
        """As `add`, for an operation with a single output."""
        (output,) = self.add(attributes, inputs, constants)
        return output

    def state(self, key: tuple[str, ...], shape: Shape) -> str:
        """The tensor that holds a state at this point: from the run before, or from an earlier call in this one."""
        if self._outer:
            raise ModelError(
                f"layer {self.layer!r}",
                "it is stateful inside a TimeDistributed, where Keras would mix the states of the time steps.",
                "Set stateful=False, or take the layer out of TimeDistributed.",
            )
        if key not in self._states:
            before = self._tensor("/".join(key), shape)
            self._states[key] = (before, before)
        return self._states[key][1]

    def keep_state(self, key: tuple[str, ...], after: str) -> None:
        self._states[key] = (self._states[key][0], after)

    @contextmanager
    def along(self, axes: Shape) -> Iterator[None]:
        """Within it, operations are applied to each index of these leading axes by itself."""
        self._outer += axes
        yield
        self._outer = self._outer[: len(self._outer) - len(axes)]

    @contextmanager
    def at(self, layer: str) -> Iterator[None]:
        """Within it, operations belong to this layer."""
        before, self.layer = self.layer, layer
        yield
        self.layer = before

    def mark(self) -> int:
        """A position for `label`: only operations after it are a layer's own."""
        return len(self._ops)

    def label(self, outputs: Sequence[str], layer: str, since: int) -> tuple[str, ...]:
        """Names a layer's outputs after it; an output it merely passes on becomes an identity operation."""
        made = {name for op in self._ops[since:] for name in op.outputs}
        renamed: dict[str, str] = {}
        names = []
        for index, output in enumerate(outputs):
            known_as = layer if index == 0 else f"{layer}:{index}"
            output = renamed.get(output, output)
            if output not in made or self._tensors[output].layer is not None:
                with self.at(layer):
                    output = self.one(Activation(), (output,))
            name = self._unique(known_as)
            self._rename(output, name, known_as, since)
            renamed[output] = name
            names.append(name)
        return tuple(names)

    def finish(self, outputs: Sequence[str]) -> Graph:
        distinct = tuple(self._distinct(outputs))
        states = tuple(State(before, after) for before, after in self._states.values())
        return Graph(
            self.name,
            self._tensors,
            self._constants,
            tuple(self._ops),
            tuple(self._inputs),
            distinct,
            states,
            tuple(self.notes),
        )

    def _distinct(self, outputs: Sequence[str]) -> Iterator[str]:
        """A copy for an output that is an input, a state or an output already: each has its own memory."""
        taken = {*self._inputs, *(before for before, _ in self._states.values())}
        for output in outputs:
            if output in taken:
                with self.at(self._tensors[output].layer or output):
                    output = self.one(Activation(), (output,))
            taken.add(output)
            yield output

    def _tensor(self, base: str, shape: Shape, layer: str | None = None) -> str:
        if prod(shape) > MAX_ELEMENTS:
            raise ModelError(f"layer {self.layer or base!r}", f"its output {shape} is too large.", SIMPLIFY)
        name = self._unique(base)
        self._tensors[name] = Tensor(name, shape, layer=layer)
        return name

    def _rename(self, old: str, new: str, layer: str, since: int) -> None:
        self._tensors[new] = replace(self._tensors.pop(old), name=new, layer=layer)
        for index in range(since, len(self._ops)):
            op = self._ops[index]
            if old in op.inputs or old in op.outputs:
                inputs = tuple(new if name == old else name for name in op.inputs)
                outputs = tuple(new if name == old else name for name in op.outputs)
                self._ops[index] = replace(op, inputs=inputs, outputs=outputs)
        for key, (before, after) in self._states.items():
            if after == old:
                self._states[key] = (before, new)

    def _unique(self, base: str, of: str = "value") -> str:
        """The base itself, or with a number behind it; tensors and constants share their names, operations do not."""
        name = base
        while (of, name) in self._names:
            self._counts[of, base] = self._counts.get((of, base), 0) + 1
            name = f"{base}_{self._counts[of, base]}"
        self._names.add((of, name))
        self._letters += len(name)
        if self._letters > MAX_LETTERS:
            raise ModelError(
                f"model {self.name!r}", "the names of its layers are too long.", "Give them shorter names."
            )
        return name
