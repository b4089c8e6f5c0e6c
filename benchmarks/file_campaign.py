"""Models at random in every file that today's tools write of them, each against its tool's own interpreter.

    python benchmarks/file_campaign.py LEDGER [--of keras onnx] [--models N] [--minutes M] [--from SEED]
    python benchmarks/file_campaign.py LEDGER --summary

Each line of the ledger is one model: what its files gave: right, refused in words, wrong, or a traceback. Of a Keras
model these are `.keras`, `.h5`, what tf2onnx exports and what TensorFlow converts in floats, int8 and int16; of an
ONNX model, the file and what onnxruntime quantizes. Floats must be within a rounding error, integers equal those of
TFLite's reference kernels, and each step's integers within one of onnxruntime's, which rounds floats. A model in the
ledger is not made again unless it was wrong and the commit is another. Exit code 1 where one was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # its strided windows over one column are wrong
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.ledger import append, commit
from nnbuild import passes
from nnbuild.base.errors import NnbuildError
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.model.verify import REPORT
from nnbuild.ops import interpret
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.tolerance import standards

SAMPLES = 6
ROUNDING = 8.0
"""The tools add in orders of their own: so many tolerances of a check are allowed."""
RIGHT = "right"
APART = 1e-3
"""What an exporter wrote wrong is farther from the model."""
PROCESS = 25
"""Models of one process: TensorFlow's converter ends some, and keeps the memory of others."""


class Untold(Exception):
    """A tool writes no such file, or does not compute it."""


@dataclass(frozen=True)
class File:
    """`judge` says "right", or what is the matter."""

    kind: str
    judge: Callable[[Path], str]


def of_keras(seed: int) -> Iterator[File]:
    import keras

    from benchmarks.random_keras import random_model

    keras.backend.clear_session()
    model = random_model(keras, seed)
    chance = np.random.default_rng([seed, 20])
    given = [drawn(chance, tensor.shape[1:], str(tensor.dtype)) for tensor in model.inputs]
    made = model(given if len(given) > 1 else given[0], training=False)
    wanted = [np.asarray(y) for y in (made if isinstance(made, (list, tuple)) else [made])]

    def saved(name: str, folder: Path) -> str:
        model.save(folder / name)
        return compared(folder / name, given, wanted)

    def converted(form: str, folder: Path) -> str:
        path = folder / "model.tflite"
        path.write_bytes(converted_bytes(model, given, form, seed))
        sums = (op.attributes.function for op in load(path).ops if isinstance(op.attributes, Reduce))
        if form and "sum" in sums:
            raise Untold("TFLite's reference kernel for SUM reads beyond its data")
        return compared(path, given, of_tflite(path, given))

    def exported(folder: Path) -> str:
        path = folder / "model.onnx"
        path.write_bytes(exported_bytes(model, seed))
        try:
            own = of_onnxruntime(path, given)
        except Exception:  # it refuses some files that are right
            own = wanted
        pairs = [(one.reshape(-1), other.reshape(-1)) for one, other in zip(own, wanted, strict=True)]
        if any(one.size != other.size or np.abs(one - other).max() > APART for one, other in pairs):
            raise Untold("onnxruntime computes something else from this file than Keras")
        return compared(path, given, wanted)

    yield File("keras", partial(saved, "model.keras"))
    yield File("h5", partial(saved, "model.h5"))
    yield File("tf2onnx", exported)
    for form in ("", "int8", "int16"):
        yield File(f"tflite {form}".strip(), partial(converted, form))


def exported_bytes(model: Any, seed: int) -> bytes:
    import tensorflow as tf
    import tf2onnx

    shapes = [tf.TensorSpec((1, *x.shape[1:]), x.dtype) for x in model.inputs]
    function = tf.function(lambda *given: model(list(given) if len(given) > 1 else given[0], training=False))
    try:
        made, _ = tf2onnx.convert.from_function(function, input_signature=shapes, opset=(13, 15, 17, 18)[seed % 4])
    except Exception as error:  # it refuses some layers, in any way
        raise Untold(f"not exported: {type(error).__name__}: {str(error)[:150]}") from None
    return bytes(made.SerializeToString())


def converted_bytes(model: Any, given: list[Array], form: str, seed: int) -> bytes:
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if not form and seed % 2:  # with a batch of one it writes loops
        ends = [tf.TensorSpec((1, *end.shape[1:]), end.dtype) for end in model.inputs]
        whole = tf.function(lambda *x: model(list(x) if len(x) > 1 else x[0], training=False))
        converter = tf.lite.TFLiteConverter.from_concrete_functions([whole.get_concrete_function(*ends)])
    if form:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([x[i : i + 1] for x in given] for i in range(len(given[0])))
    if form == "int16":
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        ]
    try:
        return bytes(converter.convert())
    except Exception as error:  # it refuses some layers, in any way
        raise Untold(f"not converted: {type(error).__name__}: {str(error)[:150]}") from None


def of_tflite(path: Path, given: list[Array]) -> list[Array]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    try:
        interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        ends = interpreter.get_input_details()
        for detail, value in zip(ends, given, strict=True):
            interpreter.resize_tensor_input(detail["index"], (1, *value.shape[1:]))
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise Untold(str(error)[:150]) from None
    rows = []
    for index in range(len(given[0])):
        for detail, value in zip(ends, given, strict=True):
            interpreter.set_tensor(detail["index"], value[index : index + 1].astype(detail["dtype"]))
        try:
            interpreter.invoke()
        except RuntimeError as error:  # a division by zero, for one
            raise Untold(str(error)[:150]) from None
        rows.append([interpreter.get_tensor(detail["index"])[0] for detail in interpreter.get_output_details()])
    return [np.stack(column) for column in zip(*rows, strict=True)]


def of_onnxruntime(path: Path, given: list[Array]) -> list[Array]:
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    names = [end.name for end in session.get_inputs()]
    rows = [session.run(None, {n: x[i : i + 1] for n, x in zip(names, given, strict=True)}) for i in range(SAMPLES)]
    return [np.stack(column) for column in zip(*rows, strict=True)]


def of_onnx(seed: int) -> Iterator[File]:
    import onnx

    from benchmarks.random_onnx import random_model
    from tests.frontend.test_onnx_quantizer import apart, imported
    from tests.support.onnx_quantized import SETTINGS, computed, quantized

    model, chance = random_model(seed), np.random.default_rng([seed, 22])
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    given = chance.normal(size=(SAMPLES, *shape)).astype(np.float32)
    names = [name for name in SETTINGS if "u16" not in name]

    def floats(folder: Path) -> str:
        onnx.save(model, folder / "model.onnx")
        try:
            rows = [computed(model.SerializeToString(), {"x": x}) for x in given]
        except Exception as error:  # onnxruntime has no kernel for some
            raise Untold(str(error)[:150]) from None
        return compared(folder / "model.onnx", [given], [np.stack(column) for column in zip(*rows, strict=True)])

    def integers(name: str, _: Path) -> str:
        try:
            made = quantized(model, given, SETTINGS[name])
            computed(made.SerializeToString(), {"x": given[0]})
        except Exception as error:
            raise Untold(f"not quantized: {type(error).__name__}: {str(error)[:150]}") from None
        if not [node for node in made.graph.node if node.op_type == "QuantizeLinear"]:
            raise Untold("nothing is quantized")
        imported(made.SerializeToString())
        try:
            total, differ, most = apart(made, given[0])
        except NnbuildError as error:  # what is between two steps may stay in floats only in the whole
            raise Untold(f"a step alone is refused: {error}") from None
        return RIGHT if most <= 1 else f"of {total} integers of {name} {differ} are wrong, by up to {most}"

    yield File("onnx", floats)
    for name in sorted({str(chance.choice(names)) for _ in range(2)}):
        yield File("onnx quantized", partial(integers, name))


SOURCES: dict[str, Callable[[int], Iterator[File]]] = {"keras": of_keras, "onnx": of_onnx}


def compared(path: Path, given: list[Array], wanted: list[Array]) -> str:
    graph = passes.run(load(path))
    shaped = (x.reshape(len(x), *graph.tensors[n].shape) for n, x in zip(graph.inputs, given, strict=True))
    inputs = dict(zip(graph.inputs, shaped, strict=True))
    found = interpret.run(graph, inputs)
    entered = {name: interpret.as_input(graph.tensors[name], values, "float32") for name, values in inputs.items()}
    limits = standards(graph, entered, graph.outputs)
    for name, answer in zip(graph.outputs, wanted, strict=True):
        said = _judged(graph, name, found[name], answer, limits[name].tolerance)
        if said:
            return said
    return RIGHT


def _judged(graph: Graph, name: str, found: Array, answer: Array, tolerance: Array) -> str:
    shown = found.astype(np.float64)
    answer = answer.reshape(shown.shape).astype(np.float64)
    allowed = tolerance.reshape(-1, *(1,) * (shown.ndim - 1)) * ROUNDING + 1e-6
    with np.errstate(invalid="ignore"):
        right = (np.abs(shown - answer) <= allowed) | (shown == answer) | (np.isnan(shown) & np.isnan(answer))
    if right.all():
        return ""
    of = f"up to {np.abs(shown - answer)[~right].max():.3g} of {np.abs(answer).max():.3g}"
    return f"{int((~right).sum())} of {right.size} numbers of {name} are wrong, by {of}"


def run(source: str, seed: int) -> dict[str, Any]:
    said: list[list[str]] = []
    for file in SOURCES[source](seed):
        with tempfile.TemporaryDirectory() as name:
            try:
                answer = file.judge(Path(name))
            except Untold as reason:
                answer = f"untold: {reason}"
            except NnbuildError as error:
                answer = f"{'crashed' if error.next_step == REPORT else 'refused'}: {error}"
            except Exception:
                answer = f"crashed: {traceback.format_exc()[-700:]}"
            said.append([file.kind, answer])
    return {"source": source, "seed": seed, "files": said}


def drawn(chance: np.random.Generator, shape: Sequence[int], dtype: str) -> Array:
    if "int" in dtype:
        return chance.integers(0, 5, (SAMPLES, *shape)).astype(np.int32)
    return chance.normal(size=(SAMPLES, *shape)).astype(np.float32)


def faults(row: dict[str, Any]) -> list[str]:
    found = [(kind, said) for kind, said in row["files"] if " wrong, " in said or said.startswith("crashed")]
    return [f"{row['source']} {row['seed']}, {kind}: {said}" for kind, said in found]


def summary(rows: Sequence[dict[str, Any]]) -> str:
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        for kind, said in row["files"]:
            word = said.split(":")[0] if said.split(":")[0] in ("untold", "refused", "crashed", RIGHT) else "wrong"
            counts.setdefault(kind, Counter())[word] += 1
    ended = sum(not row["files"] for row in rows)
    lines = [f"{len(rows)} models, of which {ended} ended the process of the tool that writes them"]
    lines += [f"{kind}: " + ", ".join(f"{n} {word}" for word, n in c.most_common()) for kind, c in counts.items()]
    return "\n".join([*lines, *(fault for row in rows for fault in faults(row))])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--of", nargs="+", choices=SOURCES, default=list(SOURCES))
    parser.add_argument("--models", type=int, default=10**9)
    parser.add_argument("--minutes", type=float, default=10**6)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--seeds", nargs="*", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    ledger, end = arguments.ledger, time.monotonic() + 60 * arguments.minutes
    if arguments.seeds:
        _write(ledger, arguments.of[0], arguments.seeds, end)
        return 0
    if not arguments.summary:
        waiting = {source: _waiting(ledger, source, arguments.first) for source in arguments.of}
        left = arguments.models
        while left > 0 and time.monotonic() < end:
            for source, seeds in waiting.items():
                _in_a_process(ledger, source, list(islice(seeds, min(left, PROCESS))), (end - time.monotonic()) / 60)
            left -= PROCESS
    found = list(_read(ledger).values())
    print(summary(found))
    return 1 if any(map(faults, found)) else 0


def _waiting(ledger: Path, source: str, first: int) -> Iterator[int]:
    known = {seed: row for (of, seed), row in _read(ledger).items() if of == source}
    again = [seed for seed, row in known.items() if faults(row) and row["commit"] != commit()]
    return chain(again, (seed for seed in count(first) if seed not in known))


def _in_a_process(ledger: Path, source: str, seeds: list[int], minutes: float) -> None:
    """Where the process ends with a model, the next one goes on behind it."""
    made, tried = commit(), ["--of", source, "--minutes", str(minutes), "--seeds"]
    while seeds:
        command = [sys.executable, __file__, str(ledger), *tried, *map(str, seeds)]
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return
        known = _read(ledger)
        seeds = [seed for seed in seeds if known.get((source, seed), {}).get("commit") != made]
        append(ledger, {"source": source, "seed": seeds[0], "files": [], "commit": made})
        seeds = seeds[1:]


def _write(ledger: Path, source: str, seeds: list[int], end: float) -> None:
    for seed in seeds:
        if time.monotonic() > end:
            return
        append(ledger, run(source, seed) | {"commit": commit()})


def _read(ledger: Path) -> dict[tuple[str, int], dict[str, Any]]:
    text = ledger.read_text() if ledger.exists() else ""
    return {(row["source"], row["seed"]): row for row in map(json.loads, text.splitlines())}


if __name__ == "__main__":
    raise SystemExit(main())
