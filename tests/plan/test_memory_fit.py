"""Kernels chosen for the arena they lead to, on kernels made up for the purpose."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Kernel, Names, Overlap
from nnbuild.model.graph import Op, Tensor
from nnbuild.ops.activation import Activation
from nnbuild.ops.site import Site
from nnbuild.plan.chain import Work
from nnbuild.plan.code_size import Code
from nnbuild.plan.memory_fit import fit_memory, step_bytes
from nnbuild.plan.select import Choice, Offer, Price
from nnbuild.plan.target import Target
from nnbuild.plan.weight_growth import ALLOWANCE, limit_weight_growth

NO_CODE = Code()


def nothing(w: Writer, site: Site, names: Names) -> None:
    w("")


def offer(name: str, cycles: float, scratch: int, *overlaps: Overlap, weights: int = 0, code: Code = NO_CODE) -> Offer:
    demand = Demand(1, scratch, overlaps=overlaps)
    kernel = Kernel(name, frozenset(), lambda site: None, lambda site: demand, nothing)
    return Offer(kernel, demand, Price(cycles, weights, lambda: code, scratch))


def work(name: str, *offers: Offer) -> Work:
    op = Op(name, Activation("tanh"), ("x",), ("y",))
    site = Site(op, (Tensor("x", (100,), "int8"),), (Tensor("y", (40,), "int8"),), {})
    return Work(site, Choice(offers, ()))


def names(settled: list[Work]) -> list[str]:
    return [item.choice.kernel.name for item in settled]


FAST = offer("fast", 10, 300)
MIDDLE = offer("middle", 20, 60, Overlap())
SMALL = offer("small", 90, 0, Overlap())


def arena(settled: list[Work], enough: int) -> int:
    return max(step_bytes(item, item.choice.offers[item.choice.taken]) for item in settled)


def test_what_a_step_needs() -> None:
    assert step_bytes(work("a"), FAST) == 440
    assert step_bytes(work("a"), SMALL) == 100
    assert step_bytes(work("a"), offer("lead", 1, 0, Overlap(distance=16))) == 116
    assert step_bytes(work("a"), offer("behind", 1, 8, Overlap(distance=-50))) == 108


def test_for_speed_nothing_is_changed() -> None:
    given = [work("a", FAST, SMALL)]
    assert names(fit_memory(given, arena, Target())) == ["fast"]
    assert names(fit_memory(given, arena, Target(max_ram=440))) == ["fast"]


def test_for_ram_the_smallest_arena_and_then_the_fastest_in_it() -> None:
    given = [work("a", FAST, MIDDLE, SMALL), work("b", FAST, MIDDLE)]
    assert names(fit_memory(given, arena, Target(optimize="ram"))) == ["middle", "middle"]


def test_a_limit_is_kept_with_the_fastest_that_do() -> None:
    given = [work("a", FAST, MIDDLE, SMALL), work("b", FAST, SMALL)]
    assert names(fit_memory(given, arena, Target(max_ram=200))) == ["middle", "small"]


def test_a_limit_is_kept_with_the_fewest_bytes_where_these_are_wanted() -> None:
    roomy, few, many = (
        offer("roomy", 90, 300, weights=30),
        offer("few", 50, 60, weights=50),
        offer("many", 10, 0, weights=100),
    )
    given = [work("a", roomy, few, many), work("b", roomy, many)]
    assert names(fit_memory(given, arena, Target(optimize="size"))) == ["roomy", "roomy"]
    assert names(fit_memory(given, arena, Target(optimize="size", max_ram=200))) == ["few", "many"]
    assert names(fit_memory(given, arena, Target(max_ram=200))) == ["many", "many"]


def test_beyond_the_limit_as_little_as_possible() -> None:
    assert names(fit_memory([work("a", FAST, MIDDLE, SMALL)], arena, Target(max_ram=10))) == ["small"]


def test_lighter_kernels_where_a_byte_costs_least() -> None:
    heavy, light = offer("heavy", 10, 0, weights=100), offer("light", 30, 0, weights=50)
    cheap = offer("cheap", 12, 0, weights=60)
    given = [work("a", heavy, light), work("b", heavy, cheap)]
    assert names(fit_memory(given, arena, Target(max_flash=200))) == ["heavy", "heavy"]
    assert names(fit_memory(given, arena, Target(max_flash=170))) == ["heavy", "cheap"]
    assert names(fit_memory(given, arena, Target(max_flash=120))) == ["light", "cheap"]
    assert names(fit_memory(given, arena, Target(max_flash=10))) == ["light", "cheap"]


def test_code_counts_and_a_shared_routine_once() -> None:
    """The routine goes only when no step calls it any more, so the limit costs both steps their speed."""
    fast = offer("fast", 10, 0, weights=100, code=Code(10, {"tile": 200}))
    slow = offer("slow", 30, 0, weights=90, code=Code(50))
    given = [work("a", fast, slow), work("b", fast, slow)]
    assert names(fit_memory(given, arena, Target(max_flash=420))) == ["fast", "fast"]
    assert names(fit_memory(given, arena, Target(max_flash=300))) == ["slow", "slow"]


def test_lighter_kernels_do_not_take_the_arena_beyond_its_limit() -> None:
    heavy, light = offer("heavy", 10, 0, weights=100), offer("light", 30, 0, weights=50)
    wide = offer("wide", 12, 300, weights=60)
    given = [work("a", heavy, wide, light)]
    assert names(fit_memory(given, arena, Target(max_flash=80))) == ["wide"]
    assert names(fit_memory(given, arena, Target(max_flash=80, max_ram=200))) == ["light"]
    assert names(fit_memory([work("a", heavy, wide)], arena, Target(max_flash=80, max_ram=200))) == ["heavy"]
    assert names(fit_memory(given, arena, Target(max_flash=80, max_ram=100))) == ["light"]


def test_constants_are_not_blown_up_for_little() -> None:
    """Of two that share what may be spent, the one that gains more has it; what is much faster is taken whatever it
    weighs."""
    heavy, light = offer("heavy", 10, 0, weights=ALLOWANCE), offer("light", 29, 0, weights=100)
    other = offer("other", 12, 0, weights=100)
    given = [work("a", heavy, light), work("b", heavy, other)]
    made = limit_weight_growth(given)
    assert names(made) == ["heavy", "other"]
    (refused,) = made[1].choice.refused
    assert (refused.kernel, refused.reason) == (
        "heavy",
        f"its constants are {ALLOWANCE - 100:,} bytes larger, for too little time saved",
    )
    assert names(fit_memory(given, arena, Target())) == ["heavy", "other"]
    assert names(fit_memory(given, arena, Target(forced_kernels={"b": "heavy"}))) == ["heavy", "heavy"], (
        "it was asked for"
    )
    slow = offer("slow", 31, 0, weights=100)
    assert names(limit_weight_growth([work("a", heavy, slow), work("b", heavy, slow)])) == ["heavy", "heavy"]


def test_what_may_be_spent_counts_from_kernels_fast_enough() -> None:
    """One step whose smaller kernels are all much slower leaves the others what they may spend."""
    alone = work("a", offer("heavy", 10, 0, weights=3 * ALLOWANCE), offer("slow", 31, 0, weights=100))
    either = work("b", offer("large", 10, 0, weights=ALLOWANCE // 2), offer("light", 29, 0, weights=100))
    assert names(limit_weight_growth([alone, either])) == ["heavy", "large"]


def test_each_set_has_constants_of_its_own() -> None:
    heavy, light = offer("heavy", 10, 0, weights=2 * ALLOWANCE), offer("light", 12, 0, weights=100)
    both = replace(work("a", light), others=(Choice((heavy, light), ()),))
    assert [choice.kernel for choice in limit_weight_growth([both])[0].others] == [light.kernel]
