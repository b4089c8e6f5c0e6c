"""Builds a model, runs it where possible, and gathers the data of a report."""

from __future__ import annotations

import dataclasses
import hashlib
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nnbuild import __version__
from nnbuild.audit.findings import AuditReport
from nnbuild.audit.report import explain_need
from nnbuild.backends.firmware.layout import layout_of
from nnbuild.backends.object_audit import audit_model, model_stack
from nnbuild.backends.recipe import toolchain_for
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import UsageError
from nnbuild.board.board import Board
from nnbuild.board.clocks import clock_of
from nnbuild.device.gates import CheckReport, Gates
from nnbuild.emit.emit import digest
from nnbuild.jobs import plan_view
from nnbuild.jobs.accelerator import accelerator_use
from nnbuild.jobs.compression import Announce, silent, weight_facts
from nnbuild.jobs.job import Place, build_program, check_job, samples_for, stack_of
from nnbuild.jobs.listening import listening_of, without_hearing
from nnbuild.jobs.memory import memory_of
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model, precision
from nnbuild.jobs.quantization_loss import loss_of
from nnbuild.report.facts import (
    AuditResult,
    Facts,
    File,
    LayerError,
    Memory,
    Origin,
    OutputError,
    Quantization,
    StackUse,
    check_facts,
)

ESTIMATED = "estimated cycles"
"""The unit of costs where nothing ran: the plan's prices."""
IMAGE = "program.bin"
"""The image to flash. A PC's program contains the path of its build folder, so its hash would be meaningless."""
_SHOWN = tuple(each.name for each in dataclasses.fields(Options) if each.name != "layers")
"""Options shown in a report; a report never keeps single layers apart."""
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Run:
    """How to run the program. Without `wanted` it is only built and inspected."""

    inputs: Path | None = None
    reset_each: bool = False
    gates: Gates = field(default_factory=Gates)
    wanted: bool = True


def gather_report(
    options: Options,
    run: Run,
    where: Place,
    progress: Progress | None = None,
    announce: Announce = silent,
    *,
    compiled: Compiled | None = None,
) -> Facts:
    """`compiled` is the compilation of the options, if it exists already."""
    compiled = compiled or compile_model(options, progress, announce)
    _with_objects(compiled, where)
    reason = cannot_run(compiled.board, where.port) if run.wanted else "the run was left out (--no-run)"
    told = listening_of(compiled, measured=not reason)
    compiled = without_hearing(compiled)
    samples = samples_for(compiled, run.inputs, judged=where.port is None)
    check: CheckReport | None = None
    program = build_program(compiled, where)
    if not reason:
        there = replace(where, program=program)
        check = check_job(compiled, samples, there, run.gates, reset_each=run.reset_each, progress=progress)
    notes = (*compiled.graph.notes, *samples.notes)
    found = _facts(compiled, run, replace(where, program=program), program, check, samples.drawn, reason, notes)
    return replace(found, listening=told)


def _with_objects(compiled: Compiled, where: Place) -> None:
    """Requires the objects of a given program, which must lie beside it, because a report describes them."""
    given = where.program
    if given is not None and not (given.parent / f"{compiled.plan.prefix}.o").is_file():
        raise UsageError(str(given), "its object files are not in the same folder.", "Leave out --program.")


def cannot_run(board: Board, port: str | None) -> str:
    """The reason why a board's program cannot run here; empty if it can."""
    return backend_of(board).cannot_run(board, port)


def _facts(
    compiled: Compiled,
    run: Run,
    where: Place,
    program: Path,
    check: CheckReport | None,
    drawn: bool,
    reason: str,
    notes: tuple[str, ...],
) -> Facts:
    plan, board, folder = compiled.plan, compiled.board, program.parent
    memory = memory_of(compiled, program)
    audit = audit_model(board, plan.prefix, folder)
    code = {symbol.name: symbol.size for symbol in audit.symbols if symbol.kind == "code"}
    rows = plan_view.layers(plan, [layer.cost for layer in check.layers] if check is not None else None, code)
    stack = _stack(compiled, folder, check)
    return Facts(
        name=plan.prefix,
        board=board.name,
        board_summary=board.summary,
        precision=precision(compiled.graph),
        optimize=compiled.options.optimize,
        unit=check.unit if check is not None else ESTIMATED,
        nodes=plan_view.nodes(plan, rows),
        layers=rows,
        buffers=plan_view.buffers(plan),
        arena=plan.arena,
        state=plan.state,
        peak=plan_view.peak(plan),
        memories=_memories(compiled, memory, stack.bound),
        flash_code=memory["flash_code"],
        flash_weights=memory["flash_weights"],
        stack=stack,
        audit=_audit(audit),
        quantization=_quantization(compiled),
        weights=weight_facts(compiled.compression),
        check=check_facts(check, drawn) if check is not None else None,
        check_missing=reason,
        origin=_origin(compiled, run, where.port, folder, check is not None),
        notes=notes,
        beside=check.beside if check is not None else accelerator_use(plan),
        clock=clock_of(board),
    )


def _memories(compiled: Compiled, memory: dict[str, int], stack: int) -> tuple[Memory, ...]:
    """The model's and the surrounding program's share of each memory; on a PC, only the model's."""
    board, plan = compiled.board, compiled.plan
    weights, code = ("weights", memory["flash_weights"]), ("model code", memory["flash_code"])
    flash = (weights, code)
    own = (("arena", plan.arena), ("state", plan.state))
    if not board.memories:
        working = (*own, ("stack of a run", stack))
        return (
            Memory("code and weights", sum(size for _, size in flash), None, flash),
            Memory("working memory", sum(size for _, size in working), None, _there(working)),
        )
    layout = layout_of(board, plan)
    found = []
    for each in board.memories:
        parts: tuple[tuple[str, int], ...] = (
            flash if each.name == "flash" else own if each.name == layout.context else ()
        )
        parts += (("stack", layout.stack),) if each.name == "ram" else ()
        parts += (code,) if each.name == board.code_memory else ()
        used = memory[f"{each.name}_used"]
        rest = used - sum(size for _, size in parts)
        word = "link and startup" if each.name == "flash" else "link and variables"
        found.append(Memory(each.name, used, each.length, _there((*parts, (word, max(0, rest))))))
    return tuple(found)


def _there(parts: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple((name, size) for name, size in parts if size)


def _stack(compiled: Compiled, folder: Path, check: CheckReport | None) -> StackUse:
    report = model_stack(compiled.board, compiled.plan.prefix, folder)
    used, size = (check.stack.used, check.stack.size) if check is not None and check.stack is not None else (0, 0)
    bound = stack_of(compiled, folder) or report.depth
    return StackUse(bound, report.budget, used, size, report.path)


def _audit(report: AuditReport) -> AuditResult:
    supplied = [need for need in report.needs if need.verdict == "supplied"]
    return AuditResult(
        report.policy,
        tuple(f"{finding.message} {finding.fix}" for finding in report.findings),
        tuple(f"{need.symbol}: {need.source.name}" if need.source else explain_need(report, need) for need in supplied),
        report.notes,
    )


def _quantization(compiled: Compiled) -> Quantization | None:
    if compiled.options.quantize == "float" and not compiled.compression.rounded:
        return None
    loss = loss_of(compiled)
    order = {op.outputs[0]: index for index, op in enumerate(compiled.folded.ops)}
    layers = [
        LayerError(
            layer=layer.layer,
            format=layer.format,
            low=layer.low,
            high=layer.high,
            scale=layer.scale,
            saturated=layer.saturated,
            values=layer.values,
            sqnr=layer.sqnr if layer.sqnr < float("inf") else None,
            max_error=layer.max_error,
        )
        for layer in sorted(loss.layers, key=lambda layer: order[layer.tensor])
    ]
    outputs = tuple(OutputError(o.name, o.agreement, o.rmse, o.cosine) for o in loss.outputs)
    return Quantization(loss.samples, tuple(layers), outputs)


def _origin(compiled: Compiled, run: Run, port: str | None, folder: Path, ran: bool) -> Origin:
    options = compiled.options
    files = [_file(options.model, "model")]
    files += [_file(path, role) for path, role in ((options.calibrate, "calibration"), (run.inputs, "samples")) if path]
    files += [_hashed(name, "generated", content) for name, content in sorted(compiled.artifact.files.items())]
    files += [_file(folder / IMAGE, "program")] if (folder / IMAGE).is_file() else []
    return Origin(
        command=shlex.join(["nnbuild", "report", *option_words(options), *_run_words(run, port)]),
        options=tuple((name, _said(getattr(options, name))) for name in _SHOWN),
        versions=_versions(compiled, ran),
        files=tuple(files),
        digest=digest(compiled.graph),
    )


def option_words(options: Options) -> list[str]:
    """The options as command-line arguments, without those at their defaults."""
    words = [near(options.model)]
    given = {
        "--board": options.board if options.board != "linux" else None,
        "--quantize": options.quantize if options.quantize != "float" else None,
        "--calibrate": near(options.calibrate) if options.calibrate else None,
        "--calibration": options.method if options.method != "minmax" else None,
        "--io": options.io if options.io != "integer" else None,
        "--accuracy-drop": options.accuracy_drop,
        "--optimize": options.optimize if options.optimize != "speed" else None,
        "--price": options.price if options.price != "cycles" else None,
        "--isa": options.isa,
        "--cores": options.threads,
        "--local": options.local,
        "--stream": options.stream,
        "--features": near(options.features) if options.features else None,
        "--name": options.name,
        "--baud": options.baud,
        "--max-instructions": options.max_instructions,
        "--memory": options.memory,
        "--device": options.device,
        "--labels": near(options.labels) if options.labels else None,
        "--weights": options.weights if options.weights != "auto" else None,
    }
    for name, value in given.items():
        words += [name, str(value)] if value is not None else []
    words += options.weight_words
    if options.image_range != (0, 1):  # in one word: it may start with a minus
        words.append(f"--image-range={','.join(map(str, options.image_range))}")
    words += options.import_words
    for layer, place in options.place:
        words += ["--place", f"{layer}={place}"]
    for layer, form in options.keep:
        words += ["--keep", f"{layer}={form}"]
    return words + ([] if options.bias_correction else ["--no-bias-correction"])


def _run_words(run: Run, port: str | None) -> list[str]:
    words = ["--inputs", near(run.inputs)] if run.inputs is not None else []
    words += ["--reset-each"] if run.reset_each else []
    words += ["--port", port] if port is not None else []
    for gate in dataclasses.fields(Gates):
        value = getattr(run.gates, gate.name)
        if value != gate.default:
            words += [f"--{gate.name.replace('_', '-')}", f"{value:g}"]
    return words + ([] if run.wanted else ["--no-run"])


def near(path: Path) -> str:
    """A readable path: relative to the current folder where it lies below it."""
    whole = path.absolute()
    here = Path.cwd()
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) else str(path)


def _said(value: object) -> str:
    if isinstance(value, Path):
        return near(value)
    if isinstance(value, tuple):
        return ", ".join("=".join(map(str, each)) if isinstance(each, tuple) else str(each) for each in value)
    return {None: "", True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool | None) else str(value)


def _file(path: Path, role: str) -> File:
    """For a folder, hashes its files in the order of their names."""
    if path.is_dir():
        inside = [each for each in sorted(path.rglob("*")) if each.is_file()]
        listing = "".join(f"{each.relative_to(path)} {_sha256(each.read_bytes())}\n" for each in inside)
        return File(path.name, role, sum(each.stat().st_size for each in inside), _sha256(listing.encode()))
    return _hashed(path.name, role, path.read_bytes())


def _hashed(name: str, role: str, content: bytes) -> File:
    return File(name, role, len(content), _sha256(content))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _versions(compiled: Compiled, ran: bool) -> tuple[tuple[str, str], ...]:
    board = compiled.board
    toolchain = toolchain_for(board)
    found = [("nnbuild", __version__), ("instruction set", ", ".join(isa.name for isa in compiled.plan.isas))]
    found.append(("compiler", _version_of(toolchain.command)))
    found.append(("compiler flags", " ".join((*board.flags, *toolchain.flags))))
    if ran and board.emulator is not None:
        found.append(("emulator", _version_of(board.emulator.command[:1])))
    return tuple(found)


def _version_of(command: Sequence[str]) -> str:
    """The first line of a tool's version output."""
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL
        )
    except OSError:
        return Path(command[0] if command[0] != sys.executable else command[-1]).name
    return (done.stdout or done.stderr).strip().partition("\n")[0]
