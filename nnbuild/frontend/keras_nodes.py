"""The connections between layers of a Functional model, in the three notations that Keras has used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nnbuild.frontend.checked_config import Config, is_integer

CONSTANT = "_CONSTANT_VALUE"
"""Written by Keras 2 instead of a layer's name when an argument is a number."""


@dataclass(frozen=True)
class Ref:
    """Output `index` of call `node` of a layer of the same model."""

    layer: str
    node: int
    index: int


@dataclass(frozen=True)
class Node:
    """One call of a layer. Arguments are any JSON values, with `Ref`s inside."""

    arguments: tuple[Any, ...]
    named: Mapping[str, Any]

    def refs(self) -> Iterator[Ref]:
        yield from refs_in(self.arguments)
        yield from refs_in(self.named)


def refs_in(value: Any) -> Iterator[Ref]:
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from refs_in(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from refs_in(item)


def nodes_of(config: Config, entries: Sequence[Any]) -> tuple[Node, ...]:
    """The calls in an `inbound_nodes` list, in any notation."""
    return tuple(_keras3_node(config, e) if isinstance(e, dict) else _keras2_node(config, e) for e in entries)


def model_ends(config: Config, key: str) -> tuple[Ref, ...]:
    """The `input_layers` or `output_layers` of a model."""
    found = tuple(_ends(config, key, config.get(key)))
    if not found:
        raise config.wrong(key, "a list of layers")
    return found


def _ends(config: Config, key: str, value: Any) -> Iterator[Ref]:
    ref = _triple(value)
    if ref is not None:
        yield ref
    elif isinstance(value, dict):
        for name in sorted(value):
            yield from _ends(config, key, value[name])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _ends(config, key, item)
    else:
        raise config.wrong(key, "a list of [layer, node, tensor]")


def _triple(value: Any) -> Ref | None:
    """["name", node, tensor], with anything after it."""
    if not isinstance(value, (list, tuple)) or len(value) < 3 or not isinstance(value[0], str):
        return None
    if not is_integer(value[1]) or not is_integer(value[2]) or min(value[1:3]) < 0:
        return None
    return Ref(value[0], value[1], value[2])


def _keras3_node(config: Config, entry: Mapping[str, Any]) -> Node:
    arguments, named = entry.get("args", []), entry.get("kwargs", {})
    if not isinstance(arguments, list) or not isinstance(named, dict):
        raise config.wrong("inbound_nodes", "calls with args and kwargs")
    found = tuple(_keras3_value(config, value) for value in arguments)
    return Node(found, {key: _keras3_value(config, value) for key, value in named.items()})


def _keras3_value(config: Config, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_keras3_value(config, item) for item in value)
    if not isinstance(value, dict):
        return value
    kind, inner = value.get("class_name"), value.get("config")
    if kind == "__keras_tensor__" and isinstance(inner, dict):
        ref = _triple(inner.get("keras_history"))
        if ref is None:
            raise config.error("it is called with a tensor that no layer produces.")
        return ref
    if kind in ("__tensor__", "__numpy__") and isinstance(inner, dict):
        return inner.get("value")
    if kind == "__slice__" and isinstance(inner, dict):
        return inner
    if kind == "__tuple__":
        return _keras3_value(config, value.get("items", []))
    return {key: _keras3_value(config, item) for key, item in value.items()}


def _keras2_node(config: Config, entry: Any) -> Node:
    """[[name, node, tensor, kwargs] …], or for single operations [name, node, tensor, kwargs] itself."""
    if not isinstance(entry, (list, tuple)) or not entry:
        raise config.wrong("inbound_nodes", "a list of calls")
    flat = isinstance(entry[0], str)
    arguments: list[Any] = []
    named: dict[str, Any] = {}
    for item in [entry] if flat else entry:
        arguments.append(_keras2_argument(config, item))
        if len(item) > 3 and isinstance(item[3], dict):
            named |= {key: _keras2_value(value) for key, value in item[3].items()}
    return Node(tuple(arguments) if flat else (tuple(arguments),), named)


def _keras2_argument(config: Config, item: Any) -> Any:
    if isinstance(item, (list, tuple)) and len(item) >= 3 and item[0] == CONSTANT:
        return item[2]
    ref = _triple(item)
    if ref is None and isinstance(item, (list, tuple)) and all(isinstance(part, (list, tuple)) for part in item):
        return tuple(_keras2_argument(config, part) for part in item)
    if ref is None:
        raise config.error("it is called with something that is not a tensor of the model.")
    return ref


def _keras2_value(value: Any) -> Any:
    if isinstance(value, list):
        if len(value) >= 3 and value[0] == CONSTANT:
            return value[2]
        ref = _triple(value) if len(value) in (3, 4) else None
        return ref or tuple(_keras2_value(item) for item in value)
    if isinstance(value, dict):
        return {key: _keras2_value(item) for key, item in value.items()}
    return value
