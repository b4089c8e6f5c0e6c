"""The numpy reference and the compiled C against TFLite's reference kernels: equal in every bit.

On the whole zoo, on the files of one operator that the fuzzer starts from, and on two published networks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

from nnbuild import passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.drawn import drawn as any_drawn
from tests.frontend.tflite_files import File, O, T, to_bytes
from tests.fuzz.tflite_seeds import SEEDS, WITHOUT_REFERENCE
from tests.support.compiled import run_graph
from tests.support.many import run_many
from tests.zoo_tflite import Case, cases, zoo

pytestmark = pytest.mark.oracle

SHARED = Path(__file__).parents[3] / "shared" / "models"
GROUPS = 24
TOLERANCE = 1e-5
CHECKED = ["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

TANH_LEFT_OUT = ("lstm_int8_04",)
"""Models whose cell state has a scale below 2^-15, for which TFLite computes no tanh at all; they are refused."""


def numbered(arrays: Any, stem: str, count: int) -> list[Array]:
    return [arrays[stem if count == 1 else f"{stem}{i}"] for i in range(count)]


def samples_of(graph: Graph, given: list[Array]) -> dict[str, Array]:
    """A saved batch counts as so many samples."""
    return {n: x.reshape(-1, *graph.tensors[n].shape) for n, x in zip(graph.inputs, given, strict=True)}


def wrong(found: Array, wanted: Array) -> int:
    """How many numbers differ; floats may by a rounding error."""
    wanted = wanted.reshape(found.shape)
    wanted = wanted.astype(found.dtype) if wanted.dtype in (np.bool_, np.int64) else wanted
    assert found.dtype == wanted.dtype
    if found.dtype.kind == "f":
        return int((np.abs(found - wanted) > TOLERANCE * (1 + np.abs(wanted).max())).sum())
    return int((found != wanted).sum())


Job = tuple[str, Graph, dict[str, Array], list[Array]]


def differences(jobs: list[Job], folder: Path) -> dict[str, tuple[int, int]]:
    """Models that differ, with the counts for numpy and for C."""
    found = {}
    compiled = run_many([(graph, inputs) for _, graph, inputs, _ in jobs], folder, flags=CHECKED)
    for (name, graph, inputs, wanted), by_c in zip(jobs, compiled, strict=True):
        by_numpy = interpret.run(graph, inputs)
        pairs = list(zip(graph.outputs, wanted, strict=True))
        counts = sum(wrong(by_numpy[n], w) for n, w in pairs), sum(wrong(by_c[n], w) for n, w in pairs)
        if any(counts):
            found[name] = counts
    return found


def zoo_job(case: Case) -> Job:
    graph = passes.run(load(zoo() / f"{case.name}.tflite", "model"))
    with np.load(zoo() / f"{case.name}.npz") as arrays:
        inputs = samples_of(graph, numbered(arrays, "x", len(graph.inputs)))
        return case.name, graph, inputs, numbered(arrays, "y", len(graph.outputs))


@pytest.mark.turns(12)
@pytest.mark.parametrize("group", range(GROUPS))
def test_zoo(group: int, tmp_path: Path) -> None:
    jobs = [zoo_job(case) for case in cases()[group::GROUPS] if case.name not in TANH_LEFT_OUT]
    assert differences(jobs, tmp_path) == {}


@pytest.mark.parametrize("name", TANH_LEFT_OUT)
def test_what_tflite_leaves_out_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match=r"its scale is 1\.52588e-05, not a power of two from 2\^-15 to 2\^-9\."):
        load(zoo() / f"{name}.tflite", "model")


def test_zoo_is_large_enough() -> None:
    integer = [case for case in cases() if case.mode != "float"]
    assert len(integer) >= 300
    assert sum(case.inputs for case in integer) >= 1000


def reference(path: Path, given: list[list[Array]], *, carried: bool = False) -> list[Array]:
    """TFLite's outputs, each stacked over the samples; states are carried from one to the next, or begin anew."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    ends, rows = interpreter.get_output_details(), []
    for sample in given:
        if not carried:
            interpreter.reset_all_variables()
        for detail, value in zip(interpreter.get_input_details(), sample, strict=True):
            interpreter.set_tensor(detail["index"], value.reshape(detail["shape"]).astype(detail["dtype"]))
        interpreter.invoke()
        rows.append([interpreter.get_tensor(detail["index"]) for detail in ends])
    return [np.stack(column) for column in zip(*rows, strict=True)]


def drawn(graph: Graph, name: str, positive: bool, chance: np.random.Generator) -> Array:
    (values,), tensor = any_drawn(graph, name, chance, 1), graph.tensors[name]
    if not positive:
        return values
    if tensor.quant is None:
        return np.abs(values)
    return np.maximum(values, tensor.quant.zero_point + 1).astype(tensor.dtype)


@pytest.mark.turns(4)
def test_single_operators(tmp_path: Path) -> None:
    """Also those that a converter hardly writes: SLICE, PACK, TILE, SUM, 8-bit weights with a zero point."""
    jobs, chance = [], np.random.default_rng(8)
    for name, file in SEEDS.items():
        if name in WITHOUT_REFERENCE:
            continue
        path = tmp_path / "seed.tflite"
        path.write_bytes(to_bytes(file))
        graph = load(path)
        positive = name.startswith("RSQRT") or "positive" in name  # the reference has no others, or no number for them
        firsts = {tuple(file.tensors[i].shape[:1]) for i in file.inputs}
        (batch,) = firsts.pop() if len(firsts) == 1 else (1,)
        rows = [[drawn(graph, n, positive, chance) for n in graph.inputs] for _ in range(5 * batch)]
        together = [
            [np.stack(part) for part in zip(*rows[i : i + batch], strict=True)] for i in range(0, 5 * batch, batch)
        ]
        inputs = {n: np.stack([row[i] for row in rows]) for i, n in enumerate(graph.inputs)}
        wanted = reference(path, together, carried=bool(graph.states))
        jobs.append((name, passes.run(graph), inputs, wanted))
    assert len(jobs) > 110
    assert differences(jobs, tmp_path) == {}


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_channels_with_hardly_any_weights(kind: str, tmp_path: Path) -> None:
    """A quantizer clips the bias of one without weights; that of another is large, as its weights' scale is small."""
    file = SEEDS[f"{kind}-int8"]
    weights, bias = (file.tensors[i].data.copy() for i in (1, 2))
    count = len(bias)
    axis = 3 if kind == "DEPTHWISE_CONV_2D" else 0
    np.moveaxis(weights, axis, 0)[:2] = 0
    bias[:3] = -(2**31), 2**31 - 1, 2**30
    scales = (1e-12, 1e-12, 1e-9, *np.linspace(0.5, 1.5, count - 4), 25.0)
    file = file.with_tensor(1, data=weights, scales=scales, zeros=(0,) * count, axis=axis)
    path = tmp_path / "channels.tflite"
    path.write_bytes(to_bytes(file.with_tensor(2, data=bias)))
    graph = passes.run(load(path))
    x = any_drawn(graph, graph.inputs[0], np.random.default_rng(6), 20)
    wanted = reference(path, [[one[None]] for one in x])[0]
    assert differences([(kind, graph, {graph.inputs[0]: x}, [wanted])], tmp_path) == {}


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_channels_whose_sums_overflow_beside_a_clipped_bias(kind: str, tmp_path: Path) -> None:
    """They are what they are where nothing overflows; what TFLite makes of the others is left to the machine."""
    file, path = SEEDS[f"{kind}-int8"], tmp_path / "clipped.tflite"
    weights, bias = (file.tensors[i].data.copy() for i in (1, 2))
    axis = 3 if kind == "DEPTHWISE_CONV_2D" else 0
    rows = np.moveaxis(weights, axis, 0)
    rows[:2] = np.abs(rows[:2]).clip(1, 100)  # sums grow with the input
    bias[:2] = -(2**31), 2**31 - 1
    scales = (1e-7, 3e-8, *np.linspace(0.1, 1.5, len(bias) - 2))
    file = file.with_tensor(1, data=weights, scales=scales, zeros=(0,) * len(bias), axis=axis)
    path.write_bytes(to_bytes(file.with_tensor(2, data=bias)))
    graph = passes.run(load(path))
    assert graph.unlike and any(note.endswith("change nothing: 0, 1.") for note in graph.notes)
    quant, (name,) = graph.tensors[graph.inputs[0]].quant, graph.inputs
    assert quant is not None
    above, below = (
        any_drawn(graph, name, np.random.default_rng(6), 20).clip(*ends)
        for ends in ((quant.zero_point, 127), (-128, quant.zero_point))
    )
    for x, channel in ((above, 0), (below, 1)):  # sums that stay within 32 bits
        wanted = reference(path, [[one[None]] for one in x])[0]
        found = interpret.run(graph, {name: x})[graph.outputs[0]]
        kept = [i for i in range(len(bias)) if i != 1 - channel]
        np.testing.assert_array_equal(found[..., kept], wanted.reshape(found.shape)[..., kept])
        assert len(np.unique(found[..., channel])) == 1


def test_every_quotient_of_bytes(tmp_path: Path) -> None:
    """With scales at least 64 times apart; where they are nearer, a note says what TFLite makes of small quotients.
    Whole ratios would have quotients halfway between two numbers."""
    chance, path = np.random.default_rng(3), tmp_path / "division.tflite"
    left, right = (values.reshape(1, -1).astype(np.int8) for values in np.meshgrid(range(-128, 128), range(-128, 128)))
    for apart in (10.3, 64.37, 65.91, 120.3, 700.7):
        own, other = 10 ** chance.uniform(-2.5, -1, 2)
        zeros = chance.integers(-128, 128, 3).tolist()
        kept = right[0] != zeros[1]
        given = [left[:, kept], right[:, kept]]
        scales, shape = (own, other, own / other / apart), (1, int(kept.sum()))
        ends = [T(n, shape, "int8", (s,), (z,)) for n, s, z in zip("xyo", scales, zeros, strict=True)]
        path.write_bytes(to_bytes(File(ends, [O("DIV", [0, 1], [2], "DivOptions")], [0, 1], [2])))
        graph = load(path)
        assert bool(graph.unlike) == (apart < 64)
        if not graph.unlike:
            found = interpret.run(graph, dict(zip(graph.inputs, given, strict=True)))[graph.outputs[0]]
            assert wrong(found, reference(path, [given])[0]) == 0


@pytest.mark.parametrize("name", ["pretrainedResnet_quant", "kws_ref_model"])
def test_published_networks(name: str, tmp_path: Path) -> None:
    path = SHARED / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"shared/models/{name}.tflite is not here")
    graph = load(path)
    (x,) = graph.inputs
    given = [np.random.default_rng(4).integers(-128, 128, (24, *graph.tensors[x].shape)).astype(np.int8)]
    for real in (SHARED / f"{name}_real.npz", SHARED / f"{name.removesuffix('_quant')}_golden.npz"):
        if real.exists():
            with np.load(real) as arrays:
                given.append(interpret.as_input(graph.tensors[x], arrays["x"][:24], "float32"))
    inputs = {x: np.concatenate(given)}
    wanted = reference(path, [[sample] for sample in inputs[x]])
    found = run_graph(passes.run(graph), inputs, tmp_path, flags=["-O1"])
    by_numpy = interpret.run(graph, inputs)
    for output, answer in zip(graph.outputs, wanted, strict=True):
        assert wrong(by_numpy[output], answer) == 0
        assert wrong(found[output], answer) == 0
