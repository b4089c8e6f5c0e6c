"""One job on a board: builds the program, runs samples through it, and compares the outputs with the references."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path

import numpy as np

from nnbuild.backends.backend import Chosen
from nnbuild.backends.build import build, build_application
from nnbuild.backends.object_audit import model_stack
from nnbuild.backends.registry import backend_of
from nnbuild.backends.run_bound import hold_budget
from nnbuild.base.errors import UsageError
from nnbuild.base.files import removed_on_failure
from nnbuild.base.progress import phase
from nnbuild.device.accelerator import read_counters
from nnbuild.device.check import first_wrong, judge
from nnbuild.device.descriptor import ModelInfo
from nnbuild.device.gates import CheckReport, Evidence, Gates, Output, Stack
from nnbuild.device.layers import LayerDifference, compare_layers, layer_costs
from nnbuild.device.link import Link
from nnbuild.device.profile import RUNS, Estimate, Profile, measure_costs
from nnbuild.device.session import Runs, dump_layers, open_model, profile_sample, run_samples
from nnbuild.emit.artifact import Artifact
from nnbuild.features.network_binding import Hearing
from nnbuild.features.wav import one_step
from nnbuild.jobs.accelerator import accelerator_use
from nnbuild.jobs.cores import cores_of
from nnbuild.jobs.cut_inputs import cut_inputs
from nnbuild.jobs.cycle_model import modelled
from nnbuild.jobs.generated_samples import affordable, generated_samples
from nnbuild.jobs.memory import memory_of
from nnbuild.jobs.options import Options, board_of
from nnbuild.jobs.pipeline import Compiled, precision
from nnbuild.jobs.program_files import descriptor_of, program_files
from nnbuild.jobs.stream import stream_samples, whole_stream, window_inputs
from nnbuild.model.graph import Array, Graph, Op
from nnbuild.model.samples import SampleSet, load_samples
from nnbuild.ops import interpret
from nnbuild.ops.activation import Activation
from nnbuild.ops.compare import may_miss
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.tolerance import UNIT, Standard, standards
from nnbuild.ops.transpose import Transpose

HERE, EMULATED = (8000, 400_000_000), (200, 4_000_000)
"""Number of generated samples, and maximum total multiplications, for judging an integer program on this PC and in
an emulator. The smallest mistakes show in one of thousands of samples."""
NUMBERS = 2**27
"""Maximum number of values in all their tensors."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Place:
    """Where the job runs: its folder, an existing program, a port, and the options of the back end's build. `own`
    are C sources of the user's program, built instead of ours."""

    folder: Path
    program: Path | None = None
    port: str | None = None
    chosen: Chosen = field(default_factory=dict)
    own: tuple[Path, ...] = ()


@contextmanager
def place(program: Path | None, port: str | None = None, chosen: Chosen | None = None) -> Iterator[Place]:
    """A temporary folder for the job."""
    with tempfile.TemporaryDirectory(prefix="nnbuild-") as folder:
        yield Place(Path(folder), program, port, chosen or {})


def refuse_to_run(options: Options, port: str | None) -> None:
    """Refuses a board whose programs cannot be run here, before a model is read."""
    board = board_of(options)
    backend_of(board).refuse_to_run(board, port)


def build_program(compiled: Compiled, where: Place) -> Path:
    """Returns the given program, or builds one; enforces the instruction budget if there is one."""
    board = compiled.board
    if where.program is not None:
        backend_of(board).refuse_program(board, where.program)
        hold_budget(board, where.program)
        return where.program
    files = Artifact(program_files(compiled))
    files.write(where.folder)
    if where.own:
        return build_application(board, compiled.plan.prefix, where.folder, files.files, where.own)
    program = build(board, compiled.plan.prefix, where.folder, files.files, where.chosen)
    with removed_on_failure(program, *backend_of(board).images(program)):
        hold_budget(board, program)
    return program


@contextmanager
def connected(compiled: Compiled, program: Path, port: str | None) -> Iterator[tuple[Link, ModelInfo]]:
    line = backend_of(compiled.board).open_line(compiled.board, program, port)
    with line.transport:
        if line.meter is not None:
            line.meter.parts = [step.parts for step in compiled.plan.steps]
        link = Link(line.transport, unit=line.unit, per_tick=line.per_tick, meter=line.meter)
        yield link, open_model(link, descriptor_of(compiled))


def samples_for(compiled: Compiled, path: Path | None, *, judged: bool = False) -> SampleSet:
    """The samples in the file; without a file, generated ones, which show agreement but not accuracy. Many are
    generated where the program is `judged` by them."""
    refuse_sound(compiled)
    graph = compiled.graph
    if compiled.streamed is not None:
        return stream_samples(compiled.streamed, path)
    if path is not None:
        inputs, outputs = ([graph.tensors[n] for n in names] for names in (graph.inputs, graph.outputs))
        given = load_samples(path, inputs, outputs, may_miss(graph), graph.notes)
        return replace(given, notes=(*given.notes, *cut_inputs(graph, given)))
    return generated_samples(graph, _affordable(compiled) if judged and precision(graph) != "float" else 0)


def refuse_sound(compiled: Compiled) -> None:
    """Refuses a program with a front end where the network's own inputs are wanted."""
    if compiled.hearing is not None:
        cause = "a program with a front end takes sound, not samples of the network's inputs."
        raise UsageError("--features", cause, "Leave it out; `nnbuild check` and `nnbuild listen` run both on sound.")


def _affordable(compiled: Compiled) -> int:
    macs = sum(step.macs for step in compiled.plan.steps)
    numbers = sum(prod(tensor.shape) for tensor in compiled.graph.tensors.values())
    most, work = HERE if backend_of(compiled.board).quick else EMULATED
    return min(affordable(compiled.graph, most), work // max(1, macs), NUMBERS // max(1, numbers))


def run_job(
    compiled: Compiled, samples: SampleSet, where: Place, *, reset_each: bool = False, progress: Progress | None = None
) -> Runs:
    program = build_program(compiled, where)
    with connected(compiled, program, where.port) as (link, model):
        return _run(compiled, link, model, samples, reset_each, progress)


def _run(
    compiled: Compiled, link: Link, model: ModelInfo, samples: SampleSet, reset_each: bool, progress: Progress | None
) -> Runs:
    stateful = bool(compiled.graph.states)
    return run_samples(link, model, list(samples), stateful=stateful, reset_each=reset_each, progress=progress)


def check_job(
    compiled: Compiled,
    samples: SampleSet,
    where: Place,
    gates: Gates,
    *,
    reset_each: bool = False,
    progress: Progress | None = None,
) -> CheckReport:
    program = build_program(compiled, where)
    first = next(iter(samples))
    with connected(compiled, program, where.port) as (link, model):
        hello = link.hello()
        with phase(f"running {len(samples):,} samples"):
            runs = _run(compiled, link, model, samples, reset_each, progress)
        planned = accelerator_use(compiled.plan)
        told = read_counters(link, planned, len(runs.ticks)) if planned is not None else None
        stack = link.stack()
        with phase("computing the reference"):
            outputs = _outputs(compiled, samples, runs, reset_each)
        suspect = 0 if compiled.graph.states else first_wrong(outputs, gates)
        differences = _layers(compiled, link, model, list(samples)[suspect]) if compiled.options.layers else ()
        init_ticks = link.init()
        costs = layer_costs(model, profile_sample(link, model, first))
    evidence = Evidence(
        model=compiled.plan.prefix,
        model_hash=model.hash,
        board=compiled.board.name,
        quantize=precision(compiled.graph),
        unit=hello.unit,
        hertz=hello.hertz,
        outputs=outputs,
        ticks=runs.ticks,
        init_ticks=init_ticks,
        labels=samples.labels,
        stack=Stack(stack.used, stack.size, stack_of(compiled, program.parent)),
        layers=costs,
        differences=differences,
        looked_at=suspect,
        memory=memory_of(compiled, program),
        flash=compiled.options.of_weights.flash,
    )
    report = judge(evidence, gates)
    mean = report.duration.mean if report.duration is not None else None
    return replace(report, modelled=modelled(compiled, program, hello.unit, mean), beside=told)


def stack_of(compiled: Compiled, folder: Path) -> int | None:
    """The static stack bound; None for a program that was moved from its build folder, because the bound comes from
    its objects."""
    if not (folder / f"{compiled.plan.prefix}.o").is_file():
        return None
    pool = backend_of(compiled.board).stack.parts if compiled.plan.parallel else 0
    return model_stack(compiled.board, compiled.plan.prefix, folder).depth + pool


def _layers(
    compiled: Compiled, link: Link, model: ModelInfo, sample: Mapping[str, Array]
) -> tuple[LayerDifference, ...]:
    batch = {name: value[None] for name, value in sample.items()}
    graph = compiled.graph
    wanted = standards(graph, batch, [name for op in graph.ops for name in op.outputs], reset_each=True)
    right = {name: (each.values[0], float(each.tolerance[0])) for name, each in wanted.items()}
    return compare_layers(model, dump_layers(link, model, sample), right)


def _outputs(compiled: Compiled, samples: SampleSet, runs: Runs, reset_each: bool) -> list[Output]:
    wanted, floats = _wanted(compiled, samples.inputs, reset_each)
    outputs = []
    own = any(t.quant is not None and not t.is_whole for t in compiled.imported.tensors.values())
    for index, (name, original) in enumerate(zip(compiled.graph.outputs, compiled.imported.outputs, strict=True)):
        quant = compiled.graph.tensors[name].quant
        outputs.append(
            Output(
                name=name,
                raw=runs.raw[index],
                y=runs.y[index],
                reference=wanted[name].values,
                tolerance=wanted[name].tolerance,
                step=quant.scale if quant is not None else 1.0,
                # A file that is already quantized has no float model to compare with.
                float_y=floats[original] if compiled.imported.tensors[original].quant is None else None,
                golden_y=samples.golden[index] if samples.golden is not None else None,
                golden_unit=UNIT if is_share(compiled.imported, original) else 0.0,
                classifier=not samples.drawn and is_classifier(compiled.imported, original),
                quantized=precision(compiled.graph) != "float",
                own=own,
                rounded=bool(compiled.compression.rounded),
                unlike=compiled.imported.unlike,
            )
        )
    return outputs


def _wanted(
    compiled: Compiled, inputs: Mapping[str, Array], reset_each: bool
) -> tuple[Mapping[str, Standard], Mapping[str, Array]]:
    """The required outputs, and those of the float model. For a stream these are the window's outputs after every
    step, or those of a run over the whole stream, whichever the step computes."""
    graph, found = compiled.graph, compiled.streamed
    if found is not None and found.meaning == "stream":
        bounds = standards(found.step, inputs, found.step.outputs, reset_each=reset_each)
        values, floats = whole_stream(found, compiled.folded, inputs, reset_each)
        wanted = {name: replace(bounds[name], values=values[name]) for name in graph.outputs}
        names = zip(compiled.folded.outputs, compiled.imported.outputs, strict=True)
        return wanted, {original: floats[name] for name, original in names}
    if found is not None:
        graph, inputs = found.window, window_inputs(found, inputs, reset_each)
    wanted = standards(graph, inputs, graph.outputs, reset_each=reset_each)
    with np.errstate(all="ignore"):
        given = {name: x.reshape(-1, *compiled.imported.tensors[name].shape) for name, x in inputs.items()}
        return wanted, interpret.run(compiled.imported, given, "float64", reset_each=reset_each)


def is_classifier(graph: Graph, output: str) -> bool:
    """Whether the output chooses between classes: a softmax, perhaps reshaped."""
    op = _maker(graph, output)
    return op is not None and isinstance(op.attributes, Softmax) and len(graph.tensors[output].shape) == 1


def is_share(graph: Graph, output: str) -> bool:
    """Whether the output is a logistic function, of which some frameworks add a half: near 0 their results are
    rounded as 1 is."""
    op = _maker(graph, output)
    return op is not None and isinstance(op.attributes, Activation) and op.attributes.function == "sigmoid"


def _maker(graph: Graph, output: str) -> Op | None:
    """The operation behind those that only order numbers anew."""
    makers = {name: op for op in graph.ops for name in op.outputs}
    op = makers.get(output)
    while op is not None and isinstance(op.attributes, Reshape | Transpose):
        op = makers.get(op.inputs[0])
    return op


def profile_job(compiled: Compiled, where: Place) -> Profile:
    """Measures one run with random inputs."""
    program = build_program(compiled, where)
    sample = next(iter(samples_for(compiled, None))) if compiled.hearing is None else one_step(compiled.hearing)
    with connected(compiled, program, where.port) as (link, model):
        hello = link.hello()
        with phase("measuring the layers"):
            costs = measure_costs(link, model, sample, *_steps_of(compiled.hearing))
        told = (
            read_counters(link, planned, RUNS + 2) if (planned := accelerator_use(compiled.plan)) is not None else None
        )
        counted = link.counted
    bound = stack_of(compiled, program.parent)
    last = counted.critical_path if counted is not None else None
    return Profile(
        board=compiled.board.name,
        model=compiled.plan.prefix,
        quantize=precision(compiled.graph),
        unit=hello.unit,
        hertz=hello.hertz,
        duration=costs.duration,
        init_ticks=costs.init_ticks,
        layers=costs.layers,
        stack=Stack(*costs.stack, bound),
        memory=memory_of(compiled, program) | ({"stack": bound} if bound is not None else {}),
        modelled=modelled(compiled, program, hello.unit, last or costs.duration.mean),
        beside=told,
        cores=counted.totals("work") if counted is not None else (),
        waiting=counted.totals("waiting") if counted is not None else (),
        copying=counted.totals("copying") if counted is not None else (),
        critical_path=last,
        estimate=estimate(compiled),
    )


def _steps_of(hearing: Hearing | None) -> tuple[int, int]:
    """Steps to take before some are measured, and how many these are: as many with a run of the network as without."""
    return (0, RUNS) if hearing is None else (hearing.rows, -(-RUNS // hearing.hop) * hearing.hop)


def estimate(compiled: Compiled) -> Estimate | None:
    """The estimated times of several cores; None for a single core."""
    cores, steps = cores_of(compiled.board, compiled.options.threads), compiled.plan.steps
    if not compiled.plan.parallel:
        return None
    rate = cores.local.copy if cores.local is not None else 0
    each = [
        tuple((own + rate * size) / cores.speed(k) for k, (own, size) in enumerate(zip(parts, copies, strict=True)))
        for parts, copies in ((step.part_cycles, step.copied) for step in steps)
    ]
    copies = rate * sum(max(step.copied) for step in steps)
    used = max(map(len, each))
    totals = tuple(sum(parts[core] for parts in each if core < len(parts)) for core in range(used))
    forks = sum(cores.fork + cores.each * len(parts) for parts in each if len(parts) > 1)
    return Estimate(totals, forks, sum(map(max, each)) + forks, copies)
