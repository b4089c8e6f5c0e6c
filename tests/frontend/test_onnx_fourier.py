"""Fourier transforms of ONNX against numpy's, a front end against onnxruntime, in compiled C, integers and streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime

import nnbuild
from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend.onnx import load_bytes
from nnbuild.model.graph import Array, Graph
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.streaming.options import StreamOptions
from nnbuild.streaming.stream import streamed
from tests.frontend.test_onnx_operands import equal, made, node
from tests.support.many import run_many

RANDOM = np.random.default_rng(5)


def graph_of(nodes: list[Any], x: Array, constants: dict[str, Any], opset: int = 18) -> Graph:
    return passes.run(verify(load_bytes(made(nodes, x, constants, ["y"], opset), "net")))


def drawn(*shape: int) -> Array:
    return RANDOM.normal(size=shape).astype(np.float32)


def pairs(values: Array) -> Array:
    return np.stack([values.real, values.imag], -1)


def numpys(x: Array, length: int | None, axis: int, inverse: bool, onesided: bool) -> Array:
    signal = x[..., 0].astype(np.float64) + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    if inverse and onesided:
        return np.asarray(np.fft.irfft(signal, length, axis)[..., None])
    whole = (np.fft.ifft if inverse else np.fft.fft)(signal, length, axis)
    bins = whole.shape[axis] // 2 + 1
    return pairs(whole.take(range(bins), axis) if onesided else whole)


TRANSFORMS = {
    "real": ((1, 2, 12, 1), 2, {}, None),
    "half": ((1, 13, 1), 1, {"onesided": 1}, None),
    "complex": ((1, 9, 3, 2), 1, {}, None),
    "inverse": ((1, 16, 2), 1, {"inverse": 1}, 20),
    "cropped": ((1, 16, 2), 1, {}, 7),
    "to real": ((1, 9, 2), 1, {"inverse": 1, "onesided": 1}, None),
    "to odd": ((1, 9, 3, 2), 1, {"inverse": 1, "onesided": 1}, 15),
    "to long": ((1, 5, 2), 1, {"inverse": 1, "onesided": 1}, 20),
    "to short": ((1, 9, 2), 1, {"inverse": 1, "onesided": 1}, 2),
    "by factors": ((1, 3, 240, 1), 2, {"onesided": 1}, 256),
    "by factors, back": ((1, 200, 2), 1, {"inverse": 1}, 210),
    "by factors, to real": ((1, 151, 2), 1, {"inverse": 1, "onesided": 1}, 300),
    "prime": ((1, 211, 1), 1, {}, None),
    "one point": ((1, 4, 1, 2), 2, {}, None),
}


@pytest.mark.slow
@pytest.mark.parametrize("opset", [17, 20])
def test_transforms_like_numpy(opset: int, tmp_path: Path) -> None:
    runs, wanted = [], []
    for shape, axis, options, length in TRANSFORMS.values():
        constants = {} if length is None else {"n": np.array(length)}
        inputs, named = "x n" if constants else "x", {"axis": axis} if opset < 20 else {}
        if not named:
            inputs, constants = f"{inputs} a", {**constants, "a": np.array(axis - len(shape))}
        given = [*inputs.split()] if named or length is not None else ["x", "", "a"]
        spectrum = node("DFT", "x", **options, **named)
        spectrum.input[:] = given
        x = drawn(*shape)
        runs.append((graph_of([spectrum], x, constants, opset), {"x": x}))
        wanted.append(numpys(x, length, axis, bool(options.get("inverse")), bool(options.get("onesided"))))
    runs = [(graph, {"x": inputs["x"].reshape(1, *graph.tensors["x"].shape)}) for graph, inputs in runs]
    for (graph, inputs), by_c, answer in zip(runs, run_many(runs, tmp_path), wanted, strict=True):
        for found in (interpret.run(graph, inputs), by_c):
            assert found["y"].size == answer.size
            apart = np.abs(found["y"].reshape(answer.shape) - answer).max()
            assert apart <= 2e-6 * max(1.0, np.abs(answer).max())


@pytest.mark.parametrize(
    ("shape", "length", "step", "options"),
    [
        ((1, 100, 1), 16, 4, {}),
        ((2, 90, 1), 20, 7, {"onesided": 1}),
        ((1, 64), 32, 32, {"onesided": 0}),
        ((1, 70, 2), 12, 5, {"onesided": 0}),
        ((1, 1300, 1), 800, 100, {"onesided": 1}),
        ((1, 1300, 1), 800, 99, {"onesided": 0}),
    ],
)
@pytest.mark.parametrize("windowed", [False, True])
def test_frames_like_numpy(
    shape: tuple[int, ...], length: int, step: int, options: dict[str, int], windowed: bool
) -> None:
    x, window = drawn(*shape), np.abs(drawn(length)) + 1
    constants = {"s": np.array(step), **({"w": window} if windowed else {"n": np.array(length)})}
    spectra = node("STFT", "x s w", **options)
    spectra.input[:] = ["x", "s", "w"] if windowed else ["x", "s", "", "n"]
    graph = graph_of([spectra], x, constants)
    signal = x.reshape(*shape[:2], -1)
    signal = signal[..., 0] + (1j * signal[..., 1] if signal.shape[-1] == 2 else 0)
    starts = range(0, shape[1] - length + 1, step)
    frames = np.stack([signal[:, at : at + length] for at in starts], 1) * (window if windowed else 1)
    wanted = pairs(np.fft.fft(frames)[..., : length // 2 + 1] if options.get("onesided", 1) else np.fft.fft(frames))
    found = interpret.run(graph, {"x": x.reshape(1, *graph.tensors["x"].shape)})["y"]
    assert found.size == wanted.size
    assert np.abs(found.reshape(wanted.shape) - wanted).max() <= 2e-6 * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("name", "inputs", "shape", "options", "text"),
    [
        ("DFT", "x", (1, 8, 3), {"axis": 1}, "not a signal with a last axis of 1 or 2"),
        ("DFT", "x", (1, 8, 2), {"onesided": 1}, "half of a spectrum stands for that of a real signal"),
        ("DFT", "x", (1, 8, 1), {"axis": 2}, "not a signal"),
        ("STFT", "x s w n", (1, 8, 1), {}, "its window has not 8 numbers"),
        ("STFT", "x s w", (1, 3, 1), {}, "its frames of 5, 2 apart, do not fit in 3 numbers"),
        ("STFT", "x s - n", (1, 8, 2), {}, "half of a spectrum stands for that of a real signal"),
        ("STFT", "x x", (1, 8, 1), {}, "computed at run time"),
    ],
)
def test_transforms_that_are_refused(
    name: str, inputs: str, shape: tuple[int, ...], options: dict[str, int], text: str
) -> None:
    spectra = node(name, "x", **options)
    spectra.input[:] = [given.strip("-") for given in inputs.split()]
    constants = {"s": np.array(2), "w": drawn(5), "n": np.array(8)}
    with pytest.raises(ModelError, match=text):
        graph_of([spectra], drawn(*shape), constants)


def front_end(center: bool) -> tuple[list[Any], dict[str, Any]]:
    """A log-mel front end as PyTorch exports it."""
    constants = {
        "pads": np.array([0, 0, 32, 0, 0, 32] if center else [0] * 6),
        "flat": np.array([1, -1]),
        "last": np.array([-1]),
        "step": np.array(32),
        "length": np.array(64),
        "least": np.float32(1e-3),
        **{name: np.array(n) for name, n in (("bands", 12), ("points", 64), ("rate", 8000))},
        **{"low": np.float32(50), "high": np.float32(4000), "two": np.float32(2)},
    }
    return [
        node("Pad", "x pads", "p", mode="reflect" if center else "constant"),
        node("Reshape", "p flat", "s"),
        node("HannWindow", "length", "w"),
        node("STFT", "s step w", "z", onesided=1),
        node("Pow", "z two", "q"),
        node("ReduceSum", "q last", "e", keepdims=0),
        node("MelWeightMatrix", "bands points rate low high", "m"),
        node("MatMul", "e m", "b"),
        node("Add", "b least", "c"),
        node("Log", "c"),
    ], constants


def sounds(count: int) -> Array:
    time = np.arange(640) / 8000
    tones = RANDOM.uniform(100, 3500, (count, 5, 1)) * time * 2 * np.pi
    return (np.sin(tones).sum(1) * 0.15 + 0.01 * RANDOM.normal(size=(count, 640))).astype(np.float32)


def test_a_front_end_like_onnxruntime() -> None:
    nodes, constants = front_end(True)
    equal(nodes, sounds(1).reshape(1, 1, 640), constants)


@pytest.mark.slow
def test_a_front_end_in_integers(tmp_path: Path) -> None:
    nodes, constants = front_end(True)
    data = made(nodes, sounds(1).reshape(1, 1, 640), constants, ["y"], 18)
    (tmp_path / "net.onnx").write_bytes(data)
    x = sounds(20)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    wanted = np.concatenate([session.run(None, {"x": row.reshape(1, 1, -1)})[0] for row in x])
    for dtype, most in (("int8", 1.5), ("int16", 0.1)):
        network = nnbuild.compile(tmp_path / "net.onnx", quantize=dtype, calibrate={"x": x[:, None]})
        graph = network.compiled.graph
        assert {graph.tensors[op.outputs[0]].dtype for op in graph.ops if op.kind == "conv2d"} == {dtype}
        found = network.run({"x": x[:, None]})["y"].reshape(wanted.shape)
        assert np.sqrt(np.mean((found - wanted) ** 2)) < most


def test_a_front_end_as_a_stream() -> None:
    nodes, constants = front_end(False)
    graph = graph_of(nodes, sounds(1).reshape(1, 1, 640), constants)
    found = streamed(graph, StreamOptions(graph.tensors["x"].shape.index(640), 32))
    assert found.macs < found.window_macs / 15


WINDOWS = ("HannWindow", "HammingWindow", "BlackmanWindow")


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows_like_onnxruntime(name: str, periodic: int) -> None:
    nodes = [node(name, "n", "w", periodic=periodic), node("Mul", "x w")]
    equal(nodes, drawn(1, 11), {"n": np.array(11)})


@pytest.mark.parametrize(("bands", "points", "high"), [(40, 512, 8000.0), (20, 64, 7000.0), (1, 16, 4000.0)])
def test_mel_weights_like_onnxruntime(bands: int, points: int, high: float) -> None:
    numbers = {"b": np.array(bands), "n": np.array(points), "r": np.array(16000)}
    edges = {"l": np.float32(20), "h": np.float32(high)}
    nodes = [node("MelWeightMatrix", "b n r l h", "m"), node("MatMul", "x m")]
    equal(nodes, np.abs(drawn(1, 3, points // 2 + 1)), {**numbers, **edges})


@pytest.mark.filterwarnings("error")
def test_a_window_that_begins_with_zero() -> None:
    nodes = [node("HannWindow", "n", "w"), node("Mul", "x w", "f"), node("MatMul", "f m")]
    equal(nodes, drawn(1, 8), {"n": np.array(8), "m": drawn(8, 3)})


def test_frames_that_are_gathered_are_slices() -> None:
    places = np.arange(9)[:, None] * 8 + np.arange(16) + 3
    x = drawn(1, 100)
    graph = graph_of([node("Gather", "x i", axis=1)], x, {"i": places})
    assert "pick" not in {op.kind for op in graph.ops}
    equal([node("Gather", "x i", axis=1)], x, {"i": places})
