"""Layers on Cortex-M4 whose weights several steps share: exact, and stored once, with what differs by step apart."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from nnbuild.evidence.layout import find
from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from nnbuild.plan.plan import make_plan
from tests.kernels.test_variants import PORTABLE, Case, compare, found
from tests.support.emulators import IMAGE, are_here, cortex_m

FORMS = ["int8", "int16", "real"]
TILES = ("in_place", "lines_", "patches_")
OTHERS = ("_unpacked", "_spread", "_prefixed", "_phases")
EACH = 3
"""Cases of each kernel."""


def twice(graph: Graph) -> Graph:
    """The operation a second time, with results of another scale."""
    (op,) = graph.ops
    out = graph.tensors[op.outputs[0]]
    quant = replace(out.quant, scales=(1.37 * out.quant.scale,)) if out.quant else None
    tensors = {**graph.tensors, "z0": replace(out, name="z0", quant=quant)}
    ops = (op, replace(op, name="again", outputs=("z0",)))
    return verify(replace(graph, tensors=tensors, ops=ops, outputs=(*graph.outputs, "z0")))


@cache
def cases(form: str) -> list[Case]:
    """Some of what each kernel with tiles accepts."""
    made: dict[str, list[Case]] = {}
    for name, kernel, graph, target in found(form, "armv7em_dsp"):
        if kernel.startswith(TILES) and not kernel.endswith(OTHERS) and graph.constants:
            made.setdefault(f"{graph.ops[0].kind} {kernel}", []).append((name, kernel, graph, target))
    some = [each for of in made.values() for each in of[:: -(-len(of) // EACH)]]
    return [(n, k, twice(g), replace(t, forced_kernels={"op": k, "again": k})) for n, k, g, t in some]


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_the_same_bits_as_the_reference(form: str, tmp_path: Path) -> None:
    assert len(cases(form)) > 20
    compare(cases(form), form, tmp_path / "portable", PORTABLE)


@pytest.mark.turns(3)
@pytest.mark.emulator
@pytest.mark.skipif(not are_here(cortex_m("cortex-m4")), reason="an emulator or compiler of Cortex-M is missing")
@pytest.mark.parametrize("form", FORMS)
def test_the_same_bits_by_its_instructions(form: str, tmp_path: Path) -> None:
    compare(cases(form), form, tmp_path / "image", ("-O2", *IMAGE), cortex_m("cortex-m4"))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_weights_are_stored_once(form: str) -> None:
    for name, kernel, graph, target in cases(form):
        first, second = make_plan(graph, "m", target).steps
        arrays = [step.versions[0].names.packed for step in (first, second)]
        assert arrays[0].keys() == {"kernel", "scales"}, (name, kernel)
        assert arrays[0]["kernel"] == arrays[1]["kernel"], (name, kernel)
        assert (arrays[0]["scales"] == arrays[1]["scales"]) == (form == "real"), (name, kernel)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["int8", "int16"])
def test_weights_and_numbers_are_found(form: str) -> None:
    """For an evidence pack, in one case of each kernel."""
    one = {kernel: (graph, target) for name, kernel, graph, target in cases(form) if "groups" not in name}
    for kernel, (graph, target) in one.items():
        for step in make_plan(graph, "m", target).steps:
            place = find(step.site, step.choice.kernel)
            assert place is not None and place[1] is not None and place[1].complete, kernel
