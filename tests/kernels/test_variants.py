"""Every kernel of an instruction set against the references, on every case that it accepts.

Kernels are found by listing, so a new file is tested automatically. All of them run here with the portable meanings of
their instructions, and natively where this processor has the set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.isa import Isa
from nnbuild.isa.registry import cpu_flags, fits, isas
from nnbuild.kernels.contract import Kernel
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Graph
from nnbuild.model.verify import GIVE_FLOATS
from nnbuild.ops import interpret
from nnbuild.ops.site import site_of
from nnbuild.plan.select import refusal
from nnbuild.plan.target import Target
from tests.kernels.cases import Maker, cases
from tests.kernels.test_float import samples
from tests.kernels.test_integer import MOVES, RECURRENT
from tests.support.compiled import SANITIZE
from tests.support.emulators import ARM64, CROSS, NARROW, WIDE, are_here
from tests.support.many import run_many
from tests.support.quantized import full_range, giving_floats, quantized
from tests.support.references import Run
from tests.support.shares import in_shares

FEATURES = frozenset({"arm_fpu"})
FORMATS = ("float", "int8", "int16", "real")
"""Layers of bytes are also taken with `real` results."""
PORTABLE = ("-O0", "-DNN_PORTABLE")
"""Compiles the meanings of a set's operations instead of its instructions."""
OPTIMIZED = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
"""Takes ten times as long to compile: full runs only."""
QUICK = {("avx2_fma", "float", ()), ("neon_dotprod", "int8", ())}
"""The runs to keep even when time is short."""
Case = tuple[str, str, Graph, Target]
"""(case, kernel, graph, target)"""
BATCH = 60
"""Kernels in one program."""
SHARES = 9


EMULATED = {
    "neon": ARM64,
    **dict.fromkeys(("zve32x", "rvv"), NARROW),
    **dict.fromkeys(("zve32x_256", "rvv256"), WIDE),
}
"""Compilers and emulators of other processors, by set, the largest last."""


def runs_here(isa: Isa) -> bool:
    return fits(isa, "native") and cpu_flags() >= set(isa.cpu_flags)


def natively(isa: Isa) -> bool:
    """Whether something here can run a set's instructions; elsewhere its meanings run in any case."""
    return fits(isa, "native") or not isa.features.isdisjoint(EMULATED)


def emulated(isa: Isa) -> tuple[str, str] | None:
    """The compiler and emulator for a set that this processor does not have."""
    fitting = [how for name, how in EMULATED.items() if name in isa.features and not runs_here(isa)]
    found = fitting[-1] if fitting else None
    return found if found and are_here(found) else None


def ways(isa: Isa) -> list[tuple[str, ...]]:
    """The flags with which a set is compiled: sanitizers check all that does not run in an emulator."""
    meanings = [PORTABLE] if isa.guard and natively(isa) else []
    return [(), *meanings, *([] if emulated(isa) else [OPTIMIZED])]


def marks(isa: Isa, form: str, flags: tuple[str, ...]) -> tuple[pytest.MarkDecorator, ...]:
    """Sets of which only meanings run here take long to compile, and have separate tests in emulators."""
    if form != "int8" and not runs_here(isa) and emulated(isa) is None:
        return (pytest.mark.full,)
    if flags == OPTIMIZED:
        return (pytest.mark.slow, pytest.mark.full)
    return () if (isa.name, form, flags) in QUICK else (pytest.mark.slow,)


def home(kernel: Kernel) -> Isa | None:
    """The smallest instruction set with all features that a kernel needs."""
    return _home(kernel.needs, tuple(isas()))


@cache
def _home(needs: frozenset[str], of: tuple[str, ...]) -> Isa | None:
    fitting = [isa for name in of if needs <= (isa := isas()[name]).features | FEATURES]
    return min(fitting, key=lambda isa: len(isa.features), default=None)


def graph_of(name: str, maker: Maker, form: str) -> Graph | None:
    if form == "float":
        return maker()
    if name.startswith(RECURRENT):
        return None  # these have separate tests, over whole sequences
    if form == "real":
        graph = maker()
        fits = graph.ops[0].kind in GIVE_FLOATS and len(graph.ops) == 1
        return giving_floats(quantized(graph, "int8", seed=len(name)), seed=len(name)) if fits else None
    return quantized(maker(), form, seed=len(name), same_scale=name.startswith(MOVES))


@cache
def graphs(form: str) -> list[tuple[str, Graph]]:
    made = ((name, graph_of(name, maker, form)) for name, maker in cases())
    return [(name, graph) for name, graph in made if graph is not None]


@cache
def found(form: str, isa: str) -> list[Case]:
    """(case, kernel, graph, target) for every kernel whose smallest set this is, and every case that it accepts."""
    return [(name, kernel, graph, target) for name, graph in graphs(form) for kernel, target in candidates(graph, isa)]


def candidates(graph: Graph, of: str | None = None) -> Iterator[tuple[str, Target]]:
    """The kernels that accept a graph; only those whose smallest set is `of`, if given."""
    op = graph.ops[0]
    site = site_of(graph, op)
    for kernel in variants(op.kind):
        isa = home(kernel)
        assert isa is not None, f"no instruction set has {set(kernel.needs)}"
        if isa.name == "c99" or isa.name != (of or isa.name):
            continue
        target = Target(isa, features=FEATURES, alignment=64, forced_kernels={op.name: kernel.name})
        if refusal(kernel, site, target) is None:
            yield kernel.name, target


def on_targets(runs: Iterable[Run], endings: tuple[str, ...], here: bool) -> tuple[list[Run], list[Target]]:
    """Each run with each kernel that accepts it and whose name ends so; with those that run `here`, or with all."""
    pairs = [
        (run, target)
        for run in runs
        for kernel, target in candidates(run[0])
        if kernel.endswith(endings) and (not here or runs_here(target.isa))
    ]
    return [run for run, _ in pairs], [target for _, target in pairs]


@pytest.mark.turns(12)
@pytest.mark.parametrize(
    ("name", "form", "flags"),
    [
        pytest.param(name, form, flags, marks=marks(isa, form, flags))
        for name, isa in isas().items()
        if name != "c99"
        for form in FORMATS
        for flags in ways(isa)
    ],
)
@in_shares(SHARES)
def test_variants_equal_the_reference(name: str, form: str, flags: tuple[str, ...], share: int, tmp_path: Path) -> None:
    isa = isas()[name]
    elsewhere = emulated(isa) if flags != PORTABLE else None
    if flags != PORTABLE and natively(isa) and not runs_here(isa) and elsewhere is None:
        pytest.skip(f"neither this processor nor an emulator has {name}")
    mine = found(form, name)[share::SHARES]
    for begin in range(0, len(mine), BATCH):
        compare(mine[begin : begin + BATCH], form, tmp_path / str(begin), () if elsewhere else flags, elsewhere)


def compare(
    mine: list[Case],
    form: str,
    folder: Path,
    flags: tuple[str, ...] = (),
    elsewhere: tuple[str, str] | None = None,
) -> None:
    """`elsewhere` is a compiler, and the command that runs its programs."""
    folder.mkdir()
    runs = []
    for name, _, graph, _ in mine:
        given = samples(graph, name.endswith("positive")) if form == "float" else full_range(graph, 6, seed=1)
        runs.append((graph, given))
    targets = [target for _, _, _, target in mine]
    if elsewhere:
        compiler, runner = elsewhere
        outputs = run_many(
            runs, folder, targets=targets, flags=flags or CROSS, compiler=compiler, runner=runner.split()
        )
    else:
        outputs = run_many(runs, folder, targets=targets, flags=flags or SANITIZE)
    for (name, kernel, graph, _), (_, inputs), result in zip(mine, runs, outputs, strict=True):
        wanted = interpret.run(graph, inputs, *(["float64"] if form == "float" else []))
        for output in graph.outputs:
            if form == "float":
                np.testing.assert_allclose(
                    result[output], wanted[output], rtol=1e-5, atol=1e-5, err_msg=f"{name}, {kernel}"
                )
            else:
                np.testing.assert_array_equal(result[output], wanted[output], err_msg=f"{name}, {kernel}")
