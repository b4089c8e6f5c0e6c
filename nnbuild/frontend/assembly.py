"""Builds a graph from a `.tflite` or `.onnx` file: tensors keep the file's names, types and scales."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Protocol

import numpy as np

from nnbuild.base.errors import ModelError
from nnbuild.base.names import some_of
from nnbuild.frontend.builder import MAX_ELEMENTS, MAX_OPS
from nnbuild.model.graph import Array, Constant, Graph, Op, Quant, Shape, State, Tensor
from nnbuild.model.verify import LARGEST_RATIO
from nnbuild.ops.base import Attributes
from nnbuild.ops.pick import copy_of

CHECK = "Check the operator's options and shapes; if other programs run this model, please report it."
SMALLER = "No microcontroller or PC program of a sensible size can hold it; use a smaller model."
CALIBRATE = "Calibrate the model with samples that make its tensors vary, and convert it again."
FINITE = "The training has diverged, or a constant is infinity; use a large finite number."
MAX_CONSTANT_ELEMENTS = 2**27


class Operator(Protocol):
    """An operation of any file format, which can report errors with its place."""

    def error(self, cause: str, next_step: str) -> ModelError: ...


def among_integers(cause: str, layers: Sequence[str]) -> str:
    which = f"layer {some_of(layers)}" if len(layers) == 1 else f"each of the layers {some_of(layers)}"
    return f"{which} is computed in floats, although its neighbours are quantized: {cause}"


class Assembly:
    """Every tensor has a name, a shape without the batch, a type and a scale; see `Form`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.notes: list[str] = []
        self._among_integers: dict[str, list[str]] = {}
        self.tensors: dict[str, Tensor] = {}
        self._constants: dict[str, Constant] = {}
        self._kept = 0
        self._allowed = MAX_CONSTANT_ELEMENTS
        self._ops: list[Op] = []
        self._inputs: list[str] = []
        self._counts: dict[str, int] = {}
        self._names: set[str] = set()
        self._states: dict[str, str] = {}
        self._initial: dict[str, str] = {}
        self.unlike = ""

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def in_floats(self, layer: str, cause: str) -> None:
        """Gathers the layers that one cause keeps from integers, for one note."""
        layers = self._among_integers.setdefault(cause, [])
        if layer not in layers:
            layers.append(layer)

    def input(self, tensor: Tensor) -> str:
        name = self.tensor(replace(tensor, layer=tensor.name))
        self._inputs.append(name)
        return name

    def state(self, tensor: Tensor, initial: Array | None = None) -> str:
        """A tensor that carries a value from run to run; `keep` sets its next value, `initial` its first."""
        name = self.tensor(tensor)
        self._states[name] = name
        if initial is not None:
            held = self._unique(f"{name}/initial")
            self._constants[held] = Constant(held, initial.copy(), tensor.quant)
            self._initial[name] = held
        return name

    def keep(self, before: str, after: str) -> None:
        self._states[before] = after

    def made_of(self, name: str) -> str:
        """The single input of the operation that produced the tensor; "" if there is none."""
        makers = [op for op in reversed(self._ops) if name in op.outputs]
        return makers[0].inputs[0] if makers and len(makers[0].inputs) == 1 and makers[0].kind == "convert" else ""

    def first(self) -> list[str]:
        """The model's first input."""
        return self._inputs[:1]

    def inputs_behind(self, name: str) -> list[str]:
        """The model's inputs that a tensor is computed from."""
        behind = {name}
        for op in reversed(self._ops):
            if behind.intersection(op.outputs):
                behind.update(op.inputs)
        return [known for known in self._inputs if known in behind]

    def is_input(self, name: str) -> bool:
        return name in self._inputs

    def tensor(self, tensor: Tensor) -> str:
        name = self._unique(tensor.name)
        self.tensors[name] = replace(tensor, name=name)
        return name

    def allow(self, held: Iterable[Array]) -> None:
        """Exempts the file's own constants from the limit; the same buffer counts once."""
        places = {int(each.__array_interface__["data"][0]): each.size for each in held}
        self._allowed += sum(places.values())

    def count(self, operator: Operator, elements: int) -> None:
        """Limits the total size of constants, so that a small file cannot claim much memory by repetition."""
        self._kept += elements
        if self._kept > self._allowed:
            raise operator.error("the model has too many constants.", SMALLER)

    def constant(self, operator: Operator, name: str, data: Array, quant: Quant | None) -> str:
        self.count(operator, data.size)
        if data.dtype.kind == "f" and not np.isfinite(data).all():
            raise operator.error(f"its constant {name!r} holds values that are not numbers (NaN or infinity).", FINITE)
        known = self._unique(name)
        self._constants[known] = Constant(known, data.copy(), quant)
        return known

    def held(self, name: str) -> Constant:
        return self._constants[name]

    def add(
        self,
        operator: Operator,
        layer: str,
        attributes: Attributes,
        inputs: Sequence[str],
        like: Sequence[Tensor],
        constants: Mapping[str, str] | None = None,
        outer: Shape = (),
    ) -> tuple[str, ...]:
        """Adds an operation; its outputs take types and scales from `like`, and shapes from the operation's rule."""
        if len(self._ops) >= MAX_OPS:
            raise operator.error(f"the model has more than {MAX_OPS} operations.", SMALLER)
        held = dict(constants or {})
        shapes_in = [self.tensors[name].shape for name in inputs]
        try:
            if any(shape[: len(outer)] != outer for shape in shapes_in):
                raise ValueError(f"its inputs {shapes_in} do not all start with the axes {outer}.")
            shapes = attributes.shapes(
                [shape[len(outer) :] for shape in shapes_in],
                {role: self._constants[name].data.shape for role, name in held.items()},
            )
        except ValueError as error:
            raise operator.error(str(error), CHECK) from None
        _close_scales(operator, [*(self.tensors[name] for name in inputs), *like])
        outputs = []
        for shape, model in zip(shapes, like, strict=True):
            if prod(outer + shape) > MAX_ELEMENTS:
                raise operator.error(f"its output {outer + shape} is too large.", SMALLER)
            base = f"{layer}/{attributes.kind}"  # leaves the file's own names unused
            outputs.append(self.tensor(replace(model, name=base, shape=outer + shape, layer=None)))
        name = self._unique(f"{layer}:op")
        self._ops.append(Op(name, attributes, tuple(inputs), tuple(outputs), held, layer, outer))
        return tuple(outputs)

    def call(self, made: str, name: str) -> str:
        """Renames a tensor that was just computed, and not read yet, to the file's name."""
        for place in range(len(self._ops) - 1, -1, -1):
            op = self._ops[place]
            if made in op.outputs:
                break
        else:
            return made
        final = self._unique(name)
        self.tensors[final] = replace(self.tensors.pop(made), name=final, layer=name)
        self._ops[place] = replace(op, outputs=tuple(final if o == made else o for o in op.outputs))
        for later in range(place + 1, len(self._ops)):
            op = self._ops[later]
            if made in op.inputs:
                self._ops[later] = replace(op, inputs=tuple(final if i == made else i for i in op.inputs))
        self._states = {before: final if after == made else after for before, after in self._states.items()}
        return final

    def finish(self, outputs: Sequence[str]) -> Graph:
        """Copies an output that is also an input or another output: each has its own memory."""
        taken, distinct = {*self._inputs, *self._states}, []
        for name in outputs:
            if name in taken:
                tensor = self.tensors[name]
                name = self.tensor(replace(tensor, layer=None))
                self._ops.append(Op(self._unique(f"{name}:op"), copy_of(tensor), (tensor.name,), (name,), layer=name))
            taken.add(name)
            distinct.append(name)
        return Graph(
            self.name,
            self.tensors,
            self._constants,
            tuple(self._ops),
            tuple(self._inputs),
            tuple(distinct),
            tuple(State(before, after, self._initial.get(before)) for before, after in self._states.items()),
            notes=(*self.notes, *(among_integers(*each) for each in self._among_integers.items())),
            unlike=self.unlike,
        )

    def _unique(self, base: str) -> str:
        name = base
        while name in self._names:
            self._counts[base] = self._counts.get(base, 0) + 1
            name = f"{base}_{self._counts[base]}"
        self._names.add(name)
        return name


def _close_scales(operator: Operator, tensors: Sequence[Tensor]) -> None:
    scales = [tensor.quant.scale for tensor in tensors if tensor.quant is not None and not tensor.is_whole]
    if scales and max(scales) >= LARGEST_RATIO * min(scales):
        raise operator.error(f"its scales {min(scales):.4g} and {max(scales):.4g} are too far apart.", CALIBRATE)
