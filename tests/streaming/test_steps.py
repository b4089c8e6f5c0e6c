"""A window as a stream: every step gives the bits of the window that ends with it."""

from __future__ import annotations

from dataclasses import replace
from math import lcm, prod
from pathlib import Path

import numpy as np
import pytest

from nnbuild import cli, passes
from nnbuild.base.errors import ModelError, UsageError
from nnbuild.isa.registry import isas
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.jobs.stream import stream_samples
from nnbuild.model.graph import Array, Constant, Graph, Op, State, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Join, Part, Reshape
from nnbuild.ops.shift import Shift
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from nnbuild.streaming import sample_rows
from nnbuild.streaming.options import MEANINGS, StreamOptions, parse
from nnbuild.streaming.reference import stream_outputs
from nnbuild.streaming.rows import rates
from nnbuild.streaming.stream import Streamed, streamed
from nnbuild.streaming.views import without_copies
from tests.support.compiled import build, run, run_graph
from tests.support.graphs import single
from tests.support.shares import in_shares
from tests.support.windows import FORMS, by_window, stream_of, window

NETS = 60
SHARES = 5
ALIGNMENT = 4
LONG = 10_000
SHIFTED = 1
"""A network in which rows of a ring are read apart."""
SHARED = Path(__file__).parents[3] / "shared" / "models"


def made(seed: int) -> Streamed:
    """A network at random with a hop at random; or with the one that suits it."""
    hop = (None, 1, 2, 3, 4)[int(np.random.default_rng([seed, 5]).integers(5))]
    return streamed(window(seed), StreamOptions(0, hop))


def made_whole(seed: int) -> Streamed:
    """The same for the meaning of the whole stream, with steps that suit the strides."""
    graph = window(seed)
    suits = lcm(*rates(graph, 0, whole_stream=True))
    return streamed(graph, StreamOptions(0, suits * int(np.random.default_rng([seed, 5]).integers(1, 3)), "stream"))


def outputs_of(found: Streamed, rows: Array, step: Graph | None = None) -> Array:
    graph = passes.finalize(step or found.step)
    given = sample_rows.steps(rows, found.hop, found.axis)
    return interpret.run(graph, {graph.inputs[0]: given})[graph.outputs[0]]


def wanted_of(found: Streamed, rows: Array) -> Array:
    return by_window(found.window, rows, found.hop, found.axis)[found.window.outputs[0]]


def long_run_of(found: Streamed, rows: Array) -> Array:
    return stream_outputs(found.window, found.flow, found.hop, rows)[found.window.outputs[0]]


def wrong(got: Array, wanted: Array) -> int:
    """Floats are sums in another order where kernels have other shapes."""
    assert got.shape == wanted.shape
    if got.dtype.kind == "f":
        return int((np.abs(got - wanted) > 1e-4 * (1 + np.abs(wanted))).sum())
    return int((got != wanted).sum())


@pytest.mark.slow
@in_shares(SHARES)
def test_steps_equal_windows(share: int) -> None:
    cheaper = 0
    for seed in range(share, NETS, SHARES):
        found = made(seed)
        rows = stream_of(found.window, (2 * found.rows + 5) * found.hop, seed)
        assert wrong(outputs_of(found, rows), wanted_of(found, rows)) == 0, f"seed {seed}"
        cheaper += found.macs < found.window_macs
    assert cheaper > NETS / SHARES / 2


@in_shares(SHARES)
def test_steps_equal_a_long_run(share: int) -> None:
    """The whole stream: other numbers than those of windows where they pad or recur, the same ones where not."""
    for seed in range(share, NETS, SHARES):
        found = made_whole(seed)
        rows = stream_of(found.window, (2 * found.warm_up + 5) * found.hop, seed)
        got = outputs_of(found, rows)
        assert wrong(got, long_run_of(found, rows)) == 0, f"seed {seed}"
        windows = wanted_of(found, rows)
        if windows.shape == got.shape and found.other is None:
            assert wrong(got, windows) == 0, f"seed {seed}"
        if found.other is None:
            assert found.late == 0


@pytest.mark.parametrize("pad", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2])
def test_rows_of_padding_alone(kernel: int, stride: int, pad: int) -> None:
    """Where the padding is larger than a window, its first rows read nothing."""
    weights = np.random.default_rng(4).normal(size=(kernel, 1, 2, 1)).astype(np.float32)
    around = ((pad, pad), (0, 0))
    first = single(DepthwiseConv2D((stride, 1), padding=around), [(24, 1, 2)], {"kernel": weights})
    found = streamed(first, StreamOptions(0, 2 * stride))
    rows = stream_of(first, (2 * found.rows + 5) * found.hop, 1)
    assert wrong(outputs_of(found, rows), wanted_of(found, rows)) == 0


def test_parts_leave_other_tensors_their_names() -> None:
    """Keras numbers its layers: c_1 follows c, whose second part would be called so, too."""
    weights = Constant("k", np.random.default_rng(4).normal(size=(3, 1, 2, 1)).astype(np.float32))
    first = DepthwiseConv2D((1, 1), padding=((1, 1), (0, 0)))
    ops = (
        Op("c", first, ("x",), ("c",), {"kernel": "k"}, layer="c"),
        Op("c_1", Reduce("max", 0, 1, False), ("c",), ("c_1",), layer="c_1"),
    )
    tensors = {name: Tensor(name, shape) for name, shape in {"x": (24, 1, 2), "c": (24, 1, 2), "c_1": (1, 2)}.items()}
    graph = verify(Graph("net", tensors, {"k": weights}, ops, ("x",), ("c_1",)))
    found = streamed(graph, StreamOptions(0, 2))
    rows = stream_of(graph, 60, 1)
    assert wrong(outputs_of(found, rows), wanted_of(found, rows)) == 0


@pytest.mark.parametrize("seed", [16, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 4))])
def test_c_equals_a_long_run(seed: int, tmp_path: Path) -> None:
    found = made_whole(seed)
    rows = stream_of(found.window, 3 * found.rows * found.hop, seed)
    graph = passes.finalize(without_copies(found.step, ALIGNMENT))
    got = run_graph(graph, {graph.inputs[0]: sample_rows.steps(rows, found.hop, found.axis)}, tmp_path)
    assert wrong(got[graph.outputs[0]], long_run_of(found, rows)) == 0


def test_recurrent_layers_go_on() -> None:
    """Of a window the layer begins anew; of the stream a step takes new rows alone, and nothing is forgotten."""
    for form in ("float", "int8"):
        graph = window(6, form, "gru", ("valid",))
        whole = streamed(graph, StreamOptions(0, None, "stream"))
        by_windows = streamed(graph, StreamOptions(0, whole.hop))
        assert by_windows.other == whole.macs < by_windows.macs == whole.other
        rows = stream_of(graph, 4 * whole.rows * whole.hop, 1)
        assert wrong(outputs_of(whole, rows), long_run_of(whole, rows)) == 0
        assert wrong(outputs_of(whole, rows), wanted_of(whole, rows)) > 0


def test_rows_to_come_are_waited_for() -> None:
    """What pads behind the last row is late by as much, and a branch without padding waits for it."""
    found = streamed(window(8), StreamOptions(0, 2, "stream"))
    assert (found.late, found.latency) == (1, 1)
    causal = streamed(window(3, "int8", "dense", ("causal",)), StreamOptions(0, None, "stream"))
    assert causal.late == 0 and causal.macs < causal.window_macs


@pytest.mark.parametrize("seed", [0, 3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 4))])
def test_c_equals_windows_row_by_row(seed: int, tmp_path: Path) -> None:
    """Rows are read and written where they lie; every element is an address of its own."""
    found = made(seed)
    rows = stream_of(found.window, 3 * found.rows * found.hop, seed)
    graph = passes.finalize(without_copies(found.step, ALIGNMENT))
    got = run_graph(graph, {graph.inputs[0]: sample_rows.steps(rows, found.hop, found.axis)}, tmp_path)
    assert wrong(got[graph.outputs[0]], wanted_of(found, rows)) == 0


@pytest.mark.slow
@in_shares(SHARES)
def test_views_change_nothing(share: int) -> None:
    views = 0
    for seed in range(share, NETS, SHARES):
        found = made(seed)
        rows = stream_of(found.window, found.rows * found.hop, seed)
        step = verify(without_copies(found.step, ALIGNMENT))
        views += sum(isinstance(op.attributes, Part | Join) for op in step.ops)
        assert wrong(outputs_of(found, rows, step), wanted_of(found, rows)) == 0
    assert views > 0


@pytest.mark.full
@pytest.mark.parametrize("seed", range(NETS))
def test_many_steps(seed: int, tmp_path: Path) -> None:
    found = made(seed)
    rows = stream_of(found.window, LONG * found.hop, seed)
    graph = passes.finalize(without_copies(found.step, ALIGNMENT))
    got = run_graph(graph, {graph.inputs[0]: sample_rows.steps(rows, found.hop, found.axis)}, tmp_path, flags=["-O2"])
    for first in range(0, LONG, 500):  # so many windows fit into memory
        part = rows[max(0, first - found.warm_up) * found.hop : (first + 500) * found.hop]
        wanted = wanted_of(found, part)[-500:]
        assert wrong(got[graph.outputs[0]][first : first + 500], wanted) == 0, first


@pytest.mark.full
@pytest.mark.parametrize("seed", range(NETS))
def test_many_steps_of_a_whole_stream(seed: int, tmp_path: Path) -> None:
    found = made_whole(seed)
    rows = stream_of(found.window, LONG * found.hop, seed)
    graph = passes.finalize(without_copies(found.step, ALIGNMENT))
    got = run_graph(graph, {graph.inputs[0]: sample_rows.steps(rows, found.hop, found.axis)}, tmp_path, flags=["-O2"])
    assert wrong(got[graph.outputs[0]], long_run_of(found, rows)) == 0


def summed(seed: int, meaning: str) -> Streamed:
    """One that ends with an average, by running sums."""
    found = streamed(window(seed, FORMS[seed % 2], ("mean", "pool")[seed // 2 % 2]), StreamOptions(0, None, meaning))
    assert found.running is not None
    return replace(found, step=found.running)


@pytest.mark.parametrize("meaning", MEANINGS)
def test_running_sums_are_exact(meaning: str) -> None:
    for seed in range(8):
        found = summed(seed, meaning)
        assert "running" in {op.kind for op in found.step.ops}
        rows = stream_of(found.window, (2 * found.warm_up + 5) * found.hop, seed)
        wanted = wanted_of(found, rows) if meaning == "window" else long_run_of(found, rows)
        assert wrong(outputs_of(found, rows), wanted) == 0, f"seed {seed}"


@pytest.mark.parametrize(
    ("seed", "isa", "kernel"), [(0, "c99", "scalar"), (1, "c99", "scalar"), (8, "armv7em_dsp", "words")]
)
def test_c_of_running_sums(seed: int, isa: str, kernel: str, tmp_path: Path) -> None:
    found = summed(seed, MEANINGS[0])
    rows = stream_of(found.window, 3 * found.rows * found.hop, seed)
    graph = passes.finalize(without_copies(found.step, ALIGNMENT))
    assert not [op for op in graph.ops if op.name.endswith("kept:op")]
    steps = {graph.inputs[0]: sample_rows.steps(rows, found.hop, found.axis)}
    (name,) = (op.name for op in graph.ops if op.kind == "running")
    plan = make_plan(graph, "net", Target(isa=isas()[isa], alignment=ALIGNMENT, forced_kernels={name: kernel}))
    got = run(build(plan, tmp_path, compiler="gcc", flags=["-O1", "-DNN_PORTABLE"]), plan, steps)
    assert wrong(got[graph.outputs[0]], wanted_of(found, rows)) == 0


def test_a_sum_that_forgets_to_let_go_fails() -> None:
    found = summed(0, MEANINGS[0])
    ops = [
        replace(op, inputs=(op.inputs[0], op.inputs[2], *op.inputs[2:])) if op.kind == "running" else op
        for op in found.step.ops
    ]
    rows = stream_of(found.window, 3 * found.rows, 0)
    assert wrong(outputs_of(found, rows, replace(found.step, ops=tuple(ops))), wanted_of(found, rows)) > 0


def strided(hop: int) -> Streamed:
    """One whose parts move on every other row, so that two sets of states take turns when rows come singly."""
    for seed in range(0, 300, 3):
        found = streamed(window(seed, "int8", "dense", ("valid",)), StreamOptions(0, hop))
        if found.banks == 2:
            return found
    raise AssertionError("there is none")


def test_states_take_turns(tmp_path: Path) -> None:
    found = strided(1)
    rows = stream_of(found.window, 100, 1)
    assert wrong(outputs_of(found, rows), wanted_of(found, rows)) == 0
    graph = passes.finalize(found.step)
    got = run_graph(graph, {graph.inputs[0]: sample_rows.steps(rows, 1, 0)}, tmp_path)
    assert wrong(got[graph.outputs[0]], wanted_of(found, rows)) == 0


# Mistakes must show.


def ring_shifted(found: Streamed) -> Graph:
    """What is read of the held rows is one row older."""
    ops = []
    for op in found.step.ops:
        part = op.attributes
        if isinstance(part, Slice) and op.inputs[0].endswith("/held") and part.begins[0] > 0:
            op = replace(op, attributes=replace(part, begins=(part.begins[0] - 1, *part.begins[1:])))
        ops.append(op)
    return replace(found.step, ops=tuple(ops))


def not_shifted(found: Streamed) -> Graph:
    """The rows that a ring holds do not move on."""
    ops = [op for op in found.step.ops if not isinstance(op.attributes, Shift)]
    rings = {op.outputs[0]: op.inputs[0] for op in found.step.ops if isinstance(op.attributes, Shift)}
    renamed = [replace(op, inputs=tuple(rings.get(n, n) for n in op.inputs)) for op in ops]
    tensors = {name: tensor for name, tensor in found.step.tensors.items() if name not in rings}
    states = tuple(State(s.before, s.before, s.initial, s.banks) for s in found.step.states)
    return replace(found.step, ops=tuple(renamed), tensors=tensors, states=states)


def turns_swapped(found: Streamed) -> Graph:
    """All steps share one set of states."""
    return replace(found.step, states=tuple(replace(s, banks=1) for s in found.step.states))


def test_a_shifted_ring_fails() -> None:
    found = streamed(window(SHIFTED, "int8", "dense", ("same",)), StreamOptions(0, 1))
    rows = stream_of(found.window, 3 * found.rows, 3)
    assert wrong(outputs_of(found, rows, ring_shifted(found)), wanted_of(found, rows)) > 0


def test_a_ring_that_stands_fails() -> None:
    found = streamed(window(3, "int8", "dense", ("valid",)), StreamOptions(0, 1))
    rows = stream_of(found.window, 3 * found.rows, 3)
    assert wrong(outputs_of(found, rows, not_shifted(found)), wanted_of(found, rows)) > 0


def test_swapped_turns_fail() -> None:
    found = strided(1)
    rows = stream_of(found.window, 100, 1)
    assert wrong(outputs_of(found, rows, turns_swapped(found)), wanted_of(found, rows)) > 0


def test_a_skipped_reset_fails() -> None:
    found = streamed(window(3, "int8", "dense", ("valid",)), StreamOptions(0, 1))
    rows = stream_of(found.window, 3 * found.rows, 3)
    graph = passes.finalize(found.step)
    first = interpret.run(graph, {graph.inputs[0]: sample_rows.steps(rows, 1, 0)})
    left = {state.before: first[state.after][-1:] for state in graph.states}
    again = interpret.run(graph, {graph.inputs[0]: sample_rows.steps(rows, 1, 0)}, carried=left)
    assert wrong(again[graph.outputs[0]], first[graph.outputs[0]]) > 0


# The commands.


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared is not there")
def test_a_published_network_keeps_its_bits_and_says_what_it_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    samples = tmp_path / "x.npz"
    np.savez(samples, x=np.load(SHARED / "kws_ref_model_real.npz")["x"][:1])
    model = str(SHARED / "kws_ref_model.tflite")
    for stream in ("auto", "0,hop=1", "auto,meaning=stream"):
        assert cli.main(["check", model, "--inputs", str(samples), "--stream", stream, "--isa", "c99"]) == 0
        said = capsys.readouterr()
        assert "0 of" in said.out and "PASS" in said.out
    assert cli.main(["compile", model, "--stream", "auto", "-o", str(tmp_path / "c")]) == 0
    said = capsys.readouterr()
    assert (
        "a step takes 2 of the 49 rows of 'input_1' along axis 0 and 1,105,408 MACs, 2.4 times fewer than the"
        in said.err
    )
    assert "trained without padding along time (valid or causal), a step would take 107," in said.err
    header = (tmp_path / "c" / "kws_ref_model.h").read_text()
    assert "#define KWS_REF_MODEL_ROWS_PER_STEP 2" in header and "#define KWS_REF_MODEL_ROW_SIZE 10" in header


def test_windows_that_come_flat_are_taken_so(tmp_path: Path) -> None:
    """The axes of ones that layers put in front are not the user's."""
    conv = window(1)
    (name,) = conv.inputs
    shape = conv.tensors[name].shape
    flat = replace(conv.tensors[name], name="flat", shape=(prod(shape),))
    image = replace(flat, name="image", shape=(1, *shape))
    reshapes = [Op("in", Reshape(image.shape), ("flat",), ("image",)), Op("out", Reshape(shape), ("image",), (name,))]
    tensors = {**conv.tensors, "flat": flat, "image": image}
    graph = verify(replace(conv, tensors=tensors, ops=(*reshapes, *conv.ops), inputs=("flat",)))
    found = streamed(graph, StreamOptions(0, 1))
    assert found.axis == 0 and found.window.tensors["flat"].shape == shape and found.shape == (prod(shape),)
    windows = np.random.default_rng(1).normal(size=(6, prod(shape))).astype(np.float32)
    np.save(tmp_path / "x.npy", windows)
    taken = stream_samples(found, tmp_path / "x.npy").inputs["flat"]
    assert taken.reshape(-1).tobytes() == windows.tobytes()
    for rows in (windows, windows.reshape(-1, *found.step.tensors["flat"].shape)):
        np.savez(tmp_path / "y.npz", x=rows, y=rows)
        (note,) = stream_samples(found, tmp_path / "y.npz").notes
        assert note.startswith("golden outputs and labels belong to single windows"), "they are not compared"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("time", "--stream time: 'time' is neither auto nor an axis."),
        ("0,hop=0", "--stream 0,hop=0: '0' is not a number of rows from 1 to 4096."),
        ("0,step=1", "--stream 0,step=1: 'step=1' is unknown or repeated."),
        ("0,meaning=rows", "--stream 0,meaning=rows: 'rows' is not a meaning: window or stream."),
        ("auto,hop=1,hop=2", "--stream auto,hop=1,hop=2: 'hop=2' is unknown or repeated."),
    ],
)
def test_what_is_asked_for_wrongly_is_named(text: str, cause: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    step = (
        "Take auto or an axis of the input, counted from 0 without the batch; after commas hop=N, "
        "meaning=window|stream."
    )
    assert str(caught.value) == f"{cause} {step}"


def test_what_cannot_be_streamed_is_named() -> None:
    graph = window(1, "float", "gru")
    with pytest.raises(ModelError, match=r"its input \[\d+, \d+, \d+\] has no axis 5\. Count from 0"):
        streamed(graph, StreamOptions(5))
    with pytest.raises(ModelError, match=r"too few rows along that axis for steps of 500\. Take a hop of less"):
        streamed(graph, StreamOptions(0, 500))
    with pytest.raises(ModelError, match=r"too few rows along that axis for steps of 1\. Take another axis\."):
        streamed(single(Softmax(1), [(1, 3)]), StreamOptions(0))
    with pytest.raises(ModelError, match=r"want steps of 4 rows, or of a multiple.* Take hop=4, or the meaning"):
        streamed(window(49), StreamOptions(0, 2, "stream"))
    with pytest.raises(ModelError, match="it carries states from run to run, so it is a stream already"):
        streamed(streamed(graph, StreamOptions(0)).step, StreamOptions(0))
    with pytest.raises(ModelError, match=r"compute less than the whole window\. Leave --stream out"):
        streamed(single(Softmax(1), [(2, 3)]), StreamOptions(hop=1))


@pytest.mark.oracle
def test_signals_of_channels_by_time_are_found(tmp_path: Path) -> None:
    """As PyTorch's one-dimensional convolutions take them."""
    onnx = pytest.importorskip("onnx")
    made, number = onnx.helper, onnx.TensorProto.FLOAT
    ends = [made.make_tensor_value_info(*end) for end in (("x", number, (1, 2, 40)), ("y", number, (1, 3, 1)))]
    weights = np.random.default_rng(1).normal(size=(3, 2, 5)).astype(np.float32)
    nodes = [made.make_node("Conv", ["x", "w"], ["c"]), made.make_node("GlobalMaxPool", ["c"], ["y"])]
    graph = made.make_graph(nodes, "net", ends[:1], ends[1:], [onnx.numpy_helper.from_array(weights, "w")])
    file = tmp_path / "net.onnx"
    onnx.save(made.make_model(graph, opset_imports=[made.make_opsetid("", 17)], ir_version=8), file)
    flowing = compile_model(Options(file, stream="auto")).graph.stream
    assert flowing is not None and flowing.axis == 1


def test_reasons_name_layers() -> None:
    found = streamed(window(1, "float", "gru"), StreamOptions(0, 1))
    assert "a recurrent layer restarts with every window" in dict(found.reasons).values()


def test_the_options_reach_the_graph() -> None:
    assert parse("auto") == StreamOptions() and parse("1,hop=3") == StreamOptions(1, 3)
    assert parse("0, meaning=stream, hop=2") == StreamOptions(0, 2, "stream")
    with pytest.raises(UsageError, match="a streaming step runs on one core"):
        compile_model(Options(SHARED / "kws_ref_model.tflite", stream="auto", threads=2))
