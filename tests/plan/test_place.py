"""Placing buffers: never two where one is needed, and seldom a byte more than the best there is."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from nnbuild.plan.place import FULL_SEARCH_BUDGET, Buffer, Placement, neighbours_of, place, place_in_order

ALIGNMENT = 16
QUICK = {"derandomize": True, "deadline": None, "phases": (Phase.generate,)}
"""The same examples every time, and a failure is not made smaller for minutes."""


def overlap(a: Buffer, at: int, b: Buffer, bt: int) -> bool:
    return at < bt + b.size and bt < at + a.size


def allowed(a: Buffer, at: int, b: Buffer, bt: int) -> bool:
    """The rule in words of its own: apart in time, apart in space, or written behind what is still to be read."""
    if a.last < b.first or b.last < a.first or not overlap(a, at, b, bt):
        return True
    return any(
        over.name in under.may_precede and under_at + under.may_precede[over.name] <= over_at
        for under, under_at, over, over_at in ((a, at, b, bt), (b, bt, a, at))
    )


def assert_legal(buffers: list[Buffer], placement: Placement) -> None:
    for a, b in itertools.combinations(buffers, 2):
        at, bt = placement.offsets[a.name], placement.offsets[b.name]
        assert allowed(a, at, b, bt), f"{a} at {at} and {b} at {bt}"
    for each in buffers:
        assert placement.offsets[each.name] % ALIGNMENT == 0
        assert 0 <= placement.offsets[each.name] <= placement.size - each.size
    assert placement.bound <= placement.size


@st.composite
def buffer_sets(draw: st.DrawFn, most: int = 24) -> list[Buffer]:
    """Lifetimes of any kind; some buffers may lie over one that ends where they begin, as in a network."""
    count = draw(st.integers(1, most))
    known: list[Buffer] = []
    for index in range(count):
        first = draw(st.integers(-1, count))
        last = draw(st.integers(first, min(count, first + 6)))
        ending = [b.name for b in known if b.last == first and b.first < first]
        over = draw(st.sets(st.sampled_from(ending), max_size=2)) if ending else set()
        leads = {name: draw(st.integers(-600, 1200)) for name in sorted(over)}
        known.append(Buffer(f"b{index}", draw(st.integers(1, 5000)), first, last, leads))
    return known


@settings(max_examples=150, **QUICK)
@given(buffer_sets())
def test_no_forbidden_overlap(buffers: list[Buffer]) -> None:
    assert_legal(buffers, place(buffers, ALIGNMENT))


@settings(max_examples=30, **QUICK)
@given(buffer_sets(12))
def test_the_same_buffers_get_the_same_places(buffers: list[Buffer]) -> None:
    assert place(buffers, ALIGNMENT) == place(buffers, ALIGNMENT)


def best(buffers: list[Buffer]) -> int:
    """The smallest arena, by trying everything that can be best: every buffer at the bottom, or touching another.

    In some best placement every buffer has been pushed down until it rests on the end of another, or begins where one
    that may lie over it lets it; so all orders and all such rests are searched, but for what is larger than the best.
    """
    sizes = [Buffer(b.name, -(-b.size // ALIGNMENT) * ALIGNMENT, b.first, b.last, b.may_precede) for b in buffers]
    smallest = sum(b.size for b in sizes)

    def search(placed: list[tuple[Buffer, int]], rest: list[Buffer], size: int) -> None:
        nonlocal smallest
        if size >= smallest:
            return
        if not rest:
            smallest = size
            return
        for index, buffer in enumerate(rest):
            for at in _rests(placed):
                if at + buffer.size < smallest and all(allowed(buffer, at, other, to) for other, to in placed):
                    others = rest[:index] + rest[index + 1 :]
                    search([*placed, (buffer, at)], others, max(size, at + buffer.size))

    search([], sizes, 0)
    return smallest


def _rests(placed: list[tuple[Buffer, int]]) -> Iterator[int]:
    leads = {at + lead for b, at in placed for lead in b.may_precede.values()}
    yield from sorted({0, *(at + b.size for b, at in placed), *(at for at in leads if at >= 0)})


def random_buffers(chance: random.Random) -> list[Buffer]:
    count = chance.randint(3, 5)
    known: list[Buffer] = []
    for index in range(count):
        first = chance.randint(0, 4)
        last = min(5, first + chance.randint(0, 3))
        ending = [b.name for b in known if b.last == first and b.first < first]
        over = {name: 16 * chance.randint(-3, 5) for name in ending if chance.random() < 0.5}
        known.append(Buffer(f"b{index}", 16 * chance.randint(1, 12), first, last, over))
    return known


def test_nearly_always_the_best_placement() -> None:
    """Against exhaustive search on small sets. Never better, or one of the two is wrong."""
    chance = random.Random(2)
    rounds, optimal, excess = 150, 0, []
    for _ in range(rounds):
        buffers = random_buffers(chance)
        found, smallest = place(buffers, ALIGNMENT).size, best(buffers)
        assert found >= smallest, buffers
        optimal += found == smallest
        excess.append(found / smallest)
    assert optimal / rounds >= 0.95, f"{optimal} of {rounds}, at worst {max(excess):.2f} times the best"


def test_a_chain_needs_two_neighbours() -> None:
    """Each layer's output lives until the next has read it: the fullest step is what two neighbours need."""
    sizes = [100, 400, 250, 800, 60, 60, 700]
    buffers = [Buffer(f"b{i}", 16 * size, i - 1, i) for i, size in enumerate(sizes)]
    placement = place(buffers, ALIGNMENT)
    assert placement.size == placement.bound == 16 * max(a + b for a, b in itertools.pairwise(sizes))


def test_in_place_shares_one_storage() -> None:
    before, after = Buffer("a", 160, 0, 1), Buffer("b", 160, 1, 2, {"a": 0})
    assert place([before, after], ALIGNMENT).size == 160
    apart = Buffer("b", 160, 1, 2)
    assert place([before, apart], ALIGNMENT).size == 320


def test_a_larger_output_begins_before_what_it_reads() -> None:
    before, after = Buffer("a", 160, 0, 1), Buffer("b", 320, 1, 2, {"a": 160})
    placement = place([before, after], ALIGNMENT)
    assert placement.offsets["b"] <= placement.offsets["a"]
    assert placement.size == 320


def test_nothing_needs_nothing() -> None:
    assert place([], ALIGNMENT) == Placement({}, 0, 0)
    assert place([Buffer("empty", 0, 0, 1)], ALIGNMENT).size == 0


def test_a_buffer_over_another_keeps_whole_steps_between_their_beginnings() -> None:
    """The output of a kernel that goes channel by channel may lie over its input only whole pixels away."""
    low = Buffer("low", 48, 0, 0)
    before = Buffer("before", 480, 0, 1)
    after = Buffer("after", 480, 1, 2, {"before": -480}, {"before": 48})
    placed = place([low, before, after], ALIGNMENT)
    assert placed.size == 528
    assert (placed.offsets["before"] - placed.offsets["after"]) % 48 == 0
    apart = place([before, Buffer("after", 480, 1, 2, {"before": 16}, {"before": 112})], ALIGNMENT)
    assert apart.offsets["before"] - apart.offsets["after"] == 112


@settings(max_examples=60, **QUICK)
@given(buffer_sets())
def test_orders_with_the_same_beginning_need_not_be_laid_anew(buffers: list[Buffer]) -> None:
    """The search goes on behind what two orders have in common, and gives an order up as soon as it leads to more."""
    beside = neighbours_of(buffers)
    whole = place_in_order(buffers, beside, {})
    end = max(whole[b.name] + b.size for b in buffers)
    for count in range(len(buffers) + 1):
        begun = {b.name: whole[b.name] for b in buffers[:count]}
        assert place_in_order(buffers, beside, begun) == place_in_order(buffers, beside, begun, end) == whole
    assert len(place_in_order(buffers, beside, {}, end - 1)) < len(buffers)


def network(chance: random.Random) -> list[Buffer]:
    """Sixty steps, each with scratch of its own, many of which may write over what they read."""
    buffers = [Buffer("t0", 16 * chance.randint(200, 2000), -1, 0)]
    for step in range(60):
        size = max(16, int(buffers[-1].size * chance.choice((0.25, 0.5, 1, 1, 2))))
        over = {f"t{step}": chance.choice((-400, 16, size // 2))} if chance.random() < 0.7 else {}
        buffers.insert(0, Buffer(f"scratch{step}", 16 * chance.randint(1, 300), step, step))
        buffers.append(Buffer(f"t{step + 1}", min(size, 40_000), step, step + 1, over))
    return buffers


def test_the_arena_that_is_built_is_searched_for_longer() -> None:
    chance = random.Random(5)
    shorter, longer = [], []
    for _ in range(8):
        buffers = network(chance)
        shorter.append(place(buffers, ALIGNMENT).size)
        longer.append(place(buffers, ALIGNMENT, patience=FULL_SEARCH_BUDGET).size)
    assert all(b <= a for a, b in zip(shorter, longer, strict=True))
    assert sum(longer) < 0.99 * sum(shorter), (shorter, longer)
