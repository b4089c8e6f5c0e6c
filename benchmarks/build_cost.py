"""What a build costs: CPU time and peak memory of `nnbuild compile`, and of compiling what it printed.

    python benchmarks/build_cost.py [MODEL.h5 ...]

Without arguments: ResNet8 of ../shared/models, a network of 24 million parameters (98 MB, made on first use, which
needs TensorFlow), and the plan of a graph with a hundred operations. Each step runs in a process of its own, so the
figures include Python's start; CPU time is that of the process and its children.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nnbuild.model.graph import Constant, Graph, Op, Tensor
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.dense import Dense
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target

ROOT = Path(__file__).resolve().parents[1]
RESNET8 = ROOT.parent / "shared" / "models" / "pretrainedResnet.h5"
FLAGS = ("-std=c99", "-O2", "-ffp-contract=off")


@dataclass(frozen=True)
class Cost:
    seconds: float
    peak: int

    def __str__(self) -> str:
        return f"{self.seconds:6.2f} s CPU, peak {self.peak / 2**20:7.1f} MB"


def cost(command: Sequence[str], folder: Path) -> Cost:
    """One command in its own process; the kernel accounts for it and its children."""
    process = subprocess.Popen(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def build_cost(model: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="nnbuild-") as name:
        folder = Path(name)
        compiled = cost([sys.executable, "-m", "nnbuild", "compile", str(model), "-o", "out"], folder)
        sources = sorted(path.name for path in (folder / "out").iterdir() if path.suffix in (".c", ".S"))
        built = [cost(["gcc", *FLAGS, "-I.", "-c", source], folder / "out") for source in sources]
    total = Cost(compiled.seconds + sum(c.seconds for c in built), max(c.peak for c in (compiled, *built)))
    print(f"{model.name} ({model.stat().st_size / 1e6:.1f} MB)")
    print(f"    {'nnbuild compile':38}{compiled}")
    for source, each in zip(sources, built, strict=True):
        print(f"    gcc {source:34}{each}")
    print(f"    {'model to objects':38}{total}")


def chain(operations: int) -> Graph:
    """Layers of many widths; at every fourth operation an earlier output, kept alive for that, is joined on."""
    tensors, constants, ops = {"t0": Tensor("t0", (64,))}, {}, []
    for index in range(1, operations + 1):
        name, before, earlier = f"t{index}", f"t{index - 1}", f"t{max(0, index - 9)}"
        width = tensors[before].shape[0]
        if index % 4 == 0:
            shape = (width + tensors[earlier].shape[0],)
            ops.append(Op(f"op{index}", Concatenate(0), (before, earlier), (name,)))
        else:
            shape = (16 + 37 * index * index % 230,)
            constants[name] = Constant(name, np.full((width, *shape), index, np.float32))
            ops.append(Op(f"op{index}", Dense(), (before,), (name,), {"kernel": name}))
        tensors[name] = Tensor(name, shape)
    return Graph("chain", tensors, constants, tuple(ops), ("t0",), (f"t{operations}",))


def plan_cost(operations: int) -> None:
    graph = chain(operations)
    start = time.process_time()
    plan = make_plan(graph, "chain", Target())
    spent = time.process_time() - start
    print(
        f"plan of {operations} operations: {spent:.2f} s CPU, arena {plan.arena} bytes, no less than {plan.arena_bound}"
    )


def main() -> None:
    models = [Path(word).resolve() for word in sys.argv[1:]]
    if not models:
        from tests.zoo import big

        models = [path for path in (RESNET8, big() / "big.h5") if path.is_file()]
        plan_cost(100)
    for model in models:
        build_cost(model)


if __name__ == "__main__":
    main()
