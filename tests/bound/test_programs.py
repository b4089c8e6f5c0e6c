"""Whole models: the bound is above every run that is seen, and close to the longest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.bound import Inputs
from benchmarks.nets import compiled_for
from benchmarks.replay import INPUT, Replay
from nnbuild.audit.code import Code
from nnbuild.audit.source_locations import Locator
from nnbuild.backends.run_bound import run_bound
from nnbuild.base.paths import EXAMPLE
from nnbuild.board.tables import find
from nnbuild.jobs.job import Place, build_program
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.ops.base import Attributes
from nnbuild.ops.binary import Binary
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.pool2d import Pool2D
from tests.bound.pinned import Pin, branches, form, sequences
from tests.frontend.tflite_files import File, to_bytes
from tests.support.graphs import single
from tests.support.quantized import quantized
from tests.support.streaming_files import Net


def strided_window() -> File:
    """Whose parts move on every other row, and whose rings hold many rows."""
    net = Net(5)
    x = net.tensor("input", (1, 40, 8))
    out = net.conv(net.reshape(x, (1, 40, 1, 8)), 32, rows=4, stride=2)
    out = net.conv(net.depthwise(out, 9), 32)
    return net.file([x], [net.end(net.depthwise(out, 11))])


@pytest.mark.turns(4)
@pytest.mark.emulator
@pytest.mark.parametrize("board", ["mps2-an386", "microbit"])
def test_a_model_keeps_to_its_bound(board: str, tmp_path: Path) -> None:
    compiled = compile_model(Options(EXAMPLE / "mnist.h5", board, "int8"))
    program = build_program(compiled, Place(tmp_path))
    bound = run_bound(find(board), program)
    replay = Replay(program)
    replay.call("nn_target_init")
    ((address, size),) = replay.regions(INPUT)
    inputs, seen = Inputs([size], is_float=False, seed=5), []
    for _ in range(30):
        contents = inputs.next()
        replay.cpu.mem_write(address, contents[0])
        seen.append(replay.count("nn_target_run"))
        inputs.best = max(inputs.best, (seen[-1], contents), key=lambda each: each[0])
    assert max(seen) <= bound.instructions <= 1.01 * max(seen)


def test_float_inputs_are_converted_without_floats(tmp_path: Path) -> None:
    compiled = compile_model(Options(EXAMPLE / "mnist.h5", "microbit", "int8", io="float"))
    program = build_program(compiled, Place(tmp_path))
    assert run_bound(find("microbit"), program).instructions > 0
    assert b"__aeabi_fdiv" not in program.read_bytes()


@pytest.mark.full
@pytest.mark.emulator
def test_zeros_that_are_left_out_keep_to_the_bound(tmp_path: Path) -> None:
    """How many inputs are zero a run decides; the bound is that of none."""
    sounds = EXAMPLE.parent / "machine-sounds"
    board, calibration = "microbit", sounds / "calibration.npz"
    options = Options(next(sounds.glob("*.h5")), board, "int8", calibrate=calibration, prune="0.9")
    program = build_program(compile_model(options), Place(tmp_path))
    bound = run_bound(find(board), program)
    replay, chance = Replay(program), np.random.default_rng(1)
    replay.call("nn_target_init")
    ((address, size),) = replay.regions(INPUT)
    seen = []
    for spread in (0, 1, 20, 127):
        values = np.clip(np.round(spread * chance.normal(size=size)), -128, 127).astype(np.int8)
        replay.cpu.mem_write(address, values.tobytes())
        seen.append(replay.count("nn_target_run"))
    assert min(seen) < max(seen) <= bound.instructions


@pytest.mark.emulator
@pytest.mark.parametrize("form", ["int8", "int16"])
def test_averages_at_edges_divide_without_the_librarys_loop(form: str, tmp_path: Path) -> None:
    """On a Cortex-M0, whose library divides in a loop that depends on the numbers."""
    pool = Pool2D("average", (3, 3), (1, 1), ((1, 1), (1, 1)))
    graph = quantized(single(pool, [(6, 5, 3)]), form, 1, same_scale=True, powers=(-5.0, -5.0))
    program = build_program(compiled_for(graph, "microbit"), Place(tmp_path))
    assert run_bound(find("microbit"), program).instructions < 20_000


@pytest.mark.emulator
@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize(
    ("attributes", "shapes"), [(Binary("divide"), [(30,), (30,)]), (LayerNorm(1), [(3, 7)])], ids=["quotients", "norm"]
)
def test_divisions_without_the_librarys_loop(
    attributes: Attributes, shapes: list[tuple[int, ...]], form: str, tmp_path: Path
) -> None:
    graph = quantized(single(attributes, shapes), form, 1, powers=(-5.0, -5.0))
    program = build_program(compiled_for(graph, "microbit"), Place(tmp_path))
    bound, replay = run_bound(find("microbit"), program), Replay(program)
    replay.call("nn_target_init")
    chance, seen = np.random.default_rng(1), []
    for _ in range(20):
        for address, size in replay.regions(INPUT):
            replay.cpu.mem_write(address, chance.integers(0, 256, size, np.uint8).tobytes())
        seen.append(replay.count("nn_target_run"))
    assert max(seen) <= bound.instructions <= 1.8 * max(seen)


@pytest.mark.emulator
@pytest.mark.parametrize("rows", ["1", "2"], ids=["sets of states", "spare rows"])
def test_a_stream_keeps_to_its_bound(rows: str, tmp_path: Path) -> None:
    """Runs take turns, the longest of them counts: of sets of states, or of places of rings with spare rows."""
    pytest.importorskip("tflite")
    (tmp_path / "net.tflite").write_bytes(to_bytes(strided_window()))
    compiled = compile_model(Options(tmp_path / "net.tflite", "mps2-an386", stream=f"0,hop={rows}"))
    program = build_program(compiled, Place(tmp_path))
    bound = run_bound(find("mps2-an386"), program)
    assert bound.turns == compiled.plan.banks > 1
    replay, chance = Replay(program), np.random.default_rng(0)
    replay.call("nn_target_init")
    ((address, size),) = replay.regions(INPUT)
    seen = []
    for _ in range(5 * bound.turns):
        replay.cpu.mem_write(address, chance.integers(0, 256, size, np.uint8).tobytes())
        seen.append(replay.count("nn_target_run"))
    assert max(seen) <= bound.instructions <= 1.01 * max(seen)
    assert (min(seen) < max(seen)) == (rows == "2")


@pytest.mark.turns(3)
@pytest.mark.emulator
@pytest.mark.parametrize(("board", "quantize"), [("mps2-an386", "int8"), ("mps2-an386", "float"), ("microbit", "int8")])
def test_every_form_of_instruction_of_a_program_is_pinned(board: str, quantize: str, tmp_path: Path) -> None:
    compiled = compile_model(Options(EXAMPLE / "mnist.h5", board, quantize))
    image = Replay(build_program(compiled, Place(tmp_path))).image
    code, found = Code(Locator(image.file)), {}
    for extent in code.locator.functions:
        for chunk in code.chunks_of(extent) if extent.symbol.name.startswith("mnist_") else ():
            for sequence in sequences(image, chunk.start, chunk.start + len(chunk.code)):
                if not branches(sequence):
                    found.setdefault(form(sequence), sequence)
    assert len(found) > 40
    context = max(image.writable, key=lambda span: span[1] - span[0])[0] + 2048
    pin = Pin(image, context)
    for sequence in found.values():
        pin.check(sequence, 6)
