"""Names out of a model file steer nothing: neither a terminal, nor C, nor a page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nnbuild.base.errors import UsageError
from nnbuild.base.sanitize import allow_unencodable, escape_name, printable
from nnbuild.frontend import load
from tests.cli.conftest import Nnbuild
from tests.frontend.keras_files import dense, h5_bytes, input_layer, put, random_arrays, sequential

pytestmark = pytest.mark.slow

ESCAPE, RIGHT_TO_LEFT, QUOTED, LINE = "\x1b[2Jgone", "\u202etxet", "\"'`\\", "a\nPASS: 9 samples\u2028\x85"
NAMES = [ESCAPE, RIGHT_TO_LEFT, QUOTED, LINE]
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]|PASS: 9 samples$")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    config = sequential(input_layer("x\u202e", [3]), *(dense(name, 3) for name in NAMES))
    return put(tmp_path / "net.h5", h5_bytes(config, {name: random_arrays((3, 3), (3,)) for name in NAMES}))


def test_names_that_differ_stay_different() -> None:
    assert [escape_name(name) for name in NAMES] == [
        "\\x1b[2Jgone", "\\u202etxet", "\\x22\\x27\\x60\\x5c", "a\\x0aPASS: 9 samples\\u2028\\x85"]  # fmt: skip
    assert escape_name("conv_1/Größe 2") == "conv_1/Größe 2"
    assert escape_name("\\x1b") != escape_name("\x1b") and escape_name("\U000e0001") == "\\U000e0001"
    assert printable("two\nlines 'and' \x1b") == "two\nlines 'and' \\x1b"
    assert str(UsageError("a\x1b", "b.", "c.")) == "a\\x1b: b. c."


def test_the_graph_has_shown_names_only(hostile: Path) -> None:
    graph = load(hostile)
    assert [op.layer for op in graph.ops if op.kind == "dense"] == [escape_name(name) for name in NAMES]
    assert not any(RAW.search(name) or "'" in name for name in graph.tensors)
    assert graph.inputs == ("x\\u202e",)


@pytest.mark.parametrize(
    "words",
    [["inspect"], ["check", "--layers"], ["quantize"], ["check", "--keep", "\x1b=float", "--quantize", "int8"]],
    ids=" ".join,
)  # fmt: skip
def test_nothing_raw_reaches_the_terminal(nnbuild: Nnbuild, hostile: Path, words: list[str]) -> None:
    said = nnbuild(words[0], hostile, *words[1:])
    assert said.status == (2 if "--keep" in words else 0), said.err
    lines = (said.out + said.err).split("\n")
    assert [line for line in lines if RAW.search(line)] == []
    assert len(lines) > 1


def test_nothing_raw_reaches_c_or_pages(nnbuild: Nnbuild, hostile: Path, tmp_path: Path) -> None:
    assert nnbuild("compile", hostile, "-o", tmp_path / "c").status == 0
    page = tmp_path / "page.html"
    assert nnbuild("report", hostile, "-o", page, "--json", tmp_path / "facts.json").status == 0
    for path in (page, tmp_path / "facts.json", *(tmp_path / "c").iterdir()):
        text = path.read_text()
        assert [line for line in text.split("\n") if RAW.search(line)] == [], path.name
    text = page.read_text()
    assert "\\x1b[2Jgone" in text and QUOTED not in text


def test_what_an_output_cannot_say_changes_no_exit_code(hostile: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    for words, status in ((["check", "--min-cosine", "2"], 1), (["inspect"], 0)):
        command = [sys.executable, "-m", "nnbuild", words[0], str(hostile), *words[1:]]
        done = subprocess.run(command, env=environment, capture_output=True)
        assert done.returncode == status, done.stderr
        assert b"Traceback" not in done.stderr


def test_streams_that_are_no_files_are_left_alone() -> None:
    allow_unencodable([object(), None])
