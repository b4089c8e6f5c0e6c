"""A normalization or a border before a padded convolution is fused as its prologue, on every set."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.emit.artifact import Artifact
from nnbuild.emit.emit import emit
from nnbuild.evidence.layout import find
from nnbuild.evidence.pack import sites_of
from nnbuild.isa.registry import isas
from nnbuild.kernels.contract import Overlap
from nnbuild.kernels.parts import prologue
from nnbuild.model.graph import Graph
from nnbuild.ops import interpret
from nnbuild.ops.affine import Affine
from nnbuild.ops.conv2d import Conv2D
from nnbuild.plan.chain import divide
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with
from tests.kernels.test_dsp_work_items import ORDERS
from tests.kernels.test_variants import FEATURES
from tests.passes.test_passes import Chain
from tests.quantize.test_padded_affine import SAME, network
from tests.support import many
from tests.support.many import run_many

pytestmark = pytest.mark.slow

KINDS = ("conv1d", "conv2d")
SETS = {"float": ("c99", "avx512", "neon", "mve"), "int8": ("armv7em_dsp", "mve", "avx512_vnni")}
PORTABLE = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DNN_PORTABLE")


def made(kind: str, form: str, samples: np.ndarray) -> Graph:
    graph = passes.run(network(kind, False, np.random.default_rng(8)))
    if form == "float":
        return graph
    return quantize_with(graph, Recipe(form), calibrate(graph, lambda: iter([{"x": samples}]), "minmax", 8))


def target(name: str) -> Target:
    """On a microcontroller, a step that is saved is a call less."""
    architecture = "cortex_m" if name in ("armv7em_dsp", "mve") else "native"
    features = FEATURES if name.startswith("armv7") else frozenset[str]()
    return Target(isas()[name], architecture=architecture, features=features)


def ahead(plan: Plan) -> list[list[str]]:
    """The operations of each step."""
    return [[op.kind for op in step.site.ops] for step in plan.steps]


@pytest.mark.turns(2)
@pytest.mark.parametrize("form", ["float", "int8"])
def test_prologues_have_no_step(form: str, tmp_path: Path) -> None:
    rng, runs, targets = np.random.default_rng(8), [], []
    for kind in KINDS:
        shape = (24, 3) if kind == "conv1d" else (9, 7, 3)
        samples = rng.integers(0, 256, (60, *shape)).astype(np.float32)
        graph = made(kind, form, samples)
        if form == "int8":
            samples = samples.astype(np.int64).astype(np.int8).astype(np.float32)
        for name in SETS[form]:
            steps = ahead(make_plan(graph, "m", target(name)))
            assert len(steps[0]) > 1 and steps[0][1] in ("conv2d", "depthwise_conv2d"), (kind, name, steps)
            runs.append((graph, {"x": samples[:3].astype(graph.tensors["x"].dtype)}))
            targets.append(target(name))
    for (graph, inputs), found in zip(runs, run_many(runs, tmp_path, targets=targets, flags=PORTABLE), strict=True):
        (output,) = graph.outputs
        if form == "int8":
            np.testing.assert_array_equal(found[output], interpret.run(graph, inputs)[output])
        else:
            want = interpret.run(graph, inputs, "float64")[output]
            np.testing.assert_allclose(found[output], want, rtol=2e-5, atol=2e-5 * np.abs(want).max())


def test_short_memory_keeps_a_separate_step() -> None:
    chain = Chain((24, 24, 3), seed=3)
    chain.add(Affine(2), scale=(3,), shift=(3,))
    chain.add(Conv2D(padding=SAME), kernel=(3, 3, 3, 4), bias=(4,))
    graph = passes.run(chain.graph())
    wide = make_plan(graph, "m", Target(isas()["c99"]))
    assert len(wide.steps) == 1
    narrow = make_plan(graph, "m", Target(isas()["c99"], max_ram=wide.arena - 1))
    assert len(narrow.steps) == 2 and narrow.arena < wide.arena


def test_the_copy_is_made_once_for_all_channels() -> None:
    """Its constants cover one period of vectors; its bytes are the scratch beyond the kernel's own."""
    chain = Chain((10, 10, 3), seed=3)
    chain.add(Affine(2), scale=(3,), shift=(3,))
    chain.add(Conv2D(padding=SAME), kernel=(3, 3, 3, 4), bias=(4,))
    (work,) = divide(passes.run(chain.graph()), Target(isas()["avx512"]))
    demand = work.choice.demand
    assert len(demand.packed["ahead_scale"]) == len(demand.packed["ahead_shift"]) == 30
    assert demand.scratch >= 4 * 12 * 12 * 3


def test_split_steps_fuse_no_prologue() -> None:
    samples = np.random.default_rng(8).integers(0, 256, (60, 9, 7, 3)).astype(np.float32)
    graph = made("conv2d", "int8", samples)
    assert ahead(make_plan(graph, "m", replace(target("armv7em_dsp"), chunked=True)))[0] == ["pad"]


def test_a_part_copies_the_rows_that_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row by row and backwards, as no single core does, so the output must not overlap the input."""
    samples = np.random.default_rng(8).integers(0, 256, (60, 9, 7, 3)).astype(np.float32)
    graph, changed = made("conv2d", "int8", samples), list[bool]()

    def by_work_items(plan: Plan) -> Artifact:
        artifact = emit(plan)
        whole = artifact.files[f"{plan.prefix}.c"].decode()
        text = re.sub(r"(\w+)\((.*), 0, (\d+)\);", ORDERS["singly and backwards"], whole)
        changed.append(text != whole and "first_row" in artifact.files[f"{plan.prefix}_kernels.c"].decode())
        return replace(artifact, files={**artifact.files, f"{plan.prefix}.c": text.encode()})

    monkeypatch.setattr(many, "emit", by_work_items)
    monkeypatch.setattr(prologue, "Overlap", lambda **_: Overlap(distance=1 << 20))
    inputs = {"x": (samples[:3] - 128).astype(np.int8)}
    (found,) = run_many([(graph, inputs)], tmp_path, targets=[target("armv7em_dsp")], flags=PORTABLE)
    assert all(changed)
    np.testing.assert_array_equal(found[graph.outputs[0]], interpret.run(graph, inputs)[graph.outputs[0]])


def test_evidence_includes_its_sums() -> None:
    samples = np.random.default_rng(8).integers(0, 256, (60, 9, 7, 3)).astype(np.float32)
    for name in SETS["int8"]:
        step = make_plan(made("conv2d", "int8", samples), "m", target(name)).steps[0]
        ((site, kernel),) = sites_of(step)
        assert site.op.kind == "conv2d" and find(site, kernel) is not None, name
