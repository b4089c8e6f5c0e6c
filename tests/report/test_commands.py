"""nnbuild report and nnbuild diff, as typed."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild import cli
from nnbuild.cli.arguments import add_build_options, options_of
from nnbuild.cli.places import add_place
from nnbuild.jobs.command_line import arguments_of
from nnbuild.jobs.options import Options
from nnbuild.jobs.report_data import near, option_words
from nnbuild.report.facts import as_object, from_object
from nnbuild.report.picture import Label, Picture
from nnbuild.report.png import draw
from tests.cli.conftest import Nnbuild, model, nnbuild
from tests.report import samples

__all__ = ["model", "nnbuild"]  # fixtures


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_report_has_a_page_a_file_and_a_verdict(nnbuild: Nnbuild, model: Path, here: Path) -> None:
    said = nnbuild("report", model, "--json", "small.json", "-o", "small.html")
    assert (said.status, said.out) == (0, "small.html, small.json: small on linux, float; check: PASS\n")
    facts = from_object(json.loads(Path("small.json").read_bytes()))
    assert [(row.name, row.op, row.macs) for row in facts.layers] == [("dense", "dense", 12)]
    assert [(node.name, node.kind) for node in facts.nodes] == [("x", "input"), ("dense", "dense")]
    assert facts.check is not None
    assert facts.origin.command == "nnbuild report small.h5 --isa native"
    assert facts.layers[0].code > 0
    assert "<h1>small</h1>" in Path("small.html").read_text()


def test_without_options_the_page_has_the_models_name(nnbuild: Nnbuild, model: Path, here: Path) -> None:
    assert nnbuild("report", model, "--no-run").status == 0
    assert Path("small.html").is_file()


def test_json_alone_goes_to_standard_output(nnbuild: Nnbuild, model: Path, here: Path) -> None:
    said = nnbuild("report", model, "--no-run", "--json")
    assert from_object(json.loads(said.out)).check_missing == "the run was left out (--no-run)"
    assert not Path("small.html").exists()


@pytest.mark.slow
def test_what_does_not_run_is_the_same_each_time(nnbuild: Nnbuild, model: Path, here: Path) -> None:
    for name in ("a.html", "b.html"):
        nnbuild("report", model, "--quantize", "int8", "--no-run", "-o", name)
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()


def test_a_missed_gate_fails_and_is_shown(nnbuild: Nnbuild, model: Path, here: Path) -> None:
    np.savez("x.npz", x=np.ones((2, 4), np.float32), y=np.zeros((2, 3), np.float32))
    said = nnbuild("report", model, "--inputs", "x.npz", "-o", "small.html")
    assert said.status == 1
    assert said.out.endswith("check: FAIL\n")
    assert "error against the golden output" in Path("small.html").read_text()


@pytest.mark.slow
def test_a_board_that_cannot_be_run_is_reported_unrun(nnbuild: Nnbuild, model: Path, here: Path) -> None:
    said = nnbuild("report", model, "--board", "nucleo-l4r5zi", "--json", "n.json")
    assert said.out == "n.json: small on nucleo-l4r5zi, float; check: NOT RUN (no emulator supports it)\n"


def test_a_program_without_its_objects_is_refused(nnbuild: Nnbuild, model: Path, here: Path) -> None:
    Path("program").write_bytes(b"taken elsewhere")
    said = nnbuild("report", model, "--program", "program")
    assert said.status == 2
    assert said.err == ("nnbuild: program: its object files are not in the same folder. Leave out --program.\n")


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (["-o", "page.txt"], 2, "page.txt: the report is an HTML page. Give it a name that ends in .html."),
        (["-o", "no/such/page.html"], 2, "no/such/page.html: It cannot be written (No such file or directory). Choose"),
        (["--agreement", "many"], 2, "'many' is not a finite number"),
    ],
)
def test_wrong_usage(nnbuild: Nnbuild, model: Path, here: Path, words: list[str], status: int, error: str) -> None:
    said = nnbuild("report", model, "--no-run", *words)
    assert said.status == status
    assert error in said.err


def test_pictures_need_matplotlib(nnbuild: Nnbuild, model: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = nnbuild("report", model, "--png", "pictures")
    assert said.status == 3
    assert said.err == (
        "nnbuild: --png: the pictures need matplotlib, which is not installed. pip install matplotlib\n"
    )


@pytest.mark.slow
def test_pictures(nnbuild: Nnbuild, model: Path, here: Path) -> None:
    np.savez("x.npz", x=np.eye(4, dtype=np.float32), labels=np.arange(4) % 3)
    nnbuild("report", model, "--quantize", "int8", "--inputs", "x.npz", "--png", "pictures", "--agreement", "0")
    files = sorted(path.name for path in Path("pictures").iterdir())
    assert files == ["confusion.png", "layers.png", "memory.png", "network.png", "quantization.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in Path("pictures").iterdir())
    assert "matplotlib" in sys.modules


def test_letters_that_the_font_lacks_are_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    pytest.importorskip("matplotlib")
    assert draw(Picture(40.0, 20.0, "p", "a picture", (Label(0.0, 10.0, "\u5c42"),))).startswith(b"\x89PNG")
    assert not recwarn.list


def test_nothing_else_loads_matplotlib() -> None:
    """Users without it have all the rest."""
    for name in ("png", "page", "diff"):
        source = (Path(cli.__file__).parents[1] / "report" / f"{name}.py").read_text()
        assert not [line for line in source.splitlines() if line.startswith(("import matplotlib", "from matplotlib"))]


@pytest.fixture
def pair(here: Path) -> tuple[str, str]:
    before = samples.facts()
    options = (("board", "stm32"), ("quantize", "int16"))
    after = replace(before, flash_weights=600, origin=replace(before.origin, options=options))
    Path("a.json").write_text(json.dumps(as_object(before)))
    Path("b.json").write_text(json.dumps(as_object(after)))
    return "a.json", "b.json"


def test_two_reports_are_compared(nnbuild: Nnbuild, pair: tuple[str, str]) -> None:
    said = nnbuild("diff", *pair)
    assert said.status == 0
    assert ["quantize", "int8", "int16"] in [line.split() for line in said.out.splitlines()]
    plain = nnbuild("diff", *pair, "--json").json()
    assert {"what": "quantize", "a": "int8", "b": "int16"} in plain["changes"]
    weights = next(figure for figure in plain["figures"] if figure["name"] == "flash weights")
    assert (weights["a"], weights["b"], weights["change"]) == (300, 600, 1.0)


def test_a_build_is_made_from_its_words(nnbuild: Nnbuild, model: Path, here: Path) -> None:
    nnbuild("report", model, "--no-run", "--json", "small.json")
    said = nnbuild("diff", "small.json", f"{shlex.quote(str(model))} --no-run")
    assert (said.status, said.out.splitlines()[-1]) == (0, "A and B are the same build.")


def test_what_got_worse_fails(nnbuild: Nnbuild, pair: tuple[str, str]) -> None:
    assert nnbuild("diff", *pair, "--max-worse", "100").status == 0
    assert nnbuild("diff", "b.json", "a.json", "--max-worse", "0").status == 0
    said = nnbuild("diff", "a.json", "b.json", "--max-worse", "5")
    assert said.status == 1
    assert said.out.splitlines()[-1] == "FAIL: flash weights is worse by 100.00 %, at most 5 allowed"
    assert nnbuild("diff", "a.json", "b.json", "--max-worse", "5", "--json").status == 1


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, "bad.json: There is no such file. Write one with nnbuild report MODEL --json FILE."),
        (b"\xff\xfe", "bad.json: It cannot be used: it is not JSON. Write one with nnbuild report MODEL --json FILE."),
        (b"{}", "bad.json: It cannot be used: it is not a report from nnbuild. Write one"),
        (
            b'{"format":"nnbuild-report","version":7}',
            "It cannot be used: it is a report of version 7, and this nnbuild",
        ),
        (b"[" * 100_000, "bad.json: It cannot be used: "),
    ],
)
def test_what_is_no_report(nnbuild: Nnbuild, here: Path, content: bytes | None, error: str) -> None:
    if content is not None:
        Path("bad.json").write_bytes(content)
    said = nnbuild("diff", "bad.json", "bad.json")
    assert said.status == 2
    assert said.err.startswith("nnbuild: ")
    assert error in said.err


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('net.h5 "unfinished', "Its quoting is wrong (No closing quotation). Fix its quotes."),
        ("net.h5 --no-such-option", "unrecognized arguments: --no-such-option"),
        ("net.h5", "net.h5"),
    ],
)
def test_wrong_words(nnbuild: Nnbuild, here: Path, text: str, error: str) -> None:
    said = nnbuild("diff", text, text)
    assert said.status == 2
    assert error in said.err


def test_the_command_gives_the_same_options_again(here: Path) -> None:
    """Every option that there is, with a value that is not its default."""
    options = Options(
        model=Path("net.h5"),
        board="stm32",
        quantize="int8",
        calibrate=Path("c.npz"),
        method="mse",
        keep=(("a", "int16"), ("b", "float")),
        io="float",
        bias_correction=False,
        accuracy_drop=1.5,
        prune="0.9",
        share="16",
        weights_bits="8",
        flash="64K",
        image_range=(-1.0, 1.0),
        optimize="ram",
        price="instructions",
        isa="c99",
        threads=3,
        local="checked",
        baud=921600,
        max_instructions=3_000_000,
        memory="ccm",
        name="mine",
        weights="array",
        labels=Path("names.txt"),
        shape=(("x", (1, 2)),),
        io_layout="nhwc",
        fix=(("rate", (16000.0, -0.5)),),
        stream="auto,hop=2",
        features=Path("sound.toml"),
        device="systolic",
        place=(("dense", "cpu"),),
    )
    known = {
        "layers",
        "kernels",
        "swappable",
    }  # for looking at single layers and kernels; no option of a report sets them
    same = [f.name for f in dataclasses.fields(Options) if getattr(options, f.name) == f.default]
    assert set(same) <= known
    parser = argparse.ArgumentParser()
    add_build_options(parser)
    add_place(parser)
    assert options_of(parser.parse_args(option_words(options))) == options
    assert options_of(parser.parse_args(arguments_of(options))) == replace(options, baud=None)  # SCons gives it apart


def test_paths_are_told_from_where_one_works(here: Path) -> None:
    assert near(here / "models" / "net.h5") == "models/net.h5"
    assert near(Path("net.h5")) == "net.h5"
    assert near(Path("/elsewhere/net.h5")) == "/elsewhere/net.h5"
