"""Measures how good samples are: builds a program, changes one place at a time, and tests whether the samples
notice."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nnbuild.backends.build import build
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import CheckFailed, NnbuildError, UsageError
from nnbuild.device.link import Link, Timing
from nnbuild.device.session import Runs, open_model, run_samples
from nnbuild.jobs.generated_samples import searched_samples
from nnbuild.jobs.job import Place
from nnbuild.jobs.mutants import (
    KINDS,
    Mutant,
    applied,
    chosen,
    of_code,
    of_constants,
    with_choices,
    with_constant,
    without,
)
from nnbuild.jobs.pipeline import Compiled, precision
from nnbuild.jobs.program_files import descriptor_of, program_files
from nnbuild.model.samples import SampleSet
from nnbuild.numeric.nearness import near
from nnbuild.ops.tolerance import Standard, standards

PATIENCE = 2.0
"""Seconds that a request may take, in addition to twenty times the original's time: changed loops may never end."""
LOOKED_AT = 8
"""Number of differing inputs to compare with the reference, largest differences first."""
REFUSED = 6
"""Maximum number of rebuilds that exclude lines whose numbers a compiler must know."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Fate:
    """Result for one mutant: `killed` by the samples; otherwise `told` from the original by searched input number
    `witness`, or by none."""

    mutant: Mutant
    killed: bool
    how: str
    told: bool = True
    witness: int | None = None


@dataclass(frozen=True, eq=False)
class MutationReport:
    """`killers` are inputs that the samples lack: each kills a mutant that survived."""

    model: str
    board: str
    quantize: str
    samples: int
    searched: int
    fates: tuple[Fate, ...]
    killers: Mapping[str, np.ndarray]

    @property
    def survived(self) -> tuple[Fate, ...]:
        """Mutants that the samples missed: some input distinguishes them from the original."""
        return tuple(fate for fate in self.fates if not fate.killed and fate.told)

    @property
    def alike(self) -> tuple[Fate, ...]:
        return tuple(fate for fate in self.fates if not fate.told)

    @property
    def killed(self) -> int:
        return sum(fate.killed for fate in self.fates)

    @property
    def rate(self) -> float:
        """The killed share of mutants that can be distinguished from the original."""
        wrong = self.killed + len(self.survived)
        return self.killed / wrong if wrong else 1.0

    def by_kind(self) -> list[tuple[str, int, int, int]]:
        """(kind, killed, survived, alike)"""
        killed = Counter(fate.mutant.kind for fate in self.fates if fate.killed)
        survived, alike = (Counter(f.mutant.kind for f in some) for some in (self.survived, self.alike))
        kinds = [kind for kind in KINDS if killed[kind] + survived[kind] + alike[kind]]
        return [(kind, killed[kind], survived[kind], alike[kind]) for kind in kinds]


@dataclass(frozen=True, eq=False)
class Subject:
    """A built program with all its mutants."""

    compiled: Compiled
    where: Place
    program: Path
    mutants: tuple[Mutant, ...]


def subject_of(compiled: Compiled, where: Place, count: int, seed: int) -> Subject:
    """Builds the program; spreads its mutants evenly over the kinds, as far as there are enough."""
    if where.program is not None or where.port is not None:
        raise UsageError(
            "--program and --port", "mutants are separate programs, and cannot replace a given one.", "Leave them out."
        )
    chance = np.random.default_rng(seed)
    wanted = dict.fromkeys(KINDS, -(-count // len(KINDS)))
    data = list(of_constants(compiled.plan, chance, wanted))
    files = with_constant(compiled.plan, program_files(compiled))
    kernels = f"{compiled.plan.prefix}_kernels.c"
    source = files[kernels].decode()
    spots = of_code(compiled.plan, source, chance, max(1, count - len(data)))
    for _ in range(REFUSED):
        printed = with_choices(compiled.plan, source, spots)
        for name, content in {**files, kernels: printed.encode()}.items():
            (where.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (where.folder / name).write_bytes(content)
        try:
            program = build(compiled.board, compiled.plan.prefix, where.folder, files, where.chosen)
        except NnbuildError as error:
            more = len(printed.splitlines()) - len(source.splitlines())
            lines = {int(line) - 1 - more for line in re.findall(rf"{re.escape(kernels)}:(\d+):", str(error))}
            if len(without(spots, frozenset(lines))) == len(spots):
                raise
            spots = without(spots, frozenset(lines))
            continue
        return Subject(compiled, where, program, (*data, *chosen(compiled.plan, spots)))
    raise NnbuildError(
        kernels, "its constants cannot be made selectable at run time.", "Choose another board or instruction set."
    )


def mutate_job(
    compiled: Compiled,
    samples: SampleSet,
    where: Place,
    *,
    count: int,
    search: int,
    seed: int = 0,
    progress: Progress | None = None,
) -> MutationReport:
    subject = subject_of(compiled, where, count, seed)
    bench = Bench(subject, samples, search, seed)
    fates = []
    for index, mutant in enumerate(subject.mutants):
        fates.append(bench.fate(mutant))
        if progress is not None:
            progress(index + 1, len(subject.mutants))
    witnesses = sorted({fate.witness for fate in fates if fate.witness is not None})
    killers = {name: values[witnesses] for name, values in bench.searched.inputs.items()} if witnesses else {}
    made = compiled.plan.prefix, compiled.board.name, precision(compiled.graph)
    return MutationReport(*made, len(samples), search, tuple(fates), killers)


class Bench:
    """Runs the original once, and mutants against it. Computes the searched inputs when a mutant first survives."""

    def __init__(self, subject: Subject, samples: SampleSet, search: int, seed: int) -> None:
        self._subject, self._samples = subject, samples
        graph = subject.compiled.graph
        self._wanted = standards(graph, samples.inputs, graph.outputs)
        self._original = subject.program.read_bytes()
        begun = time.monotonic()
        runs = self._run(subject.program, samples, Timing())
        self._patience = PATIENCE + 20 * (time.monotonic() - begun) / len(samples)
        wrong = self._wrong(runs, self._wanted)
        if wrong is not None:
            raise CheckFailed(
                subject.compiled.plan.prefix,
                f"the program itself is wrong at sample {wrong}.",
                "Run nnbuild check on it.",
            )
        self.searched = searched_samples(graph, samples, search, seed)
        self._unchanged: Runs | None = None

    def fate(self, mutant: Mutant) -> Fate:
        path = self._mutated(mutant)
        try:
            runs = self._run(path, self._samples, self._timing())
        except NnbuildError as error:
            return Fate(mutant, True, f"stopped: {error}")
        wrong = self._wrong(runs, self._wanted)
        if wrong is not None:
            return Fate(mutant, True, f"sample {wrong}")
        return self._survivor(mutant, path)

    def _survivor(self, mutant: Mutant, path: Path) -> Fate:
        if not len(self.searched):
            return Fate(mutant, False, "survived", told=False)
        if self._unchanged is None:
            self._unchanged = self._run(self._subject.program, self.searched, Timing(), reset_each=True)
        told = 0
        for begin, some in _lots(self.searched):
            try:
                runs = self._run(path, some, self._timing(), reset_each=True)
            except NnbuildError as error:
                return Fate(mutant, False, f"would be stopped by an error: {error}", witness=begin)
            differs = self._differences(runs, begin)
            for index in differs:
                graph = self._subject.compiled.graph
                one = {name: values[index : index + 1] for name, values in some.inputs.items()}
                found = Runs(tuple(v[index : index + 1] for v in runs.raw), (), ())
                if self._wrong(found, standards(graph, one, graph.outputs, reset_each=True)) is not None:
                    return Fate(
                        mutant, False, f"would be killed by searched input {begin + index}", witness=begin + index
                    )
            told += len(differs)
        within = f"; {told} differ within the tolerance" if told else ""
        return Fate(mutant, False, f"no searched input distinguishes it from the original{within}", told=False)

    def _differences(self, runs: Runs, begin: int) -> list[int]:
        """The inputs whose outputs differ from the original's, largest differences first."""
        assert self._unchanged is not None
        size = np.zeros(len(runs.raw[0]))
        for found, wanted in zip(runs.raw, self._unchanged.raw, strict=True):
            same = near(wanted[begin : begin + len(found)], found)
            with np.errstate(all="ignore"):
                by = np.abs(found.astype(np.float64) - wanted[begin : begin + len(found)].astype(np.float64))
            by = np.where(same, 0.0, np.where(np.isfinite(by), by, np.inf)).reshape(len(found), -1)
            size = np.maximum(size, by.max(axis=1, initial=0.0))
        order = np.argsort(-size, kind="stable")[:LOOKED_AT]
        return [int(index) for index in order if size[index] > 0]

    def _wrong(self, runs: Runs, wanted: Mapping[str, Standard]) -> int | None:
        """The first sample with an output outside the tolerance."""
        first: list[int] = []
        for name, raw in zip(self._subject.compiled.graph.outputs, runs.raw, strict=True):
            right = near(wanted[name].values, raw, wanted[name].tolerance).reshape(len(raw), -1).all(axis=1)
            first += np.flatnonzero(~right)[:1].tolist()
        return min(first, default=None)

    def _timing(self) -> Timing:
        return replace(Timing(), patience=self._patience, run_patience=self._patience)

    def _mutated(self, mutant: Mutant) -> Path:
        """Writes the mutant next to the original, because back ends look for a program's files beside it."""
        original = self._subject.program
        path = original.with_name(f"mutated-{original.name}") if original.suffix != ".ko" else original
        path.write_bytes(applied(self._original, original.name, mutant))
        path.chmod(original.stat().st_mode)
        return path

    def _run(self, program: Path, samples: SampleSet, timing: Timing, *, reset_each: bool = False) -> Runs:
        compiled = self._subject.compiled
        line = backend_of(compiled.board).open_line(compiled.board, program, None)
        with line.transport:
            link = Link(line.transport, timing=timing, unit=line.unit, per_tick=line.per_tick)
            model = open_model(link, descriptor_of(compiled))
            stateful = bool(compiled.graph.states)
            return run_samples(link, model, list(samples), stateful=stateful, reset_each=reset_each)


def _lots(samples: SampleSet, size: int = 500) -> Iterator[tuple[int, SampleSet]]:
    """Yields batches of samples: most survivors differ early."""
    for begin in range(0, len(samples), size):
        yield begin, SampleSet({name: values[begin : begin + size] for name, values in samples.inputs.items()})


def rates(fates: Sequence[Fate]) -> tuple[int, int, int]:
    """(killed, survived, alike)"""
    killed = sum(fate.killed for fate in fates)
    alike = sum(not fate.told for fate in fates)
    return killed, len(fates) - killed - alike, alike
