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
from nnbuild.jobs.pipeline import Compiled, Options, compile_model, target_of
from nnbuild.jobs.program_files import program_files
from nnbuild.plan import measured
from nnbuild.plan.plan import Step
from nnbuild.plan.select import Offer


@dataclass(frozen=True)
class Measurement:
    """One kernel at one step: its estimated and its measured cost, None where the program does not fit the board."""

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
            found.update({(index, kernel): costs[index] for index, kernel in group.items()})
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
    steps = compile_model(options).plan.steps
    names = tuple((steps[index].op.name, kernel) for index, kernel in group.items())
    return compile_model(replace(options, kernels=names))


def _fits(options: Options, group: Mapping[int, str]) -> bool:
    try:
        program_files(_with(options, group))
    except DoesNotFit:
        return False
    return True


def _run(options: Options, group: Mapping[int, str]) -> tuple[str, list[int]]:
    """Measures in cycles of the processor where kernels are priced in them, otherwise in the emulator's counts."""
    compiled = _with(options, group)
    with place(None, None) as where:
        if options.price == "cycles" and pace_of(compiled.board) is not None:
            found = timed_program(compiled, build_program(compiled, where), group)
            return "cycles", [time.cycles for time in found.steps]
        profile = profile_job(compiled, where)
    return profile.unit, [layer.cost for layer in profile.layers]
