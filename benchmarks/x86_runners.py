"""What benchmarks/x86.py measures: our generated C, and each peer, behind the same two calls.

A runner computes one model over and over on one thread. The shortest way from Python is taken for every peer; ours
and XLA's objects have their loop in C.
"""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from x86_models import WORK, Model

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

OPTIONS = ("-O2", "-fPIC", "-shared")


class Missing(Exception):
    """A peer that is not installed, or cannot run a model; the text says why."""


class Runner(ABC):
    """`deployed` is what must be shipped to run the model, in bytes."""

    deployed: int

    @abstractmethod
    def run(self, times: int) -> None:
        """Computes the model so many times."""

    @abstractmethod
    def outputs(self) -> np.ndarray[Any, Any]:
        """The first output of the last run, flat."""


def sample(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).random(shape, np.float32)


HARNESS = """\
#include <string.h>
#include "model.h"

static model_context context;
static char given[sizeof(model_context)];

void *bench_given(void) { return given; }
void bench_init(void) { model_init(&context); }
const void *bench_output(void) { return model_output(&context, 0); }
void bench_run(long times)
{
    for (long i = 0; i < times; ++i) {
        memcpy(model_input(&context, 0), given, INPUT_BYTES);
        model_run(&context);
    }
}
"""


class Ours(Runner):
    """The generated C, compiled as a shared object with the harness above. Writing the input is part of a run."""

    harness, threads = HARNESS, 1
    more: tuple[str, ...] = ()
    """What else the compiler is given."""

    def __init__(self, model: Model, form: str, isa: str = "native", compiler: str = "gcc") -> None:
        from nnbuild.jobs.options import Options
        from nnbuild.jobs.pipeline import compile_model

        path = model.path if form == "float" else model.tflite(form)
        made = compile_model(Options(path, isa=isa, name="model", weights="binary", threads=self.threads))
        folder = model.folder / f"ours-{form}-{isa}-{compiler}{f'-{self.threads}' if self.threads > 1 else ''}"
        folder.mkdir(parents=True, exist_ok=True)
        made.artifact.write(folder)
        tensor = made.graph.tensors[made.graph.inputs[0]]
        output = made.graph.tensors[made.graph.outputs[0]]
        self.dtypes = np.dtype(tensor.dtype), np.dtype(output.dtype)
        self.size = int(np.prod(output.shape))
        (folder / "harness.c").write_text(self.harness)
        count = int(np.prod(tensor.shape))
        self.macs = sum(step.macs for step in made.plan.steps)
        self.library = self._compile(folder, compiler, count * self.dtypes[0].itemsize)
        self.deployed = self._bytes(folder, compiler)
        given = np.frombuffer(
            (ctypes.c_char * (count * self.dtypes[0].itemsize)).from_address(self._given()), self.dtypes[0]
        )
        given[:] = integers(sample((count,)), tensor) if form == "int8" else sample((count,))
        self.library.bench_init()

    def _given(self) -> int:
        self.library.bench_given.restype = ctypes.c_void_p
        return int(self.library.bench_given())

    def _compile(self, folder: Path, compiler: str, count: int) -> ctypes.CDLL:
        sources = [str(path) for path in sorted(folder.iterdir()) if path.suffix in (".c", ".S")]
        out = folder / "model.so"
        command = [compiler, *OPTIONS, f"-DINPUT_BYTES={count}", f"-I{folder}", *sources, *self.more, "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Missing(done.stderr.strip()[:200])
        return ctypes.CDLL(str(out))

    def _bytes(self, folder: Path, compiler: str) -> int:
        """Text, constants and weights of the objects, without the harness."""
        total = 0
        for path in [p for p in folder.iterdir() if p.suffix in (".c", ".S") and p.stem != "harness"]:
            done = folder / f"{path.name}.o"
            subprocess.run([compiler, "-O2", "-c", f"-I{folder}", str(path), "-o", str(done)], check=True)
            total += int(subprocess.run(["size", str(done)], capture_output=True, text=True).stdout.split()[-3])
        return total

    def run(self, times: int) -> None:
        self.library.bench_run(ctypes.c_long(times))

    def outputs(self) -> np.ndarray[Any, Any]:
        self.library.bench_output.restype = ctypes.c_void_p
        kind = self.dtypes[1]
        address = int(self.library.bench_output())
        return np.frombuffer((ctypes.c_char * (self.size * kind.itemsize)).from_address(address), kind).copy()


def integers(values: np.ndarray[Any, Any], tensor: Any) -> np.ndarray[Any, Any]:
    scaled = np.round(values / tensor.quant.scale) + tensor.quant.zero_point
    return np.clip(scaled, -128, 127).astype(np.int8)


class TFLite(Runner):
    """ai-edge-litert: XNNPACK's kernels for floats and for integers, its default delegate."""

    def __init__(self, model: Model, form: str, threads: int = 1) -> None:
        try:
            import ai_edge_litert
            from ai_edge_litert.interpreter import Interpreter
        except ImportError as error:
            raise Missing("ai-edge-litert is not installed") from error
        path = model.tflite(form)
        self.interpreter = Interpreter(model_path=str(path), num_threads=threads)
        self.interpreter.allocate_tensors()
        for detail in self.interpreter.get_input_details():
            values = sample(tuple(detail["shape"])) if detail["name"][-1] != "h" else np.zeros(detail["shape"])
            if detail["dtype"] == np.int8:
                scale, zero = detail["quantization"]
                values = np.clip(np.round(values / scale) + zero, -128, 127)
            if any(mark in detail["name"] for mark in ("_h:", "_c:")):
                values = np.zeros(detail["shape"])
            self.interpreter.set_tensor(detail["index"], values.astype(detail["dtype"]))
        folder = Path(ai_edge_litert.__file__).parent
        library = max(folder.glob("*.so"), key=lambda p: p.stat().st_size)
        self.deployed = path.stat().st_size + library.stat().st_size

    def run(self, times: int) -> None:
        invoke = self.interpreter._interpreter.Invoke
        for _ in itertools.repeat(None, times):
            invoke()

    def outputs(self) -> np.ndarray[Any, Any]:
        details = sorted(self.interpreter.get_output_details(), key=lambda detail: -("y" in detail["name"]))
        found: np.ndarray[Any, Any] = self.interpreter.get_tensor(details[0]["index"]).reshape(-1)
        return found


class OnnxRuntime(Runner):
    def __init__(self, model: Model, form: str, threads: int = 1) -> None:
        if form != "float":
            raise Missing("only its float form is exported")
        try:
            import onnxruntime
        except ImportError as error:
            raise Missing("onnxruntime is not installed") from error
        path = exported(model)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        for given in self.session.get_inputs():
            values = sample(tuple(given.shape)) if given.name == "x" else np.zeros(given.shape, np.float32)
            self.binding.bind_cpu_input(given.name, values)
        for made in self.session.get_outputs():
            self.binding.bind_output(made.name)
        folder = Path(onnxruntime.__file__).parent / "capi"
        self.deployed = path.stat().st_size + sum(p.stat().st_size for p in folder.glob("*.so*"))

    def run(self, times: int) -> None:
        run, binding = self.session._sess.run_with_iobinding, self.binding._iobinding
        for _ in itertools.repeat(None, times):
            run(binding, None)

    def outputs(self) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = self.binding.copy_outputs_to_cpu()[0].reshape(-1)
        return found


class OpenVINO(Runner):
    def __init__(self, model: Model, form: str) -> None:
        try:
            import openvino
        except ImportError as error:
            raise Missing("openvino is not installed") from error
        path = exported(model) if form == "float" else model.tflite(form)
        core = openvino.Core()
        settings = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
        settings |= {"INFERENCE_PRECISION_HINT": "f32"}
        self.request = core.compile_model(str(path), "CPU", settings).create_infer_request()
        for given in self.request.model_inputs:
            buffer = self.request.get_tensor(given).data
            is_input = "x" in given.get_names() or len(self.request.model_inputs) == 1
            values = sample(tuple(buffer.shape)) if is_input else np.zeros(buffer.shape)
            buffer[...] = values.astype(buffer.dtype) if buffer.dtype == np.float32 else np.zeros(buffer.shape)
        libraries = Path(openvino.__file__).parent / "libs"
        names = ("libopenvino.so*", "libopenvino_intel_cpu_plugin.so*", "libtbb.so*", "libopenvino_onnx*")
        files = [path for name in names for path in libraries.glob(name)]
        self.deployed = path.stat().st_size + sum(p.stat().st_size for p in files)

    def run(self, times: int) -> None:
        infer = self.request.start_async, self.request.wait
        for _ in itertools.repeat(None, times):
            infer[0]()
            infer[1]()

    def outputs(self) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = self.request.get_output_tensor(0).data.reshape(-1)
        return found


def exported(model: Model) -> Path:
    try:
        import x86_onnx
    except ImportError as error:
        raise Missing("onnx is not installed") from error
    path = model.folder / "model.onnx"
    if not path.exists():
        x86_onnx.export(model, path)
    return path


class XLA(Runner):
    """TensorFlow's ahead-of-time compiler: objects linked with its runtime, called in a loop in C++."""

    def __init__(self, model: Model, form: str) -> None:
        if form != "float":
            raise Missing("it has no int8 kernels")
        import x86_xla

        folder = model.folder / "xla"
        library, self.inputs = x86_xla.build(model.saved, folder)
        self.library = ctypes.CDLL(str(library))
        self.library.xla_new.restype = self.library.xla_arg.restype = ctypes.c_void_p
        self.net = ctypes.c_void_p(self.library.xla_new())
        for index, (name, shape) in enumerate(self.inputs):
            size = int(np.prod(shape))
            address = self.library.xla_arg(self.net, index)
            buffer = np.frombuffer((ctypes.c_float * size).from_address(address), np.float32)
            buffer[:] = sample((size,)) if name.endswith("x") else 0.0
        self.deployed = sum(path.stat().st_size for path in folder.glob("net*.o"))  # and TensorFlow's libraries

    def run(self, times: int) -> None:
        self.library.xla_run(self.net, ctypes.c_long(times))

    def outputs(self) -> np.ndarray[Any, Any]:
        return np.zeros(0, np.float32)


PEERS: dict[str, type[Runner]] = {
    "TFLite (XNNPACK)": TFLite,
    "ONNX Runtime": OnnxRuntime,
    "OpenVINO": OpenVINO,
    "XLA AOT": XLA,
}  # type: ignore[type-abstract]

__all__ = ["PEERS", "WORK", "Missing", "Ours", "Runner"]
