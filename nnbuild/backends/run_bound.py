"""Proves the bound on the instructions of a run, on a board's linked program."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from nnbuild.backends.registry import bounded_entry
from nnbuild.base.errors import CheckFailed
from nnbuild.board.board import Board
from nnbuild.bound import Bound, Image, Turns, prove, read_image, result_of
from nnbuild.bound.cycles import CORES

TARGET = {"run": "nn_target_run", "init": "nn_target_init", "region": "nn_target_region"}
TURN = 6
"""NN_TARGET_TURN of firmware/link/nn_target.h."""
SIZE_BELOW = 64
"""Bytes below the top of the stack where a region's size may be written."""


def run_bound(board: Board, program: Path) -> Bound:
    """The bound; raises an error if none can be proved, or if it exceeds the board's budget."""
    entry = bounded_entry(board)
    bound = _proved(program, program.stat().st_mtime_ns, entry, board.core)
    within(bound, board.instruction_budget)
    return bound


@lru_cache(maxsize=4)
def _proved(program: Path, changed: int, entry: str, core: str | None) -> Bound:
    """Cached, since a command may check a budget and show the bound as well."""
    return image_bound(read_image(program), entry, core)


def image_bound(image: Image, entry: str, core: str | None) -> Bound:
    """`core` names the processor, if one with known cycle counts is meant."""
    stack = (image.symbol("nn_stack_high") or max(end for _, end in image.writable)) & ~7
    return prove(image, entry, stack, CORES.get(core or ""), turns=_turns(image, entry, stack))


def _turns(image: Image, entry: str, stack: int) -> Turns | None:
    """The program's counter of alternating runs, if it has one; the program itself reports its address."""
    if entry != TARGET["run"] or not image.functions.keys() >= set(TARGET.values()):
        return None
    place = result_of(image, TARGET["region"], (TURN, 0, stack - SIZE_BELOW), stack - 2 * SIZE_BELOW)
    return Turns(TARGET["init"], (place,)) if place else None


def within(bound: Bound, budget: int | None) -> None:
    if budget is None or bound.instructions <= budget:
        return
    inner = [part for part in bound.parts if part.total < 0.9 * bound.instructions]
    costly = max(inner or bound.parts, key=lambda part: part.total)
    over = bound.instructions - budget
    text = (
        f"{bound.entry} executes at most {bound.instructions:,} instructions, {over:,} more than the {budget:,} allowed"
    )
    step = "Use a smaller model or type, or allow more with --max-instructions."
    raise CheckFailed("bound", f"{text}; most of them, {costly.total:,}, in {costly.name}.", step)


def hold_budget(board: Board, program: Path) -> None:
    """Checks the bound if the board or the user gives a budget."""
    if board.instruction_budget is not None:
        run_bound(board, program)
