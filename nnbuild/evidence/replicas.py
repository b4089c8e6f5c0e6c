"""Runs the same vectors on every available board and compiler; records inputs, outputs and build of each."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from nnbuild.backends.recipe import toolchain_for
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import NnbuildError, ToolMissing
from nnbuild.base.paths import FIRMWARE
from nnbuild.board.board import Board
from nnbuild.board.tables import boards
from nnbuild.emit.emit import digest
from nnbuild.evidence import harness
from nnbuild.evidence.harness import COMPILERS, Compiler, Tool, tool_of
from nnbuild.jobs.job import Place, build_program, run_job
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.jobs.report_data import cannot_run
from nnbuild.model.graph import Array
from nnbuild.model.samples import SampleSet

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Replica:
    """The results of one target. `program` is empty where a program's bytes depend on its build folder."""

    target: str
    kernels: str
    tools: tuple[Tool, ...]
    program: str
    outputs: dict[str, Array]


@dataclass(frozen=True)
class LeftOut:
    target: str
    reason: str


def without_paths(compiled: Compiled, folder: Path) -> Compiled:
    """The same compilation, without paths of the build folder and of nnbuild in its objects."""
    maps = (f"-ffile-prefix-map={folder}=.", f"-ffile-prefix-map={FIRMWARE.parent}=nnbuild")
    return replace(compiled, board=replace(compiled.board, flags=(*compiled.board.flags, *maps)))


def on_boards(
    compiled: Compiled, samples: SampleSet, folder: Path, wanted: Callable[[str], bool], say: Progress
) -> Iterator[Replica | LeftOut]:
    """The board itself first, then all others."""
    own = compiled.board.name
    for board in [compiled.board, *(each for each in boards() if each.name != own)]:
        if board.name != own and not wanted(board.name):
            continue
        reason = cannot_run(board, None)
        if reason:
            yield LeftOut(board.name, reason)
            continue
        say(board.name)
        try:
            yield _on_board(compiled, board, samples, folder / board.name)
        except ToolMissing as missing:
            yield LeftOut(board.name, missing.cause)
        except NnbuildError as error:
            if board.name == own:
                raise
            yield LeftOut(board.name, _alone(error.cause))


def _alone(text: str) -> str:
    """The first sentence, which contains no path."""
    return text.partition("\n")[0].strip()


def _on_board(compiled: Compiled, board: Board, samples: SampleSet, folder: Path) -> Replica:
    there = compiled if board.name == compiled.board.name else compile_model(_options(compiled.options, board))
    if digest(there.graph) != digest(compiled.graph):
        raise NnbuildError(board.name, "its options change the model.", "Give fewer options.")
    folder.mkdir(parents=True)
    there = without_paths(there, folder)
    program = build_program(there, Place(folder))
    runs = run_job(there, samples, Place(folder, program=program), reset_each=False)
    own = backend_of(there.board).own_build is not None
    hashed = "" if own else hashlib.sha256(program.read_bytes()).hexdigest()
    outputs = dict(zip(there.graph.outputs, runs.raw, strict=True))
    kernels = ", ".join(isa.name for isa in there.plan.isas)
    return Replica(f"board {board.name}", kernels, _tools(there.board), hashed, outputs)


def _options(options: Options, board: Board) -> Options:
    """Options for the same model on another board, without the board's own choices."""
    return replace(options, board=board.name, isa=None, threads=1, memory=None, baud=None, max_instructions=None)


def _tools(board: Board) -> tuple[Tool, ...]:
    toolchain = toolchain_for(board)
    module = toolchain.command[0] == sys.executable
    found = [Tool(toolchain.command[2], "", "")] if module else [tool_of(toolchain.command)]
    if board.emulator is not None and shutil.which(board.emulator.command[0]):
        found.append(tool_of(board.emulator.command[:1]))
    elif board.emulator is not None:  # its stand-in ran, a Python package
        found.append(Tool("unicorn", metadata.version("unicorn"), ""))
    return tuple(found)


def with_compilers(
    compiled: Compiled, vectors: dict[str, Array], count: int, folder: Path, say: Progress
) -> Iterator[Replica | LeftOut]:
    """The emitted C compiled as portable C."""
    for number, compiler in enumerate(COMPILERS):
        if not compiler.there:
            yield LeftOut(compiler.target, f"{' or '.join(compiler.tools)} is not installed")
        elif not _takes(compiler, compiled):
            yield LeftOut(compiler.target, "it builds portable kernels with constants in C only")
        else:
            say(compiler.target)
            yield _with_compiler(compiler, compiled, vectors, count, folder / f"compiler{number}")


def _takes(compiler: Compiler, compiled: Compiled) -> bool:
    plain = compiled.plan.isa.name == "c99" and not any(name.endswith(".S") for name in compiled.artifact.files)
    return compiler.command[0] != "tcc" or plain


def _with_compiler(
    compiler: Compiler, compiled: Compiled, vectors: dict[str, Array], count: int, folder: Path
) -> Replica:
    program = harness.compiled(compiler, compiled.plan, compiled.artifact, folder)
    outputs = harness.run(compiler, program, compiled.plan, vectors, count)
    tools = tuple(tool_of((tool,)) for tool in compiler.tools)
    kernels = f"those of {compiled.plan.isa.name}, as portable C"
    return Replica(f"{compiler.target} {' '.join(compiler.flags)}".strip(), kernels, tools, "", outputs)


def as_object(replica: Replica) -> dict[str, Any]:
    return {
        "target": replica.target,
        "kernels": replica.kernels,
        "program_sha256": replica.program,
        "tools": [{"name": t.name, "version": t.version, "sha256": t.sha256} for t in replica.tools],
    }
