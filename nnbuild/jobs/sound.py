"""Runs sound through a program with a front end and compares rows, states, answers and events with the reference at
every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nnbuild.backends.listen_binding import OURS
from nnbuild.base.errors import UsageError
from nnbuild.device.descriptor import ModelInfo
from nnbuild.device.link import Link
from nnbuild.device.session import Runs, run_samples
from nnbuild.features.network_binding import Hearing
from nnbuild.features.wav import chunks, made_up, read_wav, wav_files
from nnbuild.jobs.job import Place, build_program, connected
from nnbuild.jobs.pipeline import Compiled
from nnbuild.model.graph import Array
from nnbuild.ops.tolerance import standards

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Event:
    """`at` is the time within the sound, in seconds."""

    sound: str
    at: float
    label: str
    score: int


@dataclass(frozen=True)
class Compared:
    """One value after each step: the count of compared numbers, of differing ones, and the first difference."""

    name: str
    values: int = 0
    differ: int = 0
    first: str = ""

    def and_also(self, found: Array, right: Array, tolerance: Array, where: Callable[[int], str]) -> Compared:
        """Adds a comparison; the first axis counts the steps."""
        bad = ~(np.abs(found.astype(np.float64) - right.astype(np.float64)) <= _wide(tolerance, found))
        steps = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1)) if bad.size else np.zeros(0, np.int64)
        first = self.first or (where(int(steps[0])) if len(steps) else "")
        return Compared(self.name, self.values + found.size, self.differ + int(bad.sum()), first)


@dataclass
class SoundReport:
    model: str
    board: str
    unit: str
    front_end: str
    compared: dict[str, Compared] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    steps: int = 0
    runs: int = 0
    made_up: bool = False

    @property
    def passed(self) -> bool:
        return self.runs > 0 and all(each.differ == 0 for each in self.compared.values())


def _wide(tolerance: Array, values: Array) -> Array:
    return np.asarray(tolerance).reshape(-1, *[1] * (values.ndim - 1))


def sounds(hearing: Hearing, path: Path | None) -> Iterator[tuple[str, Array]]:
    framing = hearing.front_end.framing
    if path is None:
        longest = (framing.window + (hearing.rows + 20 * hearing.hop) * framing.step) / framing.rate
        for index, samples in enumerate(made_up(framing, max(1.0, longest))):
            yield f"synthetic {index + 1}", samples
        return
    if not path.exists():
        raise UsageError(str(path), "there is no such file or folder.", "Check its name.")
    for each in wav_files(path):
        yield each.name, read_wav(each, framing)


@dataclass(frozen=True, eq=False)
class Reference:
    """The expected results for a sound. `rows_at` and `runs_at` are the steps that complete each row and each run."""

    rows: Array
    kept: Mapping[str, Array]
    rows_at: Array
    runs_at: Array
    outputs: Mapping[str, tuple[Array, Array]]


def reference_of(compiled: Compiled, hearing: Hearing, samples: Array) -> Reference:
    """The network's outputs and states after each run, with tolerances."""
    framing, graph = hearing.front_end.framing, compiled.graph
    whole = chunks(framing, samples)
    rows, kept = hearing.front_end.rows_and_kept(whole.reshape(-1, *whole.shape[2:]))
    count = np.arange(len(rows))
    rows_at = -(-(framing.window + count * framing.step) // framing.step) - 1
    windows = hearing.windows(hearing.entered(rows))
    names = [*graph.outputs, *(state.after for state in graph.states)]
    found = standards(graph, {graph.inputs[0]: windows}, names) if len(windows) else {}
    called = {state.after: state.before for state in graph.states}
    outputs = {called.get(name, name): (found[name].values, found[name].tolerance) for name in names if name in found}
    return Reference(rows, kept, rows_at, rows_at[hearing.runs(len(rows))] if len(rows) else rows_at, outputs)


def check_sound(
    compiled: Compiled, path: Path | None, where: Place, classes: Sequence[str], progress: Progress | None = None
) -> SoundReport:
    hearing = hearing_for(compiled)
    program = build_program(compiled, where)
    with connected(compiled, program, where.port) as (link, model):
        report = SoundReport(
            compiled.plan.prefix, compiled.board.name, link.hello().unit, hearing.front_end.told, made_up=path is None
        )
        for name, samples in sounds(hearing, path):
            if len(samples) < least_samples(hearing):
                continue
            _one(compiled, hearing, link, model, (name, samples), report, classes, progress)
    if report.runs == 0:
        raise too_short(hearing)
    return report


def least_samples(hearing: Hearing) -> int:
    """The samples that the network needs for one run."""
    return hearing.front_end.framing.window + (hearing.rows - 1) * hearing.front_end.framing.step


def too_short(hearing: Hearing) -> UsageError:
    cause = f"no sound reaches the length that the network needs, {least_samples(hearing):,} samples."
    return UsageError("--wav", cause, "Give longer ones.")


def hearing_for(compiled: Compiled) -> Hearing:
    if compiled.hearing is None:
        raise UsageError("--wav", "the model has no front end.", "Give it with --features FILE.toml")
    return compiled.hearing


def _one(
    compiled: Compiled,
    hearing: Hearing,
    link: Link,
    model: ModelInfo,
    sound: tuple[str, Array],
    report: SoundReport,
    classes: Sequence[str],
    progress: Progress | None,
) -> None:
    name, samples = sound
    steps = [{"sound": chunk} for chunk in chunks(hearing.front_end.framing, samples)]
    runs = run_samples(link, model, steps, stateful=True, progress=progress)
    right = reference_of(compiled, hearing, samples)
    got = {tensor.name: runs.raw[index] for index, tensor in enumerate(model.outputs)}

    def where(steps: Array) -> Callable[[int], str]:
        return lambda index: f"{name}, step {int(steps[index])}"

    _add(report, "features", got[f"{OURS}features"][right.rows_at], right.rows, np.zeros(1), where(right.rows_at))
    for each, values in right.kept.items():
        _add(
            report,
            f"features.{each}",
            got[f"{OURS}features.{each}"][right.rows_at],
            values,
            np.zeros(1),
            where(right.rows_at),
        )
    for each, (values, tolerance) in right.outputs.items():
        _add(report, each, got[each][right.runs_at], values, tolerance, where(right.runs_at))
    heard = hearing.events(got[compiled.graph.outputs[0]][right.runs_at])
    told = np.stack([got[f"{OURS}{each}"][right.runs_at, 0] for each in ("event", "score")], axis=1)
    _add(report, "events", told, heard, np.zeros(1), where(right.runs_at))
    _add(
        report,
        "runs",
        got[f"{OURS}runs"][-1:],
        np.array([[len(right.runs_at)]]),
        np.zeros(1),
        where(right.rows_at[-1:]),
    )
    report.events += _events(hearing, name, heard, right.runs_at, classes)
    _count(report, runs, len(right.runs_at))


def _count(report: SoundReport, runs: Runs, count: int) -> None:
    report.ticks += runs.ticks
    report.steps += len(runs.ticks)
    report.runs += count


def _add(
    report: SoundReport, name: str, found: Array, right: Array, tolerance: Array, where: Callable[[int], str]
) -> None:
    known = report.compared.get(name, Compared(name))
    report.compared[name] = known.and_also(found, right.reshape(found.shape), tolerance, where)


def _events(hearing: Hearing, name: str, heard: Array, at: Array, classes: Sequence[str]) -> Iterator[Event]:
    framing = hearing.front_end.framing
    for step, (label, score) in zip(at, heard, strict=True):
        if label >= 0:
            said = classes[label] if label < len(classes) else f"class {label}"
            yield Event(name, float((step + 1) * framing.step / framing.rate), said, int(score))


def listened(compiled: Compiled, hearing: Hearing, sound: tuple[str, Array], classes: Sequence[str]) -> list[Event]:
    """The events that the reference finds, without any program."""
    name, samples = sound
    right = reference_of(compiled, hearing, samples)
    output = compiled.graph.outputs[0]
    heard = hearing.events(right.outputs[output][0]) if output in right.outputs else np.zeros((0, 2), np.int64)
    return list(_events(hearing, name, heard, right.runs_at, classes))
