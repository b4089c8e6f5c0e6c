"""Every model of the zoo on 2, 4 and 8 cores, and in memories of their own: the bits of one core, in floats and in
integers."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.base.errors import NnbuildError
from nnbuild.base.paths import FIRMWARE
from nnbuild.emit.emit import emit
from nnbuild.frontend import load
from nnbuild.isa.registry import find_all, native
from nnbuild.model.graph import Graph
from nnbuild.plan.cores import Cores, OwnMemory
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from nnbuild.quantize.calibrate import Range
from nnbuild.quantize.data import Source
from nnbuild.quantize.lengths import with_lengths
from nnbuild.quantize.quantize import Recipe, quantize_with
from tests.support.shares import in_shares
from tests.zoo import WRITERS, names, zoo

pytestmark = pytest.mark.oracle

SHARES = 250
MEMORY = 65536
COUNTS = (
    *(Cores(count, 0) for count in (2, 4, 8)),
    *(Cores(count, 0, local=OwnMemory(size)) for count, size in ((1, MEMORY), (5, MEMORY), (3, 2048))),
)
CORES = FIRMWARE / "cores"
SOURCES = [CORES / f"{name}.c" for name in ("nn_cores", "nn_cores_posix", "nn_local", "nn_local_posix")]
RUNS = 2


def calls(plan: Plan, graph: Graph) -> str:
    """The lines that run it on cores and hold its outputs against those of one core."""
    p = plan.prefix
    run = f"{p}_run_parallel(&c_{p}, nn_cores_run, 0)" if plan.parallel else f"{p}_run(&c_{p})"
    lines = [f"    nn_cores_start({max(step.parts for step in plan.steps)});"] if plan.parallel else []
    for index, name in enumerate(graph.inputs):
        lines.append(f"    memcpy({p}_input(&c_{p}, {index}), given[{index}], {plan.locations[name].size});")
    lines.append(f"    if ({run} != 0) return 3;")
    for index, name in enumerate(graph.outputs):
        size = plan.locations[name].size
        lines.append(f"    if (memcmp({p}_output(&c_{p}, {index}), kept[{index}], {size}) != 0) return 4;")
    return "\n".join(lines)


def program(graph: Graph, target: Target, folder: Path) -> Path | None:
    """Nothing where no step is split."""
    one = make_plan(graph, "n1", target)
    plans = [make_plan(graph, f"n{2 + n}", replace(target, cores=cores)) for n, cores in enumerate(COUNTS)]
    plans = [plan for plan in plans if plan.parallel or plan.local_bytes]
    assert all(plan.local_bytes <= MEMORY for plan in plans)
    if not plans:
        return None
    for plan in (one, *plans):
        emit(plan, "array").write(folder)
    ins = [one.locations[name].size for name in graph.inputs]
    outs = [one.locations[name].size for name in graph.outputs]
    values = "".join(
        f"    for (unsigned i = 0; i < {size} / {width}; i++) {{ seed = seed * 1664525u + 1013904223u; {write} }}\n"
        for index, size in enumerate(ins)
        for width, write in [_random(one, graph.inputs[index], index)]
    )
    text = "\n".join(
        [
            '#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n#include "nn_cores.h"',
            *(f'#include "{plan.prefix}.h"\nstatic {plan.prefix}_context c_{plan.prefix};' for plan in (one, *plans)),
            f"static _Alignas(64) unsigned char given[{len(ins)}][{max(ins)}], kept[{len(outs)}][{max(outs)}];",
            "static uint32_t seed = 1;\nstatic int once(void) {",
            values,
            *(f"    memcpy(n1_input(&c_n1, {i}), given[{i}], {size});" for i, size in enumerate(ins)),
            "    if (n1_run(&c_n1) != 0) return 2;",
            *(f"    memcpy(kept[{i}], n1_output(&c_n1, {i}), {size});" for i, size in enumerate(outs)),
            *(calls(plan, graph) for plan in plans),
            "    return 0;\n}\nint main(void) {",
            *(f"    {plan.prefix}_init(&c_{plan.prefix});" for plan in (one, *plans)),
            f"    for (int i = 0; i < {RUNS}; i++) {{ int status = once(); if (status) return status; }}",
            "    return 0;\n}",
        ]
    )
    (folder / "main.c").write_text(text)
    told = ["-DNN_CORES_BOUND=60000u", f"-DNN_LOCAL_BYTES={MEMORY}"]
    command = ["gcc", "-O1", "-pthread", *told, f"-I{folder}", f"-I{CORES}"]
    subprocess.run([*command, *map(str, [*folder.glob("*.c"), *SOURCES]), "-o", str(folder / "program")], check=True)
    return folder / "program"


def _random(plan: Plan, name: str, index: int) -> tuple[int, str]:
    dtype = plan.tensor(name).dtype
    width = np.dtype(dtype).itemsize
    value = "(float)(int32_t)(seed >> 8) / 8388608.0f - 1.0f" if dtype == "float32" else "(seed >> 20) & 1"
    value = "seed >> 16" if dtype in ("int8", "int16") else value
    kind = {"float32": "float"}.get(dtype, f"{dtype}_t")
    return width, f"(({kind} *)(void *)given[{index}])[i] = ({kind})({value});"


def in_integers(graph: Graph) -> Graph:
    lengthened = with_lengths(graph)
    ranges = dict.fromkeys(lengthened.tensors, Range(-1.0, 1.0))
    return quantize_with(lengthened, Recipe("int8", Source(None)), ranges)


@in_shares(SHARES)
def test_more_cores_compute_the_same(share: int, tmp_path: Path) -> None:
    writer = WRITERS[0]
    directory, split = zoo(writer), 0
    for number, name in enumerate(names(writer)[share::SHARES]):
        graph = passes.run(load(directory / f"{name}.h5", "net"))
        for form in ("float", "int8"):
            try:
                computed = graph if form == "float" else in_integers(graph)
                target = Target(isa=find_all(native() if number % 2 else "c99", "native")[0])
                (tmp_path / f"{number}{form}").mkdir()
                made = program(computed, target, tmp_path / f"{number}{form}")
            except NnbuildError:
                assert form == "int8", "what has no integer meaning is left out"
                continue
            if made is not None:
                split += 1
                assert subprocess.run([made], timeout=120).returncode == 0, (name, form)
    assert split > 0
