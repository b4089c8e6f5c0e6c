"""Mistakes in the C of a stream do not pass a check: of rings, of beginnings, of whose turn it is, of tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("tflite")

from nnbuild.device.gates import Gates
from nnbuild.emit.artifact import Artifact
from nnbuild.jobs.job import check_job, place, samples_for
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model
from tests.frontend.tflite_files import to_bytes
from tests.support.streaming_files import Net, wake_word

pytestmark = pytest.mark.slow

Change = Callable[[str], str]


def strided_window(file: Path) -> None:
    """Whose parts move on every other row."""
    net = Net(5)
    x = net.tensor("input", (1, 16, 8))
    out = net.conv(net.reshape(x, (1, 16, 1, 8)), 12, rows=3, stride=2)
    out = net.conv(net.depthwise(out, 4), 8)
    file.write_bytes(to_bytes(net.file([x], [net.end(out)])))


@cache
def compiled_rings(folder: Path) -> Compiled:
    """A file whose rings have spare rows."""
    blocks = (((7,), 64), ((11, 15), 64))
    file = wake_word(0, new=3, features=16, first=(64, 5), blocks=blocks, end=9, initial=5)
    (folder / "net.tflite").write_bytes(to_bytes(file))
    return compile_model(Options(folder / "net.tflite", isa="c99", threads=1))


@cache
def compiled(folder: Path) -> Compiled:
    strided_window(folder / "net.tflite")
    return compile_model(Options(folder / "net.tflite", isa="c99", stream="0,hop=1"))


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compiled(tmp_path_factory.mktemp("stream"))


@pytest.fixture(scope="module")
def rings(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compiled_rings(tmp_path_factory.mktemp("rings"))


def passes(stream: Compiled, file: str = "net.c", change: Change = lambda text: text) -> bool:
    files = dict(stream.artifact.files)
    files[file] = change(files[file].decode()).encode()
    with place(None) as where:
        there = replace(stream, artifact=Artifact(files))
        return check_job(there, samples_for(stream, None), where, Gates()).passed


def test_as_it_is_it_passes(stream: Compiled) -> None:
    assert len({state.banks for state in stream.graph.states}) == 2
    assert passes(stream)


def once(pattern: str, new: str, place: int = 0) -> Change:
    """What a pattern finds, at its first place or a later one, becomes something else."""

    def change(text: str) -> str:
        found = list(re.finditer(pattern, text))[place]
        return text[: found.start()] + found.expand(new) + text[found.end() :]

    return change


def never(text: str) -> str:
    """No loop that sets a state is run."""
    return re.sub(r"i < \d+(; \+\+i\) \{\n\s+\(context->state)", r"i < 0\1", text)


MISTAKES: dict[str, tuple[str, Change]] = {
    "a ring is read one element later": ("net_kernels.c", once(r"(= out\[)16( \+ i\];)", r"\g<1>15\2")),
    "new rows go one element too far down": (
        "net_kernels.c",
        once(r"out\[36 \+ i\] = in1", "out[35 + i] = in1"),
    ),
    "a ring stands": ("net_kernels.c", once(r"out\[i\] = out\[12 \+ i\];", "(void)i;")),
    "one ring does not begin anew": ("net.c", once(r"\[i\] = net_initial_t5_before\[i % 12\];", "[i] = 0;")),
    "nothing begins anew": ("net.c", never),
    "turns are swapped": ("net.c", once(r"\+ context->bank \* 64", "+ (1 - context->bank) * 64", 4)),
    "all steps share one turn": ("net.c", once(r"context->bank = context->bank \+ 1 < 2[^;]*;", "context->bank = 0;")),
    "an entry of a beginning": ("net_weights.c", once(r"(net_initial_t5_before\[12\] = \{\s*)-?\d+", r"\g<1>99")),
    "a weight": ("net_weights.c", once(r"(_t16_op_kernel\[\d+\] = \{\s*)-?\d+", r"\g<1>-128")),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_fails(name: str, stream: Compiled) -> None:
    assert not passes(stream, *MISTAKES[name])


MISTAKES_OF_RINGS: dict[str, tuple[str, Change]] = {
    "spare rows are one step too far": ("net.c", once(r"\+ context->bank \* 64", "+ (context->bank + 1) * 64")),
    "rows never move back": ("net_kernels.c", lambda text: text.replace("if (out != in0 + 64)", "if (out == in0)")),
    "what moves back is one row older": (
        "net_kernels.c",
        once(r"out\[i\] = out\[256 \+ ", r"\g<0>-32 + "),
    ),
    "turns are one too few": ("net.c", once(r"context->bank \+ 1 < 4", "context->bank + 1 < 3")),
    "it begins between two turns": ("net.c", once(r"context->bank = 0;", "context->bank = 5;")),
    "a beginning is left out": ("net.c", never),
}


def test_rings_pass_as_they_are(rings: Compiled) -> None:
    assert rings.plan.banks == 4
    assert passes(rings)


@pytest.mark.parametrize("name", MISTAKES_OF_RINGS)
def test_a_mistake_of_rings_fails(name: str, rings: Compiled) -> None:
    assert not passes(rings, *MISTAKES_OF_RINGS[name])
