"""What fewer bytes for weights cost: an autoencoder, digits, and keywords, each by the command's own options.

    python benchmarks/compression.py [--board stm32] [machine-sounds|mnist|lenet-5|lenet-300-100|keywords …]

Each line has the bytes of all constants before and after, those of weights alone, and how good the model is on samples
that no weight was fitted to, in floats, in integers and with the weights that are stored.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nnbuild.compress.measure import auc
from nnbuild.emit.weights import weights_bytes
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.plan.plan import Plan, Step
from nnbuild.quantize.report import as_float, predicted

NETS = ("lenet-5", "lenet-300-100")
"""Trained for the occasion."""
ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


@dataclass(frozen=True)
class Case:
    """`options` are those of the weights; `most` is what the weights may take of their bytes in the dense model."""

    name: str
    options: Mapping[str, str | float]
    most: float


SEEDS = (2, 3, 4, 5)
"""Of four times a thousand perturbed keywords; those that weights are fitted to have another."""
TRAINED = 4000
"""Digits of the training set, to which weights are fitted and on which a search measures."""
CASES = (
    Case("machine-sounds", {"prune": "0.9"}, 40 / 264),
    Case("machine-sounds", {"prune": "0.9", "share": "16"}, 40 / 264),
    Case("mnist", {"weights_bits": "auto", "flash": "9620"}, 0.35),
    Case("mnist", {"weights_bits": "auto", "flash": "7400"}, 0.35),
    Case("mnist", {"weights_bits": "auto", "accuracy_drop": 0.3}, 0.35),
    Case("mnist", {"weights_bits": "3"}, 0.35),
    Case("mnist", {"weights_bits": "3,block3_pointwise=2.5"}, 0.35),
    Case("mnist", {"share": "8"}, 0.35),
    Case("lenet-5", {"weights_bits": "3"}, 0.35),
    Case("lenet-5", {"prune": "0.9"}, 0.35),
    Case("lenet-5", {"prune": "auto", "accuracy_drop": 0.3}, 0.35),
    Case("lenet-300-100", {"weights_bits": "3"}, 0.35),
    Case("lenet-300-100", {"prune": "0.8", "share": "16"}, 0.35),
    Case("lenet-300-100", {"prune": "auto", "accuracy_drop": 0.3}, 0.35),
    Case("keywords.tflite", {"weights_bits": "auto", "flash": "21K"}, 0.45),
    Case("keywords.tflite", {"weights_bits": "auto", "flash": "20000"}, 0.45),
    Case("keywords.tflite", {"weights_bits": "3"}, 0.45),
    Case("keywords.tflite", {"weights_bits": "4"}, 0.45),
    Case("keywords.tflite", {"share": "9"}, 0.45),
    Case("keywords", {"weights_bits": "auto", "flash": "21K"}, 0.45),
    Case("keywords", {"weights_bits": "auto", "flash": "20000"}, 0.45),
    Case("keywords", {"weights_bits": "3"}, 0.45),
    Case("keywords", {"weights_bits": "4"}, 0.45),
    Case("keywords", {"share": "9"}, 0.45),
)


def output(graph: Graph, x: Array) -> Array:
    parts = []
    for start in range(0, len(x), 250):
        found = interpret.run(graph, {graph.inputs[0]: x[start : start + 250]})[graph.outputs[0]]
        parts.append(as_float(graph.tensors[graph.outputs[0]], found))
    return np.concatenate(parts).reshape(len(x), -1)


def perturbed(real: Array, count: int, seed: int, noise: float = 0.01) -> Array:
    """Real inputs, each a little louder or softer, with a little noise."""
    chance = np.random.default_rng(seed)
    picked = real[chance.integers(0, len(real), count)]
    louder = 1 + noise / 2 * chance.normal(size=(count, *[1] * (real.ndim - 1)))
    return (picked * louder + noise * real.std() * chance.normal(size=picked.shape)).astype(np.float32)


def samples(name: str, folder: Path) -> tuple[Path, Path, Array, Array | None]:
    """(model, calibration, inputs to measure on, labels)"""
    if name.startswith("keywords"):
        real = np.load(SHARED / "models/kws_ref_model_real.npz")["x"]
        np.savez(folder / "x.npz", x=np.concatenate([real, perturbed(real, 499, 1)]))
        return (
            SHARED / f"models/kws_ref_model.{'tflite' if name.endswith('tflite') else 'h5'}",
            folder / "x.npz",
            np.concatenate([real, *(perturbed(real, 1000, seed) for seed in SEEDS)]),
            None,
        )
    example = ROOT / "examples" / name
    if name in NETS or name == "mnist":
        with np.load(SHARED / "data/mnist.npz") as data:
            x, labels = data["x_test"][..., None].astype(np.float32) / np.float32(255), data["y_test"]
            fitted = data["x_train"][:TRAINED, ..., None].astype(np.float32) / np.float32(255)
            np.savez(folder / "x.npz", x=fitted, labels=data["y_train"][:TRAINED])
        model = example / "mnist.h5" if name == "mnist" else _network(name)
        return model, folder / "x.npz", x, labels
    with np.load(example / "samples.npz") as data:
        return example / "machine.h5", example / "calibration.npz", data["x"].astype(np.float32), data["labels"]


def figure(x: Array, y: Array, labels: Array | None, dense: Array) -> float:
    """AUC of what an autoencoder gives back, accuracy, or how often the class is that of the dense integers."""
    if y.shape[1] == x[0].size:
        assert labels is not None
        return auc(np.square(y - x.reshape(len(x), -1)).mean(axis=1), labels)
    return float((predicted(y) == (predicted(dense) if labels is None else labels)).mean())


@cache
def _network(name: str) -> Path:
    from benchmarks.digits import trained

    return trained(name, SHARED / "data/mnist.npz", Path(tempfile.mkdtemp()) / f"{name}.h5")


HEAD = 12
"""Bytes that tell a tile which layers share how large it is."""
BESIDE = ("bias", "start", "multiplier", "offset", "shift", "away", "scaling", "told", "window", "kernel_start")
"""What constants are called that hold no weights, their places or lists of values."""


def stored_weights(plan: Plan) -> int:
    """Bytes of weights with their places and lists of values, without what every output channel has beside them; what
    layers share is there once."""
    parts, beside = dict[str, int](), 0
    for step in (step for step in plan.steps if "kernel" in step.site.constants):
        packed = step.versions[0].names.packed
        own = {packed[role]: data.nbytes for role, data in step.demand.packed.items() if role not in BESIDE}
        beside += 0 if len(own) < len(packed) else _among(step)
        parts |= own
    return sum(parts.values()) - beside


def _among(step: Step) -> int:
    """Bytes of what every channel has beside its weights where it lies among them: bias, multiplier and shift."""
    channels = step.site.output_shape()[-1]
    return HEAD + 9 * (channels + -channels % 4) if "compact" in step.kernel_name else 12 * channels


def measured(case: Case, board: str, optimize: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        model, calibration, x, labels = samples(case.name, Path(name))
        form = "float" if model.suffix == ".tflite" else "int8"  # the file's own integers stay
        options = Options(model, board=board, quantize=form, calibrate=calibration, optimize=optimize)
        dense = compile_model(options)
        made = compile_model(replace(options, **case.options))  # type: ignore[arg-type]
    values = [output(graph, x) for graph in (dense.folded, dense.graph, made.graph)]
    path = " -> ".join(f"{figure(x, y, labels, values[1]):.4f}" for y in values)
    weights = sum(each.count for each in made.compression.weights)
    said = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in case.options.items())
    stored = stored_weights(made.plan)
    line = f"{case.name:15} {said:28} constants {_pair(dense, made)}; {weights:,} weights in {stored:,} bytes = "
    line += f"{stored / weights:.3f} each (aim {case.most:.3f}); {path}"
    if case.name.startswith("keywords"):
        same = predicted(values[2]) == predicted(values[1])
        each = ", ".join(f"{part.mean():.3f}" for part in np.split(same[13:], len(SEEDS)))
        line += f"; {int(same[:13].sum())} of 13 real ones keep their class; of each thousand {each}"
    return line


def _pair(dense: Compiled, made: Compiled) -> str:
    before, after = weights_bytes(dense.plan), weights_bytes(made.plan)
    return f"{before:,} -> {after:,} = {after / before:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--board", default="stm32")
    parser.add_argument("--optimize", default="size")
    arguments = parser.parse_args()
    for case in CASES:
        if not arguments.names or case.name in arguments.names or case.name.partition(".")[0] in arguments.names:
            print(measured(case, arguments.board, arguments.optimize), flush=True)


if __name__ == "__main__":
    main()
