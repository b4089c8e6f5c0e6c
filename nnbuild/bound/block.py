"""Basic blocks, each compiled to one Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nnbuild.bound.cycles import Prices
from nnbuild.bound.image import Image
from nnbuild.bound.instruction import Instruction, decode, it_conditions
from nnbuild.bound.memory import Words
from nnbuild.bound.operands import MASK, Meaningless
from nnbuild.bound.register_distance import new_mark
from nnbuild.bound.semantics import write
from nnbuild.bound.transfers import load_many
from nnbuild.bound.writer import CONDITION, OPPOSITE, Writer

Value = int | None
Run = Callable[[list[Value], Words], Value]
DIRECT = ("b", "bl")
TESTS = {"cbz": "==", "cbnz": "!="}


class Refused(Exception):
    """Something that cannot be bounded: its kind, its address, and the details."""

    def __init__(self, kind: str, address: int, cause: str) -> None:
        super().__init__(kind, address, cause)
        self.kind, self.address, self.cause = kind, address, cause


@dataclass(frozen=True)
class Block:
    """`run` changes a state and returns the next address; None where it is unknown.

    goto: always to `fall`; branch: to `taken` or `fall`; call: to a function, then to `fall`; return and jump: to an
    address in a register or a table. An odd address is that of a conditional branch whose condition holds.
    """

    address: int
    kind: str
    run: Run
    count: int
    fall: int
    taken: int
    last: int
    """The address of the last instruction."""
    cycles: int = 0
    """Maximum cycles, when it falls through or takes its only exit."""
    cycles_taken: int = 0
    either: tuple[Run, Run] | None = None
    """Its effects when it branches and when it does not, where other instructions use the branch's condition too."""

    @property
    def targets(self) -> tuple[int, ...]:
        """The blocks that may follow in the same function, as far as the code shows."""
        ways = {"goto": (self.fall,), "call": (self.fall,), "branch": (self.taken, self.fall)}
        return ways.get(self.kind, ())


@dataclass(frozen=True)
class Piece:
    """A block before compilation: its instructions, the last of which may be a branch."""

    body: Sequence[Instruction]
    end: Instruction | None
    fall: int


def is_branch(i: Instruction) -> bool:
    """Whether the next instruction may be other than the following one."""
    if i.name in ("b", "bl", "bx", "blx", "cbz", "cbnz", "tbb", "tbh"):
        return True
    names = [each.reg for each in i.operands if each.kind == "reg"]
    if i.name in ("pop", "ldm", "ldmdb"):
        return "pc" in names
    return names[:1] == ["pc"]


def write_all(w: Writer, body: Sequence[Instruction]) -> None:
    """Writes instructions without a branch."""
    for i in body:
        try:
            if i.condition:
                with w.under(i.condition):
                    write(w, i)
            else:
                write(w, i)
        except Meaningless:
            text = f"{i.text} is an instruction that the prover does not model"
            raise Refused("unknown instruction", i.address, text) from None


def _sets_flags(i: Instruction) -> bool:
    w = Writer()
    write_all(w, [i])
    return w.changes_flags


def compiled(w: Writer, result: str, access: Mapping[str, Callable[..., Any]]) -> Run:
    names: dict[str, Any] = {"new_mark": new_mark, **access}
    exec(w.finish(result), names)
    run: Run = names["block"]
    return run


class Blocks:
    """Creates blocks on demand. They end where another begins, so that paths can merge there."""

    def __init__(self, image: Image, access: Mapping[str, Callable[..., Any]], prices: Prices | None) -> None:
        self._image, self._access, self._prices = image, access, prices
        self._leaders: set[int] = set()
        self._made: dict[int, Block] = {}
        self._pieces: dict[int, Piece] = {}
        self._instructions: dict[tuple[int, str], Instruction] = {}

    def at(self, address: int) -> Block:
        found = self._made.get(address)
        if found is None:
            found = self._made[address] = self._make(address)
        return found

    def explore(self, start: int) -> None:
        """Finds the block boundaries in the function at an address."""
        waiting = [start]
        while waiting:
            address = waiting.pop()
            if address in self._leaders:
                continue
            self._leaders.add(address)
            for key, piece in list(self._pieces.items()):
                if key < address < piece.fall:  # this block runs into the next: it must end here
                    del self._pieces[key]
                    self._made.pop(key, None)
            piece = self._pieces[address] = self._cut(address)
            waiting += self._ways(piece)

    def _ways(self, piece: Piece) -> list[int]:
        end = piece.end
        if end is None:
            return [piece.fall]
        if end.name in TESTS or (end.name == "b" and end.condition):
            return [end.operands[-1].value, piece.fall]
        if end.condition:
            return [end.address | 1, piece.fall]
        if end.name == "b" or self._far(end):
            return [end.operands[0].value]
        return [piece.fall] if end.name in ("bl", "blx") else []

    def _far(self, i: Instruction) -> bool:
        return i.name == "bl" and self._image.within(i.address, i.operands[0].value)

    def _decoded(self, address: int, condition: str) -> Instruction:
        key = address, condition
        if key not in self._instructions:
            i = decode(self._image.code_at(address), address, condition)
            if i is None:
                raise Refused("unknown instruction", address, "there is no Cortex-M instruction")
            self._instructions[key] = i
        return self._instructions[key]

    def _cut(self, address: int) -> Piece:
        body: list[Instruction] = []
        waiting: list[str] = []
        at = address & ~1
        while True:
            i = self._decoded(at, waiting.pop(0) if waiting else "")
            if is_branch(i):
                return Piece(body, i, i.next)
            body.append(i)
            at = i.next
            if i.name.startswith("it"):
                waiting = list(it_conditions(i.text))
            if at in self._leaders and not waiting:
                return Piece(body, None, at)

    def _make(self, address: int) -> Block:
        piece = self._pieces.get(address)
        if piece is None:
            piece = self._pieces[address] = self._cut(address)
        w = Writer()
        write_all(w, piece.body)
        kind, taken, result = self._end(w, piece, bool(address & 1))
        run = compiled(w, result, self._access)
        count = len(piece.body) + (piece.end is not None) - (address & 1)
        last = piece.end or piece.body[-1]
        body, falls, takes = self._cost(piece, address)
        either = self._either(piece) if kind == "branch" else None
        fall = last.operands[0].value if kind == "goto" and piece.end is not None else piece.fall
        return Block(address, kind, run, count, fall, taken, last.address, body + falls, body + takes, either)

    def _either(self, piece: Piece) -> tuple[Run, Run] | None:
        condition, asking = piece.end.condition if piece.end is not None else "", len(piece.body)
        while asking > 0 and not _sets_flags(piece.body[asking - 1]):
            asking -= 1
        pair = condition, OPPOSITE.get(condition, "")
        if not condition or all(i.condition not in pair for i in piece.body[asking:]):
            return None
        taken, falls = (self._assuming(piece.body, asking, each) for each in pair)
        return taken, falls

    def _assuming(self, body: Sequence[Instruction], asking: int, condition: str) -> Run:
        """The effect of a body if a condition holds from an instruction on."""
        w, never = Writer(), OPPOSITE[condition]
        asked = [i for i in body[asking:] if i.condition != never]
        write_all(w, [*body[:asking], *(replace(i, condition="") if i.condition == condition else i for i in asked)])
        return compiled(w, "None", self._access)

    def _cost(self, piece: Piece, address: int) -> tuple[int, int, int]:
        if self._prices is None:
            return 0, 0, 0
        body = self._prices.body(piece.body, piece.end)
        falls, takes = self._prices.branch(piece.end) if piece.end is not None else (0, 0)
        i = piece.end
        if i is None or address & 1 or not (i.condition or i.name in TESTS):
            return body, takes, takes
        return body, falls, takes if i.name in ("b", *TESTS) else falls

    def _end(self, w: Writer, piece: Piece, forced: bool) -> tuple[str, int, str]:
        """The block's kind, the target of its branch, and the function's return value."""
        i = piece.end
        if i is None:
            return "goto", 0, str(piece.fall)
        if i.name in TESTS:
            name, taken = i.operands[0].reg, i.operands[1].value
            return (
                "branch",
                taken,
                w.guarded(f"{taken} if {name} & {MASK} {TESTS[i.name]} 0 else {piece.fall}", (name,)),
            )
        if i.condition and not forced:
            taken = i.operands[0].value if i.name == "b" else i.address | 1
            expression, needs = CONDITION[i.condition]
            return "branch", taken, w.guarded(f"{taken} if {expression} else {piece.fall}", needs)
        return self._unconditional(w, i, piece.fall)

    def _unconditional(self, w: Writer, i: Instruction, fall: int) -> tuple[str, int, str]:
        first = i.operands[0]
        if i.name == "b":
            return "goto", 0, str(first.value)
        if i.name == "bl":
            w.set("lr", str(fall | 1))
            return "goto" if self._far(i) else "call", 0, str(first.value)
        if i.name == "blx":
            w.set("target", first.reg, (first.reg,))
            w.set("lr", str(fall | 1))
            return "call", 0, w.guarded("target", ("target",))
        if i.name == "bx":
            kind = "return" if first.reg == "lr" else "jump"
            return kind, 0, w.guarded(first.reg, (first.reg,))
        if i.name in ("tbb", "tbh"):
            return "jump", 0, self._table(w, i)
        if i.name in ("pop", "ldm", "ldmdb"):
            load_many(w, i)
            return "return", 0, w.guarded("target", ("target",))
        return self._to_counter(w, i)

    def _table(self, w: Writer, i: Instruction) -> str:
        table, index = i.operands[0].reg, i.operands[0].offset
        if table != "pc":
            raise Refused("unknown target", i.address, f"{i.text} reads a jump table that does not follow it")
        base = i.address + 4
        entry = f"L1(m, {base} + {index})" if i.name == "tbb" else f"L2(m, {base} + 2 * {index})"
        w.set("target", entry, (index,), perhaps=True)
        return w.guarded(f"{base} + 2 * target", ("target",))

    def _to_counter(self, w: Writer, i: Instruction) -> tuple[str, int, str]:
        """Instructions whose destination is the program counter."""
        if i.name == "mov" and i.operands[1].kind == "reg" and not i.operands[1].shift:
            name = i.operands[1].reg
            return "return" if name == "lr" else "jump", 0, w.guarded(name, (name,))
        if i.name == "ldr" and i.operands[1].reg == "sp" and i.post:
            w.set("target", "L4(m, sp)", ("sp",), perhaps=True)
            w.set("sp", f"(sp + {i.operands[2].value}) & {MASK}", ("sp",))
            return "return", 0, w.guarded("target", ("target",))
        if i.name == "ldr" and i.operands[1].kind == "mem" and not i.writeback and i.operands[1].reg != "pc":
            place = i.operands[1]
            text = f"({place.reg} + ({place.offset} << {place.amount})) & {MASK}" if place.offset else ""
            needs = (place.reg, place.offset) if place.offset else (place.reg,)
            w.set("target", f"L4(m, {text or f'{place.reg} + {place.value}'})", needs, perhaps=True)
            return "jump", 0, w.guarded("target", ("target",))
        raise Refused("unknown target", i.address, f"{i.text} is a jump that the prover does not model")
