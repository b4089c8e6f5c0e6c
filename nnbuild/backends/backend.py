"""A board's back end as a value: everything others need to know about the program around a model."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nnbuild.backends.recipe import Recipe
from nnbuild.base.errors import ToolMissing, UsageError
from nnbuild.board.board import Board

if TYPE_CHECKING:
    from nnbuild.audit.findings import AuditReport
    from nnbuild.device.cores import CoreMeter
    from nnbuild.device.transport import Transport
    from nnbuild.model.graph import Graph
    from nnbuild.plan.plan import Plan
    from nnbuild.plan.target import Target

MEMORY_FUNCTIONS = ("memcpy", "memmove", "memset", "memcmp")
"""Functions that a compiler may call implicitly."""
Chosen = Mapping[str, str]
"""The user's choices: name -> value."""


@dataclass(frozen=True)
class Line:
    """A connection to a running program. Closing the transport ends whatever was started for it. The counter of an
    emulated board does not measure real time: each tick is a number of instructions.
    """

    transport: Transport
    unit: str | None = None
    per_tick: float = 1.0
    meter: CoreMeter | None = None


@dataclass(frozen=True)
class Choice:
    """A build option of a back end: `--name` on the command line, `name=` in an SConstruct."""

    name: str
    metavar: str
    help: str
    is_path: bool = False
    refuse: Callable[[str], object] | None = None
    """Refuses a value that cannot be used, before a model is read."""


@dataclass(frozen=True)
class RunStack:
    """Where the bound on a run's stack begins, and the stack of functions that cannot be analysed."""

    entry: str = "{prefix}_run"
    """The entry point of a run."""
    objects: tuple[str, ...] = (
        *("{prefix}", "{prefix}_kernels", "{prefix}_device", "nn_device", "nn_offload"),
        *("nn_local", "nn_local_rv", "nn_local_posix"),
    )
    """The model's objects with functions that a run may reach."""
    library: tuple[str, ...] = MEMORY_FUNCTIONS
    """Functions of the environment's library, which has no frame sizes."""
    never_return: tuple[str, ...] = ()
    """Functions that are only called on fatal errors."""
    parts: int = 0
    """Stack bytes beyond the model's for handing a step's parts to other cores and waiting for them."""


@dataclass(frozen=True)
class OwnBuild:
    """A folder with its own build system, which cannot be described as compiler calls: a function builds and audits
    it."""

    build: Callable[[Board, str, Path, Chosen], Path]
    """Builds and audits the folder of the model with this prefix; returns the program."""
    audit: Callable[[Board, str, Path], AuditReport]
    """Audits the built program, like the model's objects elsewhere."""
    command: Callable[[Board, str, Chosen], list[str]]
    """The command that builds a folder."""
    audit_command: Callable[[str], list[str]]
    """The command that audits what was built in a folder."""
    ending: str
    """Suffix of the program's name."""


def _as_it_is(graph: Graph, target: Target, asked: str | None) -> Target:
    return target


def _same_plan(plan: Plan, target: Target) -> Plan:
    return plan


def _nothing_to_say(plan: Plan) -> tuple[str, ...]:
    return ()


def _any_program(board: Board, program: Path) -> None:
    return None


def _anywhere(board: Board, port: str | None) -> None:
    """Nothing to refuse."""


def _nothing_made(program: Path) -> list[Path]:
    return []


def _no_recipe(board: Board, generated: Iterable[str]) -> Recipe:
    raise UsageError(f"board {board.name!r}", "its programs have their own build system.", "Use nnbuild build.")


@dataclass(frozen=True)
class Backend:
    """Without `own_build`, the program is built by its `recipe`."""

    program: Callable[[str], str]
    """The program's file name, given the model's prefix."""
    file_names: Callable[[Board, str], list[str]]
    """The files besides the model's own, known before the model is read."""
    files: Callable[[Board, Plan], dict[str, bytes]]
    open_line: Callable[[Board, Path, str | None], Line]
    """Starts the program, or finds it at the port, and opens the connection."""
    recipe: Callable[[Board, Iterable[str]], Recipe] = _no_recipe
    application: Callable[[Board, Iterable[str], Sequence[Path]], Recipe] | None = None
    """The recipe of a user's program with his sources, if nnbuild provides the board's start-up."""
    own_build: OwnBuild | None = None
    choices: tuple[Choice, ...] = ()
    finish: Callable[[Path], list[Path]] = _nothing_made
    """Makes further files from the linked program."""
    finished_names: tuple[str, ...] = ()
    stack: RunStack = RunStack()
    bounded: str | None = None
    """The function that performs a run, if a bound on its instructions can be proved."""

    prepare: Callable[[Graph, Target, str | None], Target] = _as_it_is
    """Adapts the target of the plan, given the instruction set that the user named."""
    settle: Callable[[Plan, Target], Plan] = _same_plan
    """Adapts the plan to the program; refuses unsuitable plans."""
    notes: Callable[[Plan], tuple[str, ...]] = _nothing_to_say
    quick: bool = False
    """Whether samples are cheap enough to draw hundreds for a check."""
    exchanges_weights: bool = False
    """Whether weights can be exchanged while the program runs."""

    refuse_program: Callable[[Board, Path], None] = _any_program
    """Refuses a program that was not built for the board."""
    refuse_to_run: Callable[[Board, str | None], None] = _anywhere
    """Refuses a board whose programs cannot be run here, with this port or none; before there is a program."""

    def images(self, program: Path) -> list[Path]:
        """The files made from a linked program, beside it and with its name."""
        return [program.with_suffix(Path(name).suffix) for name in self.finished_names]

    def cannot_run(self, board: Board, port: str | None) -> str:
        """Why a program cannot be run here, with this port or none; empty if it can."""
        try:
            self.refuse_to_run(board, port)
        except ToolMissing as missing:
            return missing.cause.removesuffix(".")
        return ""


def add_choices(parser: argparse._ActionsContainer, choices: Iterable[Choice]) -> None:
    for choice in choices:
        parser.add_argument(f"--{choice.name}", metavar=choice.metavar, help=choice.help)


def chosen(arguments: argparse.Namespace, choices: Iterable[Choice]) -> Chosen:
    given = {choice.name: getattr(arguments, choice.name) for choice in choices}
    return {name: value for name, value in given.items() if value is not None}
