"""AlexNet's dense layers, pruned and shared, on this PC: bytes and time in full size, against our own dense kernels.

    python benchmarks/sparse_x86.py [--bytes] [LAYER ...]

Weights are drawn: 9, 9 and 25 % are kept, of 16 values with the zero; half of the inputs are at their zero point.
One program takes the kernels of all layers in turn: shares of time are medians over its turns, so other work on the
machine, which all of a turn share, matters little. Fails where the layers together miss a bar: 1/30 of the bytes of
floats, half of the time of the dense float kernels and, where AVX-512 looks up bytes (VBMI), half of that of the dense
int8 kernels.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.nets import Net
from nnbuild.emit.emit import emit
from nnbuild.encodings.sparse import sparse
from nnbuild.encodings.windows import windows
from nnbuild.isa.isa import Isa
from nnbuild.isa.registry import find, native, vector_sets
from nnbuild.kernels.contract import Kernel
from nnbuild.kernels.registry import kernels_of
from nnbuild.model.graph import Array, Constant, Graph, Quant
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target

LAYERS = {"FC6": (9216, 4096, 0.09), "FC7": (4096, 4096, 0.09), "FC8": (4096, 1000, 0.25)}
LANES = (1, 8)
MOST_BYTES, MOST_TIME = 1 / 30, 0.5
RUNS = 25
VBMI = "avx512_vbmi"
VALUES = np.delete(np.arange(-8, 8), 8).astype(np.int8)
"""Fifteen, and the zero."""
ZERO = -128
PROGRAM = """\
#include <stdio.h>
#include <time.h>
{includes}
static double now(void)
{{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}}

int main(void)
{{
    unsigned chance = 1;

{begin}
    for (int run = 0; run < {runs}; ++run) {{
        double t;
{times}
    }}
    return 0;
}}
"""


def drawn(inputs: int, outputs: int, kept: float) -> Array:
    chance = np.random.default_rng(inputs + outputs)
    found: Array = (chance.random((inputs, outputs)) < kept) * chance.choice(VALUES, size=(inputs, outputs))
    return found.astype(np.int8)


def print_bytes() -> bool:
    stored, floats = dict.fromkeys([*(f"dealt out to {lanes}" for lanes in LANES), "in windows"], 0), 0
    for name, shape in LAYERS.items():
        matrix = drawn(*shape)
        floats += 4 * matrix.size
        sizes = [sparse(matrix, 4, lanes).nbytes for lanes in LANES]
        in_windows = windows(matrix)
        assert in_windows is not None
        for way, size in zip(stored, [*sizes, in_windows.nbytes], strict=True):
            stored[way] += size
            print(f"{name} {way}: {size:,} bytes, 1/{4 * matrix.size / size:.1f} of floats")
    for way, size in stored.items():
        print(f"together, {way}: {size:,} of {floats:,} bytes, 1/{floats / size:.1f}")
    return max(stored.values()) <= MOST_BYTES * floats


def forms(matrix: Array) -> tuple[Graph, Graph]:
    """In floats and in integers."""
    inputs, outputs = matrix.shape
    net = Net("fc")
    constants = {"kernel": matrix * np.float32(0.015), "bias": np.zeros(outputs)}
    graph = net.graph(net.add(Dense(), [net.input(inputs)], constants, "fc"))
    formats = {name: Quant((0.02,), ZERO if name == "x0" else 3) for name in graph.tensors}
    tensors = {name: replace(t, dtype="int8", quant=formats[name]) for name, t in graph.tensors.items()}
    held = {
        "fc/kernel": Constant("fc/kernel", matrix * np.int8(15), Quant((0.001,) * outputs, 0, -1)),
        "fc/bias": Constant("fc/bias", np.zeros(outputs, np.int32), None),
    }
    return graph, replace(graph, tensors=tensors, constants=held)


def timed(plans: Sequence[Plan], inputs: Sequence[int]) -> Array:
    """Milliseconds, [run][plan]."""
    begin, times = [], []
    for plan, count in zip(plans, inputs, strict=True):
        p, is_float = plan.prefix, plan.tensor("x0").dtype == "float32"
        value = ("0.01f * (float)(chance >> 24)", "0.0f") if is_float else ("(int8_t)(chance >> 24)", str(ZERO))
        kind = "float" if is_float else "int8_t"
        step = "chance = chance * 1664525u + 1013904223u"
        begin += [f"    static {p}_context {p};", f"    {p}_init(&{p});"]
        begin += [f"    {{ {kind} *x = {p}_input(&{p}, 0);"]
        filled = f"{step}, x[i] = (chance >> 20 & 1) ? {value[0]} : {value[1]}"
        begin += [f"      for (int i = 0; i < {count}; ++i) {filled}; }}"]
        times += [f'        t = now(); {p}_run(&{p}); printf("%.4f\\n", now() - t);']
    with tempfile.TemporaryDirectory() as name:
        folder, files = Path(name), []
        for plan in plans:
            emit(plan, "binary").write(folder)
            files += [f"{plan.prefix}{part}" for part in (".c", "_kernels.c", "_weights.S")]
        includes = "\n".join(f'#include "{plan.prefix}.h"' for plan in plans)
        words = {"includes": includes, "begin": "\n".join(begin), "times": "\n".join(times)}
        (folder / "main.c").write_text(PROGRAM.format(runs=RUNS, **words))
        subprocess.run(["gcc", "-O2", "-w", "-I.", "main.c", *files, "-o", "timed"], cwd=folder, check=True)
        done = subprocess.run([str(folder / "timed")], capture_output=True, text=True, check=True)
    return np.array(done.stdout.split(), float).reshape(RUNS, len(plans))


def print_times(layers: Sequence[str]) -> bool:
    """Of each layer, then of all together."""
    isa = find(native(), "native")
    kernels = {"floats": "", "int8": dense_of(isa)}
    kernels["runs"] = f"{'avx512' if 'avx512' in isa.features else 'avx2_fma'}_sparse_codes"
    if VBMI in isa.features:
        kernels["windows"] = f"{VBMI}_sparse"
    plans = {}
    for layer in layers:
        graphs = forms(drawn(*LAYERS[layer]))
        for name, kernel in kernels.items():
            with patch("nnbuild.plan.select.kernels_of", partial(only, kernel)):
                plan = make_plan(graphs[name != "floats"], f"{layer.lower()}_{name}", Target(isa, alignment=64))
            plans[layer, name] = plan
    found = timed(list(plans.values()), [LAYERS[layer][0] for layer, _ in plans])
    found = found.reshape(RUNS, len(layers), len(kernels))
    size = {key: sum(data.nbytes for data in plan.constants.values()) for key, plan in plans.items()}
    for at, layer in enumerate(layers):
        for name, said in zip(kernels, told(found[:, at]), strict=True):
            print(f"{layer} {name}, {plans[layer, name].steps[0].kernel_name}: {said}, {size[layer, name]:,} bytes")
    whole = found.sum(axis=1)
    for name, said in zip(kernels, told(whole), strict=True):
        print(f"together, {name}: {said}, {sum(size[layer, name] for layer in layers):,} bytes")
    by_floats, by_int8 = (shares(whole, at)[2:].min() for at in range(2))
    return bool(by_floats <= MOST_TIME and (VBMI not in isa.features or by_int8 <= MOST_TIME))


def shares(times: Array, of: int) -> Array:
    """Of the time of one of [run][kernel], in the same run."""
    found: Array = np.median(times / times[:, [of]], axis=0)
    return found


def told(times: Array) -> list[str]:
    each = zip(times.min(axis=0), np.median(times, axis=0), shares(times, 0), shares(times, 1), strict=True)
    return [f"{least:.3f} ms, median {usual:.3f}, {f:.3f} of floats, {i:.3f} of int8" for least, usual, f, i in each]


def only(kernel: str, site: Site) -> tuple[Kernel, ...]:
    """This kernel, or all where none is named: the others' weights need not be packed, which takes minutes."""
    return tuple(each for each in kernels_of(site) if kernel in ("", each.name))


def dense_of(isa: Isa) -> str:
    """The dense kernel of integers of the largest set that has one."""
    sets = [v for v in vector_sets() if "integer" in v.kernels and v.name in isa.features]
    return f"{max(sets, key=lambda v: (v.lanes, v.depth)).name}_integers"


def main(arguments: Sequence[str]) -> int:
    passed = print_bytes()
    if "--bytes" not in arguments:
        passed &= print_times([name for name in LAYERS if name in arguments] or list(LAYERS))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
