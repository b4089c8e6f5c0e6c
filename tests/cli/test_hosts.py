"""Every command of the README on a Python without POSIX' own modules, in a folder with a blank and an umlaut, and to an
output that can encode neither; and that text files are read and written as UTF-8 everywhere."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild.cli import main
from nnbuild.features.wav import write_wav
from tests.frontend.keras_files import dense, h5_bytes, input_layer, layer, put, random_arrays, sequential

ROOT = Path(__file__).resolve().parents[2]
RUNNER = Path(__file__).with_name("without_posix.py")
README = [
    shlex.split(line.split("#")[0])[1:]
    for line in re.findall(r"(?m)^nnbuild .*$", (ROOT / "README.md").read_text("utf-8"))
]
SHARES = 3
NO_PORT = {"flash": 3}
"""There is no such port here."""


def over_time() -> tuple[dict[str, Any], dict[str, list[np.ndarray]]]:
    """A small network over twelve rows of forty features."""
    layers = (layer("Conv1D", "conv", filters=4, kernel_size=[3], activation="relu"), layer("Flatten", "flat"))
    weights = {"conv": random_arrays((3, 40, 4), (4,)), "dense": random_arrays((40, 3), (3,))}
    return sequential(input_layer("x", [12, 40]), *layers, dense("dense", 3)), weights


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with all that the README's commands name."""
    folder = tmp_path / "my project ü"
    folder.mkdir()
    model = put(folder / "kws.h5", h5_bytes(*over_time()))
    rng = np.random.default_rng(2)
    from nnbuild.frontend import load

    graph = load(model, "kws")
    x = rng.normal(size=(20, *graph.tensors[graph.inputs[0]].shape)).astype(np.float32)
    for name in ("x", "golden", "samples"):
        np.savez(folder / f"{name}.npz", x=x)
    (folder / "sound.toml").write_text('[features]\nkind = "micro"\n', "utf-8")
    (folder / "day.wav").write_bytes(write_wav(rng.integers(-9000, 9000, 16_000), 16_000))
    (folder / "farm.toml").write_text('[[device]]\nboard = "linux"\n[[device]]\nboard = "stm32"\n', "utf-8")
    for name in ("before", "after"):
        assert main(["report", str(model), "--json", str(folder / f"{name}.json"), "--no-run"]) == 0
    assert main(["build", str(model), "-o", str(folder / "built")]) == 0
    shutil.copy(folder / "built" / "kws.o", folder / "kws.o")
    return folder


@pytest.mark.turns(SHARES)
@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("encoding", ["ascii", pytest.param("cp1252", marks=pytest.mark.full)])
def test_every_command_of_the_readme(encoding: str, share: int, project: Path) -> None:
    mine = README[share::SHARES]
    commands = [[*words, "--no-other-boards"] if words[0] == "evidence" else words for words in mine]
    assert {words[0] for words in README} >= {"inspect", "new", "compile", "build", "run", "check", "report", "diff"}
    (project / "commands.json").write_text(json.dumps(commands), "utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "warn_default_encoding",
            "-W",
            "error::EncodingWarning:nnbuild",
            RUNNER,
            "commands.json",
        ],
        cwd=project,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    said = done.stdout.decode(encoding)
    assert b"Traceback" not in done.stderr and done.returncode == 0, done.stderr.decode(encoding)[-2000:]
    codes = json.loads(said.splitlines()[-1])
    assert [(words, code) for words, code in zip(mine, codes, strict=True) if code != NO_PORT.get(words[0], 0)] == []


@pytest.mark.turns(3)
@pytest.mark.slow
def test_a_name_that_cannot_be_printed_is_no_reason_to_fail(project: Path) -> None:
    (project / "kws.h5").rename(project / "küche.h5")
    for encoding in ("cp1252", "ascii"):
        done = subprocess.run(
            [sys.executable, "-m", "nnbuild", "check", "küche.h5", "--name", "kueche"],
            cwd=project,
            env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.turns(3)
@pytest.mark.slow
def test_work_that_takes_long_says_what_it_does_in_a_pipe(tmp_path: Path) -> None:
    """One plain line for each kind of work, and nothing where that is not wanted."""
    put(tmp_path / "net.h5", h5_bytes(*over_time()))
    start = "import nnbuild.cli as cli; cli.PATIENCE = 0; raise SystemExit(cli.main())"
    for quiet in ("", "1"):
        done = subprocess.run(
            [sys.executable, "-c", start, "check", "net.h5"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "NNBUILD_QUIET": quiet},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stderr.splitlines() if not line.startswith("nnbuild: note:")]
        kinds = [line.split(" ")[1] for line in lines]
        wanted = ["reading", "choosing", "printing", "compiling", "linking", "auditing", "running", "computing"]
        assert [kind for kind in wanted if kind in kinds] == ([] if quiet else wanted), done.stderr
        assert all(line.startswith("nnbuild: ") for line in lines)
        assert not {each for each in done.stderr if ord(each) < 32} - {"\n"}
