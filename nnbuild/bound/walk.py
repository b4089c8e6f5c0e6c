"""The proof: executes a function of a linked program on known and unknown values, along every possible path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from nnbuild.base.errors import CheckFailed, UsageError
from nnbuild.bound.block import Block, Blocks, Refused, Value
from nnbuild.bound.cycles import Prices
from nnbuild.bound.function import Function
from nnbuild.bound.image import Image
from nnbuild.bound.memory import Memory, WildStore, Words
from nnbuild.bound.state import State, Waiting, Way
from nnbuild.bound.summary import LR, MANY, NO_SUMMARY, OFTEN, SMALL, SP, Summary, opening
from nnbuild.bound.writer import REGISTERS

LIMIT = 1_000_000_000
"""Instructions after which a function counts as endless."""
DEEPEST = 100
MOST_TURNS = 256
"""Maximum runs until the state must repeat."""
BACK = 0xFFFF_FFFE
"""Return address of the analysed function."""


class Unbounded(CheckFailed):
    """No bound can be proved for the program."""


class Part(NamedTuple):
    """One function: how often it was followed, and the maximum instructions of one call and of all calls."""

    name: str
    calls: int
    worst: int
    total: int
    cycles: int


class Loop(NamedTuple):
    """A loop by the address of its head: the maximum number of times the head is reached per entry."""

    function: str
    head: int
    rounds: int


@dataclass(frozen=True)
class Bound:
    entry: str
    instructions: int
    cycles: int | None
    core: str
    branches: int
    """Number of branches with unknown outcome."""
    parts: tuple[Part, ...]
    loops: tuple[Loop, ...]
    irregular: tuple[int, ...]
    """Heads of loops with several entries, or known only through a jump table: not exported to other tools."""
    jumps: tuple[tuple[int, tuple[int, ...]], ...]
    """Jumps through tables and pointers, with all their targets."""
    turns: int = 1
    """Number of runs that differ by the state left by the last run; the longest counts."""


class Turns(NamedTuple):
    """Words of memory that only the program writes between its runs, and the function that initializes them."""

    begin: str
    words: tuple[int, ...]


def prove(
    image: Image,
    entry: str,
    stack: int,
    prices: Prices | None = None,
    limit: int = LIMIT,
    turns: Turns | None = None,
) -> Bound:
    """The bound of one call of `entry`, which takes no arguments, for any contents of memory, with the stack pointer
    at `stack` and 8 below: at each alignment that a caller may leave. With `turns`, the bound of every call since
    initialization, where the words contain what the last call left."""
    memory = Memory(image)
    blocks = Blocks(image, memory.functions, prices)
    found: list[Bound] = []
    longest = 1
    for place in (stack, stack - 8):
        met: list[Words] = []
        known = _Walk(image, memory, blocks, limit).left(turns, turns.begin, place, {}) if turns is not None else {}
        while known not in met and len(met) < MOST_TURNS:
            met.append(known)
            walk = _Walk(image, memory, blocks, limit)
            known = walk.left(turns, entry, place, known)
            found.append(walk.bound(entry))
        if known not in met:
            raise _unbounded(entry, entry, "unknown turn", f"the state does not repeat within {MOST_TURNS} runs")
        longest = max(longest, len(met))
    worst = max(found, key=lambda each: each.instructions)
    cycles = max(each.cycles or 0 for each in found) if prices is not None else None
    loops: dict[int, Loop] = {}
    for loop in sorted((loop for each in found for loop in each.loops), key=lambda each: each.rounds):
        loops[loop.head] = loop
    core, heads = prices.name if prices is not None else "", sorted(loops.values(), key=lambda each: each.head)
    return replace(worst, cycles=cycles, core=core, loops=tuple(heads), turns=longest)


def result_of(image: Image, function: str, arguments: tuple[int, ...], stack: int) -> Value:
    """A function's return value for any contents of memory, if known."""
    memory = Memory(image)
    walk = _Walk(image, memory, Blocks(image, memory.functions, None), LIMIT)
    return walk.end(function, stack, {}, arguments).registers[0]


def _unbounded(entry: str, where: str, kind: str, cause: str) -> Unbounded:
    text = f"no bound of {entry} can be proved.\n  [{kind}] {where}: {cause}.\n"
    return Unbounded("bound", text, "`nnbuild docs bound` explains each cause and its remedy.")


class _Walk:
    """Follows every possible path from one value of the stack pointer."""

    def __init__(self, image: Image, memory: Memory, blocks: Blocks, limit: int) -> None:
        self._image, self._memory, self._blocks, self._limit = image, memory, blocks, limit
        self._functions: dict[int, Function] = {}
        self._summaries: dict[tuple[int, int], Summary | None] = {}
        self._unknown: set[int] = set()
        self._state = State([], {})
        self._parted = 0
        self._depth = 0

    def left(self, turns: Turns | None, entry: str, stack: int, known: Words) -> Words:
        """Follows a call, and returns the words known afterwards."""
        self._state = state = self.end(entry, stack, known)
        words = {place: state.words.get(place) for place in turns.words} if turns is not None else {}
        found = {place: word for place, word in words.items() if word is not None}
        if len(found) < len(words):
            raise _unbounded(entry, entry, "unknown turn", "the next slot of the state depends on inputs")
        return found

    def end(self, entry: str, stack: int, known: Words, arguments: tuple[int, ...] = ()) -> State:
        address = self._image.functions.get(entry)
        if address is None:
            cause = f"is not a function of {self._image.name}."
            raise UsageError(entry, cause, "Name a function in its symbol table.")
        state = State([None] * len(REGISTERS), dict(known))
        state.registers[: len(arguments)] = arguments
        state.registers[SP], state.registers[LR] = stack, BACK | 1
        try:
            state, target = self._call(address, state, BACK)
            if target != BACK:
                raise Refused("unknown target", address, "it does not return to its caller")
            return state
        except Refused as problem:
            where = f"{self._image.name_of(problem.address)} ({problem.address:#x})"
            raise _unbounded(entry, where, problem.kind, problem.cause) from None

    def bound(self, entry: str) -> Bound:
        """The bound of the followed call."""
        state = self._state
        functions = self._functions.values()
        name = self._image.name_of
        loops = [Loop(name(f.entry), head, rounds) for f in functions for head, rounds in f.rounds.items()]
        irregular = {head for f in functions for head in f.order.irregular | f.doubtful}
        return Bound(
            entry=entry,
            instructions=state.count,
            cycles=state.cycles,
            core="",
            branches=len(self._unknown),
            parts=tuple(Part(name(f.entry), f.calls, f.worst, f.total, f.cycles) for f in functions),
            loops=tuple(loop for loop in loops if loop.head not in irregular),
            irregular=tuple(sorted(irregular)),
            jumps=self._jumps(),
        )

    def _jumps(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        found: dict[int, set[int]] = {}
        for function in self._functions.values():
            for origin, targets in function.beyond.items():
                block = self._blocks.at(origin)
                if block.kind in ("jump", "return"):
                    found.setdefault(block.last, set()).update(targets)
        return tuple((address, tuple(sorted(found[address]))) for address in sorted(found))

    # One call

    def _call(self, address: int, state: State, back: Value) -> tuple[State, Value]:
        """Follows a call to its end; returns the state and the return address, which is `back` except for helpers
        that read a table after the call."""
        function = self._functions.get(address)
        if function is None:
            function = self._functions[address] = Function(address, self._blocks)
        before, cycles = state.count, state.cycles
        summary = self._summary(function, state.registers[SP])
        if summary is not None:
            self._memory.written(summary.lowest)
            summary.apply(state)
            target = back
        else:
            parted = self._parted
            state, target = self._follow(function, state, back)
            function.parted += self._parted - parted
            function.followed += 1
        function.count_call(state.count - before, state.cycles - cycles)
        return state, target

    def _follow(self, function: Function, state: State, back: Value) -> tuple[State, Value]:
        if self._depth == DEEPEST:
            raise Refused("recursion", function.entry, f"calls are nested deeper than {DEEPEST}")
        self._depth += 1
        ends: dict[Value, State] = {}
        ways = [Way(state, function.entry, function.counted(function.entry, ()))]
        while ways:
            ways = self._straight(function, ways[0], back, ends)
            if ways:
                ways = self._together(function, ways, back, ends)
        self._depth -= 1
        if len(ends) != 1:
            raise Refused("unknown target", function.entry, "it returns to several addresses")
        ((target, state),) = ends.items()
        return state, target

    def _summary(self, function: Function, stack: Value) -> Summary | None:
        """A helper's effect for all arguments; None if it is not called often or has no summary."""
        if stack is None or function.parted < OFTEN:
            return None
        key = function.entry, stack
        if key not in self._summaries:
            if function.parted < MANY * function.followed or function.worst > SMALL:
                return None
            self._summaries[key] = None  # none while it is being followed
            self._summaries[key] = self._summarize(function, stack)
        return self._summaries[key]

    def _summarize(self, function: Function, stack: int) -> Summary | None:
        state, depth = opening(stack), self._depth
        back = state.registers[LR]
        try:
            with self._memory.only_below(stack) as lowest:
                state, target = self._follow(function, state, back)
                found = Summary(state, lowest())
        except (Refused, *NO_SUMMARY):
            self._depth = depth
            return None
        return found if target is back and state.registers[SP] == stack else None

    def _straight(self, function: Function, way: Way, back: Value, ends: dict[Value, State]) -> list[Way]:
        """Continues while there is only one path; returns the paths into which it splits, or none at the end."""
        state, at, trail = way.state, way.at, way.trail
        find, step, limit = self._blocks.at, function.step, self._limit
        while True:
            block = find(at)
            before = state.fork() if block.either is not None else None
            try:
                target = block.run(state.registers, state.words)
            except WildStore as problem:
                raise _refused(problem) from None
            state.count += block.count
            if state.count > limit:
                raise Refused("no end", block.last, f"it does not end within {limit:,} instructions")
            if block.kind == "branch":
                if target is None:
                    return self._part(function, block, Way(state, at, trail), before)
                state.cycles += block.cycles_taken if target == block.taken else block.cycles
            else:
                state.cycles += block.cycles
                if block.kind != "goto":
                    state, target = self._beyond(block, state, target, back, ends)
                    if target is None:
                        return []
            assert target is not None
            trail = step(at, target, trail)
            at = target

    def _beyond(
        self, block: Block, state: State, target: Value, back: Value, ends: dict[Value, State]
    ) -> tuple[State, Value]:
        """The state and the next block after a call, jump or return; None where the function has ended. An apparent
        return may lead to another place in the same function, and is then a jump."""
        if target is None:
            raise Refused("unknown target", block.last, "its target depends on inputs")
        if target is not back:
            target &= ~1
        if block.kind == "call":
            return self._call(target, state, block.fall)
        if target != back and (block.kind != "return" or self._image.within(block.address, target)):
            return state, target
        if target in ends:
            ends[target].join(state)
        else:
            ends[target] = state
        return state, None

    def _part(self, function: Function, block: Block, way: Way, before: State | None) -> list[Way]:
        """Both paths of a branch with an unknown condition; each knows the block's effects there."""
        self._unknown.add(block.last)
        self._parted += 1
        other = way.state.fork()
        if block.either is not None and before is not None:
            way.state.registers, other.registers = before.registers.copy(), before.registers
            way.state.words, other.words = before.words.copy(), before.words
            for run, state in zip(block.either, (way.state, other), strict=True):
                run(state.registers, state.words)
        way.state.cycles += block.cycles_taken
        other.cycles += block.cycles
        taken = Way(way.state, block.taken, function.step(way.at, block.taken, way.trail))
        return [taken, Way(other, block.fall, function.step(way.at, block.fall, way.trail))]

    def _together(self, function: Function, ways: list[Way], back: Value, ends: dict[Value, State]) -> list[Way]:
        """Advances several paths, always the one furthest behind, until one is left or all have ended."""
        waiting = Waiting(function.order)
        for way in ways:
            waiting.add(way)
        while len(waiting) > (0 if ends else 1):
            way = waiting.behind()
            for each in self._forward(function, way, back, ends):
                if function.order is not waiting.order:
                    waiting = waiting.anew(function.order, lambda w: function.counted(w.at, w.trail))
                    each.trail = function.counted(each.at, each.trail)
                waiting.add(each)
        return waiting.ways

    def _forward(self, function: Function, way: Way, back: Value, ends: dict[Value, State]) -> list[Way]:
        """Executes one block of one of several paths."""
        block, state = self._blocks.at(way.at), way.state
        before = state.fork() if block.either is not None else None
        try:
            target = block.run(state.registers, state.words)
        except WildStore as problem:
            raise _refused(problem) from None
        state.count += block.count
        if block.kind == "branch" and target is None:
            return self._part(function, block, way, before)
        state.cycles += block.cycles_taken if target == block.taken else block.cycles
        if block.kind not in ("goto", "branch"):
            state, target = self._beyond(block, state, target, back, ends)
            if target is None:
                return []
        assert target is not None
        return [Way(state, target, function.step(way.at, target, way.trail))]


def _refused(problem: WildStore) -> Refused:
    if problem.place is None:
        return Refused("unknown store", problem.address, "the address that it writes to depends on inputs")
    cause = f"it writes to {problem.place:#x}, where the program has no variables"
    return Refused("wild store", problem.address, cause)
