"""The printed C of tiny networks, word for word: `pytest tests/emit/test_golden.py --update-golden` writes it anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nnbuild.emit.emit import emit
from nnbuild.isa.registry import isas
from nnbuild.model.graph import Graph
from nnbuild.ops.lstm import LSTM
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.emit.nets import NETS
from tests.kernels.cases import cases
from tests.kernels.test_integer import MOVES
from tests.kernels.test_integer_recurrent import quantized as quantized_recurrent
from tests.kernels.test_integer_recurrent import single_layer
from tests.support.quantized import quantized

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
COLUMNS = 120


def case(name: str, form: str = "float") -> Graph:
    graph = dict(cases())[name]()
    return graph if form == "float" else quantized(graph, form, seed=1)


MADE: dict[str, tuple[Callable[[], Graph], str]] = {
    **{name: (net, "c99") for name, net in NETS.items()},
    "depthwise_dsp": (lambda: case("depthwise-0-1", "int8"), "armv7em_dsp"),
    "conv_dsp": (lambda: case("conv2d-3", "int8"), "armv7em_dsp"),
    "conv_avx2": (lambda: case("conv2d-4"), "avx2_fma"),
    "conv_vnni": (lambda: case("conv2d-4", "int8"), "avx512_vnni"),
    "lstm_int8": (lambda: quantized_recurrent(single_layer(LSTM(units=2), 2, 1), "int8"), "c99"),
}
"""What is computed, and the set of instructions."""


@pytest.mark.parametrize("name", MADE)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    make, isa = MADE[name]
    files = emit(make_plan(make(), name, Target(isas()[isa]))).files
    folder = GOLDEN / name
    if request.config.getoption("--update-golden"):
        folder.mkdir(parents=True, exist_ok=True)
        for stale in {path.name for path in folder.iterdir()} - files.keys():
            (folder / stale).unlink()
        for file, content in files.items():
            (folder / file).write_bytes(content)
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)
    for file, content in files.items():
        assert content.decode() == (folder / file).read_text(), f"{file} has changed; see --update-golden"


@pytest.mark.parametrize("every", [pytest.param(97, id="some"), pytest.param(1, id="all", marks=pytest.mark.full)])
def test_no_line_is_too_long(every: int) -> None:
    """Of every kind of kernel, for every set of instructions."""
    makers = list(cases())
    for index, (name, maker) in enumerate(makers):
        forms = ("float",) if name.startswith(("lstm", "gru", "simple_rnn")) else ("float", "int8", "int16")
        for form in forms if index % every == 0 else ():
            graph = maker() if form == "float" else quantized(maker(), form, 1, same_scale=name.startswith(MOVES))
            for isa in isas().values():
                for file, text in emit(make_plan(graph, "net", Target(isa))).files.items():
                    long = [line for line in text.decode().splitlines() if len(line) > COLUMNS]
                    assert not long, f"{name}, {form}, {isa.name}, {file}: {long[0]}"
