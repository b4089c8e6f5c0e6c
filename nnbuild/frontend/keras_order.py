"""Finds a valid order of the calls in a Functional model."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nnbuild.base.errors import ModelError
from nnbuild.frontend.checked_config import BROKEN
from nnbuild.frontend.keras_config import LayerSpec, ModelSpec
from nnbuild.frontend.keras_nodes import Node, Ref, refs_in
from nnbuild.frontend.keras_version import Dialect

Key = tuple[str, int]
"""(layer, number of the call)"""


TAKES_MASKS = "MultiHeadAttention"
"""In Keras 3 a layer that takes the masks from its inputs, so that those that read them later see none: the order
matters."""


@dataclass(frozen=True, eq=False)
class ModelCall:
    layer: LayerSpec
    number: int
    node: Node

    @property
    def key(self) -> Key:
        return self.layer.name, self.number


@dataclass(frozen=True, eq=False)
class Wiring:
    """The calls in a valid order, and the model's outputs; every Ref counts calls from 0."""

    calls: tuple[ModelCall, ...]
    inputs: tuple[Ref, ...]
    outputs: tuple[Ref, ...]


def wiring(model: ModelSpec, dialect: Dialect) -> Wiring:
    assert model.inputs is not None and model.outputs is not None
    first = _first_numbers(model, dialect)
    layers = {layer.name: layer for layer in model.layers}
    calls = {}
    for layer in model.layers:
        for number, node in enumerate(layer.nodes or (Node((), {}),)):
            call = ModelCall(layer, number, _renumbered(node, first, 0))
            calls[call.key] = call
    outputs = tuple(_shifted(ref, first, 1) for ref in model.outputs)
    for call in calls.values():
        for ref in call.node.refs():
            _expect(call.layer.config.where, ref, layers, calls)
    for ref in (*model.inputs, *outputs):
        _expect("the model's inputs and outputs", ref, layers, calls)
    if dialect.keras3 and any(layer.class_name == TAKES_MASKS for layer in model.layers):
        calls = {key: calls[key] for key in _as_keras_runs(calls, outputs)}
    return Wiring(tuple(_sorted(calls)), model.inputs, outputs)


def _as_keras_runs(calls: Mapping[Key, ModelCall], outputs: Iterable[Ref]) -> list[Key]:
    """The calls by their distance to the outputs, furthest first; of the same distance, the one that the outputs reach
    last. Calls of one layer have the largest distance of theirs."""
    distances: dict[Key, int] = {}
    of_layer: dict[str, int] = {}
    for key in reversed(_reached(calls, outputs)):
        distance = max(distances.setdefault(key, 0), of_layer.get(key[0], 0))
        distances[key] = of_layer[key[0]] = distance
        for source in _sources(calls[key]):
            distances[source] = max(distance + 1, distances.get(source, 0))
    ordered = sorted(distances, key=lambda key: -distances[key])
    return [*ordered, *(key for key in calls if key not in distances)]


def _reached(calls: Mapping[Key, ModelCall], outputs: Iterable[Ref]) -> list[Key]:
    """The calls that outputs depend on, each behind those that it needs."""
    done: dict[Key, None] = {}
    for ref in outputs:
        open_calls: list[tuple[Key, Iterator[Key]]] = [((ref.layer, ref.node), _sources(calls[ref.layer, ref.node]))]
        waiting = {open_calls[0][0]}
        while open_calls:
            key, sources = open_calls[-1]
            following = next((each for each in sources if each not in done and each not in waiting), None)
            if following is None:
                done[key] = None
                open_calls.pop()
            else:
                waiting.add(following)
                open_calls.append((following, _sources(calls[following])))
    return list(done)


def _sources(call: ModelCall) -> Iterator[Key]:
    return ((ref.layer, ref.node) for ref in call.node.refs())


def _expect(where: str, ref: Ref, layers: Mapping[str, LayerSpec], calls: Mapping[Key, ModelCall]) -> None:
    if ref.layer not in layers:
        raise ModelError(where, f"the layer {ref.layer!r} is connected to it, but is not in the model.", BROKEN)
    if (ref.layer, ref.node) not in calls:
        raise ModelError(
            where, f"call {ref.node} of the layer {ref.layer!r} is connected to it, but never made.", BROKEN
        )


def _sorted(calls: Mapping[Key, ModelCall]) -> Iterator[ModelCall]:
    """The file's order where valid, otherwise each call as soon as its inputs exist."""
    place = {key: position for position, key in enumerate(calls)}
    waiting = {key: {(ref.layer, ref.node) for ref in call.node.refs()} for key, call in calls.items()}
    missing = {key: len(needed) for key, needed in waiting.items()}
    followers: dict[Key, list[Key]] = {key: [] for key in calls}
    for key, needed in waiting.items():
        for source in needed:
            followers[source].append(key)
    ready = [(place[key], key) for key, count in missing.items() if not count]
    heapq.heapify(ready)
    done = 0
    while ready:
        _, key = heapq.heappop(ready)
        yield calls[key]
        done += 1
        for follower in followers[key]:
            missing[follower] -= 1
            if not missing[follower]:
                heapq.heappush(ready, (place[follower], follower))
    if done < len(calls):
        stuck = next(key for key in calls if missing[key])
        raise ModelError(f"layer {stuck[0]!r}", "it is part of a cycle: it needs its own output.", BROKEN)


def _first_numbers(model: ModelSpec, dialect: Dialect) -> tuple[dict[str, int], dict[str, int]]:
    """The number of each nested model's first call in the file: 0 or 1, within calls and among the outputs.

    Some versions count, in some places, the call that built a nested model; the numbers in use show which.
    """
    assert model.outputs is not None
    nested = {layer.name: layer for layer in model.layers if layer.model is not None}
    within: dict[str, set[int]] = {name: set() for name in nested}
    ends: dict[str, set[int]] = {name: set() for name in nested}
    for layer in model.layers:
        for node in layer.nodes:
            for ref in node.refs():
                within.get(ref.layer, set()).add(ref.node)
    for ref in model.outputs:
        ends.get(ref.layer, set()).add(ref.node)
    inner, outer = {}, {}
    for name, layer in nested.items():
        count = len(layer.nodes)
        if not dialect.keras3:
            used = within[name] | ends[name]
            inner[name] = outer[name] = int(0 not in used)
        else:
            inner[name] = int(any(number >= count for number in within[name]))
            builtin = layer.class_name != "Sequential" and 0 not in ends[name]
            outer[name] = int(builtin or any(number >= count for number in ends[name]))
    return inner, outer


def _shifted(ref: Ref, first: tuple[dict[str, int], dict[str, int]], place: int) -> Ref:
    return replace(ref, node=ref.node - first[place].get(ref.layer, 0))


def _renumbered(node: Node, first: tuple[dict[str, int], dict[str, int]], place: int) -> Node:
    def change(value: Any) -> Any:
        if isinstance(value, Ref):
            return _shifted(value, first, place)
        if isinstance(value, tuple):
            return tuple(change(item) for item in value)
        if isinstance(value, Mapping):
            return {key: change(item) for key, item in value.items()}
        return value

    if not any(ref.layer in first[place] for ref in refs_in((node.arguments, node.named))):
        return node
    return Node(change(node.arguments), change(node.named))
