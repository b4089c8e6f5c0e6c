"""A program that runs a network on several numbers of cores, and in memories of their own, against one core."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.base.paths import FIRMWARE
from nnbuild.emit.emit import emit
from nnbuild.model.graph import Graph
from nnbuild.ops.site import Site
from nnbuild.plan import chain
from nnbuild.plan.cores import Cores, OwnMemory
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target

MEMORY = 65536
COUNTS = (
    *(Cores(count, 0) for count in (2, 4, 8)),
    *(Cores(count, 0, local=OwnMemory(size)) for count, size in ((1, MEMORY), (5, MEMORY), (3, 2048))),
)
CORES = FIRMWARE / "cores"
SOURCES = [CORES / f"{name}.c" for name in ("nn_cores", "nn_cores_posix", "nn_local", "nn_local_posix")]
RUNS = 2
TOLD = ["-DNN_CORES_BOUND=60000u", f"-DNN_LOCAL_BYTES={MEMORY}"]
GCC = ["gcc", "-O1", "-pthread", *TOLD, f"-I{CORES}"]


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


def program(graph: Graph, target: Target, folder: Path, counts: Iterable[Cores] = COUNTS) -> Path | None:
    """Nothing where no step is split."""
    with choosing_once():
        one = make_plan(graph, "n1", target)
        plans = [make_plan(graph, f"n{2 + n}", replace(target, cores=cores)) for n, cores in enumerate(counts)]
    plans = [plan for plan in plans if plan.parallel or plan.local_bytes]
    assert all(plan.local_bytes <= MEMORY for plan in plans)
    if not plans:
        return None
    write((one, *plans), folder)
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
    each = sorted(folder.glob("*.c"), key=lambda file: file.name.endswith("_kernels.c"))
    together = "".join(f'#include "{file.name}"\n' for file in each)
    (folder / "all.c").write_text(together)
    sources = [folder / "all.c", *folder.glob("*.S"), *run_time()]
    subprocess.run([*GCC, f"-I{folder}", *map(str, sources), "-o", str(folder / "program")], check=True)
    return folder / "program"


@cache
def run_time() -> tuple[Path, ...]:
    """Compiled once for all programs."""
    folder = Path(tempfile.mkdtemp(prefix="nnbuild-run-time-"))
    subprocess.run([*GCC, "-c", *map(str, SOURCES)], check=True, cwd=folder)
    return tuple(folder.glob("*.o"))


@contextmanager
def choosing_once() -> Iterator[None]:
    """Kernels are chosen once for all numbers of cores, on which they do not depend but by memory of their own."""
    known: dict[Any, Any] = {}

    def once(name: str) -> Any:
        made = getattr(chain, name)

        def found(site: Site, target: Target) -> Any:
            key = (name, tuple(map(id, site.ops)), target.isa, target.cores.local)
            if key not in known:
                known[key] = made(site, target)
            return known[key]

        return found

    with pytest.MonkeyPatch.context() as patch:
        for name in ("choose", "offers"):
            patch.setattr(chain, name, once(name))
        yield


def write(plans: Iterable[Plan], folder: Path) -> None:
    """Kernels that are the same to the letter, with the same constants, are compiled once: the others call these."""
    known: dict[tuple[str, bytes], str] = {}
    for plan in plans:
        p, files = plan.prefix, dict(emit(plan, "binary").files)
        kernels = files[f"{p}_kernels.c"].decode()
        first = known.setdefault((re.sub(rf"\b{p}_", "", kernels), files[f"{p}_weights.bin"]), p)
        if first != p:
            del files[f"{p}_kernels.c"]
            shared = re.findall(rf"^(?:\w+_APART )?void {p}_(\w+)\(", files[f"{p}_private.h"].decode(), re.M)
            names = "".join(f"#define {p}_{name} {first}_{name}\n" for name in shared)
            files[f"{p}.c"] = names.encode() + files[f"{p}.c"]
        for name, data in files.items():
            (folder / name).write_bytes(data)


def _random(plan: Plan, name: str, index: int) -> tuple[int, str]:
    dtype = plan.tensor(name).dtype
    width = np.dtype(dtype).itemsize
    value = "(float)(int32_t)(seed >> 8) / 8388608.0f - 1.0f" if dtype == "float32" else "(seed >> 20) & 1"
    value = "seed >> 16" if dtype in ("int8", "int16") else value
    kind = {"float32": "float"}.get(dtype, f"{dtype}_t")
    return width, f"(({kind} *)(void *)given[{index}])[i] = ({kind})({value});"
