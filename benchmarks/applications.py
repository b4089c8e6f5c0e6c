"""Every model of keras.applications, with random weights, against Keras and against TFLite's reference kernels.

    python benchmarks/applications.py LEDGER [--models NAME ...] [--forms FORM ...] [--program] [--minutes M]
    python benchmarks/applications.py LEDGER --summary

A model is built with the smallest input it allows, the statistics of its normalizations are those of its samples, and
it is saved as `.keras`, `.h5` and, by the default call of TFLite's converter, as `.tflite` in float and in int8. Every
form is imported and computed; floats must be within 1e-5 of the largest output, int8 equal in every bit, on outputs of
at least 16 values. Where Keras and nnbuild are farther apart, nnbuild must be as near to the same network in 64 bits.
`--program` makes and checks a program for this PC of each form, too.

Every line of the ledger is one form of one model. What is in it already is not run again, so a campaign may be stopped
and taken up later. `--summary` prints the table of docs/applications.md, and fails where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.ledger import append, commit, rows
from nnbuild.report.table import render

FORMS = {"keras": "model.keras", "h5": "model.h5", "tflite": "model.tflite", "int8": "model_int8.tflite"}
FAMILIES = {
    "MobileNet": ("MobileNet",),
    "MobileNetV2": ("MobileNetV2",),
    "MobileNetV3": ("MobileNetV3Small", "MobileNetV3Large"),
    "NASNet": ("NASNetMobile", "NASNetLarge"),
    "DenseNet": ("DenseNet121", "DenseNet169", "DenseNet201"),
    "EfficientNet": tuple(f"EfficientNetB{i}" for i in range(8)),
    "EfficientNetV2": tuple(f"EfficientNetV2{i}" for i in ("B0", "B1", "B2", "B3", "S", "M", "L")),
    "ResNet": ("ResNet50", "ResNet101", "ResNet152"),
    "ResNetV2": ("ResNet50V2", "ResNet101V2", "ResNet152V2"),
    "Inception": ("InceptionV3", "InceptionResNetV2"),
    "Xception": ("Xception",),
    "ConvNeXt": tuple(f"ConvNeXt{size}" for size in ("Tiny", "Small", "Base", "Large", "XLarge")),
    "VGG": ("VGG16", "VGG19"),
}
"""The first of each is its smallest."""
SIZES = (32, 48, 64, 71, 75, 96, 128, 139, 224, 331)
"""What is tried for the side of the input."""
SAMPLES, CHECKED = 16, 4
FLOAT_BAR, DISTINCT_BAR = 1e-5, 16


def everything() -> list[str]:
    """The smallest of each family first, then the second of each, and so on."""
    longest = max(map(len, FAMILIES.values()))
    return [family[i] for i in range(longest) for family in FAMILIES.values() if i < len(family)]


def build(name: str, folder: Path) -> None:
    """Makes the files of one model, its samples and what Keras and TFLite make of them. Needs TensorFlow."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(1)
    model = made(keras, getattr(keras.applications, name))
    chance, shape = np.random.default_rng(1), model.inputs[0].shape[1:]
    x = chance.normal(0, 0.5, (SAMPLES, *shape)) + chance.normal(0, 0.5, (SAMPLES, 1, 1, shape[-1]))
    if any(isinstance(layer, (keras.layers.Rescaling, keras.layers.Normalization)) for layer in model.layers):
        x = 128 + 64 * x  # it takes pixels
    x = x.astype(np.float32)
    adapt(keras, model, x)
    wanted = {"x": x[:CHECKED], "keras": model(x[:CHECKED]).numpy()}
    model.save(folder / FORMS["keras"])
    model.save(folder / FORMS["h5"])
    (folder / FORMS["tflite"]).write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())
    _, wanted["tflite"] = reference(folder / FORMS["tflite"], x[:CHECKED])
    facts: dict[str, Any] = {"side": shape[0], "parameters": model.count_params()}
    content, facts["only_float"] = full_int8(tf, model, x)
    (folder / FORMS["int8"]).write_bytes(content)
    wanted["x_int8"], wanted["int8"] = reference(folder / FORMS["int8"], x[:CHECKED])
    np.savez(folder / "wanted.npz", **wanted)
    (folder / "facts.json").write_text(json.dumps(facts))


def made(keras: Any, application: Callable[..., Any]) -> Any:
    for side in SIZES:
        try:
            return application(weights=None, input_shape=(side, side, 3), classifier_activation=None)
        except ValueError as error:
            refused = error
    raise refused


def adapt(keras: Any, model: Any, x: np.ndarray) -> None:
    """Normalizations take the samples' statistics, and scales that begin near zero let their branch count.

    Offsets about one keep most of what follows out of the flat parts of activations, as in trained networks: a deep one
    that is centred at every bend multiplies rounding errors a hundredfold, in any program.
    """
    chance, flat = np.random.default_rng(2), list(model._flatten_layers())
    for layer in flat:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0
            if layer.center:
                layer.beta.assign(chance.normal(1, 0.3, layer.beta.shape))
        if type(layer).__name__ == "LayerScale":
            layer.gamma.assign(chance.uniform(0.2, 0.8, layer.gamma.shape))
        if isinstance(layer, keras.layers.Normalization) and layer.input_mean is None:
            layer.adapt(keras.Model(model.inputs, layer.input).predict(x, verbose=0))
    model(x, training=True)


def full_int8(tf: Any, model: Any, x: np.ndarray) -> tuple[bytes, dict[str, int]]:
    """The file, and what it still computes in float."""

    def samples() -> Iterator[list[np.ndarray]]:
        yield from ([row[None]] for row in x)

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = samples
    converter.inference_input_type = converter.inference_output_type = tf.int8
    content = bytes(converter.convert())
    return content, in_float(content)


def in_float(content: bytes) -> dict[str, int]:
    """Operators with floats for inputs and outputs alike, and how many of each."""
    import tflite

    model = tflite.Model.GetRootAsModel(content, 0)
    graph = model.Subgraphs(0)
    names = {value: name for name, value in vars(tflite.BuiltinOperator).items() if isinstance(value, int)}
    found: Counter[str] = Counter()
    for i in range(graph.OperatorsLength()):
        operator = graph.Operators(i)
        ends = (*operator.InputsAsNumpy(), *operator.OutputsAsNumpy())
        if any(tensor >= 0 and graph.Tensors(tensor).Type() == tflite.TensorType.INT8 for tensor in ends):
            continue
        if any(tensor >= 0 and graph.Tensors(tensor).Type() == tflite.TensorType.FLOAT32 for tensor in ends):
            code = model.OperatorCodes(operator.OpcodeIndex())
            found[names[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]] += 1
    return dict(found)


def reference(path: Path, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The samples as the file takes them, and what TFLite's reference kernels make of them."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    (given,), (taken,) = interpreter.get_input_details(), interpreter.get_output_details()
    samples, rows = as_input(x, given), []
    for sample in samples:
        interpreter.set_tensor(given["index"], sample[None])
        interpreter.invoke()
        rows.append(interpreter.get_tensor(taken["index"])[0])
    return samples, np.stack(rows)


def as_input(x: np.ndarray, given: dict[str, Any]) -> np.ndarray:
    if given["dtype"] != np.int8:
        return x
    scale, zero = given["quantization"]
    return np.clip(np.round(x / np.float32(scale)) + zero, -128, 127).astype(np.int8)


def check(form: str, folder: Path, program: bool) -> dict[str, Any]:
    """What importing and computing one form shows. Needs no TensorFlow."""
    from nnbuild import passes
    from nnbuild.frontend import load
    from nnbuild.isa.registry import isas
    from nnbuild.ops import interpret
    from nnbuild.plan.plan import make_plan
    from nnbuild.plan.target import Target

    path, facts = folder / FORMS[form], json.loads((folder / "facts.json").read_text())
    if form != "int8":
        del facts["only_float"]
    with np.load(folder / "wanted.npz") as arrays:
        x, wanted = arrays["x_int8" if form == "int8" else "x"], arrays["keras" if form == "h5" else form]
    with timed(facts, "import"):
        graph = passes.run(load(path))
    facts["ops"] = len(graph.ops)
    with timed(facts, "run"):
        found = interpret.run(graph, {graph.inputs[0]: x})[graph.outputs[0]].reshape(wanted.shape)
    with timed(facts, "plan"):
        facts["arena"] = make_plan(graph, "net", Target(isas()["c99"])).arena
    facts["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    facts["values"] = int(min(len(np.unique(row)) for row in wanted))
    if form == "int8":
        facts["differ"] = int((found != wanted).sum())
    else:
        facts["error"] = apart(found, wanted)
        if facts["error"] > FLOAT_BAR:  # how far both are from the same network without rounding
            exact = interpret.run(graph, {graph.inputs[0]: x}, "float64")[graph.outputs[0]].reshape(wanted.shape)
            facts["rounding"] = {"ours": apart(found, exact), "theirs": apart(wanted, exact)}
    if program:
        with timed(facts, "program"):
            facts["check"] = checked(path, folder)
    return facts


def apart(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


class timed:
    """Seconds of the processor that a part takes, kept in the facts."""

    def __init__(self, facts: dict[str, Any], name: str) -> None:
        self.facts, self.name = facts, name

    def __enter__(self) -> None:
        self.begun = sum(os.times()[:4])

    def __exit__(self, *_: object) -> None:
        self.facts[f"{self.name}_seconds"] = round(sum(os.times()[:4]) - self.begun, 1)


def checked(path: Path, folder: Path) -> str:
    """The last line of `nnbuild check`, which compares a program for this PC with the reference."""
    with np.load(folder / "wanted.npz") as arrays:
        np.savez(folder / "inputs.npz", x=arrays["x"])
    command = [sys.executable, "-m", "nnbuild", "check", str(path), "--inputs", str(folder / "inputs.npz")]
    done = subprocess.run(command, capture_output=True, text=True)
    return ((done.stdout + done.stderr).strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def passed(row: dict[str, Any]) -> bool:
    if "refused" in row or "FAIL" in row.get("check", ""):
        return False
    if row["form"] == "int8":
        return bool(row["differ"] == 0 and row["values"] >= DISTINCT_BAR)
    return bool(min(row["error"], row.get("rounding", {}).get("ours", 1.0)) <= FLOAT_BAR)


def summary(rows: list[dict[str, Any]]) -> tuple[str, bool]:
    """A line a model, and whether every form of each that was run keeps the bars."""
    lines = []
    for name in everything():
        mine = {row["form"]: row for row in rows if row["model"] == name}
        if not mine:
            continue
        some = next(iter(mine.values()))
        cells = [name, str(some.get("side", "")), f"{some.get('parameters', 0):,}", str(some.get("ops", ""))]
        for form in FORMS:
            row = mine.get(form)
            if row is None or "refused" in row:
                cells.append("not run" if row is None else "refused")
            else:
                shown = f"{row['differ']}, {row['values']}" if form == "int8" else f"{row['error']:.1e}"
                cells.append(f"{shown}{' missed' if not passed(row) else ' apart' if 'rounding' in row else ''}")
        floats = mine.get("int8", {}).get("only_float", {})
        cells.append(", ".join(f"{kind} {count}" for kind, count in floats.items()))
        most = [max((row.get(what, 0) for row in mine.values()), default=0) for what in ("plan_seconds", "memory")]
        lines.append([*cells, *map(str, most)])
    heads = ["model", "side", "parameters", "steps", *FORMS, "in float", "plan, s", "MB"]
    refused = sorted({f"{row['model']} {row['form']}: {row['refused']}" for row in rows if "refused" in row})
    kept = sum(map(passed, rows))
    said = f"{kept} of {len(rows)} forms of {len({row['model'] for row in rows})} models keep the bars"
    return "\n\n".join([said, render(heads, lines, 1), *refused]), kept == len(rows)


def one(name: str, forms: list[str], program: bool) -> Iterator[dict[str, Any]]:
    """Builds one model and checks its forms, in processes of their own."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory() as folder:
        me = [sys.executable, __file__, "-"]
        built = subprocess.run(
            [*me, "--build", name, folder], env=os.environ | quiet, capture_output=True, text=True, check=False
        )
        for form in forms:
            facts = {"model": name, "form": form, "commit": commit()}
            if built.returncode:
                yield facts | {"refused": f"it cannot be built: {last(built.stderr)}"}
                continue
            command = [*me, "--check", form, folder, *["--program"] * program]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            yield facts | (json.loads(ran.stdout) if ran.returncode == 0 else {"refused": last(ran.stderr)})


def last(text: str) -> str:
    return (text.strip().splitlines() or ["it ended without a word"])[-1][:400]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--models", nargs="+", choices=everything(), default=everything(), metavar="NAME")
    parser.add_argument("--forms", nargs="+", choices=list(FORMS), default=list(FORMS))
    parser.add_argument("--program", action="store_true", help="make and check a program of each, too")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no model after so long")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--build", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--check", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.build:
        build(arguments.build[0], Path(arguments.build[1]))
        return 0
    if arguments.check:
        print(json.dumps(check(arguments.check[0], Path(arguments.check[1]), arguments.program)))
        return 0
    if not arguments.summary:
        begun = time.monotonic()
        for name in arguments.models:
            known = {row["form"] for row in rows(arguments.ledger) if row["model"] == name}
            forms = [form for form in arguments.forms if form not in known]
            if forms and time.monotonic() - begun < 60 * arguments.minutes:
                for row in one(name, forms, arguments.program):
                    append(arguments.ledger, row)
                    print(f"{name} {row['form']}: {'kept' if passed(row) else 'MISSED'}", flush=True)
    text, kept = summary(rows(arguments.ledger))
    print(text)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
