"""Models of the zoo through the whole of nnbuild: imported, compiled, run and held against float64."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nnbuild import passes
from nnbuild.base.errors import NnbuildError
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.support.batch import Entry, Values, run_batch
from tests.zoo import names, zoo

TOLERANCE = 1e-5
"""Absolute plus relative."""

DOUBTFUL = 4.0
"""Where a model is ill-conditioned: how many times Keras' own float32 error is allowed."""

TRUSTED = 1e-3
"""A larger error of Keras is none of rounding, and allows nothing."""

BATCH = 64


@dataclass(frozen=True, eq=False)
class Subject:
    """A case of the zoo: its graph as imported, its inputs, and Keras' answers by the name of the tensor."""

    name: str
    graph: Graph
    inputs: Values
    keras: Values


def batches(writer: str) -> list[list[str]]:
    """The cases of a writer in lots that are compiled together; every lot has some of each kind."""
    everything = names(writer)
    count = -(-len(everything) // BATCH)
    return [everything[index::count] for index in range(count)]


def subject(writer: str, name: str) -> Subject:
    """The .h5 file of the case, or the .keras file of the few that have no other."""
    directory = zoo(writer)
    path = next(p for p in (directory / f"{name}.h5", directory / f"{name}.keras") if p.exists())
    return read(name, path, directory / f"{name}.npz")


def read(name: str, model: Path, answers: Path) -> Subject:
    graph = load(model)
    with np.load(answers) as file:
        golden = dict(file)
    inputs = dict(zip(graph.inputs, _numbered(golden, "x", len(graph.inputs)), strict=True))
    keras = dict(zip(graph.outputs, _numbered(golden, "y", len(graph.outputs)), strict=True))
    labelled = {tensor.layer: name for name, tensor in graph.tensors.items() if tensor.layer is not None}
    for key, answer in golden.items():
        layer = key.removeprefix("layer/")
        if layer != key and layer in labelled:
            keras.setdefault(labelled[layer], answer)
    return Subject(name, graph, inputs, keras)


def _numbered(golden: Values, stem: str, count: int) -> list[Array]:
    return [golden[stem if count == 1 else f"{stem}{i}"] for i in range(count)]


def failures(writer: str, cases: Sequence[str], folder: Path, tool: Sequence[str], *, layers: bool) -> list[str]:
    """One line for everything that is wrong; with `layers` every tensor is compared, else the outputs."""
    subjects: list[Subject] = []
    wrong: list[str] = []
    for name in cases:
        try:
            subjects.append(subject(writer, name))
        except NnbuildError as error:
            wrong.append(f"{name}: {error}")
    return wrong + differences(subjects, folder, tool, layers=layers)


def differences(subjects: Sequence[Subject], folder: Path, tool: Sequence[str], *, layers: bool = False) -> list[str]:
    """Where the compiled models differ from the reference, a line each."""
    wrong: list[str] = []
    entries = [_entry(each, f"m{index}", layers) for index, each in enumerate(subjects)]
    for each, entry, found in zip(subjects, entries, run_batch(entries, folder, tool), strict=True):
        wrong += [f"{each.name}: {cause}" for cause in _differences(each, entry, found)]
    return wrong


def _entry(each: Subject, prefix: str, layers: bool) -> Entry:
    graph = each.graph if layers else passes.run(each.graph)
    return Entry(make_plan(graph, prefix, Target(keep_tensors=layers)), each.inputs, everything=layers)


def _differences(each: Subject, entry: Entry, found: Values) -> Iterator[str]:
    exact = interpret.run(each.graph, each.inputs, "float64")
    single = interpret.run(each.graph, each.inputs, "float32") if entry.everything else {}
    # Passes may rename an output; its place among the outputs stays.
    original = dict(zip(entry.plan.graph.outputs, each.graph.outputs, strict=True)) if not entry.everything else {}
    for name, values in found.items():
        source = original.get(name, name)
        wanted, doubtful = exact[source], each.keras.get(source, single.get(source))
        assert doubtful is not None
        yield from _difference(name, values, wanted, doubtful)


def _difference(name: str, found: Array, exact: Array, doubtful: Array) -> Iterator[str]:
    if found.shape != exact.shape or doubtful.shape != exact.shape:
        yield f"{name} has the shape {found.shape}, Keras {doubtful.shape}, the reference {exact.shape}"
        return
    doubt = float(np.abs(doubtful - exact).max(initial=0.0))
    slack = DOUBTFUL * doubt if doubt < TRUSTED else 0.0
    error = np.abs(found - exact)
    if not (error <= np.maximum(TOLERANCE * (1 + np.abs(exact)), slack)).all():
        yield f"{name} differs by {error.max():.3g}, Keras by {doubt:.3g}"
