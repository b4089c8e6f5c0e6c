"""Models of floats whose weights have 8 bits: as the file has them, or rounded to them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.errors import CheckFailed, UsageError
from nnbuild.compress.float_weights import layers_of, rounded
from nnbuild.emit.weights import weights_bytes
from nnbuild.isa.registry import isas
from nnbuild.jobs.command_line import arguments_of
from nnbuild.jobs.compression import model_flash
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.model.graph import Graph
from nnbuild.numeric.whole_multiples import rounded_to_bytes, whole_multiples
from nnbuild.ops import interpret
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.dense import Dense
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.site import site_of
from nnbuild.plan.select import choose
from nnbuild.plan.target import Target
from tests.kernels.cases import normal
from tests.support.graphs import single
from tests.support.running import NNBUILD, start, well

MNIST = Path(__file__).resolve().parents[2] / "examples/mnist/mnist.h5"
SMALL = Options(MNIST, "stm32", optimize="size", weights_bits="8")


def kinds(options: Options) -> tuple[set[str], int]:
    """Kernels, and bytes of weights."""
    compiled = compile_model(options)
    return {step.choice.kernel.name for step in compiled.plan.steps}, weights_bytes(compiled.plan)


def test_weights_take_a_quarter() -> None:
    plain, whole = kinds(replace(SMALL, weights_bits=None))
    narrow, small = kinds(SMALL)
    assert not any("narrow" in name for name in plain)
    assert any("narrow" in name for name in narrow)
    assert small < 0.35 * whole


def test_a_note_says_what_was_lost() -> None:
    compiled = compile_model(SMALL)
    (said,) = (note for note in compiled.graph.notes if "rounded to 8 bits" in note)
    assert said.startswith(f"weights of {len(layers_of(compiled.folded))} layers rounded to 8 bits: ")
    assert f"-> {model_flash(compiled.plan):,} bytes of flash" in said


@pytest.mark.turns(2)
@pytest.mark.parametrize("option", ["--weights-bits=8", "--flash=14K"])
def test_a_check_compares_with_golden_outputs_as_after_a_quantization(option: str, tmp_path: Path) -> None:
    """They are those of the weights before."""
    words = (MNIST, option, "--optimize", "size", "--inputs", MNIST.with_name("samples.npz"))
    said = well(*NNBUILD, "check", *words, folder=tmp_path)
    assert "rounded to 8 bits" in said
    assert "top-1 agreement with the golden output is" in said


def test_the_loss_of_each_layer_is_measured(tmp_path: Path) -> None:
    words = (MNIST, "--quantize", "float", "--calibrate", MNIST.with_name("calibration.npz"))
    said = well(*NNBUILD, "quantize", *words, "--weights-bits", "8", folder=tmp_path)
    rows = [line for line in said.splitlines() if re.search(r" float +\S+ +\S+ +0 +\d\d\.\d ", line)]
    assert len(rows) == 10, said
    assert "output digit: top-1 agreement " in said
    assert "no effect" not in said, "the samples measure the loss"
    refused = start(*NNBUILD, "quantize", *words, folder=tmp_path)
    assert refused.status == 2 and "or --weights-bits 8." in refused.text


def test_the_report_has_the_loss_of_each_layer(tmp_path: Path) -> None:
    words = (MNIST, "--weights-bits", "8", "--optimize", "size", "-o", "page.html")
    well(*NNBUILD, "report", *words, folder=tmp_path)
    page = (tmp_path / "page.html").read_text()
    assert "Weights were rounded to 8 bits." in page
    assert "The layer with the most noise is" in page
    assert "nothing was quantized" not in page


def test_the_fastest_kernels_are_told_apart() -> None:
    compiled = compile_model(replace(SMALL, optimize="speed", price="instructions"))
    assert any("--optimize size" in note for note in compiled.graph.notes)


def test_outputs_hardly_change() -> None:
    plain, narrow = compile_model(replace(SMALL, weights_bits=None)).graph, compile_model(SMALL).graph
    given = {"image": np.load(MNIST.parent / "samples.npz")["x"][:100]}
    wanted, found = (interpret.run(graph, given)[plain.outputs[0]] for graph in (plain, narrow))
    assert 0 < np.abs(wanted - found).mean() < 0.001


def test_single_layers_are_rounded() -> None:
    layer = layers_of(compile_model(SMALL).folded)[-1]
    compiled = compile_model(replace(SMALL, weights_bits={layer: "8"}))
    assert any(note.startswith("weights of 1 layers rounded") and layer in note for note in compiled.graph.notes)


def test_what_has_8_bits_already_stays() -> None:
    graph = compile_model(SMALL).graph
    again = rounded(graph, frozenset(layers_of(graph)))
    assert again.layers == () and again.graph.constants == graph.constants


def test_a_limit_rounds_only_where_it_must() -> None:
    whole = model_flash(compile_model(Options(MNIST, "stm32")).plan)
    enough = compile_model(Options(MNIST, "stm32", flash=whole + 2000))
    assert not any("rounded" in note for note in enough.graph.notes)
    short = compile_model(Options(MNIST, "stm32", flash=whole - 6000))
    assert any("rounded" in note for note in short.graph.notes)
    assert model_flash(short.plan) <= whole - 6000


def test_a_limit_that_cannot_be_met_is_refused_with_one_that_can(tmp_path: Path) -> None:
    for flash in (2000, 8192):
        with pytest.raises(CheckFailed) as caught:
            compile_model(Options(MNIST, "stm32", flash=flash))
        said = re.fullmatch(
            rf"--flash {flash:,}: the fewest bytes that were found for this model of floats are ([\d,]+), with weights "
            r"of 8 bits\. Allow --flash (\d+), or give --quantize int8, too\.",
            str(caught.value),
        )
        assert said is not None, str(caught.value)
        assert said[1].replace(",", "") == said[2]
    least = int(said[2])
    assert model_flash(compile_model(Options(MNIST, "stm32", flash=least)).plan) < 1.15 * least, (
        "the code's size is estimated"
    )


@pytest.mark.parametrize("other", [{"weights_bits": "4"}, {"weights_bits": "8", "share": 16}, {"prune": "0.5"}])
def test_what_changes_integers_is_refused(other: dict[str, object]) -> None:
    with pytest.raises(UsageError) as caught:
        compile_model(Options(MNIST, "stm32", **other))  # type: ignore[arg-type]
    assert "it changes integers, and this model computes in floats." in str(caught.value)
    assert str(caught.value).endswith("or, for floats with weights of 8 bits, --weights-bits 8 alone.")


def test_an_unknown_layer_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"the model has no such layer with weights that can take 8 bits\. Its layers: "
    ):
        compile_model(replace(SMALL, weights_bits={"nothing": "8"}))


def test_builds_pass_the_option_on() -> None:
    words = arguments_of(SMALL)
    assert words[words.index("--weights-bits") + 1] == "8"


def test_each_filter_of_a_transposed_convolution_has_its_factor() -> None:
    kernel = normal(3, 3, 6, 10) * np.float32(10) ** np.arange(6, dtype=np.float32)[:, None]
    graph: Graph = single(Conv2DTranspose(size=(9, 9), strides=(2, 2)), [(4, 4, 10)], {"kernel": kernel})
    found = rounded(graph, frozenset(layers_of(graph)))
    (changed,) = (constant.data for constant in found.graph.constants.values())
    assert whole_multiples(changed.swapaxes(2, 3)) is not None
    off = np.square(changed - kernel).sum(axis=(0, 1, 3)) / np.square(kernel).sum(axis=(0, 1, 3))
    assert off.max() < 1e-3


@pytest.mark.parametrize(("inputs", "narrow"), [(7, False), (8, True)])
def test_few_weights_of_an_output_stay_floats(inputs: int, narrow: bool) -> None:
    graph = single(Dense(), [(inputs,)], {"kernel": rounded_to_bytes(normal(inputs, 5))})
    assert ("scalar_narrow" in offered(graph)) is narrow
    assert bool(layers_of(graph)) is narrow


@pytest.mark.parametrize("features", [1, 3])
def test_a_recurrent_layer_of_few_features_is_rounded_and_stored_in_bytes(features: int) -> None:
    constants = {"kernel": normal(features, 48), "recurrent": normal(12, 48)}
    graph = single(LSTM(units=12), [(6, features)], constants)
    assert "scalar_narrow" not in offered(graph)
    assert "scalar_narrow" in offered(rounded(graph, frozenset(layers_of(graph))).graph)


def offered(graph: Graph) -> set[str]:
    return {offer.kernel.name for offer in choose(site_of(graph, graph.ops[0]), Target(isas()["c99"])).offers}
