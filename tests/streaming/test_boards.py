"""Steps on an emulated Cortex-M4: rings of a file, and windows that became streams, in the same bits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import cli
from nnbuild.frontend import load
from nnbuild.jobs.job import place, run_job
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.model.samples import SampleSet
from tests.frontend.test_variables import LONG, NETS, by_interpreter, rows, with_states
from tests.frontend.tflite_files import File, to_bytes
from tests.support.streaming_files import Net, older_wake_word, wake_word

pytestmark = pytest.mark.emulator
AGAIN = 20
"""Steps of which each has a new interpreter."""


def small_window(file: Path) -> None:
    net = Net(5)
    x = net.tensor("input", (1, 12, 8))
    out = net.reshape(x, (1, 12, 1, 8))
    for size, filters in ((3, 12), (5, 8)):
        out = net.conv(net.depthwise(out, size), filters)
    file.write_bytes(to_bytes(net.file([x], [net.end(out)])))


def test_rings_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, samples = tmp_path / "wake.tflite", tmp_path / "x.npz"
    file.write_bytes(to_bytes(NETS["mixed"]()))
    shape = load(file).tensors[load(file).inputs[0]].shape
    np.savez(samples, x=np.random.default_rng(0).normal(0, 5, (150, *shape)).astype(np.float32))
    assert cli.main(["check", str(file), "--inputs", str(samples), "--board", "stm32"]) == 0
    assert "0 of 150 integers differ" in capsys.readouterr().out


def test_windows_as_a_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, said = tmp_path / "window.tflite", tmp_path / "said.json"
    small_window(file)
    assert cli.main(["check", str(file), "--stream", "auto", "--board", "stm32"]) == 0
    assert "PASS" in capsys.readouterr().out
    compiled = ["compile", str(file), "--stream", "auto", "-o", str(tmp_path / "c"), "--json", str(said)]
    assert cli.main(compiled) == 0
    stream = json.loads(said.read_text())["stream"]
    assert stream["rows_per_step"] == 1 and stream["warm_up_steps"] == 12
    assert stream["macs"] * 4 < stream["window_macs"] and stream["macs_without_padding"] == stream["macs"]


@pytest.mark.oracle
@pytest.mark.full
@pytest.mark.parametrize("build", [wake_word, older_wake_word])
def test_rings_of_a_file_over_many_steps(build: Callable[[], File], tmp_path: Path) -> None:
    """Outputs and states of every step are those of TFLite's reference kernels; a reset is a new interpreter."""
    file, model = with_states(build()), tmp_path / "wake.tflite"
    model.write_bytes(to_bytes(file))
    compiled = compile_model(Options(model, board="stm32"))
    steps = rows(compiled.graph, LONG)
    wanted = by_interpreter(file, steps)
    with place(None) as where:
        found = run_job(compiled, SampleSet(steps), where)
        first = {name: x[:AGAIN] for name, x in steps.items()}
        anew = run_job(compiled, SampleSet(first), where, reset_each=True)
    for got, right in zip(found.raw, wanted, strict=True):
        np.testing.assert_array_equal(got.reshape(right.shape), right)
    each = [by_interpreter(file, {name: x[[i]] for name, x in first.items()}) for i in range(AGAIN)]
    for got, right in zip(anew.raw, map(np.concatenate, zip(*each, strict=True)), strict=True):
        np.testing.assert_array_equal(got.reshape(right.shape), right)
