"""Compiles the C of a graph with warnings as errors and sanitizers, and runs samples through it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.emit.emit import emit
from nnbuild.model.graph import Array, Graph
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]
SANITIZE = ["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
"""Unoptimized: compiling takes longer than running, and ten times as long where it is optimized."""


@cache
def sanitizer() -> str:
    """The compiler that adds sanitizers soonest: clang takes less than half of gcc's time. Its runtime is a package."""
    if shutil.which("clang-19") is None:
        return "gcc"
    asked = ["clang-19", "-print-file-name=libclang_rt.asan-x86_64.a"]
    return "clang-19" if Path(subprocess.run(asked, capture_output=True, text=True).stdout.strip()).is_file() else "gcc"


def compiler_for(flags: Sequence[str]) -> str:
    """The fastest compiler for flags that are not about one: unoptimized, clang takes a quarter of gcc's time."""
    if any(flag.startswith("-fsanitize") for flag in flags):
        return sanitizer()
    return "clang" if "-O0" in flags and shutil.which("clang") else "gcc"


def rows_text(plan: Plan) -> str:
    """The same for a stream, row by row; what is written comes after every step."""
    p, row = plan.prefix, f"{plan.prefix.upper()}_ROW_SIZE"
    kind = C_TYPES[plan.tensor(plan.graph.inputs[0]).dtype]
    writes = [
        f"            fwrite({p}_output(&context, {i}), 1, {plan.locations[n].size}, stdout);"
        for i, n in enumerate(plan.graph.outputs)
    ]
    return f"""\
#include <stdio.h>
#include "{p}.h"
static {p}_context context;
int main(void) {{
    {kind} row[{row}];
    {p}_init(&context);
    while (fread(row, sizeof row, 1, stdin) == 1) {{
        const int ready = {p}_step(&context, row);
        if (ready < 0) return 1;
        if (ready > 0) {{
{chr(10).join(writes)}
        }}
    }}
    return 0;
}}
"""


def main_text(plan: Plan, reset_each: bool) -> str:
    """A program that reads samples from stdin and writes all outputs of each to stdout."""
    if plan.graph.stream is not None and not reset_each:
        return rows_text(plan)
    p = plan.prefix
    sizes = {name: plan.locations[name].size for name in (*plan.graph.inputs, *plan.graph.outputs)}
    reads = [
        f"        if (fread({p}_input(&context, {i}), 1, {sizes[n]}, stdin) != {sizes[n]}) return 0;"
        for i, n in enumerate(plan.graph.inputs)
    ]
    writes = [
        f"        fwrite({p}_output(&context, {i}), 1, {sizes[n]}, stdout);" for i, n in enumerate(plan.graph.outputs)
    ]
    again = f"        {p}_init(&context);" if reset_each else ""
    return f"""\
#include <stdio.h>
#include "{p}.h"
static {p}_context context;
int main(void) {{
    {p}_init(&context);
    for (;;) {{
{chr(10).join(reads)}
        if ({p}_run(&context) != 0) return 1;
{chr(10).join(writes)}
{again}
    }}
}}
"""


def build(
    plan: Plan, folder: Path, *, compiler: str = "", flags: Sequence[str] = SANITIZE, reset_each: bool = False
) -> Path:
    artifact = emit(plan)
    artifact.write(folder)
    (folder / "main.c").write_text(main_text(plan, reset_each))
    sources = [str(folder / name) for name in artifact.files if name.endswith((".c", ".S"))]
    program = folder / "program"
    command = [
        compiler or compiler_for(flags),
        *STRICT,
        *flags,
        f"-I{folder}",
        str(folder / "main.c"),
        *sources,
        "-o",
        str(program),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def run(program: Path, plan: Plan, inputs: Mapping[str, Array]) -> dict[str, Array]:
    count = len(inputs[plan.graph.inputs[0]])
    stream = bytearray()
    for index in range(count):
        for name in plan.graph.inputs:
            if plan.graph.stream is not None:  # row by row
                rows = np.moveaxis(inputs[name][index], plan.graph.stream.axis, 0)
                stream += np.ascontiguousarray(rows, plan.tensor(name).dtype).tobytes()
                continue
            stream += np.ascontiguousarray(inputs[name][index], plan.tensor(name).dtype).tobytes()
    done = subprocess.run([str(program)], input=bytes(stream), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    sizes = [plan.locations[name].size for name in plan.graph.outputs]
    assert len(done.stdout) == count * sum(sizes)
    rows = np.frombuffer(done.stdout, np.uint8).reshape(count, -1)
    outputs, at = {}, 0
    for name, size in zip(plan.graph.outputs, sizes, strict=True):
        tensor = plan.tensor(name)
        part = np.ascontiguousarray(rows[:, at : at + size]).view(tensor.dtype)
        outputs[name] = part.reshape(count, *tensor.shape)
        at += size
    return outputs


def run_graph(
    graph: Graph,
    inputs: Mapping[str, Array],
    folder: Path,
    *,
    apart: bool = False,
    reset_each: bool = False,
    compiler: str = "",
    flags: Sequence[str] = SANITIZE,
) -> dict[str, Array]:
    plan = make_plan(graph, "net", Target(keep_tensors=apart))
    return run(build(plan, folder, compiler=compiler, flags=flags, reset_each=reset_each), plan, inputs)
