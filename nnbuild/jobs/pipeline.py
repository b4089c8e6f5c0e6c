"""From a model file to its C files: the whole compilation in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from nnbuild import passes
from nnbuild.backends.firmware.layout import arena_room, flash_room
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import NnbuildError, UsageError
from nnbuild.base.paths import generator_files
from nnbuild.base.progress import phase
from nnbuild.board.board import Board
from nnbuild.board.tables import boards, find
from nnbuild.compress.record import Compression
from nnbuild.emit.artifact import Artifact
from nnbuild.emit.emit import digest, emit
from nnbuild.features.config import recipe_of as recipe_of_file
from nnbuild.features.files import hearing_files
from nnbuild.features.network_binding import Hearing, hearing_of
from nnbuild.frontend import load
from nnbuild.frontend.import_options import ImportOptions, Numbers
from nnbuild.isa.c99 import C99
from nnbuild.isa.registry import baseline, fits, isas, native
from nnbuild.jobs.accelerator import device_notes, unknown_places
from nnbuild.jobs.class_names import class_names
from nnbuild.jobs.compression import Announce, Priced, compiled_within, model_flash, silent, with_wishes, within_flash
from nnbuild.jobs.measured_code import measured_code
from nnbuild.jobs.memory_precheck import refuse_too_large
from nnbuild.jobs.options import BYTES, Options, board_of, prefix_of, recipe_of, target_of
from nnbuild.jobs.recordings import samples_from_recordings
from nnbuild.model.graph import Graph, Shape
from nnbuild.model.verify import verify
from nnbuild.offload.table import device_inputs
from nnbuild.ops.convert import Convert
from nnbuild.passes.compose_tables import compose_tables
from nnbuild.passes.fuse_norms import fuse_norms
from nnbuild.plan.least_constants import least_constants
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.printed import remembering
from nnbuild.plan.shared_code import EXCHANGE, cost, exchange_of, share_arrays
from nnbuild.plan.target import Target
from nnbuild.quantize.accuracy import quantize_within
from nnbuild.quantize.calibrate import Range
from nnbuild.quantize.integer_stretches import join_stretches
from nnbuild.quantize.quantize import Progress, quantize_with, ranges_of
from nnbuild.streaming.options import parse
from nnbuild.streaming.stream import Streamed, streamed
from nnbuild.streaming.views import without_copies

BASELINE = "baseline"
"""The instruction set of a board whose processor is this PC's. Integer models are then printed as portable C, and
touch no floating-point or vector register unless an instruction set was requested."""
IDLE = "without --quantize these have no effect on the model"
LARGEST_ARRAYS = 256 * 1024
"""Bytes of weights up to which C arrays compile fast enough."""


@dataclass(frozen=True, eq=False)
class Compiled:
    """`imported` is the model as in its file, `folded` the model after the passes, `graph` the computed one."""

    options: Options
    board: Board
    imported: Graph
    folded: Graph
    graph: Graph
    plan: Plan
    artifact: Artifact
    compression: Compression
    hearing: Hearing | None = None
    streamed: Streamed | None = None
    """The window that `graph` is one step of, if any."""

    @property
    def digest(self) -> str:
        """The hash by which a device identifies its program."""
        return digest(self.graph) if self.hearing is None else self.hearing.digest(digest(self.graph))


def _as_it_is(graph: Graph, options: Options) -> Graph:
    """Without --quantize: notes which options have no effect."""
    if passes.is_quantized(graph) and options.io == "float":
        raise UsageError(
            "--io float",
            "this model is already quantized; its inputs and outputs keep the types in the file.",
            "Leave --io out; the header gives the scales of inputs and outputs.",
        )
    given = {
        "--calibrate": options.calibrate is not None and not options.of_weights.any,
        "--keep": bool(options.keep),
        "--accuracy-drop": options.accuracy_drop is not None and not options.of_weights.any,
        "--no-bias-correction": not options.bias_correction,
        "--calibration": options.method != "minmax",
        "--image-range": options.image_range != Options.image_range and not options.of_weights.any,
        "--io": options.io != "integer",
    }
    idle = ", ".join(name for name, is_given in given.items() if is_given)
    return replace(graph, notes=(*graph.notes, f"{IDLE}: {idle}")) if idle else graph


def _about_images(options: Options) -> tuple[str, ...]:
    """Notes a range of images where none are read."""
    sampled = options.quantize != "float" or options.of_weights.any
    images = options.calibrate is not None and options.calibrate.is_dir()
    idle = sampled and not images and options.image_range != Options.image_range
    return ("without a folder of images (--calibrate) this has no effect: --image-range",) if idle else ()


def _quantized(graph: Graph, options: Options, progress: Progress | None, sizes_only: bool) -> Graph:
    if options.quantize == "float":
        return _as_it_is(graph, options)
    if passes.is_quantized(graph):
        raise UsageError(
            f"--quantize {options.quantize}",
            "this model is already quantized.",
            "Leave --quantize out, or give a float model.",
        )
    graph, recipe = fuse_norms(graph), recipe_of(options)
    wishes = options.of_weights
    if sizes_only and options.accuracy_drop is None and not wishes.any:
        return quantize_with(graph, recipe, dict.fromkeys(graph.tensors, Range(-1.0, 1.0)))
    ranges = ranges_of(graph, recipe, progress)
    if options.accuracy_drop is None or wishes.any:
        return quantize_with(graph, recipe, ranges)
    return quantize_within(graph, recipe, ranges, options.accuracy_drop)


def precision(graph: Graph) -> str:
    """float, int8, int16, or mixed where operations use several formats. Plain integers, as comparisons give, are of no
    format."""
    made = [graph.tensors[op.outputs[0]] for op in graph.ops if not isinstance(op.attributes, Convert)]
    formats = {tensor.dtype for tensor in made if not tensor.is_whole} or {tensor.dtype for tensor in made}
    return formats.pop().replace("float32", "float") if len(formats) == 1 else "mixed" if formats else "float"


def weights_form(options: Options, imported: Graph | None = None) -> str:
    """ "array" or "binary". Depends on the imported model alone, so that a build knows its files beforehand."""
    if options.weights != "auto":
        return options.weights
    size = _bytes_in_file(options) if imported is None else _weights_bytes(imported, options.quantize)
    return "binary" if size > LARGEST_ARRAYS else "array"


def _weights_bytes(imported: Graph, quantize: str) -> int:
    weights = [constant.data for constant in imported.constants.values()]
    return sum(data.size * BYTES[quantize] if data.dtype.kind == "f" else data.nbytes for data in weights)


def _bytes_in_file(options: Options) -> int:
    """0 for a file that does not exist yet, or whose error the compilation will report."""
    try:
        written = options.model.stat()
    except OSError:
        return 0
    stamp = (written.st_mtime_ns, written.st_size)
    shapes, numbers = (tuple((name, tuple(values)) for name, values in given) for given in (options.shape, options.fix))
    return _bytes_read(options.model.resolve(), stamp, shapes, options.io_layout, numbers, options.quantize)


@lru_cache
def _bytes_read(
    model: Path,
    stamp: tuple[int, int],
    shapes: tuple[tuple[str, Shape], ...],
    layout: str,
    numbers: tuple[tuple[str, Numbers], ...],
    quantize: str,
) -> int:
    """A build asks several times for each model, and some files have hundreds of megabytes."""
    try:
        return _weights_bytes(load(model, "model", ImportOptions(dict(shapes), layout, dict(numbers))), quantize)
    except NnbuildError:
        return 0


def inputs_of(options: Options) -> list[Path]:
    """Every file that determines the printed C: the model, the calibration samples, and nnbuild itself."""
    samples = options.calibrate
    if samples is None:
        given = []
    elif samples.is_dir():
        given = [samples, *sorted(path for path in samples.rglob("*") if path.is_file())]
    else:
        given = [samples]
    given += [path for path in (options.labels, options.features) if path is not None]
    given += device_inputs(options.device) if options.device is not None else []
    return [options.model, *given, find(options.board).file, *generator_files()]


def board_for(isa: str | None) -> str:
    """The board to use for a model compiled for no particular board: this PC, or a board with these instructions."""
    native = find("linux")
    wanted = isas().get(isa or native.isa)
    if wanted is None or fits(wanted, native.architecture):
        return native.name
    there = sorted((board for board in boards() if fits(wanted, board.architecture)), key=_particular)
    return next((board.name for board in there if board.isa == isa), there[0].name if there else native.name)


def _particular(board: Board) -> tuple[bool, int, int, str]:
    """A sort key that prefers boards with few specifics: emulated, one core, memory without wait states."""
    return board.emulator is None, board.cores.count, board.flash_speed.wait, board.name


@remembering()
def compile_model(
    options: Options,
    progress: Progress | None = None,
    announce: Announce = silent,
    *,
    sizes_only: bool = False,
    to_run: bool = True,
) -> Compiled:
    """Compiles a model. `progress` counts calibration samples, `announce` gets a line for each trial of weights; only
    these two steps can take long. `sizes_only` assumes every value lies between -1 and 1. With `to_run`, a model that
    is too large for its board is refused."""
    options = _on_one_core(options) if options.stream is not None else options
    prefix = prefix_of(options)
    board = board_of(options)
    with phase("reading the model"):
        imported = load(options.model, prefix, options.import_options)
    if to_run:
        refuse_too_large(imported, board, options.quantize, BYTES, bool(options.of_weights.given))
    whole = options.layers and options.quantize == "float"
    folded = imported if whole else passes.run(join_stretches(imported), form=options.quantize)
    with samples_from_recordings(options.features, options.calibrate, imported) as calibrate:
        given = replace(options, calibrate=calibrate)
        with phase("reading samples and quantizing"):
            graph = passes.finalize(_quantized(folded, given, progress, sizes_only))
            graph = replace(graph, notes=(*graph.notes, *_about_images(options)))
        if not (options.layers or options.device):
            graph = verify(compose_tables(graph))
        target = target_of(options, board)
        if options.isa is None and board.isa == BASELINE and precision(graph) in ("int8", "int16"):
            target = replace(target, isa=C99)
        backend = backend_of(board)
        target = backend.prepare(graph, target, options.isa)
        unknown_places(graph, options.place)
        wishes, source = options.of_weights, recipe_of(given).source

        def planned(graph: Graph) -> Plan:
            with phase("choosing kernels and placing memory"):
                limited = partial(_plan, _as_stream(graph, options, board, target)[0], prefix, board, target)
                if wishes.flash is None or precision(graph) != "float":  # integers have other weights to choose from
                    return limited(wishes.flash)
                return compiled_within(limited, partial(limited, None, smallest=True), wishes.flash, code)

        def code(plan: Plan) -> int | None:
            made = emit(backend.settle(plan, target), weights_form(options, imported))
            return measured_code(board, prefix, made.files)

        priced = Priced(target, planned)
        if wishes.flash is not None:
            priced = Priced(replace(target, compact=True), planned, smallest=True, measured=code)
        graph, compression = with_wishes(folded, graph, source, wishes, priced, announce)
    graph, found = _as_stream(graph, options, board, target)
    plan = backend.settle(planned(graph), target)
    graph = replace(plan.graph, notes=(*graph.notes, *backend.notes(plan), *device_notes(plan), *_shared_notes(plan)))
    classes = class_names(options.labels, options.model, graph)
    with phase("printing the C"):
        artifact = emit(plan, weights_form(options, imported), classes)
    hearing = hearing_of(recipe_of_file(options.features), graph, classes) if options.features is not None else None
    if hearing is not None:
        artifact = Artifact({**artifact.files, **hearing_files(hearing, prefix, artifact.files[f"{prefix}.h"])})
    return Compiled(options, board, imported, folded, graph, plan, artifact, compression, hearing, found)


def _shared_notes(plan: Plan) -> list[str]:
    """Notes on steps that work in shared memory although each core has its own."""
    return [f"layer {step.layer!r} works in shared memory: {step.untiled}" for step in plan.steps if step.untiled]


def _on_one_core(options: Options) -> Options:
    if options.threads is not None and options.threads > 1:
        raise UsageError(f"--cores {options.threads}", "a streaming step runs on one core.", "Leave it out.")
    return replace(options, threads=1)


def _as_stream(graph: Graph, options: Options, board: Board, target: Target) -> tuple[Graph, Streamed | None]:
    """The computed graph: for a streamed window, the graph of one step; of two equivalent graphs, the cheaper one by
    the plan's optimization goal."""
    if options.stream is None or graph.stream is not None:
        return graph, None
    found = streamed(graph, parse(options.stream))
    copies = options.device is not None or options.layers
    able = [each for each in (found.step, found.running) if each is not None]
    steps = [passes.finalize(each if copies else without_copies(each, board.alignment)) for each in able]
    if len(steps) == 1:
        return steps[0], found
    plans = [make_plan(step, "priced", replace(target, device=None)) for step in steps]
    first = 1 if options.optimize == "speed" else -1
    costs = [(sum(step.choice.price.cycles for step in plan.steps), plan.state + plan.arena)[::first] for plan in plans]
    best = costs.index(min(costs))
    return steps[best], replace(found, step=able[best])


def classes_for(compiled: Compiled) -> tuple[str, ...]:
    """Names of the first output's values, where known."""
    return class_names(compiled.options.labels, compiled.options.model, compiled.graph)


def faster_here(compiled: Compiled) -> tuple[str, ...]:
    """A note where one option would make the model much faster on this PC."""
    made, best = compiled.plan.isa.name, native()
    if compiled.options.isa is not None or compiled.board.isa != BASELINE or best in (made, baseline()):
        return ()
    return (f"generated for any processor ({made}); --isa native would use this PC's {best}, which is much faster",)


def _plan(
    graph: Graph, prefix: str, board: Board, target: Target, flash: int | None, *, smallest: bool = False
) -> Plan:
    """The plan as requested; if it exceeds the board's memory, a smaller plan that fits, if there is one."""
    plan = _first_plan(graph, prefix, target)
    room, rest = arena_room(board, plan), flash_room(board, plan)
    target = replace(target, max_ram=room, compact=plan.encoding.compact)
    plan = plan if room is None or plan.arena <= room else make_plan(graph, prefix, target)

    def again(most: int) -> Plan:
        limited = replace(target, max_flash=most)
        made = make_plan(graph, prefix, limited) if flash is None else None
        return made if made and model_flash(made) <= most else make_plan(graph, prefix, replace(limited, compact=True))

    small = replace(target, optimize="size", min_size=True, compact=True)
    if smallest:
        return make_plan(graph, prefix, small)
    most = [size for size in (flash, rest) if size is not None]
    least = partial(least_constants, graph, small)
    return within_flash(plan, min(most, default=None), again, partial(make_plan, graph, prefix, small), least)


def _first_plan(graph: Graph, prefix: str, target: Target) -> Plan:
    """With `optimize=size`, the code is compiled for few bytes if it is worth the time."""
    plan = make_plan(graph, prefix, target)
    if target.optimize != "size":
        return plan
    exchange = exchange_of(target) or EXCHANGE
    compact = make_plan(graph, prefix, replace(target, compact=True))

    def worth(each: Plan) -> float:
        return cost(share_arrays([step.choice for step in each.steps], target.in_block), exchange)

    return min(plan, compact, key=worth)
