"""Write the zoo: `python tests/zoo/write.py --writer keras3|tfkeras --out DIR [--only TEXT] [--part N]`.

For each case it writes

- `<case>.h5` and `<case>.keras`: the model with seeded random weights, as that version of Keras saves it;
- `<case>.npz`: inputs `x` (`x0`, `x1` … for several), Keras' float32 answers `y` (`y0` …), and `layer/<name>`, the
  output of each layer that is called once and has one output;

and once `index.json`: what each case is, and what Keras could not write.

Run as a process of its own, because TensorFlow takes seconds to import and the two versions of Keras disturb each
other.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # its reordered sums move the last bits from run to run
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from tests.zoo.case import KERAS3, WRITERS, Case, Keras, Model, part_of
from tests.zoo.cases import cases_of

Arrays = dict[str, np.ndarray]

ATTEMPTS = 20


def import_keras(writer: str) -> Keras:
    if writer == KERAS3:
        import keras
    else:
        import tf_keras as keras
    # What is loaded now stays: without it every collection walks all of TensorFlow.
    gc.collect()
    gc.freeze()
    return keras


def forget_names(keras: Keras, writer: str) -> None:
    """Layers are numbered from the start again, so a case is the same alone and among others."""
    if writer == KERAS3:
        keras.utils.clear_session(free_memory=False)
    else:
        keras.backend.reset_uids()


def randomize(model: Model, rng: np.random.Generator) -> None:
    """Give every weight a random value of a sensible size, so that no error hides behind a zero or a one."""
    values = [_random_weight(_leaf(variable), tuple(variable.shape), rng) for variable in model.weights]
    for variable, value in zip(model.weights, values, strict=True):
        if value is not None:
            variable.assign(value.astype(np.float32))
    for layer in model._flatten_layers():
        if hasattr(layer, "finalize_state"):  # Normalization computes with copies of its weights
            layer.finalize_state()


def _leaf(variable: Any) -> str:
    """`model/dense/kernel:0` -> `kernel`."""
    return str(variable.name).split("/")[-1].split(":")[0]


def _random_weight(role: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray | None:
    if role == "count" or "state" in role:
        return None
    if role == "gamma":
        return rng.uniform(0.5, 1.5, shape) * rng.choice([1, 1, 1, -1], shape)
    if role.endswith("variance"):
        return rng.uniform(0.3, 2.0, shape)
    if role.endswith("kernel"):
        fan_in = max(1, int(np.prod(shape[:-1])))
        gain = 1.0 if role == "recurrent_kernel" else 1.5  # a larger one makes a recurrence chaotic
        return rng.normal(0.0, gain / np.sqrt(fan_in), shape)
    return rng.normal(0.0, 0.3, shape)


def make_inputs(case: Case, model: Model, rng: np.random.Generator) -> list[np.ndarray]:
    shapes = [tuple(tensor.shape)[1:] for tensor in model.inputs]
    return [(case.input_spread * rng.normal(size=(case.samples, *shape))).astype(np.float32) for shape in shapes]


def single_outputs(model: Model) -> dict[str, Any]:
    """The symbolic output of each layer that has exactly one, by the layer's name."""
    outputs: dict[str, Any] = {}
    for layer in model.layers:
        nodes = layer._inbound_nodes
        if len(nodes) != 1 or type(layer).__name__ == "InputLayer":
            continue
        tensors = nodes[0].output_tensors if hasattr(nodes[0], "output_tensors") else nodes[0].outputs
        tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        if len(tensors) == 1:
            outputs[layer.name] = tensors[0]
    return outputs


def evaluate(keras: Keras, case: Case, model: Model, inputs: list[np.ndarray]) -> Arrays:
    """Keras' answers: `y` or `y0` …, and `layer/<name>`."""
    layers = single_outputs(model)
    probe = keras.Model(model.inputs, [*model.outputs, *layers.values()])
    step = 1 if case.stateful else case.samples
    batches = [_call(probe, [x[i : i + step] for x in inputs]) for i in range(0, case.samples, step)]
    arrays = [np.concatenate(parts).astype(np.float32) for parts in zip(*batches, strict=True)]
    names = [*_numbered("y", len(model.outputs)), *(f"layer/{name}" for name in layers)]
    return dict(zip(names, arrays, strict=True))


def _call(probe: Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    try:
        answers = probe(inputs, training=False)
    except Exception as error:
        if "CPU implementations do not yet support" not in str(error):
            raise
        answers = _call_compiled(probe, inputs)
    answers = answers if isinstance(answers, (list, tuple)) else [answers]
    return [np.asarray(answer) for answer in answers]


def _call_compiled(probe: Model, inputs: list[np.ndarray]) -> Any:
    """Through XLA, which has the few convolutions that TensorFlow's own CPU kernels lack."""
    import tensorflow as tf

    return tf.function(probe, jit_compile=True)(inputs, training=False)


def _numbered(stem: str, count: int) -> list[str]:
    return [stem] if count == 1 else [f"{stem}{index}" for index in range(count)]


def write_case(keras: Keras, writer: str, case: Case, out: Path) -> dict[str, Any]:
    """Write one case and describe it; weights that leave an output constant (all ReLUs off, say) are drawn again."""
    for attempt in range(ATTEMPTS):
        entry, answers = _write_attempt(keras, writer, case, out, attempt)
        if all(np.ptp(value, axis=0).max() > 0.01 for key, value in answers.items() if key.startswith("y")):
            break
    return entry


def _write_attempt(keras: Keras, writer: str, case: Case, out: Path, attempt: int) -> tuple[dict[str, Any], Arrays]:
    """Save before the first call, so that no file can hold a state that the call left behind."""
    forget_names(keras, writer)
    keras.utils.set_random_seed(7)
    rng = np.random.default_rng([zlib.crc32(case.name.encode()), attempt])
    model = case.build(keras)
    randomize(model, rng)
    inputs = make_inputs(case, model, rng)
    written = {suffix: _save(model, out / f"{case.name}.{suffix}") for suffix in ("h5", "keras")}
    answers = evaluate(keras, case, model, inputs)
    questions = dict(zip(_numbered("x", len(inputs)), inputs, strict=True))
    np.savez(out / f"{case.name}.npz", **questions, **answers)
    return _describe(case, model, answers, written), answers


def _describe(case: Case, model: Model, answers: Arrays, written: dict[str, str | None]) -> dict[str, Any]:
    return {
        "category": case.category,
        "stateful": case.stateful,
        "samples": case.samples,
        "files": [suffix for suffix, error in written.items() if error is None],
        "not_written": {suffix: error for suffix, error in written.items() if error is not None},
        "inputs": [_layer_of(tensor).name for tensor in model.inputs],
        "outputs": len(model.outputs),
        "layers": sorted({type(layer).__name__ for layer in model._flatten_layers(include_self=False)}),
        "finite": all(bool(np.isfinite(value).all()) for value in answers.values()),
    }


def _layer_of(tensor: Any) -> Any:
    history = tensor._keras_history
    return history.operation if hasattr(history, "operation") else history.layer


def _save(model: Model, path: Path) -> str | None:
    """None, or why Keras could not write the file."""
    try:
        model.save(path)
    except Exception as error:
        path.unlink(missing_ok=True)
        return f"{type(error).__name__}: {error}".split("\n")[0]
    return None


def write_all(writer: str, out: Path, only: str, part: int | None) -> int:
    """The number of cases that failed."""
    keras = import_keras(writer)
    entries: dict[str, Any] = {}
    failures: dict[str, str] = {}
    slowest: Counter[str] = Counter()
    for case in cases_of(writer):
        if only not in case.name or part not in (None, part_of(case.name)):
            continue
        started = time.monotonic()
        try:
            entries[case.name] = write_case(keras, writer, case, out)
        except Exception as error:
            failures[case.name] = f"{type(error).__name__}: {error}"
        slowest[case.category] += round(1000 * (time.monotonic() - started))
    index = {"writer": writer, "keras": keras.__version__, "cases": entries, "failures": failures}
    (out / "index.json").write_text(json.dumps(index, indent=1) + "\n")
    _report(index, slowest)
    return len(failures)


def _report(index: dict[str, Any], slowest: Counter[str]) -> None:
    counts = Counter(entry["category"] for entry in index["cases"].values())
    for category, count in sorted(counts.items()):
        print(f"{category:24} {count:4}  {slowest[category] / 1000:6.1f} s")
    print(f"{'all':24} {counts.total():4}  {slowest.total() / 1000:6.1f} s")
    for name, error in index["failures"].items():
        print(f"FAILED {name}: {error}", file=sys.stderr)
    for name, entry in index["cases"].items():
        for suffix, error in entry["not_written"].items():
            print(f"not written: {name}.{suffix}: {error}")
        if not entry["finite"]:
            print(f"not finite: {name}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the zoo of Keras models that the tests import.")
    parser.add_argument("--writer", choices=WRITERS, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="write only the cases whose name contains this")
    parser.add_argument("--part", type=int, help="write only this part of the cases, which are alike")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    return 1 if write_all(arguments.writer, arguments.out, arguments.only, arguments.part) else 0


if __name__ == "__main__":
    sys.exit(main())
