"""From a model file to the files of its C: the whole way in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from nnbuild import passes
from nnbuild.board import Board, find
from nnbuild.emit.artifact import Artifact
from nnbuild.emit.emit import emit
from nnbuild.errors import UsageError
from nnbuild.frontend import load
from nnbuild.frontend.stored import stored_parameters
from nnbuild.graph import Graph
from nnbuild.names import identifier
from nnbuild.plan.plan import Plan, Target, make_plan

BYTES = {"float": 4}
LARGEST_ARRAYS = 256 * 1024
"""Bytes of weights up to which C arrays compile fast enough."""


@dataclass(frozen=True)
class Options:
    """What a user can choose. `layers` keeps every layer's output, so that each can be compared."""

    model: Path
    board: str = "linux"
    quantize: str = "float"
    optimize: str = "speed"
    name: str | None = None
    weights: str = "auto"
    layers: bool = False


@dataclass(frozen=True, eq=False)
class Compiled:
    """`imported` is the model as its file says it; `graph` is what is really computed."""

    options: Options
    board: Board
    imported: Graph
    graph: Graph
    plan: Plan
    artifact: Artifact

    @property
    def number_format(self) -> str:
        """What was asked for; for a file that is quantized already, its own types."""
        if not passes.is_quantized(self.imported):
            return self.options.quantize
        found = {tensor.dtype for tensor in self.imported.tensors.values()}
        return "+".join(sorted(found))


def prefix_of(options: Options) -> str:
    """The C prefix: the name given, or the file's."""
    return identifier(options.name if options.name is not None else options.model.stem)


def weights_form(options: Options) -> str:
    """ "array" or "binary". Known from the file's size alone, so that a build knows its files before it has run."""
    if options.weights != "auto":
        return options.weights
    return "binary" if stored_parameters(options.model) * BYTES[options.quantize] > LARGEST_ARRAYS else "array"


def compile_model(options: Options) -> Compiled:
    prefix = prefix_of(options)
    board = find(options.board)
    imported = replace(load(options.model), name=prefix)
    if options.quantize != "float" and passes.is_quantized(imported):
        raise UsageError(
            options.model.name,
            "it is quantized already, with scales of its own.",
            f"Leave out --quantize {options.quantize}, or give the float model that it was made from.",
        )
    graph = imported if options.layers else passes.run(imported)
    target = Target(board.features, board.alignment, options.layers, options.optimize)
    plan = make_plan(graph, prefix, target)
    return Compiled(options, board, imported, graph, plan, emit(plan, weights_form(options)))
