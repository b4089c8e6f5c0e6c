"""From a model file to the files of its C: the whole way in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from nnbuild import passes
from nnbuild.board import Board, find
from nnbuild.emit.artifact import Artifact
from nnbuild.emit.emit import emit
from nnbuild.errors import NnbuildError, UsageError
from nnbuild.frontend import load
from nnbuild.graph import Graph
from nnbuild.names import identifier
from nnbuild.ops.convert import Convert
from nnbuild.outputs.kmod_weights import refuse_hidden_weights, refuse_other_boards
from nnbuild.plan.plan import Plan, Target, make_plan
from nnbuild.quantize.accuracy import quantize_within
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Progress, Recipe, quantize_with, ranges_of

BYTES = {"float": 4, "int8": 1, "int16": 1}
LARGEST_ARRAYS = 256 * 1024
"""Bytes of weights up to which C arrays compile fast enough."""


@dataclass(frozen=True)
class Options:
    """What a user can choose. `layers` keeps every layer's output, so that each can be compared; `swappable` makes a
    kernel module whose weights can be exchanged while it runs."""

    model: Path
    board: str = "linux"
    quantize: str = "float"
    calibrate: Path | None = None
    method: str = "minmax"
    keep: tuple[tuple[str, str], ...] = ()
    io: str = "integer"
    bias_correction: bool = True
    accuracy_drop: float | None = None
    image_range: tuple[float, float] = (0.0, 1.0)
    optimize: str = "speed"
    name: str | None = None
    weights: str = "auto"
    layers: bool = False
    swappable: bool = False


@dataclass(frozen=True, eq=False)
class Compiled:
    """`imported` is the model as its file says it, `folded` after the passes, `graph` what is really computed."""

    options: Options
    board: Board
    imported: Graph
    folded: Graph
    graph: Graph
    plan: Plan
    artifact: Artifact


def prefix_of(options: Options) -> str:
    """The C prefix: the name given, or the file's."""
    return identifier(options.name if options.name is not None else options.model.stem)


def _as_it_is(graph: Graph, options: Options) -> Graph:
    """Without --quantize: says which options it leaves without effect."""
    if passes.is_quantized(graph) and options.io == "float":
        raise UsageError(
            "--io float",
            "this model is quantized already, and keeps the edges its file has.",
            "Leave --io out; the header gives the scales of inputs and outputs.",
        )
    given = {
        "--calibrate": options.calibrate is not None,
        "--keep": bool(options.keep),
        "--accuracy-drop": options.accuracy_drop is not None,
        "--no-bias-correction": not options.bias_correction,
        "--calibration": options.method != "minmax",
    }
    idle = ", ".join(name for name, is_given in given.items() if is_given)
    return replace(graph, notes=(*graph.notes, f"without --quantize these do nothing: {idle}")) if idle else graph


def _quantized(graph: Graph, options: Options, progress: Progress | None) -> Graph:
    if options.quantize == "float":
        return _as_it_is(graph, options)
    if passes.is_quantized(graph):
        raise UsageError(
            f"--quantize {options.quantize}",
            "this model is quantized already.",
            "Leave --quantize out, or give floats.",
        )
    recipe = recipe_of(options)
    ranges = ranges_of(graph, recipe, progress)
    if options.accuracy_drop is None:
        return quantize_with(graph, recipe, ranges)
    return quantize_within(graph, recipe, ranges, options.accuracy_drop)


def precision(graph: Graph) -> str:
    """float, int8, int16, or mixed where operations compute in several formats."""
    formats = {graph.tensors[op.outputs[0]].dtype for op in graph.ops if not isinstance(op.attributes, Convert)}
    return formats.pop().replace("float32", "float") if len(formats) == 1 else "mixed" if formats else "float"


def recipe_of(options: Options) -> Recipe:
    source = Source(options.calibrate, options.image_range)
    return Recipe(
        form=options.quantize,
        source=source,
        method=options.method,
        keep=dict(options.keep),
        float_edge=options.io == "float",
        bias_correction=options.bias_correction,
    )


def weights_form(options: Options, imported: Graph | None = None) -> str:
    """ "array" or "binary". The imported model alone decides, so that a build knows its files before it has run."""
    if options.weights != "auto":
        return options.weights
    if imported is None:
        try:
            imported = load(options.model, prefix_of(options))
        except NnbuildError:
            return "array"  # the file is not there yet, or the compilation will say what is wrong with it
    weights = [constant.data for constant in imported.constants.values()]
    size = sum(data.size * BYTES[options.quantize] if data.dtype.kind == "f" else data.nbytes for data in weights)
    return "binary" if size > LARGEST_ARRAYS else "array"


def compile_model(options: Options, progress: Progress | None = None) -> Compiled:
    """`progress` hears of the calibration, which alone may take long."""
    prefix = prefix_of(options)
    board = find(options.board)
    imported = load(options.model, prefix)
    as_it_is = options.layers and options.quantize == "float"
    folded = imported if as_it_is else passes.run(imported)
    graph = _quantized(folded, options, progress)
    target = Target(board.features, board.alignment, options.layers, options.optimize, options.swappable)
    plan = make_plan(graph, prefix, target)
    if options.swappable:
        refuse_other_boards(board.output)
        refuse_hidden_weights(plan, target)
    return Compiled(options, board, imported, folded, graph, plan, emit(plan, weights_form(options, imported)))
