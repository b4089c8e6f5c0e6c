"""Many models in one program: compiled once with warnings as errors, run once, and strict about memory.

Before every run the arena is filled with NaN, so a kernel that reads what nobody wrote gives NaN; and words beside the
context are watched, so a kernel that writes outside of it is caught.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nnbuild.emit.emit import emit
from nnbuild.model.graph import Array
from nnbuild.plan.plan import Plan
from tests.support.compiled import SANITIZE, STRICT, sanitizer

Values = dict[str, Array]

SANITIZED = (sanitizer(), *SANITIZE)
CLANG = ("clang", "-O0")
OPTIMIZED = (("gcc", "-O2"), ("clang", "-O2"))


@dataclass(frozen=True, eq=False)
class Entry:
    """A model and its samples. `everything` reads every tensor after each run, not only the outputs."""

    plan: Plan
    inputs: Mapping[str, Array]
    everything: bool = False
    reset_each: bool = False

    @property
    def watched(self) -> list[str]:
        """What is read after each run. A state has been overwritten by what follows it."""
        if not self.everything:
            return list(self.plan.graph.outputs)
        old = {state.before for state in self.plan.graph.states}
        return [name for name in self.plan.locations if name not in old]

    @property
    def samples(self) -> int:
        return len(self.inputs[self.plan.graph.inputs[0]])


def run_batch(entries: Sequence[Entry], folder: Path, tool: Sequence[str] = SANITIZED) -> list[Values]:
    """What every entry's watched tensors hold after each of its samples."""
    write_batch(entries, folder)
    return run_written(entries, folder, tool)


def write_batch(entries: Sequence[Entry], folder: Path) -> None:
    prefixes = [entry.plan.prefix for entry in entries]
    assert len(set(prefixes)) == len(prefixes), "two models of one program need two prefixes"
    for entry in entries:
        emit(entry.plan).write(folder)
    (folder / "batch.c").write_text(_program(entries))


def run_written(
    entries: Sequence[Entry], folder: Path, tool: Sequence[str], runner: Sequence[str] = ()
) -> list[Values]:
    """What `write_batch` has written may be built in many ways; `runner` runs the program, as an emulator."""
    source, program = folder / "batch.c", folder / "batch"
    done = subprocess.run([*tool, *STRICT, f"-I{folder}", str(source), "-o", str(program)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-8000:]
    done = subprocess.run([*runner, str(program)], input=b"".join(map(_stream, entries)), capture_output=True)
    assert done.returncode == 0, f"{folder}: {done.stderr.decode()[-4000:]}"
    return _parse(entries, done.stdout)


def _stream(entry: Entry) -> bytes:
    plan, parts = entry.plan, []
    for index in range(entry.samples):
        for name in plan.graph.inputs:
            tensor = plan.tensor(name)
            values = np.ascontiguousarray(entry.inputs[name][index], tensor.dtype)
            assert values.shape == tensor.shape, name
            parts.append(values.tobytes())
    return b"".join(parts)


def _parse(entries: Sequence[Entry], stream: bytes) -> list[Values]:
    results, at = [], 0
    for entry in entries:
        rows: dict[str, list[Array]] = {name: [] for name in entry.watched}
        for _ in range(entry.samples):
            for name in entry.watched:
                tensor, size = entry.plan.tensor(name), entry.plan.locations[name].size
                rows[name].append(np.frombuffer(stream[at : at + size], tensor.dtype).reshape(tensor.shape))
                at += size
        results.append({name: np.stack(values) for name, values in rows.items()})
    assert at == len(stream)
    return results


def _program(entries: Sequence[Entry]) -> str:
    """All models and the one program around them as a single translation unit."""
    includes = [f'#include "{entry.plan.prefix}{part}.c"' for entry in entries for part in ("", "_kernels", "_weights")]
    calls = [f"    status |= serve_{entry.plan.prefix}();" for entry in entries]
    return "\n".join(
        [
            "#include <stdio.h>",
            "#include <string.h>",
            *includes,
            HELPERS,
            *map(_serve, entries),
            "int main(void)\n{\n    int status = 0;",
            *calls,
            "    return status;\n}\n",
        ]
    )


HELPERS = """
#define CANARY 0x5a

static int take(void *to, size_t size)
{
    return fread(to, 1, size, stdin) == size ? 0 : 1;
}

static void give(const void *from, size_t size)
{
    fwrite(from, 1, size, stdout);
}

static int intact(const unsigned char *bytes, const char *model)
{
    for (int i = 0; i < 64; ++i) {
        if (bytes[i] != CANARY) {
            fprintf(stderr, "%s wrote outside of its context\\n", model);
            return 0;
        }
    }
    return 1;
}
"""


def _serve(entry: Entry) -> str:
    plan, p = entry.plan, entry.plan.prefix
    sizes = {name: plan.locations[name].size for name in plan.locations}
    poison = f"        memset(&cell_{p}.context.arena, 0xff, sizeof cell_{p}.context.arena);" if plan.arena else ""
    takes = [
        f"        if (take({p}_input(&cell_{p}.context, {i}), {sizes[name]}) != 0) return 1;"
        for i, name in enumerate(plan.graph.inputs)
    ]
    if entry.everything:
        gives = [
            f"        give((const char *)&cell_{p}.context.{place.space} + {place.offset}, {place.size});"
            for place in (plan.locations[name] for name in entry.watched)
        ]
    else:
        gives = [
            f"        give({p}_output(&cell_{p}.context, {i}), {sizes[name]});"
            for i, name in enumerate(plan.graph.outputs)
        ]
    return f"""
static struct {{
    unsigned char before[64];
    {p}_context context;
    unsigned char after[64];
}} cell_{p};

static int serve_{p}(void)
{{
    memset(&cell_{p}, CANARY, sizeof cell_{p});
    {p}_init(&cell_{p}.context);
    for (int sample = 0; sample < {entry.samples}; ++sample) {{
{f"        {p}_init(&cell_{p}.context);" if entry.reset_each else ""}
{poison}
{chr(10).join(takes)}
        if ({p}_run(&cell_{p}.context) != 0) return 1;
        if (!intact(cell_{p}.before, "{p}") || !intact(cell_{p}.after, "{p}")) return 1;
{chr(10).join(gives)}
    }}
    return 0;
}}
"""
