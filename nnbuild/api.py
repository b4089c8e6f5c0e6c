"""nnbuild in Python and notebooks: the commands, with models and samples in memory.

import nnbuild

network = nnbuild.compile(model, board="stm32", quantize="int8", calibrate=images)
verdict = network.check(images)          # built, run in the emulator, compared; prints as the command does
network.write("firmware/model")
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from nnbuild.base.errors import NnbuildError, UsageError
from nnbuild.base.files import write_whole
from nnbuild.device.gates import CheckReport, Gates
from nnbuild.device.profile import Profile
from nnbuild.emit.artifact import Artifact
from nnbuild.jobs.cycles import cycles_job
from nnbuild.jobs.job import check_job, place, profile_job, run_job, samples_for
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.jobs.program_files import program_files
from nnbuild.jobs.python_options import misfit, number, options_from, path_given, unknown_name
from nnbuild.jobs.report_data import Run, gather_report
from nnbuild.report.cycles import CycleProfile, cycles_object, cycles_text
from nnbuild.report.facts import Facts
from nnbuild.report.facts import as_object as facts_object
from nnbuild.report.json_report import as_object, profile_object
from nnbuild.report.notebook import check_html, cycles_html, files_html, profile_html
from nnbuild.report.page import page, verdict
from nnbuild.report.text import profile_text, to_text

__all__ = ["Costs", "Network", "NnbuildError", "Page", "Verdict", "compile", "from_torch"]

Samples = str | Path | np.ndarray | Mapping[str, np.ndarray] | None
"""A file; an array whose first axis counts the samples; or one array per input, by name."""


@dataclass(frozen=True)
class Verdict:
    """The result of a check. True in an `if` when every gate passed."""

    report: CheckReport

    @property
    def passed(self) -> bool:
        return self.report.passed

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return to_text(self.report)

    def as_object(self) -> dict[str, Any]:
        """All figures, as in `nnbuild check --json`."""
        return as_object(self.report)

    def _repr_html_(self) -> str:
        return check_html(self.report)


@dataclass(frozen=True)
class Costs:
    """Cost of one run by layer: counted, or modelled in cycles of the board's processor."""

    profile: Profile | CycleProfile

    def __str__(self) -> str:
        found = self.profile
        return cycles_text(found) if isinstance(found, CycleProfile) else profile_text(found)

    def as_object(self) -> dict[str, Any]:
        """All figures, as in `nnbuild profile --json`."""
        found = self.profile
        return cycles_object(found) if isinstance(found, CycleProfile) else profile_object(found)

    def _repr_html_(self) -> str:
        found = self.profile
        return cycles_html(found) if isinstance(found, CycleProfile) else profile_html(found)


@dataclass(frozen=True)
class Page:
    """The page of `nnbuild report`; a notebook shows it in a frame."""

    facts: Facts

    @property
    def html(self) -> str:
        return page(self.facts)

    def write(self, file: str | Path) -> None:
        write_whole(Path(file), self.html.encode())

    def as_object(self) -> dict[str, Any]:
        """All data, as in `nnbuild report --json`."""
        return facts_object(self.facts)

    def __str__(self) -> str:
        return f"{self.facts.name} on {self.facts.board}, {self.facts.precision}; check: {verdict(self.facts)[0]}"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html, quote=True)}" style="width: 100%; height: 40em; border: 0"></iframe>'
        )


@dataclass(frozen=True, eq=False)
class Network:
    """A model compiled for a board."""

    compiled: Compiled
    kept: tempfile.TemporaryDirectory[str] = field(repr=False)
    """Files for data that was in memory; they live as long as the network."""

    @property
    def name(self) -> str:
        return self.compiled.plan.prefix

    @property
    def board(self) -> str:
        return self.compiled.board.name

    @property
    def notes(self) -> tuple[str, ...]:
        return self.compiled.graph.notes

    @property
    def files(self) -> Mapping[str, bytes]:
        """The C files by name."""
        return self.compiled.artifact.files

    def write(self, folder: str | Path, *, link: bool = False) -> list[Path]:
        """Writes the C files and returns their paths; with `link`, also the code that serves the model to a host."""
        files = program_files(self.compiled) if link else self.files
        Artifact(files).refuse_strangers(Path(folder))
        Artifact(files).write(Path(folder))
        return [Path(folder) / name for name in files]

    def run(self, inputs: Samples, *, port: str | None = None, reset_each: bool = False) -> dict[str, np.ndarray]:
        """The outputs on the board, by name; without a port, in its emulator or on this PC."""
        with place(None, port) as where, _file(inputs, self.compiled) as given:
            runs = run_job(self.compiled, samples_for(self.compiled, _needed(given)), where, reset_each=reset_each)
        return dict(zip(self.compiled.graph.outputs, runs.y, strict=True))

    def check(
        self, inputs: Samples = None, *, port: str | None = None, reset_each: bool = False, **gates: float
    ) -> Verdict:
        """Runs samples (generated ones by default) and compares; gates are those of `nnbuild check`, with
        underscores."""
        with place(None, port) as where, _file(inputs, self.compiled) as given:
            samples = samples_for(self.compiled, given, judged=port is None)
            return Verdict(check_job(self.compiled, samples, where, _gates(gates), reset_each=reset_each))

    def profile(self, *, port: str | None = None, cycles: bool = False) -> Costs:
        """With `cycles`, models the cycles of the board's processor and their causes."""
        with place(None, port) as where:
            return Costs(cycles_job(self.compiled, where) if cycles else profile_job(self.compiled, where))

    def report(self, inputs: Samples = None, *, port: str | None = None, **gates: float) -> Page:
        with place(None, port) as where, _file(inputs, self.compiled) as given:
            run = Run(inputs=given, reset_each=False, gates=_gates(gates), wanted=True)
            return Page(gather_report(self.compiled.options, run, where, compiled=self.compiled))

    def __str__(self) -> str:
        plan = self.compiled.plan
        return f"{self.name} for {self.board}: {len(plan.steps)} steps, {plan.arena:,} bytes of arena"

    def _repr_html_(self) -> str:
        return files_html(str(self), self.notes, [(name, len(data)) for name, data in self.files.items()])


def compile(
    model: Any,
    *,
    board: str | Path = "linux",
    quantize: str = "float",
    calibrate: Samples = None,
    labels: str | Path | Sequence[str] | None = None,
    isa: str | Sequence[str] | None = None,
    **options: Any,
) -> Network:
    """Compiles a model for a board: a file of any supported format, or a Keras model in memory.

    `labels` are the class names, or a file of them. The other options are those of the command line, with underscores:
    method, keep, io, optimize, threads, name, accuracy_drop, weights, layers, memory and so on; `keep` maps layers to
    formats, `place` maps layers to "cpu" or "device", `shape` maps a model's inputs to their sizes,
    `fix` those that are always the same to their numbers.
    """
    kept = tempfile.TemporaryDirectory(prefix="nnbuild-")
    file, name = _model_file(model, Path(kept.name))
    options |= {"quantize": quantize, "labels": labels, "isa": isa}
    return _network(file, name, kept, board, calibrate, options)


def from_torch(
    module: Any,
    example: Any,
    *,
    board: str | Path = "linux",
    quantize: str = "float",
    calibrate: Samples = None,
    labels: str | Path | Sequence[str] | None = None,
    isa: str | Sequence[str] | None = None,
    **options: Any,
) -> Network:
    """Compiles a PyTorch module for a board, given an example input: a tensor, or a tuple of them.

    The module is exported to ONNX in evaluation mode; the other arguments are those of `compile`.
    """
    kept = tempfile.TemporaryDirectory(prefix="nnbuild-")
    file = Path(kept.name) / "model.onnx"
    _export(module, example if isinstance(example, tuple) else (example,), file)
    options |= {"quantize": quantize, "labels": labels, "isa": isa}
    return _network(file, type(module).__name__, kept, board, calibrate, options)


def _export(module: Any, example: tuple[Any, ...], file: Path) -> None:
    """Uses the already imported PyTorch: whoever has a module has imported it, and nobody else needs it."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(module, torch.nn.Module):
        raise UsageError(
            "nnbuild.from_torch",
            f"it takes a torch.nn.Module, not {type(module).__name__}.",
            "Give a torch.nn.Module and an example input.",
        )
    training = module.training
    module.eval()
    try:
        torch.onnx.export(module, example, str(file), dynamo=True, external_data=False, verbose=False)
    except Exception as error:  # PyTorch may raise any exception for the user's module
        cause = f"PyTorch cannot export it ({type(error).__name__}: {str(error).strip().splitlines()[0][:300]})."
        step = "Export it yourself with torch.onnx.export (which needs the package onnxscript), and give the file."
        raise UsageError("nnbuild.from_torch", cause, step) from None
    finally:
        module.train(training)


def _network(
    file: Path,
    name: str | None,
    kept: tempfile.TemporaryDirectory[str],
    board: str | Path,
    calibrate: Samples,
    options: dict[str, Any],
) -> Network:
    folder = Path(kept.name)
    wanted = options_from({"name": name, **options}, folder)
    with _named(folder, {file.name: "model", "samples.npz": "calibrate", "labels.txt": "labels"}):
        samples = _samples_file("calibrate", calibrate, folder, None)
        return Network(compile_model(Options(file, str(path_given("board", board)), calibrate=samples, **wanted)), kept)


@contextmanager
def _named(folder: Path, arguments: Mapping[str, str]) -> Iterator[None]:
    """Errors about a temporary file name the argument it was made from."""
    try:
        yield
    except NnbuildError as error:
        for file, argument in arguments.items():
            written = str(folder / file)
            error.where = error.where.replace(written, argument)
            error.cause = error.cause.replace(written, argument)
            error.next_step = error.next_step.replace(written, argument)
        error.args = (error.where, error.cause, error.next_step)
        raise


def _model_file(model: Any, folder: Path) -> tuple[Path, str | None]:
    """The model's file, and the C prefix for a model without a file name."""
    if isinstance(model, str | Path):
        return Path(model), None
    if not hasattr(model, "save") or not hasattr(model, "layers"):
        step = "Give a file, or a Keras model."
        raise UsageError("nnbuild.compile", f"it takes a file or a Keras model, not {type(model).__name__}.", step)
    file = folder / "model.keras"
    try:
        model.save(file)
    except Exception as error:  # Keras may raise any exception for the user's model
        cause = f"Keras cannot save it ({type(error).__name__}: {error})."
        raise UsageError("nnbuild.compile", cause, "Save it yourself, as .keras or .h5, and give the file.") from None
    return file, getattr(model, "name", None) or "model"


@contextmanager
def _file(samples: Samples, compiled: Compiled) -> Iterator[Path | None]:
    """Samples as a file; arrays go to a temporary one."""
    with tempfile.TemporaryDirectory(prefix="nnbuild-") as kept, _named(Path(kept), {"samples.npz": "inputs"}):
        yield _samples_file("inputs", samples, Path(kept), compiled)


def _samples_file(argument: str, samples: Samples, folder: Path, compiled: Compiled | None) -> Path | None:
    if samples is None or isinstance(samples, str | Path):
        return None if samples is None else Path(samples)
    arrays = samples if isinstance(samples, Mapping) else {_first_input(compiled): samples}
    file = folder / "samples.npz"
    with zipfile.ZipFile(file, "w") as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _numbers(f"{argument}, array {name!r}", values), allow_pickle=False)
    return file


def _numbers(where: str, values: Any) -> np.ndarray:
    """Accepts class names as well, which are ignored later."""
    try:
        found = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):
        found = np.asarray(None)
    if found.dtype.kind not in "biufUS":
        cause = f"it is not an array of plain numbers ({type(values).__name__}, {found.dtype})."
        raise UsageError(where, cause, "Give numbers, preferably float32, with the same shape for every sample.")
    return found


def _first_input(compiled: Compiled | None) -> str:
    if compiled is not None and len(compiled.graph.inputs) > 1:
        names = ", ".join(compiled.graph.inputs)
        raise UsageError("samples", "the model has several inputs.", f"Give a dictionary with {names}.")
    return "x"


def _needed(given: Path | None) -> Path:
    if given is None:
        raise UsageError("Network.run", "there are no samples.", "Give an array whose first axis counts the samples.")
    return given


def _gates(values: Mapping[str, Any]) -> Gates:
    known = [each.name for each in fields(Gates)]
    for name, value in sorted(values.items()):
        if name not in known:
            raise unknown_name("check", "gate", name, known)
        try:
            number(value)
        except (TypeError, ValueError):
            raise misfit(name, value, "a finite number") from None
    return replace(Gates(), **values)
