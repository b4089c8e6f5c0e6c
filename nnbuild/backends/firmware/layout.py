"""Lays a program out in a part's memories, and reports by how much it does not fit."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.backends.link_binding import descriptor, descriptor_text
from nnbuild.base.errors import UsageError
from nnbuild.board.board import Board
from nnbuild.emit.parallel import most_parts
from nnbuild.emit.text import SIZES
from nnbuild.emit.weights import weights_bytes
from nnbuild.plan.plan import Plan

LINK_STACK = 768
"""Stack bytes beyond the model's: main, the link, and an interrupt's frame."""
HANDLER_STACK = 768
"""Stack bytes for interrupt handlers and the fault report."""
FRAME_OVERHEAD = 24  # bytes of a link frame besides its payload
LINK_STATE = 48
RING = 256  # of firmware/platform/bare/main.c
VARIABLES = 160
"""Bytes of all other variables, including alignment."""
CORE_OVERHEAD = 512
"""Stack bytes of a further core beyond the model's: its loop, and the fault report."""
CORE_STATE = 64 + 4
FIRMWARE_CODE = 6 * 1024
CODE_PER_STEP = 24
"""Bytes of code: of the link, and the least of a layer with its call."""
CODE_MARGIN = 0.15
"""The share of the model's code by which the estimate may be too low."""


class DoesNotFit(UsageError):
    """A model exceeds a board's memory by `over` bytes."""

    def __init__(self, where: str, cause: str, next_step: str, over: int) -> None:
        super().__init__(where, cause, next_step)
        self.over = over


@dataclass(frozen=True)
class Layout:
    """`context` is the memory of the model's context; `used` is the least use of each memory; `others` are the further
    cores, each with its own stack."""

    context: str
    stack: int
    used: dict[str, int]
    others: int = 0


def arena_room(board: Board, plan: Plan) -> int | None:
    """Bytes available for the arena; None where the board sets no limit."""
    if board.firmware is None:
        return None
    stack = (board.stack_budget or 0) + LINK_STACK
    taken = {"ram": fixed_ram(board, plan, stack)}
    if board.code_memory is not None:
        taken[board.code_memory] = taken.get(board.code_memory, 0) + plan.code
    free = max(board.memory(name).length - taken.get(name, 0) for name in board.firmware.context_memory)
    return (free - plan.state) // plan.alignment * plan.alignment


def flash_room(board: Board, plan: Plan) -> int | None:
    """Bytes available for constants and estimated code; None where the board sets no limit."""
    if board.firmware is None:
        return None
    return board.memory("flash").length - FIRMWARE_CODE - _description(plan) - int(CODE_MARGIN * plan.code)


def _description(plan: Plan) -> int:
    """Bytes of what the program says of itself."""
    return len(descriptor_text(descriptor(plan)))


def layout_of(board: Board, plan: Plan) -> Layout:
    """Places the model, or reports which layer needs how much more than there is."""
    assert board.firmware is not None, f"{board.name} is a firmware board"
    stack = (board.stack_budget or 0) + LINK_STACK
    notes = SIZES["int32"] * most_parts(plan) if plan.parallel else 0
    context = -(-(notes + plan.arena + plan.state) // plan.alignment) * plan.alignment
    ram = fixed_ram(board, plan, stack)
    free = {memory.name: memory.length for memory in board.memories}
    free["ram"] -= ram
    if board.code_memory is not None:
        free[board.code_memory] -= plan.code
    best = next((name for name in board.firmware.context_memory if free[name] >= context), None)
    if best is None:
        raise _ram_error(board, plan, context, {name: free[name] for name in board.firmware.context_memory})
    used = {"flash": flash_bytes(plan), "ram": ram}
    used[best] = used.get(best, 0) + context
    over = used["flash"] - board.memory("flash").length
    if over > 0:
        raise _flash_error(board, plan, over)
    return Layout(best, stack, used, most_parts(plan) - 1)


def fixed_ram(board: Board, plan: Plan, stack: int) -> int:
    """Bytes of RAM used besides the model's own memory."""
    assert board.firmware is not None
    frames = 2 * (FRAME_OVERHEAD + board.firmware.link_payload)
    others = (most_parts(plan) - 1) * core_stack(board) + board.cores.count * CORE_STATE * plan.parallel
    return stack + HANDLER_STACK + frames + LINK_STATE + RING + 8 * len(plan.steps) + VARIABLES + others


def core_stack(board: Board) -> int:
    """Stack bytes of each further core."""
    return (board.stack_budget or 0) + CORE_OVERHEAD


def flash_bytes(plan: Plan) -> int:
    """A lower bound; the linker knows exactly."""
    return weights_bytes(plan) + _description(plan) + FIRMWARE_CODE + CODE_PER_STEP * len(plan.steps)


def _ram_error(board: Board, plan: Plan, context: int, free: dict[str, int]) -> DoesNotFit:
    name = max(free, key=lambda key: free[key])
    over, length = context - free[name], board.memory(name).length
    peak = ""
    if plan.peak is not None:
        largest = sorted(plan.peak.alive, key=lambda entry: -entry[1])[:3]
        alive = ", ".join(f"{tensor} {size:,}" for tensor, size in largest)
        peak = f" The peak is at layer {plan.peak.layer!r}: {plan.peak.size:,} bytes ({alive})."
    state = f" and {plan.state:,} of state" if plan.state else ""
    cause = (
        f"the model exceeds the RAM by {over:,} bytes: {plan.arena:,} of arena{state}, with "
        f"{max(0, free[name]):,} of {length:,} bytes free besides the stack and the link.{peak}"
    )
    return DoesNotFit(f"board {board.name!r}", cause, "Use a smaller model or a larger board.", over)


def _flash_error(board: Board, plan: Plan, over: int) -> DoesNotFit:
    length = board.memory("flash").length
    largest = max(plan.constants.items(), key=lambda entry: entry[1].nbytes)
    told = _description(plan)
    described = f", {told:,} of the names of its {len(plan.steps):,} layers" if told > weights_bytes(plan) else ""
    cause = (
        f"the model exceeds the flash by {over:,} bytes: {weights_bytes(plan):,} of weights{described} and the code "
        f"in {length:,}. The largest constant is {largest[0]}, {largest[1].nbytes:,} bytes."
    )
    return DoesNotFit(f"board {board.name!r}", cause, "Use a smaller model or a larger board.", over)
