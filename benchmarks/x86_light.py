"""The networks that the onnx package brings, with random weights, against onnxruntime on one thread.

    python benchmarks/x86_light.py [NAME ...] [--rounds 21] [--isa native]

Both read the same `.onnx`, onnxruntime with all its optimizations; the image enters channels first, as the file says
it. They take turns, and the median of the rounds' ratios counts. Their outputs must agree, and the geometric mean of
the ratios must be 0.9 at most; else it fails. The files, up to 570 MB each, stay in build/x86.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import onnx
from x86 import ROUND, processor
from x86_models import WORK, Model
from x86_runners import OnnxRuntime, Ours
from x86_workers import Worker

from nnbuild.report.table import render
from tests.support.onnx_light import NAMES, entrance, with_weights

BAR, AGREE = 0.9, 4e-5


def written(name: str) -> Model:
    """The network as a file whose weights are constants, and whose input is `x`."""
    model = Model(f"light_{name}", WORK / f"light_{name}" / "model.onnx")
    if not model.path.exists():
        made = with_weights(name)
        port = entrance(made)
        for node in made.graph.node:
            for place, source in enumerate(node.input):
                if source == port.name:
                    node.input[place] = "x"
        del made.graph.input[:]
        port.name = "x"
        made.graph.input.append(port)
        made.ir_version = 8
        model.folder.mkdir(parents=True, exist_ok=True)
        onnx.save(made, str(model.path))
    return model


def compared(name: str, isa: str, compiler: str, rounds: int) -> tuple[float, float, float, float]:
    """Milliseconds of both, the median ratio, and how far their outputs are apart by the largest."""
    model = written(name)
    both = [Worker(Ours, (model, "float", isa, compiler)), Worker(OnnxRuntime, (model, "float"))]
    try:
        times = [worker.runs_in(ROUND) for worker in both]
        turns = [[worker.seconds(n) / n for worker, n in zip(both, times, strict=True)] for _ in range(rounds)]
        ours, theirs = (statistics.median(turn[i] for turn in turns) * 1e3 for i in (0, 1))
        apart = np.abs(both[0].outputs - both[1].outputs).max() / np.abs(both[1].outputs).max()
        return ours, theirs, statistics.median(turn[0] / turn[1] for turn in turns), float(apart)
    finally:
        for worker in both:
            worker.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(NAMES), metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--isa", default="native", help="instruction set of our C (default: %(default)s)")
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--rounds", type=int, default=21, help="turns of both (default: %(default)s)")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    rows, ratios, agree = [], [], True
    for name in options.names:
        ours, theirs, ratio, apart = compared(name, options.isa, options.compiler, options.rounds)
        print(f"{name}: {ratio:.2f}, differs by {apart:.1e}", flush=True)
        rows.append([name, f"{ours:.2f}", f"{theirs:.2f}", f"{ratio:.2f}", f"{apart:.1e}"])
        ratios.append(ratio)
        agree &= apart <= AGREE
    mean = math.exp(statistics.mean(map(math.log, ratios)))
    print(f"\n{processor()}; one thread; C by {options.compiler}, isa {options.isa}\n")
    print(render(["network", "nnbuild, ms", "onnxruntime, ms", "ratio", "apart"], rows, 1))
    print(f"\ngeometric mean {mean:.3f} of {len(ratios)} networks, bar {BAR}{'' if agree else '; OUTPUTS DIFFER'}")
    return 0 if agree and mean <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
