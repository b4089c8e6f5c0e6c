"""The examples that listen hear what is in their recordings, on this PC and on a board."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.cli import main
from nnbuild.features.config import recipe_of
from nnbuild.features.wav import read_wav, write_wav
from tests.support.running import ROOT

KEYWORD, VIBRATION = ROOT / "examples" / "keyword", ROOT / "examples" / "vibration"


def said(*words: object) -> dict[str, Any]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([str(word) for word in words]) == 0
    text = out.getvalue()
    found: dict[str, Any] = json.loads(text[text.index("{") :])
    return found


def words_of(folder: Path, model: str, settings: str) -> list[object]:
    return [folder / model, "--quantize", "int8", "--calibrate", folder / "recordings", "--features", folder / settings]


def test_keywords_are_heard() -> None:
    words = words_of(KEYWORD, "words.h5", "sound.toml")
    heard = said("listen", *words, "--labels", KEYWORD / "labels.txt", "--wav", KEYWORD / "evening.wav", "--json")
    assert [event["label"] for event in heard["events"]] == ["yes-like", "no-like", "no-like", "yes-like"]


def test_a_bearing_is_heard_once_it_knocks() -> None:
    words = words_of(VIBRATION, "motor.h5", "motor.toml")
    heard = said("listen", *words, "--wav", VIBRATION / "day.wav", "--json")
    assert heard["events"]
    assert min(event["at"] for event in heard["events"]) > 5.0


@pytest.mark.turns(4)
@pytest.mark.emulator
@pytest.mark.parametrize(
    ("folder", "model", "settings", "sound"),
    [(KEYWORD, "words.h5", "sound.toml", "evening.wav"), (VIBRATION, "motor.h5", "motor.toml", "day.wav")],
)
def test_examples_on_a_board(folder: Path, model: str, settings: str, sound: str, tmp_path: Path) -> None:
    """Two seconds of the recording."""
    framing = recipe_of(folder / settings).front_end.framing
    part = np.asarray(read_wav(folder / sound, framing))[: 2 * framing.rate]
    (tmp_path / "part.wav").write_bytes(write_wav(part, framing.rate))
    words = words_of(folder, model, settings)
    report = said("check", *words, "--board", "stm32", "--wav", tmp_path / "part.wav", "--json")
    assert report["verdict"] == "PASS"


@pytest.mark.slow
def test_keywords_are_heard_in_a_stream(tmp_path: Path) -> None:
    """The same events from only the new rows, in a program."""
    framing = recipe_of(KEYWORD / "sound.toml").front_end.framing
    part = np.asarray(read_wav(KEYWORD / "evening.wav", framing))[: 2 * framing.rate]
    (tmp_path / "part.wav").write_bytes(write_wav(part, framing.rate))
    words = words_of(KEYWORD, "words.h5", "sound.toml")
    report = said("check", *words, "--stream", "auto,hop=2", "--wav", tmp_path / "part.wav", "--json")
    assert report["verdict"] == "PASS"
    assert len(report["events"]) == 1
