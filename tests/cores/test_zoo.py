"""Every model of the zoo on 2, 4 and 8 cores, and in memories of their own: the bits of one core, in floats and in
integers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nnbuild import passes
from nnbuild.base.errors import NnbuildError
from nnbuild.frontend import load
from nnbuild.isa.registry import find_isas, native
from nnbuild.model.graph import Graph
from nnbuild.passes.fuse_norms import fuse_norms
from nnbuild.plan.target import Target
from nnbuild.quantize.calibrate import Range
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe, quantize_with
from tests.support.on_cores import program
from tests.support.shares import in_shares
from tests.zoo import WRITERS, names, zoo

pytestmark = pytest.mark.oracle

SHARES = 250


def in_integers(graph: Graph) -> Graph:
    lengthened = fuse_norms(graph)
    ranges = dict.fromkeys(lengthened.tensors, Range(-1.0, 1.0))
    return quantize_with(lengthened, Recipe("int8", Source(None)), ranges)


@pytest.mark.turns(3)
@in_shares(SHARES)
def test_more_cores_compute_the_same(share: int, tmp_path: Path) -> None:
    writer = WRITERS[0]
    directory, split = zoo(writer), 0
    known = names(writer)
    for number, name in enumerate(known[share :: min(SHARES, len(known) // 4)]):
        graph = passes.run(load(directory / f"{name}.h5", "net"))
        for form in ("float", "int8"):
            try:
                computed = graph if form == "float" else in_integers(graph)
                target = Target(isa=find_isas(native() if number % 2 else "c99", "native")[0])
                (tmp_path / f"{number}{form}").mkdir()
                made = program(computed, target, tmp_path / f"{number}{form}")
            except NnbuildError:
                assert form == "int8", "what has no integer meaning is left out"
                continue
            if made is not None:
                split += 1
                assert subprocess.run([made], timeout=120).returncode == 0, (name, form)
    assert split > 0
