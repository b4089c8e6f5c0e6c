"""The interface between the importer and the builders of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from nnbuild.base.errors import ModelError
from nnbuild.frontend import keras_quantized
from nnbuild.frontend.builder import Form, GraphBuilder
from nnbuild.frontend.checked_config import Config
from nnbuild.frontend.keras_version import Dialect
from nnbuild.frontend.keras_weights import DAMAGED, Stored, WeightTree, finite
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.base import Attributes
from nnbuild.ops.convert import Convert


@dataclass(frozen=True)
class Wire:
    """A tensor among the arguments of a call."""

    name: str


class Layers(Protocol):
    """Access to inner layers, for wrappers."""

    def weights_of(self, data: Any, where: str) -> WeightTree: ...

    def run(
        self, data: Any, path: tuple[str, ...], inputs: Sequence[str], stored: Stored, mask: str | None = None
    ) -> tuple[str, ...]: ...


@dataclass(frozen=True, eq=False)
class Call:
    """One call of one layer.

    `inputs` are all tensors of the call; `arguments` and `named` are its arguments as written, for operations that also
    take numbers.
    """

    builder: GraphBuilder
    layers: Layers
    dialect: Dialect
    path: tuple[str, ...]
    config: Config
    inputs: tuple[str, ...]
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]
    stored: Stored
    mask: str | None = None
    """Booleans for the steps of its first input's first axis: true for valid steps."""
    masks: tuple[str | None, ...] | None = None
    """Those given as an argument for each tensor, where the layer takes a list of tensors and masks."""

    @property
    def shape(self) -> Shape:
        return self.builder.shape(self.input)

    @property
    def input(self) -> str:
        if len(self.inputs) != 1:
            raise self.config.error(f"it is called with {len(self.inputs)} tensors instead of one.")
        return self.inputs[0]

    def one(self, attributes: Attributes, *inputs: str, **constants: str) -> str:
        return self.builder.one(attributes, inputs, constants)

    def weight(self, role: str, shape: Shape, seen_as: Shape | None = None) -> str:
        """The constant of a weight; `seen_as` reshapes it."""
        return self.constant(role, lambda: self.values(role, shape).reshape(seen_as or shape))

    def values(self, role: str, shape: Shape) -> Array:
        stored = self.stored.get(role)
        if stored is None:
            raise ModelError(self.config.where, f"the file has no {role} for it.", DAMAGED)
        if keras_quantized.is_scaled(self.stored, role):
            return keras_quantized.values(self.config, self.stored, role, shape)
        if stored.shape != shape:
            raise ModelError(
                self.config.where, f"its {role} has the shape {stored.shape} in the file, but needs {shape}.", DAMAGED
            )
        return finite(self.config.where, role, stored.read())

    def constant(self, role: str, make: Callable[[], Array]) -> str:
        return self.builder.constant((*self.path, role), make)

    def convert(self, x: str, form: Form) -> str:
        tensor = self.builder.tensor(x)
        if (tensor.dtype, tensor.quant) == form:
            return x
        return self.builder.add(Convert(), [x], form=form)[0]


def options(call: Call) -> Config:
    """An operation's options, from its config or its arguments."""
    return Config(call.config.where, {**call.config.values, **call.named})


Build = Callable[[Call], tuple[str, ...]]
WeightRule = Callable[[Config, Layers], WeightTree]


def no_weights(config: Config, layers: Layers) -> WeightTree:
    return WeightTree()


@dataclass(frozen=True)
class LayerKind:
    """`sees_mask`: a mask would change the result; `takes_mask`: the layer supports a mask.

    `passes_mask`: the result keeps the mask of the first input.

    `literal`: numbers among the arguments are its own, and so is one named mask.

    `takes_masks`: the argument is a list of masks, one for each tensor.

    `takes_whole`: reads integers unchanged; other layers read them as floats.
    """

    build: Build
    weights: WeightRule = no_weights
    sees_mask: bool = False
    takes_mask: bool = False
    passes_mask: bool = False
    takes_whole: bool = False
    takes_masks: bool = False
    literal: bool = False


def single(build: Callable[[Call], str]) -> Build:
    """Wraps a builder of one output."""
    return lambda call: (build(call),)


def trained_by(*roles: str) -> WeightRule:
    """Trained weights, plus a bias if `use_bias` is set."""

    def rule(config: Config, layers: Layers) -> WeightTree:
        return WeightTree((*roles, "bias") if config.flag("use_bias", True) else roles)

    return rule


def wires(value: Any) -> Iterator[str]:
    """All tensors within an argument, in order."""
    if isinstance(value, Wire):
        yield value.name
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from wires(item)
    elif isinstance(value, Mapping):
        for key in sorted(value):
            yield from wires(value[key])


def as_floats(builder: GraphBuilder, value: Any) -> Any:
    """The arguments with integer tensors converted to floats."""
    if isinstance(value, Wire):
        return Wire(builder.as_float(value.name))
    if isinstance(value, tuple):
        return tuple(as_floats(builder, item) for item in value)
    if isinstance(value, Mapping):
        return {key: as_floats(builder, item) for key, item in value.items()}
    return value
