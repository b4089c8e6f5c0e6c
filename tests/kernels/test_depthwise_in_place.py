"""Depthwise convolutions on Cortex-M4 that overwrite their inputs, channel by channel: bit-exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild.isa.registry import isas
from nnbuild.kernels.depthwise.dsp_lines import LineLayout, line_layout
from nnbuild.kernels.depthwise.dsp_planes import BAND, overlaps
from nnbuild.model.graph import Constant, Graph, Op, Tensor
from nnbuild.model.verify import verify
from nnbuild.ops import interpret
from nnbuild.ops.base import Clamp
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import site_of
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.rewrite import rewrite
from tests.support.batch import Entry, run_batch
from tests.support.graphs import single
from tests.support.quantized import full_range

SHAPES = [
    # height, width, channels, stride of the middle one
    (9, 7, 12, 1),
    (30, 61, 8, 1),
    (31, 64, 8, 2),
]


def three(height: int, width: int, channels: int, stride: int) -> Graph:
    """Three in a row: only the middle one reads and writes tensors that no other operation needs."""
    chance = np.random.default_rng(width)
    tensors = {"x": Tensor("x", (height, width, channels))}
    ops, constants = [], {}
    for index, step in enumerate((1, stride, 1)):
        attributes = DepthwiseConv2D((step, step), padding=((1, 1), (1, 1)), clamp=Clamp(low=0.0))
        before = tensors["x" if index == 0 else f"y{index - 1}"]
        name = f"k{index}"
        constants[name] = Constant(name, chance.normal(size=(3, 3, channels, 1)).astype(np.float32))
        (shape,) = attributes.shapes([before.shape], {"kernel": (3, 3, channels, 1)})
        tensors[f"y{index}"] = Tensor(f"y{index}", shape)
        ops.append(Op(f"op{index}", attributes, (before.name,), (f"y{index}",), {"kernel": name}))
    return verify(Graph("three", tensors, constants, tuple(ops), ("x",), ("y2",)))


def plan_of(shape: tuple[int, int, int, int], kernel: str) -> Plan:
    graph = three(*shape)
    samples = {"x": np.random.default_rng(2).normal(size=(8, *graph.tensors["x"].shape)).astype(np.float32)}
    integer = rewrite(graph, calibrate(graph, lambda: [samples], "minmax", 8), {}, "int8", False)
    wanted = {op.name: kernel for op in integer.ops if op.kind == "depthwise_conv2d"}
    return make_plan(integer, f"{kernel}{shape[1]}", Target(isas()["armv7em_dsp"], forced_kernels=wanted))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["planar", "planar_narrow", "planar_lean"])
def test_the_middle_one_overlaps_its_input(kernel: str, tmp_path: Path) -> None:
    made = [plan_of(shape, kernel) for shape in SHAPES]
    entries = [Entry(plan, full_range(plan.graph, 3, seed=4)) for plan in made]
    for entry, found in zip(entries, run_batch(entries, tmp_path), strict=True):
        middle = entry.plan.steps[1]
        assert middle.kernel_name.startswith("planar") and middle.shares_storage
        source, result = (entry.plan.locations[name] for name in (*middle.inputs, *middle.outputs))
        channels = middle.site.shape()[2]
        assert (source.offset - result.offset) % channels == 0
        wanted = interpret.run(entry.plan.graph, entry.inputs)
        np.testing.assert_array_equal(found["y2"], wanted["y2"])


def safe(shape: LineLayout, apart: int) -> bool:
    """Whether outputs that begin `apart` pixels before the input never overwrite a pixel that is read later."""
    down, across, step = shape.down, shape.across, shape.rows * shape.down.stride
    bands = range(0, shape.tiles, shape.bands)
    shared = shape.held - shape.bands * shape.fresh if shape.shares else 0
    reads = []
    for tile in bands:
        lines = range(shared if tile else 0, shape.held)
        uppers = [tile * step + 2 * line * down.dilation - down.pad for line in lines]
        reads.append({row for upper in uppers for row in (upper, upper + down.dilation) if 0 <= row < down.size})
    for index, tile in enumerate(bands):
        last = min((tile + shape.bands) * shape.rows, down.places)
        written = {pixel - apart for pixel in range(tile * shape.rows * across.places, last * across.places)}
        later = set().union(*reads[index + 1 :])
        if any(pixel // across.size in later for pixel in written):
            return False
    return True


@pytest.mark.parametrize("size", [(12, 70, 1, 1), (12, 9, 1, 1), (13, 20, 2, 1), (9, 6, 1, 0), (20, 5, 3, 2)])
def test_the_distance_is_the_least_safe_one(size: tuple[int, int, int, int]) -> None:
    height, width, stride, pad = size
    attributes = DepthwiseConv2D((stride, stride), padding=((pad, pad), (pad, pad)))
    graph = single(attributes, [(height, width, 4)], {"kernel": np.ones((3, 3, 4, 1))})
    shape = line_layout(site_of(graph, graph.ops[0]), 0)
    assert shape.bands < shape.tiles
    (overlap,) = overlaps(shape)
    assert overlap.step == 4 and overlap.distance % 4 == 0
    assert safe(shape, overlap.distance // 4) and not safe(shape, overlap.distance // 4 - 1)


@pytest.mark.parametrize(
    ("size", "kernel", "dilation", "turned"),
    [((1, 64), (1, 3), 1, False), ((64, 1), (3, 1), 4, True), ((16, 16), (1, 7), 1, True), ((20, 5), (3, 3), 1, False)],
)
def test_taps_are_paired_along_the_axis_that_takes_less(
    size: tuple[int, int], kernel: tuple[int, int], dilation: int, turned: bool
) -> None:
    """A row of one pixel's height has tiles of one output if its columns are paired."""
    pads = tuple((dilation * (taps // 2),) * 2 for taps in kernel)
    attributes = DepthwiseConv2D(padding=pads, dilation=(dilation, dilation))
    graph = single(attributes, [(*size, 4)], {"kernel": np.ones((*kernel, 4, 1))})
    assert line_layout(site_of(graph, graph.ops[0]), BAND).turned == turned
