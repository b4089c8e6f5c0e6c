"""The back end of a board as a value: all that others ask of what it runs around a model."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nnbuild.audit.findings import AuditReport
from nnbuild.backends.recipe import Recipe
from nnbuild.base.errors import UsageError
from nnbuild.board.board import Board
from nnbuild.device.cores import CoreMeter
from nnbuild.device.transport import Transport
from nnbuild.model.graph import Graph
from nnbuild.plan.plan import Plan
from nnbuild.plan.target import Target

MEMORY_FUNCTIONS = ("memcpy", "memmove", "memset", "memcmp")
"""What a compiler may call unasked."""
Chosen = Mapping[str, str]
"""What a user chose: a choice's name -> its value."""


@dataclass(frozen=True)
class Line:
    """A line to a running program. The caller closes the transport, which ends what was started for it.

    What an emulated board counts is no time of any real one: each of its ticks is so many instructions.
    """

    transport: Transport
    unit: str | None = None
    per_tick: float = 1.0
    meter: CoreMeter | None = None


@dataclass(frozen=True)
class Choice:
    """What a user may choose of a build: `--name` on the command line, `name=` in an SConstruct."""

    name: str
    metavar: str
    help: str
    is_path: bool = False


@dataclass(frozen=True)
class RunStack:
    """Where the bound on a run's stack begins, and what it must know of functions that nobody can look into."""

    entry: str = "{prefix}_run"
    """The function a run begins with."""
    objects: tuple[str, ...] = (
        *("{prefix}", "{prefix}_kernels", "{prefix}_device", "nn_device", "nn_offload"),
        *("nn_local", "nn_local_rv", "nn_local_posix"),
    )
    """The model's objects with functions that a run may reach."""
    library: tuple[str, ...] = MEMORY_FUNCTIONS
    """Functions of the surroundings' own library, which says nothing about frames."""
    never_return: tuple[str, ...] = ()
    """What is called when all is lost already."""
    parts: int = 0
    """Bytes above the model's own in which a step's parts are given to several cores and waited for."""


@dataclass(frozen=True)
class OwnBuild:
    """A folder's own build, where no list of compiler calls describes it: a command of ours runs it and audits."""

    build: Callable[[Board, str, Path, Chosen], Path]
    """Builds and audits the folder of a model of this prefix; returns the program."""
    audit: Callable[[Board, str, Path], AuditReport]
    """Audits what was built, as the model's objects are audited elsewhere."""
    command: Callable[[Board, str, Chosen], list[str]]
    """How the command line is told to build a folder."""
    audit_command: Callable[[str], list[str]]
    """How the command line is told to audit what was built in a folder."""
    ending: str
    """Of the program's name: tells it from others."""


def _as_it_is(graph: Graph, target: Target, asked: str | None) -> Target:
    return target


def _same_plan(plan: Plan, target: Target) -> Plan:
    return plan


def _nothing_to_say(plan: Plan) -> tuple[str, ...]:
    return ()


def _any_program(board: Board, program: Path) -> None:
    return None


def _always(board: Board, port: str | None) -> str:
    return ""


def _nothing_made(program: Path) -> list[Path]:
    return []


def _no_recipe(board: Board, generated: Iterable[str]) -> Recipe:
    raise UsageError(f"board {board.name!r}", "its programs have a build of their own.", "Use nnbuild build.")


@dataclass(frozen=True)
class Backend:
    """Where there is no `own_build`, the program is built by its `recipe`."""

    program: Callable[[str], str]
    """The program's file name, by the model's prefix."""
    file_names: Callable[[Board, str], list[str]]
    """The files beside the model's own, known before the model is read."""
    files: Callable[[Board, Plan], dict[str, bytes]]
    open_line: Callable[[Board, Path, str | None], Line]
    """Gets the program running, or finds it at the port, and opens the line to it."""
    recipe: Callable[[Board, Iterable[str]], Recipe] = _no_recipe
    application: Callable[[Board, Iterable[str], Sequence[Path]], Recipe] | None = None
    """The recipe of a program of the user's own, from his sources, where the board's start-up is ours to bring."""
    own_build: OwnBuild | None = None
    choices: tuple[Choice, ...] = ()
    finish: Callable[[Path], list[Path]] = _nothing_made
    """Makes what is made of the linked program."""
    finished_names: tuple[str, ...] = ()
    stack: RunStack = RunStack()
    bounded: str | None = None
    """The function that a run is, in programs on whose code a bound of instructions can be proved."""

    prepare: Callable[[Graph, Target, str | None], Target] = _as_it_is
    """What the plan is to be made for, given the instruction set that the user named."""
    settle: Callable[[Plan, Target], Plan] = _same_plan
    """The plan as it suits the program; refuses one that does not."""
    notes: Callable[[Plan], tuple[str, ...]] = _nothing_to_say
    quick: bool = False
    """Whether a sample costs so little that hundreds may be drawn for a check."""
    exchanges_weights: bool = False
    """Whether weights can be exchanged while the program runs."""

    refuse_program: Callable[[Board, Path], None] = _any_program
    """Refuses a program that was not built for the board."""
    cannot_run: Callable[[Board, str | None], str] = _always
    """Why a program cannot be run here, with this port or none; nothing if it can."""


def add_choices(parser: argparse._ActionsContainer, choices: Iterable[Choice]) -> None:
    for choice in choices:
        parser.add_argument(f"--{choice.name}", metavar=choice.metavar, help=choice.help)


def chosen(arguments: argparse.Namespace, choices: Iterable[Choice]) -> Chosen:
    given = {choice.name: getattr(arguments, choice.name) for choice in choices}
    return {name: value for name, value in given.items() if value is not None}
