"""Steps on an emulated Cortex-M4: rings of a file, and windows that became streams, in the same bits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import cli
from nnbuild.frontend import load
from tests.frontend.test_variables import NETS
from tests.frontend.tflite_files import to_bytes
from tests.support.streaming_files import Net

pytestmark = pytest.mark.emulator


def small_window(file: Path) -> None:
    net = Net(5)
    x = net.tensor("input", (1, 12, 8))
    out = net.reshape(x, (1, 12, 1, 8))
    for rows, filters in ((3, 12), (5, 8)):
        out = net.conv(net.depthwise(out, rows), filters)
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
