"""Searches for the way to store all layers' weights that loses least accuracy within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from nnbuild.base.errors import CheckFailed
from nnbuild.compress.candidates import Candidate, frontier, reprice, roles_by_op
from nnbuild.compress.graph import Compressed, Specs
from nnbuild.compress.price import Board
from nnbuild.model.graph import Graph

POINTS = 0.5
"""Points that may be lost by default."""
MAX_TRIES = 6
"""Most choices computed to find the first that fits."""

REFINEMENTS = 2
"""Times that spare bytes are given to layers: the whole may take more bytes than its layers add up to."""

CANDIDATES = 3
"""Fitting choices, of which the one that loses least is taken: losses are partly chance."""


@dataclass(frozen=True, eq=False)
class Found:
    """One choice for all layers, the resulting graph, its bytes, and the points it loses."""

    choice: Mapping[str, Candidate]
    made: Compressed
    bytes: int
    drop: float

    @property
    def error(self) -> float:
        """Estimated output error: the sum over single layers."""
        return sum(trial.error for trial in self.choice.values())


@dataclass(eq=False)
class Search:
    """`made` compresses the graph; `drop_of` tells how many points a graph loses against the original model."""

    graph: Graph
    made: Callable[[Specs, Callable[[str], None]], Compressed]
    board: Board
    drop_of: Callable[[Graph], float]
    report: Callable[[str], None]

    def within(self, found: Mapping[str, list[Candidate]], flash: int | None, drop: float | None) -> Found:
        """The best choice within these limits; raises an error that names reachable limits."""
        steps, known = frontier(found), dict[int, Found]()

        def at(index: int) -> Found:
            if index not in known:
                known[index] = self._made(steps[index], f"{index} of {len(steps) - 1}")
            return known[index]

        if flash is None:
            return at(self._within_drop(at, len(steps) - 1, POINTS if drop is None else drop))
        index = self._first_fit(steps, at, flash)
        tight = at(index)
        if drop is not None and tight.drop <= drop:
            return tight
        both = None if drop is None else _meeting_both(known.values(), flash, drop)
        if both is not None:
            return both
        near = [at(i) for i in range(index, min(index + CANDIDATES, len(steps)))]
        near.append(self._use_spare_room(tight, found, flash))
        best = min((each for each in near if each.bytes <= flash), key=lambda each: (each.drop, each.error))
        if drop is None or best.drop <= drop:
            return best
        self._within_drop(at, index, drop)
        both = _meeting_both(known.values(), flash, drop)
        if both is None:
            loose = min(
                (each for each in known.values() if each.drop <= drop), key=lambda each: (each.bytes, each.drop)
            )
            raise _refusal(best, loose, flash, drop)
        return both

    def _use_spare_room(self, tight: Found, found: Mapping[str, list[Candidate]], flash: int) -> Found:
        """Refines layers with the remaining bytes, priced in a program with these routines: some refinements are
        free."""
        priced = reprice(self.graph, tight.made.graph, found, self.board)
        start = {op: next(each for each in priced[op] if each.spec == trial.spec) for op, trial in tight.choice.items()}
        room = flash - tight.bytes
        for _ in range(REFINEMENTS):
            finer = _refined(start, priced, room)
            if all(finer[op].spec == trial.spec for op, trial in tight.choice.items()):
                break
            made = self._made(finer, "with finer layers")
            if made.bytes <= flash:
                return made
            room -= made.bytes - flash
        return tight

    def _made(self, choice: Mapping[str, Candidate], which: str) -> Found:
        roles = roles_by_op(self.graph)
        specs = {(op, role): trial.spec for op, trial in choice.items() for role in roles[op]}
        made = self.made(specs, lambda text: self.report(f"choice {which}: {text}"))
        found = Found(choice, made, self.board.whole(made.graph).bytes, self.drop_of(made.graph))
        self.report(f"choice {which}: {found.bytes:,} bytes, {found.drop:.2f} points lost")
        return found

    def _within_drop(self, at: Callable[[int], Found], last: int, drop: float) -> int:
        """The smallest choice that loses no more than `drop`, by bisection."""
        if at(0).drop > drop:
            raise CheckFailed(
                "--accuracy-drop",
                f"the integer model loses {at(0).drop:.2f} points before any compression, more than {drop:g}.",
                f"Give --accuracy-drop {_up(at(0).drop)}, calibrate with more samples, or give --quantize int16.",
            )
        low, high = 0, last + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if at(middle).drop <= drop else (low, middle)
        return low

    def _first_fit(self, steps: list[dict[str, Candidate]], at: Callable[[int], Found], flash: int) -> int:
        """The first choice that fits according to the plan, guided by estimates by layer."""
        estimates = [sum(trial.bytes for trial in step.values()) for step in steps]
        low, high = -1, len(steps)  # too large, and fitting
        off = self.board.whole(self.graph).bytes - estimates[0]
        for _ in range(MAX_TRIES):
            aim = next((i for i, size in enumerate(estimates) if size + off <= flash), len(steps) - 1)
            index = min(max(aim, low + 1), high - 1)
            if index <= low or index >= high:
                break
            off = at(index).bytes - estimates[index]
            low, high = (low, index) if at(index).bytes <= flash else (index, high)
        if high == len(steps) and at(high - 1).bytes > flash:
            least = at(len(steps) - 1)
            raise CheckFailed(
                f"--flash {flash:,}",
                f"the fewest bytes that were found are {least.bytes:,}, with {least.drop:.2f} points lost.",
                f"Allow --flash {least.bytes}, or take a smaller model.",
            )
        return min(high, len(steps) - 1)


def _gain(before: Candidate, after: Candidate) -> float:
    """Error removed per byte."""
    return (before.error - after.error) / max(after.bytes - before.bytes, 1)


def _refined(
    start: Mapping[str, Candidate], priced: Mapping[str, list[Candidate]], room: int
) -> Mapping[str, Candidate]:
    """Takes finer candidates in place of the first ones while their bytes find room, the best gain per byte first."""
    now = dict(start)
    while moves := [
        (now[op], each)
        for op in now
        for each in priced[op]
        if each.error < now[op].error and each.bytes - now[op].bytes <= room
    ]:
        before, after = max(moves, key=lambda move: _gain(*move))
        now[after.op], room = after, room - (after.bytes - before.bytes)
    return now


def _meeting_both(made: Iterable[Found], flash: int, drop: float) -> Found | None:
    """A choice within both limits, if any: a smaller choice may lose less."""
    both = (each for each in made if each.bytes <= flash and each.drop <= drop)
    return min(both, key=lambda each: (each.drop, each.bytes), default=None)


def _refusal(tight: Found, loose: Found, flash: int, drop: float) -> CheckFailed:
    """An error that names the nearest reachable pairs of limits."""
    return CheckFailed(
        f"--accuracy-drop {drop:g}",
        f"within --flash {flash:,} the model loses {tight.drop:.2f} points; losing no more than {drop:g} takes "
        f"{loose.bytes:,} bytes.",
        f"Give --flash {flash} --accuracy-drop {_up(tight.drop)}, or --flash {loose.bytes} --accuracy-drop {drop:g}.",
    )


def _up(points: float) -> str:
    """Rounded up, so that the limit holds."""
    return f"{-(-points * 100 // 1) / 100:.2f}"
