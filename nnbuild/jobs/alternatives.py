"""Measures every candidate kernel of each step, in as few runs as there are candidates for one step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nnbuild.backends.firmware.layout import DoesNotFit
from nnbuild.base.files import make_folder, write_whole
from nnbuild.cycles.cost_model import pace_of
from nnbuild.jobs.cycle_model import timed_program
from nnbuild.jobs.job import build_program, place, profile_job
from nnbuild.jobs.options import Options, target_of
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.jobs.program_files import program_files
from nnbuild.plan import measured
from nnbuild.plan.plan import Step
from nnbuild.plan.select import Offer


@dataclass(frozen=True)
class Measurement:
    """One kernel at one step: its estimated and its measured cost.

    cost: None where the program would not fit the board, or where the kernel cannot be forced: a stream, or a kernel
    that takes another set of operations than the step does.
    """

    layer: str
    op: str
    kernel: str
    taken: bool
    estimate: float
    cost: int | None
    weights: int
    scratch: int


def measure(options: Options, far: float = math.inf) -> tuple[str, list[Measurement]]:
    """Returns the unit and every kernel of every step, without kernels estimated above `far` times the best one."""
    compiled = compile_model(options)
    steps = compiled.plan.steps
    modelled = options.price == "cycles" and pace_of(compiled.board) is not None
    first: dict[str, int] = {}  # equal work takes equal cycles
    alike = [first.setdefault(measured.work_name(step.site), at) if modelled else at for at, step in enumerate(steps)]
    unit, found = "", {}
    for wanted in _rounds(steps, [at == own for at, own in enumerate(alike)], far):
        for group in _fitting(options, wanted):
            unit, costs = _run(options, group)
            found.update({(index, kernel): costs[index] for index, kernel in group.items() if index in costs})
    return unit, [
        _measurement(step, offer, found.get((own, offer.kernel.name)))
        for own, step in zip(alike, steps, strict=True)
        for offer in step.choice.offers
    ]


def save(compiled: Compiled, cost: Mapping[tuple[str, str], int | None]) -> str:
    """Adds measured costs to the table of the processor, or of the instruction set where instructions are counted;
    returns the table's path."""
    name = target_of(compiled.options, compiled.board).table
    new: dict[str, dict[str, int]] = {}
    for step in compiled.plan.steps:
        for offer in step.choice.offers if not step.op.outer else ():
            known = cost.get((step.layer, offer.kernel.name))
            if known is not None:
                new.setdefault(measured.work_name(step.site), {})[offer.kernel.name] = known
    path = measured.file_of(name)
    make_folder(path.parent)
    write_whole(path, measured.text(measured.merged(measured.table(name), new)).encode())
    return str(path)


def _measurement(step: Step, offer: Offer, cost: int | None) -> Measurement:
    kernel, price = offer.kernel.name, offer.price
    taken = kernel == step.kernel_name
    return Measurement(step.layer, step.kind, kernel, taken, price.cycles, cost, price.weights, price.scratch)


def _rounds(steps: tuple[Step, ...], asked: Sequence[bool], far: float) -> Iterator[dict[int, str]]:
    """Yields {step: kernel} until every kernel has had its turn at every step that `asked` selects."""
    names: list[list[str]] = []
    for step, wanted in zip(steps, asked, strict=True):
        offers = step.choice.offers if wanted else ()
        least = min((offer.price.cycles for offer in offers), default=0)
        names.append([offer.kernel.name for offer in offers if offer.price.cycles <= far * least])
    for turn in range(max(map(len, names), default=0)):
        yield {index: own[turn] for index, own in enumerate(names) if turn < len(own)}


def _fitting(options: Options, wanted: dict[int, str]) -> Iterator[dict[int, str]]:
    """Yields the round as it is, or one kernel at a time where all together do not fit the board."""
    groups = [wanted] if _fits(options, wanted) else [{index: kernel} for index, kernel in wanted.items()]
    yield from (group for group in groups if len(groups) == 1 or _fits(options, group))


def _with(options: Options, group: Mapping[int, str]) -> Compiled:
    """With these kernels and all others as they are: an operation with a forced kernel is not fused into another."""
    steps = compile_model(options).plan.steps
    names = tuple((step.op.name, group.get(index, step.kernel_name)) for index, step in enumerate(steps))
    return compile_model(replace(options, kernels=names))


def _forced(options: Options, compiled: Compiled, group: Mapping[int, str]) -> dict[int, int]:
    """Step -> its index in the program, if it consists of the same operations there and has the wanted kernel."""
    steps = compile_model(options).plan.steps
    there = {(_names(step), step.kernel_name): at for at, step in enumerate(compiled.plan.steps)}
    found = {index: there.get((_names(steps[index]), kernel)) for index, kernel in group.items()}
    return {index: at for index, at in found.items() if at is not None}


def _names(step: Step) -> tuple[str, ...]:
    return tuple(op.name for op in step.site.ops)


def _fits(options: Options, group: Mapping[int, str]) -> bool:
    try:
        program_files(_with(options, group))
    except DoesNotFit:
        return False
    return True


def _run(options: Options, group: Mapping[int, str]) -> tuple[str, dict[int, int]]:
    """The unit and the cost of each step: in cycles of the part where kernels are priced by them, else as counted."""
    compiled = _with(options, group)
    forced = _forced(options, compiled, group)
    with place(None, None) as where:
        if options.price == "cycles" and pace_of(compiled.board) is not None:
            timed = timed_program(compiled, build_program(compiled, where), list(forced.values()))
            return "cycles", {index: timed.steps[at].cycles for index, at in forced.items()}
        profile = profile_job(compiled, where)
    return profile.unit, {index: profile.layers[at].cost for index, at in forced.items()}
