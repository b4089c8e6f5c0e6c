"""The emitted C in a bare program: vectors from standard input, outputs to standard output.

It is compiled by every compiler on this PC, as portable C, and once more to count coverage.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from nnbuild.base.errors import CheckFailed
from nnbuild.base.literals import C_TYPES
from nnbuild.emit.artifact import Artifact
from nnbuild.model.graph import Array
from nnbuild.plan.plan import Plan

MAIN = "evidence_main.c"
PORTABLE = ("-std=c99", "-DNN_PORTABLE")
PATIENCE = 600


@dataclass(frozen=True)
class Compiler:
    """`runner` runs its programs, where this PC cannot."""

    target: str
    command: tuple[str, ...]
    flags: tuple[str, ...]
    runner: tuple[str, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        return (self.command[0], *self.runner[:1])

    @property
    def there(self) -> bool:
        return all(shutil.which(tool) for tool in self.tools)


SANITIZERS = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COMPILERS = (
    Compiler("this PC, gcc without optimization", ("gcc",), ("-O0",)),
    Compiler("this PC, gcc with all optimization", ("gcc",), ("-O3",)),
    Compiler("this PC, gcc with sanitizers", ("gcc",), SANITIZERS),
    Compiler("this PC, clang", ("clang",), ("-O2",)),
    Compiler("this PC, tcc", ("tcc",), ()),
    Compiler("64-bit Arm, gcc", ("aarch64-linux-gnu-gcc",), ("-O2", "-static"), ("qemu-aarch64",)),
)


@dataclass(frozen=True)
class Tool:
    """A tool's version and the hash of its program."""

    name: str
    version: str
    sha256: str


def tool_of(command: Sequence[str]) -> Tool:
    path = shutil.which(command[0])
    done = subprocess.run(
        [*command, "--version"], capture_output=True, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL
    )
    version = (done.stdout or done.stderr).strip().partition("\n")[0]
    if not version or done.returncode:
        done = subprocess.run(
            [*command, "-v"], capture_output=True, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL
        )
        version = (done.stdout or done.stderr).strip().partition("\n")[0]
    content = Path(path).resolve().read_bytes() if path else b""
    return Tool(Path(command[0]).name, version, hashlib.sha256(content).hexdigest())


def main_text(plan: Plan) -> str:
    """The bare program. With an argument, it also calls with tensor and step numbers at both ends. A streaming model
    takes its first input row by row."""
    p, graph, streams = plan.prefix, plan.graph, plan.graph.stream is not None
    upper, first = p.upper(), plan.tensor(plan.graph.inputs[0])
    places = ["rows" if streams and i == 0 else f"{p}_input(&context, {i})" for i in range(len(graph.inputs))]
    reads = [
        f"        done += fread({place}, 1, {graph.tensors[name].nbytes}, stdin);"
        for place, name in zip(places, graph.inputs, strict=True)
    ]
    run = [
        f"        for (int i = 0; i < {upper}_ROWS_PER_STEP; ++i)",
        f"            if ({p}_step(&context, rows + i * {upper}_ROW_SIZE) != (i + 1 == {upper}_ROWS_PER_STEP))",
        "                return 1;",
    ]
    writes = [
        f"        fwrite({p}_output(&context, {i}), 1, {graph.tensors[name].nbytes}, stdout);"
        for i, name in enumerate(graph.outputs)
    ]
    size = sum(graph.tensors[name].nbytes for name in graph.inputs)
    return "\n".join(
        [
            f'#include <stdio.h>\n#include <string.h>\n\n#include "{p}.h"\n',
            f"static {p}_context context;\n",
            *([f"static {C_TYPES[first.dtype]} rows[{prod(first.shape)}];\n"] if streams else []),
            "int main(int count, char **words)\n{",
            "    (void)words;",
            "    memset(&context, 0x7f, sizeof context); /* what memory held before must not matter */",
            f"    {p}_init(&context);",
            "    if (count > 1)",
            f"        return {p}_input(&context, {upper}_INPUTS) || {p}_output(&context, {upper}_OUTPUTS)",
            f"                || !{p}_input(&context, 0) || {plan.step_function}(&context, {upper}_STEPS) == 0;",
            "    for (;;) {",
            "        size_t done = 0;",
            *reads,
            f"        if (done < {size})\n            return done != 0;",
            *(run if streams else [f"        if ({p}_run(&context))\n            return 1;"]),
            *writes,
            "    }\n}\n",
        ]
    )


def compiled(compiler: Compiler, plan: Plan, artifact: Artifact, folder: Path) -> Path:
    Artifact({**artifact.files, MAIN: main_text(plan).encode()}).write(folder)
    sources = [MAIN, *sorted(name for name in artifact.files if name.endswith((".c", ".S")))]
    words = [*compiler.command, *PORTABLE, *compiler.flags, "-I.", *sources, "-o", "program"]
    done = subprocess.run(words, cwd=folder, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        raise CheckFailed(
            compiler.target, f"it rejects the emitted C:\n{done.stderr[-2000:]}", f"It was: {' '.join(words)}"
        )
    return folder / "program"


def given(plan: Plan, vectors: dict[str, Array], count: int) -> bytes:
    """The inputs of all vectors in sequence, as the program reads them."""
    stream = plan.graph.stream
    if stream is not None:
        rows_of = plan.graph.inputs[0]
        vectors = {**vectors, rows_of: np.moveaxis(vectors[rows_of], stream.axis + 1, 1)}
    rows = [
        np.ascontiguousarray(vectors[name][index], plan.tensor(name).dtype).tobytes()
        for index in range(count)
        for name in plan.graph.inputs
    ]
    return b"".join(rows)


def run(compiler: Compiler, program: Path, plan: Plan, vectors: dict[str, Array], count: int) -> dict[str, Array]:
    """Runs the program; returns each output."""
    words = [*compiler.runner, str(program)]
    try:
        done = subprocess.run(words, input=given(plan, vectors, count), capture_output=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        cause = f"its program of the emitted C does not finish within {PATIENCE} seconds."
        raise CheckFailed(compiler.target, cause, "Give fewer vectors with --inputs.") from None
    ports = [(name, np.dtype((plan.tensor(name).dtype, plan.tensor(name).shape))) for name in plan.graph.outputs]
    row = np.dtype([(f"o{n}", kind) for n, (_, kind) in enumerate(ports)])
    if done.returncode or len(done.stdout) != count * row.itemsize:
        said = done.stderr.decode(errors="replace")[-1000:]
        raise CheckFailed(compiler.target, f"its program of the emitted C fails. {said}", "Please report it.")
    found = np.frombuffer(done.stdout, row)
    return {name: found[f"o{n}"].copy() for n, (name, _) in enumerate(ports)}
