"""From samples to events through the command line, and the smoothing of answers."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

from nnbuild.cli import main
from nnbuild.features.config import recipe_of
from nnbuild.features.network_binding import Hearing, hearing_of
from nnbuild.features.wav import made_up, read_wav, write_wav
from nnbuild.frontend import load
from tests.support.running import Done

SETTINGS = """\
[features]
kind = "micro"

[listen]
mean = 3
cutoff = 0.4
cool_off = 5
"""


def nnbuild(*words: object) -> Done:
    """In this process: a new one takes longer than all the rest."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = main([str(word) for word in words])
    return Done(status, said.getvalue())


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network over 12 rows, whose answers move with its input."""
    chance = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("hearing") / "spot.h5"
    layers = [
        {
            "class_name": "InputLayer",
            "config": {"batch_input_shape": [None, 12, 40], "dtype": "float32", "name": "rows"},
        },
        {"class_name": "Flatten", "config": {"name": "flatten"}},
        {"class_name": "Dense", "config": {"name": "dense", "units": 3, "activation": "softmax", "use_bias": True}},
    ]
    with h5py.File(path, "w") as file:
        config = {"class_name": "Sequential", "config": {"name": "spot", "layers": layers}}
        file.attrs["model_config"] = json.dumps(config)
        file.attrs["keras_version"] = "2.15.0"
        weights = file.create_group("model_weights")
        weights.attrs["layer_names"] = [b"flatten", b"dense"]
        weights.create_group("flatten").attrs["weight_names"] = np.array([], "S1")
        dense = weights.create_group("dense")
        dense.attrs["weight_names"] = [b"dense/kernel:0", b"dense/bias:0"]
        dense["dense/kernel:0"] = chance.normal(size=(480, 3)).astype(np.float32) * 0.05
        dense["dense/bias:0"] = np.zeros(3, np.float32)
    return path


def settings(folder: Path, text: str = SETTINGS) -> Path:
    path = folder / "features.toml"
    path.write_text(text)
    return path


def hearing(folder: Path, model: Path, text: str = SETTINGS) -> Hearing:
    return hearing_of(recipe_of(settings(folder, text)), load(model, "spot"))


@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["float", "int8", pytest.param("int16", marks=pytest.mark.full)])
def test_check_hears_every_step(quantize: str, model: Path, tmp_path: Path) -> None:
    done = nnbuild("check", model, "--features", settings(tmp_path), "--quantize", quantize)
    assert done.status == 0, done.text
    assert re.search(r"features +\d[\d,]* values  equal", done.text)
    assert re.search(r"features\.noise +\d[\d,]* values  equal", done.text)
    assert re.search(r"events +\d[\d,]* values  equal", done.text)


@pytest.mark.turns(4)
@pytest.mark.emulator
def test_check_on_a_board(model: Path, tmp_path: Path) -> None:
    done = nnbuild("check", model, "--features", settings(tmp_path), "--quantize", "int8", "--board", "mps2-an386")
    assert done.status == 0, done.text
    found = re.search(r"max ([\d,]+) instructions a step", done.text)
    assert found is not None
    assert int(found[1].replace(",", "")) < 60_000


@pytest.mark.slow
def test_recordings_calibrate_and_are_listened_to(model: Path, tmp_path: Path) -> None:
    features = settings(tmp_path)
    folder = tmp_path / "sound"
    folder.mkdir()
    framing = recipe_of(features).front_end.framing
    for index, samples in enumerate(made_up(framing, 0.5)):
        (folder / f"{index}.wav").write_bytes(write_wav(samples, framing.rate))
    words = (model, "--features", features, "--quantize", "int8", "--calibrate", folder)
    done = nnbuild("check", *words, "--wav", folder, "--json")
    assert done.status == 0, done.text
    assert "random" not in done.text
    told = json.loads(done.text[done.text.index("{") :])
    heard = nnbuild("listen", *words, "--wav", folder, "--json")
    assert json.loads(heard.text[heard.text.index("{") :])["events"] == told["events"]


def test_events_are_smoothed(model: Path, tmp_path: Path) -> None:
    text = SETTINGS.replace("mean = 3", "mean = 2\nclasses = [1]\nconsecutive = 2").replace("0.4", "0.5")
    mine = hearing(tmp_path, model, text)
    outputs = np.zeros((20, 3), np.float32)
    outputs[2:, 1] = 1.0
    events = mine.events(outputs)
    assert np.flatnonzero(events[:, 0] >= 0).tolist() == [3, 9, 15], "two means in a row, then five steps of silence"
    assert events[3].tolist() == [1, 255]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[features]\nkind = "mikro"',
            "features.toml:2: [features] kind: kind: 'mikro' is not one of them. Did you mean micro?",
        ),
        (
            '[features]\nkind = "micro"\nchanels = 3',
            "features.toml:3: [features] chanels: there is no such setting. Did",
        ),
        (
            '[features]\nkind = "micro"\nchannels = 1',
            "features.toml:3: [features] channels: 1 is not between 2 and 256.",
        ),
        ('[features]\nkind = "micro"\nlow = "x"', "features.toml:3: [features] low: 'x' is not a number."),
        (
            '[features]\nkind = "micro"\n[listen]\nmean = 0',
            "features.toml:4: [listen] mean: 0 is not between 1 and 256.",
        ),
        (
            '[features]\nkind = "micro"\n[listen]\nhop = 0',
            "features.toml:4: [listen] hop: 0 is not between 1 and 10000.",
        ),
        (
            '[features]\nkind = "log_mel"\nminimum = 5\nmaximum = -5',
            "features.toml:3: [features] minimum: 5 is not below maximum = -5: every feature would be the same.",
        ),
        ('[features]\nkind = "log_mel"\nstep = 0', "[features] step: 0 is not between 1 and 1048576."),
        ('[features]\nkind = "micro"\nchannels = 32', "its rows have 32 values, and the model's input has the shape"),
        ('[features]\nkind = "micro"\n[listen]\nclasses = [3]', "[listen] classes: 3 is not a class of the model"),
        (
            '[features]\nkind = "log_mel"\ntop_db = 80',
            "features.toml:3: [features] top_db: it needs the whole clip, and a stream has no end. The largest value",
        ),
        ('[features]\nkind = "mfcc"\nfft = 500', "features.toml:3: [features] fft: 500 is not a power of two."),
        (
            '[features]\nkind = "log_mel"\nshape = "han"',
            "features.toml:3: [features] shape: shape: 'han' is not one of",
        ),
        ('[features]\nkind = "log_mel"\nmore = 0.0', "[features] logarithm: silence has none. Set least = 1e-10"),
        ('[features]\nkind = "log_mel"\nweights = "a.npy"', "features.toml:3: [features] weights: 'a.npy' cannot be"),
        ("[feature]", "it has no table [features]."),
        ("[features", "it is not valid TOML"),
    ],
)
def test_wrong_settings_are_told_by_line(text: str, said: str, model: Path, tmp_path: Path) -> None:
    done = nnbuild("compile", model, "--features", settings(tmp_path, text), "-o", tmp_path / "out")
    assert done.status == 2
    assert said in done.text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words",
    [("mutate",), ("evidence", "-o", "pack"), ("run", "--inputs", "x.npz", "--outputs", "y.npz")],
    ids=lambda words: words[0],
)
def test_commands_on_the_networks_own_inputs_refuse_a_front_end(
    words: tuple[str, ...], model: Path, tmp_path: Path
) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 9), np.float32))
    own = [tmp_path / word if word.endswith((".npz", "pack")) else word for word in words]
    done = nnbuild(*own, model, "--features", settings(tmp_path))
    assert done.status == 2
    assert (
        "--features: a program with a front end takes sound, not samples of the network's inputs. Leave it" in done.text
    )


@pytest.mark.slow
def test_sound_needs_a_front_end(model: Path, tmp_path: Path) -> None:
    done = nnbuild("check", model, "--wav", tmp_path)
    assert done.status == 2
    assert "--wav: the model has no front end. Give it with --features FILE.toml" in done.text
    done = nnbuild("check", model, "--features", settings(tmp_path), "--wav", tmp_path)
    assert "there is no .wav file in this folder" in done.text
    (tmp_path / "short.wav").write_bytes(write_wav(np.zeros(100, np.int16), 16000))
    for command in ("check", "listen"):
        done = nnbuild(command, model, "--features", settings(tmp_path), "--wav", tmp_path / "short.wav")
        assert done.status == 2
        assert (
            "--wav: no sound reaches the length that the network needs, 2,240 samples. Give longer ones." in done.text
        )


def test_the_example_of_the_documentation_compiles(model: Path, tmp_path: Path) -> None:
    """The C that docs/sound.md and docs/streaming.md show: each layer alone, and all together."""
    shown = (Path(__file__).parents[2] / "docs" / "sound.md").read_text()
    blocks = re.findall(r"```c\n(.*?)```", shown, re.DOTALL)
    words = ("compile", model, "--features", settings(tmp_path), "--name", "wake", "-o", tmp_path)
    assert nnbuild(*words).status == 0
    for number, block in enumerate(blocks):
        (tmp_path / f"shown{number}.c").write_text(block)
        done = subprocess.run(
            ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"shown{number}.c"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    assert len(blocks) == 2


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "call"),
    [
        ("features", "{0}_features f; {0}_features_init(&f);"),
        ("listen", "{0}_spotter s; {0}_spotter_init(&s);"),
        ("listen", "{0}_listener l; {0}_listen_init(&l);"),
    ],
)
@pytest.mark.parametrize(("old", "new"), [("mean = 3", "mean = 4"), ('"micro"', '"micro"\nlow = 100.0')])
def test_a_program_links_only_with_the_code_of_its_headers(
    header: str, call: str, old: str, new: str, model: Path, tmp_path: Path
) -> None:
    """A program that was not compiled again after the front end or the detection of events changed."""
    for name, text in {"one": SETTINGS, "other": SETTINGS.replace(old, new)}.items():
        (tmp_path / name).mkdir()
        words = ("--features", settings(tmp_path / name, text), "--name", "wake", "-o", tmp_path / name)
        assert nnbuild("compile", model, *words).status == 0
    main = f'#include "wake_{header}.h"\nint main(void) {{ static {call.format("wake")} return 0; }}\n'
    (tmp_path / "main.c").write_text(main)
    for name in ("one", "other"):
        sources = sorted((tmp_path / name).glob("*.c"))
        command = ["gcc", "-O1", "-I", tmp_path / "one", tmp_path / "main.c", *sources, "-o", tmp_path / "program"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        same = name == "one" or (header == "features" and "mean" in old)
        assert (done.returncode == 0) == same, done.stderr
        assert same or re.search(r"undefined reference to `wake_\w+_init_[0-9a-f]{8}'", done.stderr)


def test_wav_files_of_many_forms(model: Path, tmp_path: Path) -> None:
    framing = hearing(tmp_path, model).front_end.framing
    samples = np.array([0, 1, -1, 32767, -32768, 300], np.int16)
    path = tmp_path / "a.wav"
    path.write_bytes(write_wav(samples, 16000))
    np.testing.assert_array_equal(read_wav(path, framing), samples)
    path.write_bytes(write_wav(np.stack([samples, samples[::-1]], axis=1), 16000))
    np.testing.assert_array_equal(read_wav(path, framing), samples)
    path.write_bytes(write_wav(samples, 8000))
    with pytest.raises(Exception, match="8000 samples a second, and the front end takes 16000"):
        read_wav(path, framing)
    path.write_bytes(b"RIFF1234WAVE")
    with pytest.raises(Exception, match="contains no samples"):
        read_wav(path, framing)


@pytest.mark.emulator
def test_a_measured_step_includes_the_network(model: Path, tmp_path: Path) -> None:
    """Which runs only when the front end has given it enough rows."""
    (tmp_path / "sound.toml").write_text(SETTINGS)
    said = nnbuild("profile", model, "--features", tmp_path / "sound.toml", "--board", "stm32")
    assert said.status == 0, said.text
    (layers,) = re.findall(r"^total .*?([\d,]+) +[\d.]+$", said.text, re.MULTILINE)
    (run,) = re.findall(r"^one run +([\d,]+) instructions", said.text, re.MULTILINE)
    whole, mean = (int(text.replace(",", "")) for text in (layers, run))
    assert 0.95 * whole < mean < 1.05 * whole
