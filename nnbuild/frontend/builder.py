"""Builds a graph of tensors, constants and operations from a Keras model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod

from nnbuild.base.errors import ModelError
from nnbuild.model.graph import WHOLE, Array, Constant, Graph, Op, Quant, Shape, State, Tensor
from nnbuild.ops.activation import Activation
from nnbuild.ops.arg import Arg
from nnbuild.ops.base import Attributes
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.gather import Gather
from nnbuild.ops.pick import Pick, copy_of
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice
from nnbuild.ops.top_k import TopK
from nnbuild.ops.transpose import Transpose
from nnbuild.ops.whole import Whole

Form = tuple[str, Quant | None]
"""A type, and for integers their quantization."""
FLOAT: Form = ("float32", None)
INT32: Form = ("int32", WHOLE)
TRUTH: Form = ("int8", WHOLE)
CARRIERS = (Concatenate, Gather, Pick, Repeat, Reshape, Select, Slice, Transpose, Whole)

MAX_OPS = 20_000
"""Limits models that call shared models repeatedly; no real network comes near this."""
MAX_ELEMENTS = 2**28
MAX_LETTERS = 2**25
"""Total letters in all names; names of nested models grow with each level."""
CHECK = "Check the layer's options and its input shape; if Keras itself runs this model, please report it."
SIMPLIFY = "No microcontroller or PC program of a sensible size can hold it; use a smaller model."


class GraphBuilder:
    def __init__(self, name: str) -> None:
        self.name = name
        self.layer = ""
        self.notes: list[str] = []
        self.unlike = ""
        """Where Keras computes otherwise, and what to do."""
        self.numbers = 0
        """How many numbers were made of sizes."""
        self._outer: Shape = ()
        self._tensors: dict[str, Tensor] = {}
        self._constants: dict[str, Constant] = {}
        self._shared: dict[tuple[str, ...], str] = {}
        self._ops: list[Op] = []
        self._inputs: list[str] = []
        self._states: dict[tuple[str, ...], tuple[str, str]] = {}
        self._names: set[tuple[str, str]] = set()
        self._letters = 0
        self.masks: dict[str, str] = {}
        """Tensor -> its mask: booleans that mark the valid steps of its first axis."""
        self.integers: dict[str, str] = {}
        """Tensor -> its type in Keras, where that is an integer of 8 or 16 bits, or one of 32 that is a float here."""
        self._passed_on: dict[str, str] = {}
        """Output of a layer that only passes it on -> the tensor that came first; in Keras these are one."""
        self._counts: dict[tuple[str, str], int] = {}

    def shape(self, tensor: str) -> Shape:
        """The shape without the axes of an enclosing `along`."""
        return self._tensors[tensor].shape[len(self._outer) :]

    def tensor(self, name: str) -> Tensor:
        return self._tensors[name]

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def input(self, name: str, shape: Shape, dtype: str = "float32") -> str:
        """`dtype` is float or an integer type."""
        tensor = self._tensor(name, shape, layer=name, form=FLOAT if dtype == "float32" else (dtype, WHOLE))
        self._inputs.append(tensor)
        return tensor

    def constant(self, key: tuple[str, ...], make: Callable[[], Array]) -> str:
        """The constant for this key, created at first use, so that shared layers share it. Integer arrays become
        integer constants."""
        if key not in self._shared:
            name, data = self._unique("/".join(key)), make()
            self._constants[name] = Constant(name, data, None if data.dtype.kind == "f" else WHOLE)
            self._shared[key] = name
        return self._shared[key]

    def add(
        self,
        attributes: Attributes,
        inputs: Sequence[str],
        constants: Mapping[str, str] | None = None,
        form: Form | None = None,
    ) -> tuple[str, ...]:
        """Adds an operation and returns its outputs, with shapes and types by the operation's rule.

        Only conversions need an explicit type, `form`.
        """
        if len(self._ops) >= MAX_OPS:
            raise ModelError(f"layer {self.layer!r}", f"the model has more than {MAX_OPS} operations.", SIMPLIFY)
        constants = dict(constants or {})
        given = {role: self._constants[name].data.shape for role, name in constants.items()}
        try:
            shapes = attributes.shapes([self.shape(name) for name in inputs], given)
        except ValueError as error:
            raise ModelError(f"layer {self.layer!r}", str(error), CHECK) from None
        base = f"{self.layer}/{attributes.kind}"
        made = form or self._form(attributes, inputs, constants)
        forms = (made, INT32) if isinstance(attributes, TopK) else (made,) * len(shapes)
        outputs = tuple(
            self._tensor(base, self._outer + shape, form=each) for shape, each in zip(shapes, forms, strict=True)
        )
        name = self._unique(base, "operation")
        op = Op(name, attributes, tuple(inputs), outputs, constants, self.layer, self._outer)
        self._ops.append(op)
        return outputs

    def one(self, attributes: Attributes, inputs: Sequence[str], constants: Mapping[str, str] | None = None) -> str:
        """Like `add`, for an operation with a single output."""
        (output,) = self.add(attributes, inputs, constants)
        return output

    def _form(self, attributes: Attributes, inputs: Sequence[str], constants: Mapping[str, str]) -> Form:
        """Operations that move or select values keep their type."""
        held = constants.get("table", constants.get("values"))
        if held is not None:
            constant = self._constants[held]
            return FLOAT if constant.quant is None else (constant.data.dtype.name, constant.quant)
        if isinstance(attributes, Compare):
            return TRUTH
        if isinstance(attributes, Arg):
            return INT32
        if isinstance(attributes, Select):
            inputs = inputs[1:]
        match attributes:
            case Activation(function) | Reduce(function):
                carried = function in ("linear", "max", "min")
            case _:
                carried = isinstance(attributes, CARRIERS)
        if not carried or not inputs:
            return FLOAT
        tensor = self._tensors[inputs[0]]
        return tensor.dtype, tensor.quant

    def as_float(self, name: str) -> str:
        """Converts integers to floats; floats stay unchanged."""
        if not self._tensors[name].is_whole:
            return name
        (made,) = self.add(Convert(), [name], form=FLOAT)
        if name in self.masks:
            self.masks[made] = self.masks[name]
        return made

    def take_mask(self, name: str) -> None:
        """Removes the mask of a tensor, also from layers that passed it on."""
        first = self._passed_on.get(name, name)
        for each in (first, *(output for output, source in self._passed_on.items() if source == first)):
            self.masks.pop(each, None)

    def state(self, key: tuple[str, ...], shape: Shape) -> str:
        """The tensor with a state's current value: from the last run, or from an earlier call in this run."""
        if self._outer:
            raise ModelError(
                f"layer {self.layer!r}",
                "it is stateful inside a TimeDistributed layer, where Keras would mix the states of the time steps.",
                "Set stateful=False, or move the layer out of TimeDistributed.",
            )
        if key not in self._states:
            before = self._tensor("/".join(key), shape)
            self._states[key] = (before, before)
        return self._states[key][1]

    def keep_state(self, key: tuple[str, ...], after: str) -> None:
        self._states[key] = (self._states[key][0], after)

    @contextmanager
    def along(self, axes: Shape) -> Iterator[None]:
        """Inside the context, operations apply separately to each index of these leading axes."""
        self._outer += axes
        yield
        self._outer = self._outer[: len(self._outer) - len(axes)]

    @contextmanager
    def at(self, layer: str) -> Iterator[None]:
        """Inside the context, operations belong to this layer."""
        before, self.layer = self.layer, layer
        yield
        self.layer = before

    def mark(self) -> int:
        """A position for `label`: only later operations belong to a layer."""
        return len(self._ops)

    def label(self, outputs: Sequence[str], layer: str, since: int) -> tuple[str, ...]:
        """Names a layer's outputs after it; an output that the layer only passes on becomes an identity operation."""
        made = {name for op in self._ops[since:] for name in op.outputs}
        renamed: dict[str, str] = {}
        names = []
        for index, output in enumerate(outputs):
            known_as = layer if index == 0 else f"{layer}:{index}"
            output = renamed.get(output, output)
            if output not in made or self._tensors[output].layer is not None:
                with self.at(layer):
                    source, output = output, self.copied(output)
                    self._passed_on[output] = self._passed_on.get(source, source)
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
            unlike=self.unlike,
        )

    def _distinct(self, outputs: Sequence[str]) -> Iterator[str]:
        """Copies an output that is also an input, a state or another output: each has its own memory."""
        taken = {*self._inputs, *(before for before, _ in self._states.values())}
        for output in outputs:
            if output in taken:
                with self.at(self._tensors[output].layer or output):
                    output = self.copied(output)
            taken.add(output)
            yield output

    def copied(self, name: str) -> str:
        """A copy of the tensor, with its own name."""
        made = self.one(copy_of(self._tensors[name]), (name,))
        if name in self.masks:
            self.masks[made] = self.masks[name]
        if name in self.integers:
            self.integers[made] = self.integers[name]
        return made

    def _tensor(self, base: str, shape: Shape, layer: str | None = None, form: Form = FLOAT) -> str:
        if prod(shape) > MAX_ELEMENTS:
            raise ModelError(f"layer {self.layer or base!r}", f"its output {shape} is too large.", SIMPLIFY)
        name = self._unique(base)
        self._tensors[name] = Tensor(name, shape, *form, layer=layer)
        return name

    def _rename(self, old: str, new: str, layer: str, since: int) -> None:
        self._tensors[new] = replace(self._tensors.pop(old), name=new, layer=layer)
        for index in range(since, len(self._ops)):
            op = self._ops[index]
            if old in op.inputs or old in op.outputs:
                inputs = tuple(new if name == old else name for name in op.inputs)
                outputs = tuple(new if name == old else name for name in op.outputs)
                self._ops[index] = replace(op, inputs=inputs, outputs=outputs)
        self.masks = {new if k == old else k: new if v == old else v for k, v in self.masks.items()}
        if old in self.integers:
            self.integers[new] = self.integers.pop(old)
        self._passed_on = {new if k == old else k: v for k, v in self._passed_on.items()}
        for key, (before, after) in self._states.items():
            if after == old:
                self._states[key] = (before, new)

    def _unique(self, base: str, of: str = "value") -> str:
        """The base, with a number appended if taken; tensors and constants share one namespace, operations have
        another."""
        name = base
        while (of, name) in self._names:
            self._counts[of, base] = self._counts.get((of, base), 0) + 1
            name = f"{base}_{self._counts[of, base]}"
        self._names.add((of, name))
        self._letters += len(name)
        if self._letters > MAX_LETTERS:
            raise ModelError(f"model {self.name!r}", "the names of its layers are too long.", "Shorten the names.")
        return name
