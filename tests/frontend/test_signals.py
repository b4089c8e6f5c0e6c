"""Front ends that are in the model file: the same features as the microfrontend's, from the tables of the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import cli, passes
from nnbuild.base.errors import ModelError
from nnbuild.features.micro import frames, rows
from nnbuild.features.micro_frontend import MicroFrontEnd
from nnbuild.features.micro_tables import Micro, micro_tables
from nnbuild.features.wav import made_up
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from tests.frontend.tflite_files import File, O, to_bytes
from tests.support.compiled import run_graph
from tests.support.signal_files import Front, flexible, preprocessor

TABLES = micro_tables(Micro(step_ms=20))
SOUNDS = list(made_up(MicroFrontEnd(Micro(step_ms=20)).framing, 1.0))
LEAST = np.full(2000, -32768)
"""Which 16 bits know no size of."""


def imported(file: File, folder: Path) -> Graph:
    path = folder / "front.tflite"
    path.write_bytes(to_bytes(file))
    return passes.run(load(path))


def in_frames(sound: Array) -> Array:
    return frames(np.asarray(sound, np.int64), len(TABLES.window), 320).astype(np.int16)


def test_features_are_the_microfrontends(tmp_path: Path) -> None:
    """All sounds behind each other: the estimate of the noise goes on."""
    sound = np.concatenate(SOUNDS)
    graph = imported(preprocessor(TABLES, whole=False), tmp_path)
    found = interpret.run(graph, {graph.inputs[0]: in_frames(sound)})
    wanted, _ = rows(TABLES, sound, 320)
    np.testing.assert_array_equal(found[graph.outputs[0]], wanted)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["-O1", "-fsanitize=undefined", "-fno-sanitize-recover"], ["-O2"]])
def test_c_computes_them(flags: list[str], tmp_path: Path) -> None:
    graph = imported(preprocessor(TABLES), tmp_path)
    given = np.concatenate([in_frames(sound[:4800]) for sound in [*SOUNDS, LEAST]])
    wanted = interpret.run(graph, {graph.inputs[0]: given})
    got = run_graph(graph, {graph.inputs[0]: given}, tmp_path, flags=flags)
    np.testing.assert_array_equal(got[graph.outputs[0]], wanted[graph.outputs[0]])
    assert len(np.unique(got[graph.outputs[0]])) > 50


def test_bytes_are_those_of_programs_in_the_field(tmp_path: Path) -> None:
    sound = SOUNDS[0][:16000]
    graph = imported(preprocessor(TABLES), tmp_path)
    found = interpret.run(graph, {graph.inputs[0]: in_frames(sound)})[graph.outputs[0]]
    wanted, _ = rows(TABLES, sound, 320)
    np.testing.assert_array_equal(found, np.clip((wanted * 256 + 333) // 666 - 128, -128, 127))


@pytest.mark.turns(3)
@pytest.mark.emulator
def test_on_a_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "front.tflite").write_bytes(to_bytes(preprocessor(TABLES)))
    np.savez(tmp_path / "x.npz", x=in_frames(SOUNDS[0][:8000]))
    words = ["check", tmp_path / "front.tflite", "--inputs", tmp_path / "x.npz", "--board", "stm32"]
    assert cli.main([str(word) for word in words]) == 0
    assert "PASS" in capsys.readouterr().out


# What cannot be.


def changed(place: int, **changes: object) -> File:
    return preprocessor(TABLES).with_operator(place, **changes)


def place_of(kind: str) -> int:
    return next(i for i, o in enumerate(preprocessor(TABLES).operators) if kind in (o.custom, o.kind))


def compared() -> File:
    front = Front()
    x = front.tensor("x", (8,), "uint32")
    out = front.tensor("y", (8,), "bool")
    return replace(front.file([x], [out]), operators=[O("GREATER", [x, x], [out], "GreaterOptions")])


def shorter_gains() -> File:
    file = preprocessor(TABLES)
    index = file.operators[place_of("SignalPCAN")].inputs[2]
    data = np.asarray(file.tensors[index].data)[:100]
    return file.with_tensor(index, data=data, shape=data.shape)


def wide_bank() -> File:
    file = preprocessor(TABLES)
    index = file.operators[place_of("SignalFilterBank")].inputs[5]
    return file.with_tensor(index, data=np.full(41, 300, np.int16))


REFUSED = {
    "no options": (
        changed(place_of("SignalWindow"), custom_options=b""),
        "its options are not a flexbuffer of numbers",
    ),
    "noise": (changed(place_of("SignalWindow"), custom_options=b"\xff" * 40), "its options are not a flexbuffer"),
    "another option": (changed(0, custom_options=flexible(shifts=12)), "its option 'shift' is missing"),
    "a large shift": (changed(0, custom_options=flexible(shift=40)), "its option 'shift' is 40, not from 0 to 31"),
    "odd points": (
        changed(place_of("SignalRfft"), custom_options=flexible(T=7, fft_length=500)),
        "480 samples are transformed by 500 points",
    ),
    "bins": (
        changed(place_of("SignalEnergy"), custom_options=flexible(start_index=3, end_index=400)),
        "there are no bins 3 to 400",
    ),
    "gains": (shorter_gains(), "its table has 100 gains, not 125"),
    "a wide bank": (wide_bank(), "its tables index beyond its bins or weights"),
    "an unknown step": (changed(0, custom="SignalNone"), "it is not a standard TFLite operator"),
    "sound again": (changed(0, custom="SignalIrfft"), "SignalFilterBankLog. Cut the file before it, where the network"),
    "gathered samples": (changed(0, custom="SignalFramer"), "Cut the file after it: the model then takes whole frames"),
    "a comparison": (compared(), "is of type uint32, which nnbuild supports only in signal operators. Cast it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_named(name: str, tmp_path: Path) -> None:
    file, cause = REFUSED[name]
    with pytest.raises(ModelError) as caught:
        imported(file, tmp_path)
    assert cause in str(caught.value)
