"""Printed C has no sum or product of two numbers, no loop of one trip, no block without a head."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from nnbuild.base.writer import Writer
from nnbuild.emit.instructions import instructions
from nnbuild.isa.isa import Isa
from nnbuild.isa.registry import isas
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Graph
from nnbuild.ops.site import site_of
from nnbuild.plan.printed import plain_names
from nnbuild.plan.select import refusal
from nnbuild.plan.target import Target
from tests.emit.nets import NETS
from tests.kernels.cases import cases
from tests.kernels.test_variants import FEATURES, FORMATS, graph_of, home
from tests.support.shares import in_shares

SIGNS = {
    "a product of numbers": re.compile(r"(?<![*/%] )(?<![\w.])\d+ [*/%] \d+(?![\w.])"),
    "a sum of numbers": re.compile(r"(?<![*/%] )(?<![*/%] -)(?<![\w.])\d+ [-+] \d+(?![\w.]| [*/%])"),
    "a zero added": re.compile(r"[\w)\]] [-+] 0(?![\w.])|(?<![*/%<>] )(?<![\w.])0 \+ "),
    "a product of one or zero": re.compile(r"\* [01](?![\w.])|(?<![\w.])[01] \* "),
    "a comparison of numbers": re.compile(r"(?<![-+*/%] )(?<![\w.])\d+ (<|>|<=|>=|==|!=) \d+(?![\w.])"),
    "a block without a head": re.compile(r"^ +\{$"),
}
ANY_SIGN = re.compile("|".join(pattern.pattern for pattern in SIGNS.values()))
SHARES = 5
LOOP = re.compile(r"for \(int32_t (\w+) = (\d+); \1 < (\d+); (?:\+\+\1|\1 \+= (\d+))\)")


def unfolded(text: str) -> Iterator[str]:
    """Every line with something that should have been folded."""
    for line in text.splitlines():
        if line.lstrip().startswith(("/*", "* ", "#")):
            continue
        if ANY_SIGN.search(line):
            yield from (f"{sign}: {line.strip()}" for sign, pattern in SIGNS.items() if pattern.search(line))
        for loop in LOOP.finditer(line):
            if int(loop[3]) - int(loop[2]) <= int(loop[4] or 1):
                yield f"a loop of one trip: {line.strip()}"


def printed(graph: Graph, isa: Isa) -> Iterator[tuple[str, str]]:
    """(kernel, C) of every kernel that can compute a graph's operation and whose smallest set this is."""
    site = site_of(graph, graph.ops[0])
    target = Target(isa, features=FEATURES)
    for kernel in variants(graph.ops[0].kind):
        if home(kernel) is isa and refusal(kernel, site, target) is None:
            w = Writer("m")
            kernel.emit(w, site, plain_names(site, kernel.demand(site)))
            yield kernel.name, str(w) + instructions(w.instructions.values(), "m", "")


def test_what_is_not_folded_is_found() -> None:
    wrong = ["a = 10 * 2;", "a = (y * 7 + 0) * 48;", "for (int32_t i = 0; i < 8; i += 8) {", "    {", "if (3 < 4) {"]
    assert all(list(unfolded(line)) for line in wrong)
    right = [
        "a = b * 2 + 4;",
        "k[3] = 4 + a;",
        "for (int32_t i = 0; i < 9; i += 8) {",
        "{",
        "x * 2.0f",
        "a << 1 | 2",
        "a * -3 + 4",
    ]
    assert [found for line in right for found in unfolded(line)] == []


@pytest.mark.parametrize("name", NETS)
def test_golden_networks_are_folded(name: str) -> None:
    for op in NETS[name]().ops:
        graph = NETS[name]()
        site = site_of(graph, op)
        for kernel in variants(op.kind):
            if refusal(kernel, site, Target()) is None:
                w = Writer("m")
                kernel.emit(w, site, plain_names(site, kernel.demand(site)))
                assert list(unfolded(str(w))) == [], kernel.name


@pytest.mark.turns(9)
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", isas())
@in_shares(SHARES)
def test_kernels_are_folded(name: str, form: str, share: int) -> None:
    wrong = []
    for case, maker in list(cases())[share::SHARES]:
        graph = graph_of(case, maker, form)
        for kernel, text in printed(graph, isas()[name]) if graph is not None else ():
            wrong += [f"{case}, {kernel}: {line}" for line in unfolded(text)]
    assert wrong == []
