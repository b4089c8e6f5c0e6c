"""nnbuild from Python and from notebooks: what the command line does, with models and samples that are in memory.

import nnbuild

network = nnbuild.compile(model, board="stm32", quantize="int8", calibrate=images)
verdict = network.check(images)          # built, run in the emulator, compared; prints as the command does
network.write("firmware/model")
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from nnbuild.base.errors import NnbuildError, UsageError
from nnbuild.base.files import write_whole
from nnbuild.device.check import CheckReport, Gates
from nnbuild.device.profile import Profile
from nnbuild.emit.artifact import Artifact
from nnbuild.jobs.fit import program_files
from nnbuild.jobs.gather import Run, gather
from nnbuild.jobs.job import check_job, place, profile_job, run_job, samples_for
from nnbuild.jobs.pipeline import CHOICES, Compiled, Options, compile_model
from nnbuild.report import profile_object, profile_text
from nnbuild.report.facts import Facts
from nnbuild.report.facts import as_object as facts_object
from nnbuild.report.json_report import as_object
from nnbuild.report.page import page, verdict
from nnbuild.report.text import to_text

__all__ = ["Costs", "Network", "NnbuildError", "Page", "Verdict", "compile", "from_torch"]

Samples = str | Path | np.ndarray | Mapping[str, np.ndarray] | None
"""A file; or an array whose first axis counts the samples; or one for each input, by its name."""


@dataclass(frozen=True)
class Verdict:
    """What a check found. True in an `if` when every gate was passed."""

    report: CheckReport

    @property
    def passed(self) -> bool:
        return self.report.passed

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return to_text(self.report)

    def as_object(self) -> dict[str, Any]:
        """All figures, as `nnbuild check --json` has them."""
        return as_object(self.report)

    def _repr_html_(self) -> str:
        return _preformatted(str(self))


@dataclass(frozen=True)
class Costs:
    """What one run takes, layer by layer."""

    profile: Profile

    def __str__(self) -> str:
        return profile_text(self.profile)

    def as_object(self) -> dict[str, Any]:
        """All figures, as `nnbuild profile --json` has them."""
        return profile_object(self.profile)

    def _repr_html_(self) -> str:
        return _preformatted(str(self))


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
        """All of it, as `nnbuild report --json` has it."""
        return facts_object(self.facts)

    def __str__(self) -> str:
        return f"{self.facts.name} on {self.facts.board}, {self.facts.precision}; check: {verdict(self.facts)[0]}"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html, quote=True)}" style="width: 100%; height: 40em; border: 0"></iframe>'
        )


@dataclass(frozen=True, eq=False)
class Network:
    """A model that is compiled for a board."""

    compiled: Compiled
    kept: tempfile.TemporaryDirectory[str] = field(repr=False)
    """What was in memory, as files, for as long as the network is."""

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
        """The C by the names of its files."""
        return self.compiled.artifact.files

    def write(self, folder: str | Path, *, link: bool = False) -> list[Path]:
        """Writes the C; with `link` also what serves the model to a host on its board. Tells the files."""
        files = program_files(self.compiled) if link else self.files
        Artifact(files).refuse_strangers(Path(folder))
        Artifact(files).write(Path(folder))
        return [Path(folder) / name for name in files]

    def run(self, inputs: Samples, *, port: str | None = None, reset_each: bool = False) -> dict[str, np.ndarray]:
        """The outputs on the board by their names; without a port, in its emulator or on this PC."""
        with place(None, port) as where, _file(inputs, self.compiled) as given:
            runs = run_job(self.compiled, samples_for(self.compiled, _needed(given)), where, reset_each=reset_each)
        return dict(zip(self.compiled.graph.outputs, runs.y, strict=True))

    def check(
        self, inputs: Samples = None, *, port: str | None = None, reset_each: bool = False, **gates: float
    ) -> Verdict:
        """Runs samples (without any, drawn ones) and compares; gates are those of `nnbuild check`, with underscores."""
        with place(None, port) as where, _file(inputs, self.compiled) as given:
            samples = samples_for(self.compiled, given)
            return Verdict(check_job(self.compiled, samples, where, _gates(gates), reset_each=reset_each))

    def profile(self, *, port: str | None = None) -> Costs:
        with place(None, port) as where:
            return Costs(profile_job(self.compiled, where))

    def report(self, inputs: Samples = None, *, port: str | None = None, **gates: float) -> Page:
        with place(None, port) as where, _file(inputs, self.compiled) as given:
            run = Run(inputs=given, reset_each=False, gates=_gates(gates), wanted=True)
            return Page(gather(self.compiled.options, run, where, compiled=self.compiled))

    def __str__(self) -> str:
        plan = self.compiled.plan
        return f"{self.name} for {self.board}: {len(plan.steps)} steps, {plan.arena:,} bytes of arena"

    def _repr_html_(self) -> str:
        return _preformatted(str(self))


def compile(model: Any, *, board: str | Path = "linux", calibrate: Samples = None, **options: Any) -> Network:
    """A model for a board: a file of any kind that nnbuild reads, or a Keras model in memory.

    The options are those of the command line, with underscores: quantize, method, keep, io, optimize, isa, threads,
    name, accuracy_drop, weights, layers, memory and so on; `keep` is a mapping from layers to formats, `place` one
    to "cpu" or "device", `shape` one from
    an ONNX model's inputs to their sizes.
    """
    kept = tempfile.TemporaryDirectory(prefix="nnbuild-")
    file, name = _model_file(model, Path(kept.name))
    return _network(file, name, kept, board, calibrate, options)


def from_torch(
    module: Any, example: Any, *, board: str | Path = "linux", calibrate: Samples = None, **options: Any
) -> Network:
    """A PyTorch module for a board, with an example of what it is called with: a tensor, or a tuple of them.

    It is exported to ONNX in evaluation mode; the other arguments are those of `compile`.
    """
    kept = tempfile.TemporaryDirectory(prefix="nnbuild-")
    file = Path(kept.name) / "model.onnx"
    _export(module, example if isinstance(example, tuple) else (example,), file)
    return _network(file, type(module).__name__, kept, board, calibrate, options)


def _export(module: Any, example: tuple[Any, ...], file: Path) -> None:
    """By PyTorch's own exporter: whoever has a module has imported PyTorch, and nobody else needs it."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(module, torch.nn.Module):
        raise UsageError(
            "nnbuild.from_torch",
            f"it takes no {type(module).__name__}.",
            "Give a torch.nn.Module and an example input.",
        )
    training = module.training
    module.eval()
    try:
        torch.onnx.export(module, example, str(file), dynamo=True, external_data=False, verbose=False)
    except Exception as error:  # PyTorch's own, of whatever kind: the user's module is not ours to judge
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
    known = {each.name for each in fields(Options)} - {"model", "board", "calibrate"}
    unknown = sorted(options.keys() - known)
    if unknown:
        raise UsageError(
            "nnbuild.compile", f"it has no option {unknown[0]!r}.", f"Take one of {', '.join(sorted(known))}."
        )
    for option, value in options.items():
        if option in CHOICES and value not in CHOICES[option]:
            raise UsageError(
                f"{option}={value!r}", "there is no such choice.", f"Take one of {', '.join(CHOICES[option])}."
            )
    for pairs in ("keep", "place"):
        if isinstance(options.get(pairs), Mapping):
            options[pairs] = tuple(options[pairs].items())
    if options.get("device") is not None:
        options["device"] = str(options["device"])
    if isinstance(options.get("shape"), Mapping):
        options["shape"] = tuple((each, tuple(sizes)) for each, sizes in options["shape"].items())
    options.setdefault("name", name)
    samples = _samples_file(calibrate, Path(kept.name), None)
    return Network(compile_model(Options(file, str(board), calibrate=samples, **options)), kept)


def _model_file(model: Any, folder: Path) -> tuple[Path, str | None]:
    """The model's file, and the name that the C takes of a model that has none."""
    if isinstance(model, str | Path):
        return Path(model), None
    if not hasattr(model, "save") or not hasattr(model, "layers"):
        step = "Give a file, or a Keras model."
        raise UsageError("nnbuild.compile", f"it takes no {type(model).__name__}.", step)
    file = folder / "model.keras"
    try:
        model.save(file)
    except Exception as error:  # Keras' own, of whatever kind: the user's model is not ours to judge
        cause = f"Keras cannot save it ({type(error).__name__}: {error})."
        raise UsageError("nnbuild.compile", cause, "Save it yourself, as .keras or .h5, and give the file.") from None
    return file, getattr(model, "name", None) or "model"


@contextmanager
def _file(samples: Samples, compiled: Compiled) -> Iterator[Path | None]:
    """Samples as a file; arrays in one that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="nnbuild-") as folder:
        yield _samples_file(samples, Path(folder), compiled)


def _samples_file(samples: Samples, folder: Path, compiled: Compiled | None) -> Path | None:
    if samples is None or isinstance(samples, str | Path):
        return None if samples is None else Path(samples)
    arrays = samples if isinstance(samples, Mapping) else {_first_input(compiled): samples}
    file = folder / "samples.npz"
    named: dict[str, Any] = {name: np.asarray(values) for name, values in arrays.items()}
    np.savez(file, **named)
    return file


def _first_input(compiled: Compiled | None) -> str:
    if compiled is not None and len(compiled.graph.inputs) > 1:
        names = ", ".join(compiled.graph.inputs)
        raise UsageError("samples", "the model has several inputs.", f"Give a dictionary with {names}.")
    return "x"


def _needed(given: Path | None) -> Path:
    if given is None:
        raise UsageError("Network.run", "it was given no samples.", "Give an array whose first axis counts them.")
    return given


def _gates(values: Mapping[str, Any]) -> Gates:
    known = [each.name for each in fields(Gates)]
    unknown = sorted(values.keys() - set(known))
    if unknown:
        raise UsageError("gates", f"there is none called {unknown[0]!r}.", f"Take one of {', '.join(known)}.")
    return replace(Gates(), **values)


def _preformatted(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"
