"""Two channels' products in one multiplication, at the extremes of bytes, and those of words, in C and in assembly."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.bound.image import read_image
from nnbuild.cycles.clock import Processor
from nnbuild.emit.instructions import instructions
from nnbuild.isa.armv6m import SMALL
from nnbuild.isa.registry import isas
from nnbuild.kernels.paired_products import two_by_two_words
from nnbuild.kernels.paired_products.two_channels import divided
from nnbuild.model.graph import Graph
from nnbuild.numeric.rounding import limits
from nnbuild.ops import interpret
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.bound.assembled import SCRIPT
from tests.kernels.cases import normal, single
from tests.support.many import run_many
from tests.support.quantized import full_range, quantized, with_weights

Pads = tuple[tuple[int, int], tuple[int, int]]
NONE: Pads = ((0, 0), (0, 0))
WINDOWS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, int], tuple[int, int], Pads, int]] = {
    # input, kernel, strides, dilation, padding, groups
    "pointwise": ((5, 3, 8), (1, 1, 8, 6), (1, 1), (1, 1), NONE, 1),
    "one channel more than pairs": ((4, 4, 3), (3, 3, 3, 5), (1, 1), (1, 1), ((1, 1), (1, 1)), 1),
    "strides over an edge": ((7, 9, 2), (3, 4, 2, 4), (2, 3), (1, 1), ((1, 1), (2, 1)), 1),
    "rows of one position": ((9, 1, 5), (4, 1, 5, 3), (1, 1), (2, 1), ((3, 3), (0, 0)), 1),
    "dilated columns": ((3, 11, 4), (2, 3, 4, 7), (1, 1), (1, 2), ((0, 1), (2, 2)), 1),
    "groups": ((5, 5, 6), (3, 3, 2, 9), (1, 1), (1, 1), ((1, 1), (1, 1)), 3),
    "wider than its input": ((2, 2, 3), (5, 5, 3, 2), (1, 1), (1, 1), ((2, 2), (2, 2)), 1),
    "one window": ((3, 3, 4), (3, 3, 4, 4), (1, 1), (1, 1), NONE, 1),
}
WEIGHTS = {"drawn": None, "least": -128, "largest": 127}


KERNELS = {"int8": "two_channels", "int16": "two_by_two"}


def convolution(case: str, weights: int | None, form: str = "int8") -> Graph:
    shape, kernel, strides, dilation, padding, groups = WINDOWS[case]
    attributes = Conv2D(strides=strides, padding=padding, dilation=dilation, groups=groups)
    constants = {"kernel": normal(*kernel), "bias": normal(kernel[-1])}
    graph = quantized(single(attributes, [shape], constants), form, 3)
    return graph if weights is None else with_weights(graph, weights)


def inputs_of(graph: Graph) -> dict[str, np.ndarray]:
    given = full_range(graph, 4, seed=1)
    ends = {name: np.stack([np.full_like(x[0], end) for end in limits(x.dtype)]) for name, x in given.items()}
    return {name: np.concatenate([x, ends[name]]) for name, x in given.items()}


@pytest.mark.turns(2)
@pytest.mark.slow
@pytest.mark.parametrize("form", KERNELS)
def test_windows_of_all_kinds(form: str, tmp_path: Path) -> None:
    graphs = [convolution(case, weights, form) for case in WINDOWS for weights in WEIGHTS.values()]
    runs = [(graph, inputs_of(graph)) for graph in graphs]
    targets = [Target(isas()["armv6m"], forced_kernels={graph.ops[0].name: KERNELS[form]}) for graph in graphs]
    flags = ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover"]
    for (graph, given), got in zip(runs, run_many(runs, tmp_path, targets=targets, flags=flags), strict=True):
        (out,) = graph.outputs
        np.testing.assert_array_equal(got[out], interpret.run(graph, given)[out], err_msg=str(graph.ops[0]))


PROGRAM = """
#include <stdint.h>
{routine}
int32_t out[8];
static int32_t x[{words}], k[{words}];

void f(void);
void f(void)
{{
    uint32_t state = {seed}U;
    for (int32_t i = 0; i < {words}; ++i) {{
        state = state * 1664525U + 1013904223U;
        x[i] = {seed} ? (int32_t)(state >> 24) - 128 : -128;
        k[i] = {seed} ? (int32_t)((state >> 8 & 0xffU) + (state & 0xff0000U)) - 8388736 : -128 - 128 * 65536;
    }}
    const int32_t *const behind = p_small_two_by_two_{turn}(x, k, x + {words}, out);
    out[4] = (int32_t)(behind - k);
}}
"""


WORDS = """
#include <stdint.h>
{routine}
int32_t out[8];
static int32_t x[2 * {inputs}];
static uint8_t k[2 * {inputs}];

void f(void);
void f(void)
{{
    uint32_t state = {seed}U;
    for (int32_t i = 0; i < 2 * {inputs}; ++i) {{
        state = state * 1664525U + 1013904223U;
        x[i] = {seed} ? (int32_t)(state >> 16) - 32768 : -32768;
        k[i] = {seed} ? (uint8_t)(state >> 8) : 255;
    }}
    const uint8_t *const behind = p_small_two_by_two_words_{turn}(x, k, x + 2 * {inputs}, out);
    out[4] = (int32_t)(behind - k);
}}
"""


ROW = """
#include <stdint.h>
{routine}
int32_t out[8];
static int16_t x[{inputs}];
static uint8_t k[4 * {inputs}];

void f(void);
void f(void)
{{
    uint32_t state = {seed}U;
    for (int32_t i = 0; i < 4 * {inputs}; ++i) {{
        state = state * 1664525U + 1013904223U;
        x[i / 4] = {seed} ? (int16_t)((int32_t)(state >> 16) - 32768) : -32768;
        k[i] = {seed} ? (uint8_t)(state >> 8) : 255;
    }}
    const uint8_t *const behind = p_small_one_by_four_{turn}(x, k, x + {inputs}, out);
    out[5] = (int32_t)(behind - k);
}}
"""


def row_sums(folder: Path, inputs: int, turn: int, seed: int, flags: list[str]) -> bytes:
    routine = instructions([SMALL.instruction("one_by_four", turn)], "p", "")
    return found(folder, ROW.format(routine=routine, inputs=inputs, turn=turn, seed=seed), flags)


def sums(folder: Path, pairs: int, seed: int, flags: list[str]) -> bytes:
    turn = divided(2 * pairs)[1]
    routine = instructions([SMALL.instruction("two_by_two", turn)], "p", "")
    return found(folder, PROGRAM.format(routine=routine, words=4 * pairs, turn=turn, seed=seed), flags)


def word_sums(folder: Path, taps: int, seed: int, flags: list[str]) -> bytes:
    inputs, turn = two_by_two_words.divided(taps)
    routine = instructions([SMALL.instruction("two_by_two_words", turn)], "p", "")
    return found(folder, WORDS.format(routine=routine, inputs=inputs, turn=turn, seed=seed), flags)


def found(folder: Path, program: str, flags: list[str]) -> bytes:
    (folder / "p.c").write_text(program)
    (folder / "p.ld").write_text(SCRIPT.replace("16K", "64K"))
    command = ["arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb", "-std=c99", "-Wall", "-Wextra", "-Werror"]
    command += [*flags, "-nostdlib", "-ffreestanding", "-Wl,-e,f", "-T", "p.ld", "p.c", "-o", "p.elf", "-lgcc"]
    subprocess.run(command, cwd=folder, check=True)
    processor = Processor(read_image(folder / "p.elf"))
    processor.call("f")
    return bytes(processor.cpu.mem_read(processor.image.symbol("out"), 24))


@pytest.mark.parametrize("pairs", [1, 5, 8, 14, 36])
@pytest.mark.parametrize("seed", [0, 12345])
def test_assembly_computes_what_the_c_does(pairs: int, seed: int, tmp_path: Path) -> None:
    pairs = divided(2 * pairs)[0]
    native = [sums(tmp_path, pairs, seed, flags) for flags in (["-O2"], ["-O0"])]
    assert native == [sums(tmp_path, pairs, seed, ["-O2", "-U__ARM_ARCH_6M__"])] * 2


@pytest.mark.parametrize("taps", [1, 9, 27, 300])
@pytest.mark.parametrize("seed", [0, 12345])
def test_assembly_of_words_computes_what_the_c_does(taps: int, seed: int, tmp_path: Path) -> None:
    native = [word_sums(tmp_path, taps, seed, flags) for flags in (["-O2"], ["-O0"])]
    assert native == [word_sums(tmp_path, taps, seed, ["-O2", "-U__ARM_ARCH_6M__"])] * 2


@pytest.mark.parametrize(("inputs", "turn"), [(1, 1), (14, 7), (320, 8)])
@pytest.mark.parametrize("seed", [0, 12345])
def test_assembly_of_a_row_computes_what_the_c_does(inputs: int, turn: int, seed: int, tmp_path: Path) -> None:
    native = [row_sums(tmp_path, inputs, turn, seed, flags) for flags in (["-O2"], ["-O0"])]
    assert native == [row_sums(tmp_path, inputs, turn, seed, ["-O2", "-U__ARM_ARCH_6M__"])] * 2


@pytest.mark.parametrize("form", KERNELS)
def test_rows_of_a_dense_layer_are_positions(form: str, tmp_path: Path) -> None:
    graph = quantized(single(Dense(), [(5, 63)], {"kernel": normal(63, 11), "bias": normal(11)}), form, 3)
    target = Target(isas()["armv6m"], wide_product=28)
    (step,) = make_plan(graph, "m", target).steps
    assert step.kernel_name == KERNELS[form]
    given = inputs_of(graph)
    (got,) = run_many([(graph, given)], tmp_path, targets=[target])
    (out,) = graph.outputs
    np.testing.assert_array_equal(got[out], interpret.run(graph, given)[out])


def test_iterations_divide_padded_taps() -> None:
    assert [divided(taps) for taps in (1, 9, 27, 64, 576)] == [(1, 1), (5, 5), (14, 7), (32, 8), (288, 8)]
