"""What commands choose where nothing is said, and what they refuse before any long work."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest

from nnbuild.backends.firmware.layout import DoesNotFit
from nnbuild.base.paths import EXAMPLE
from nnbuild.board.tables import find
from nnbuild.cli import main
from nnbuild.cli.arguments import add_build_options, options_of, options_to_run
from nnbuild.isa.registry import baseline, native
from nnbuild.jobs.memory_precheck import refuse_too_large
from nnbuild.jobs.options import BYTES
from nnbuild.model.graph import WHOLE, Constant, Graph, Op, Tensor
from nnbuild.numeric.whole_multiples import rounded_to_bytes
from nnbuild.ops.compare import Compare
from nnbuild.ops.dense import Dense
from nnbuild.ops.gather import Gather
from tests.support.graphs import single

MODEL = str(EXAMPLE / "mnist.h5")


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_build_options(parser)
    return parser.parse_args([MODEL, *words])


def test_what_runs_here_takes_the_best_instructions_of_this_pc() -> None:
    assert options_to_run(parsed()).isa == "native"
    assert options_to_run(parsed("--isa", "c99")).isa == "c99"
    assert options_to_run(parsed("--board", "stm32")).isa is None
    built = parsed()
    built.program = Path("program")  # compiled before, for the set that `build` takes
    assert options_to_run(built).isa is None
    assert options_of(parsed()).isa is None


def test_compile_says_when_one_option_makes_it_much_faster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, told in (((), native() != baseline()), (("--isa", "c99"), False)):
        assert main(["compile", MODEL, "--dry-run", "--quantize", "int8", *words]) == 0
        assert ("--isa native" in capsys.readouterr().err) == told


@pytest.mark.parametrize(("form", "size"), [("float", "4,004,000"), ("int8", "1,001,000")])
def test_weights_larger_than_the_flash_are_refused_with_their_bytes(form: str, size: str) -> None:
    weights = np.random.default_rng(1).normal(size=(1001, 1000))
    graph = single(Dense(), [(1001,)], {"kernel": weights, "bias": np.zeros(1000)})
    board = find("stm32f405")
    if form == "int8":
        refuse_too_large(graph, board, form, BYTES)
        board = find("microbit")
    with pytest.raises(DoesNotFit, match=f"{size} bytes of weights in {form} exceed the .* bytes of flash"):
        refuse_too_large(graph, board, form, BYTES)
    refuse_too_large(graph, board, form, BYTES, fewer=True)


def test_weights_of_8_bits_are_counted_as_bytes() -> None:
    weights = np.random.default_rng(1).normal(size=(1001, 1000)).astype(np.float32)
    with pytest.raises(DoesNotFit, match="--quantize int16 or --weights-bits 8"):
        refuse_too_large(single(Dense(), [(1001,)], {"kernel": weights}), find("stm32f405"), "float", BYTES)
    narrow = single(Dense(), [(1001,)], {"kernel": rounded_to_bytes(weights)})
    refuse_too_large(narrow, find("stm32f405"), "float", BYTES)


def test_weights_that_may_be_stored_in_fewer_bytes_are_not_refused() -> None:
    weights = np.random.default_rng(1).normal(size=(1000, 300))
    for kept in (weights * (weights > 1), np.sign(weights)):  # many zeros, few values
        graph = single(Dense(), [(1000,)], {"kernel": kept})
        refuse_too_large(graph, find("microbit"), "int8", BYTES)
        with pytest.raises(DoesNotFit):
            refuse_too_large(graph, find("microbit"), "float", BYTES)
    with pytest.raises(DoesNotFit, match="give --calibrate with samples and --flash 262144"):
        refuse_too_large(single(Dense(), [(1000,)], {"kernel": weights}), find("microbit"), "int8", BYTES)


def test_tables_count_and_equal_ones_count_once() -> None:
    """A forest's tables of one axis, which each level of a tree reads."""
    tables = np.random.default_rng(1).normal(size=(2, 50_000)).astype(np.float32)
    indices = Tensor("i", (1,), "int32", WHOLE)
    reads = [(f"x{at}", tables[at // 2]) for at in range(4)]
    graph = Graph(
        "model",
        {"i": indices, **{name: Tensor(name, (1,)) for name, _ in reads}},
        {f"table {name}": Constant(f"table {name}", data) for name, data in reads},
        tuple(Op(name, Gather(), ("i",), (name,), {"table": f"table {name}"}) for name, _ in reads),
        ("i",),
        tuple(name for name, _ in reads),
    )
    refuse_too_large(graph, find("stm32f405"), "float", BYTES)
    with pytest.raises(DoesNotFit, match="400,000 bytes of weights in float exceed the 262,144 bytes of flash"):
        refuse_too_large(graph, find("microbit"), "float", BYTES)


def test_the_refusal_names_a_form_whose_weights_fit() -> None:
    graph = single(Dense(), [(1000,)], {"kernel": np.zeros((1000, 400))})
    with pytest.raises(DoesNotFit, match="would fit with --quantize int8") as caught:
        refuse_too_large(graph, find("stm32f405"), "float", BYTES)
    assert caught.value.over == 1_600_000 - 2**20


def forest(nodes: int) -> Graph:
    """One step through a tree: which feature a node takes, its limit, and what its leaf counts."""
    whole = {name: Tensor(name, (1,), "int32", WHOLE) for name in ("i", "feature")}
    real = {"x": (64,), "value": (1,), "limit": (1,), "goes": (1,), "leaf": (1, 1)}
    tables = {
        "feature": np.arange(nodes, dtype=np.int32),
        "limit": np.linspace(0, 1, nodes, dtype=np.float32),
        "leaf": np.linspace(0, 1, nodes, dtype=np.float32)[:, None],
    }
    reads = [Op(name, Gather(), ("i",), (name,), {"table": f"table {name}"}) for name in tables]
    return Graph(
        "model",
        whole | {name: Tensor(name, shape) for name, shape in real.items()},
        {f"table {name}": Constant(f"table {name}", data) for name, data in tables.items()},
        (
            *reads,
            Op("pick", Gather(), ("x", "feature"), ("value",)),
            Op("compare", Compare("less"), ("value", "limit"), ("goes",)),
        ),
        ("x", "i"),
        ("goes", "leaf"),
    )


NO_OPTION = "No other option makes it fit: use a smaller model or a larger board."


@pytest.mark.parametrize(
    ("nodes", "form", "advice"),
    [
        (30_000, "float", NO_OPTION),  # in int8 9 bytes a node, 4 of them the limit's,
        (30_000, "int8", NO_OPTION),  # and none of them a weight that may be narrower
        (28_000, "float", "The weights alone would fit with --quantize int8."),  # 10 a node in int16
        (24_000, "float", "The weights alone would fit with --quantize int8 or --quantize int16."),
    ],
)
def test_what_a_forest_keeps_in_floats_counts_as_floats(nodes: int, form: str, advice: str) -> None:
    with pytest.raises(DoesNotFit) as caught:
        refuse_too_large(forest(nodes), find("microbit"), form, BYTES)
    assert caught.value.next_step == advice
