"""Many graphs compiled into one program and run once: what a test of hundreds of small kernels can afford."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nnbuild.emit.emit import emit
from nnbuild.model.graph import Array, Graph
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from tests.support.compiled import SANITIZE, STRICT, compiler_for

Values = Mapping[str, Array]


def run_many(
    runs: Sequence[tuple[Graph, Values]],
    folder: Path,
    *,
    compiler: str = "",
    flags: Sequence[str] = SANITIZE,
    targets: Sequence[Target] | None = None,
    runner: Sequence[str] = (),
    strict: Sequence[str] = STRICT,
) -> list[dict[str, Array]]:
    """The outputs of each graph for each of its samples; portable C where no targets are given.

    `runner` is a command that runs the program, such as an emulator.
    """
    wanted = targets or [Target()] * len(runs)
    plans = [make_plan(graph, f"m{i}", target) for i, ((graph, _), target) in enumerate(zip(runs, wanted, strict=True))]
    counts = [len(next(iter(inputs.values()))) for _, inputs in runs]
    program = build_many(plans, counts, folder, compiler or compiler_for(flags), [*strict, *flags])
    stream = b"".join(_samples(plan, inputs) for plan, (_, inputs) in zip(plans, runs, strict=True))
    done = subprocess.run([*runner, str(program)], input=stream, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    results, at = [], 0
    for plan, (_, inputs) in zip(plans, runs, strict=True):
        values, at = _outputs(plan, len(next(iter(inputs.values()))), done.stdout, at)
        results.append(values)
    assert at == len(done.stdout)
    return results


def build_many(plans: Sequence[Plan], counts: Sequence[int], folder: Path, compiler: str, flags: Sequence[str]) -> Path:
    for plan in plans:
        emit(plan).write(folder)
    names = [f"{plan.prefix}{part}" for plan in plans for part in ("", "_kernels", "_weights")]
    includes = [f'#include "{name}.c"' for name in names]
    serves = [_serve(plan, count) for plan, count in zip(plans, counts, strict=True)]
    calls = [f"    status |= serve_{plan.prefix}();" for plan in plans]
    main = ["int main(void)\n{\n    int status = 0;", *calls, "    return status;\n}\n"]
    (folder / "many.c").write_text("\n".join(["#include <stdio.h>", *includes, *serves, *main]))
    program = folder / "many"
    command = [*compiler.split(), *flags, f"-I{folder}", str(folder / "many.c"), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-8000:]
    return program


def _serve(plan: Plan, count: int) -> str:
    p, sizes = plan.prefix, {name: place.size for name, place in plan.locations.items()}
    reads = [
        f"        if (fread({p}_input(&{p}_memory, {i}), 1, {sizes[n]}, stdin) != {sizes[n]})\n            return 1;"
        for i, n in enumerate(plan.graph.inputs)
    ]
    writes = [
        f"        fwrite({p}_output(&{p}_memory, {i}), 1, {sizes[n]}, stdout);"
        for i, n in enumerate(plan.graph.outputs)
    ]
    body = "\n".join([*reads, f"        if ({p}_run(&{p}_memory) != 0)\n            return 1;", *writes])
    return f"""\
static {p}_context {p}_memory;

static int serve_{p}(void)
{{
    {p}_init(&{p}_memory);
    for (int sample = 0; sample < {count}; ++sample) {{
{body}
    }}
    return 0;
}}
"""


def _samples(plan: Plan, inputs: Values) -> bytes:
    parts = []
    for index in range(len(next(iter(inputs.values())))):
        for name in plan.graph.inputs:
            parts.append(np.ascontiguousarray(inputs[name][index], plan.tensor(name).dtype).tobytes())
    return b"".join(parts)


def _outputs(plan: Plan, count: int, stream: bytes, at: int) -> tuple[dict[str, Array], int]:
    rows: dict[str, list[Array]] = {name: [] for name in plan.graph.outputs}
    for _ in range(count):
        for name in plan.graph.outputs:
            tensor, size = plan.tensor(name), plan.locations[name].size
            rows[name].append(np.frombuffer(stream[at : at + size], tensor.dtype).reshape(tensor.shape))
            at += size
    return {name: np.stack(values) for name, values in rows.items()}, at
