"""The window of a site: the sizes that loop nests use, against counting by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnbuild.kernels.loops.window import Axis, Strip, Window, edged_strips, strips, window_of
from nnbuild.ops.base import Attributes
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.site import Site, site_of
from tests.support.graphs import single

AXES = [
    Axis(size, (size + pad + after - (kernel - 1) * dilation - 1) // stride + 1, kernel, stride, dilation, pad)
    for size in (5, 8)
    for kernel, stride, dilation in ((1, 1, 1), (3, 1, 1), (3, 2, 1), (2, 3, 1), (3, 1, 2))
    for pad, after in ((0, 0), (1, 1), (2, 0), (0, 3))
]


def under(axis: Axis, output: int) -> list[int]:
    return [output * axis.stride - axis.pad + tap * axis.dilation for tap in range(axis.kernel)]


def site(attributes: Attributes, shape: tuple[int, ...], kernel: tuple[int, ...] = ()) -> Site:
    graph = single(attributes, [shape], {"kernel": np.ones(kernel)} if kernel else {})
    return site_of(graph, graph.ops[0])


@pytest.mark.parametrize("axis", AXES)
def test_an_axis_counts_inputs_under_its_windows(axis: Axis) -> None:
    inputs = [under(axis, output) for output in range(axis.places)]
    inside = [all(0 <= i < axis.size for i in each) for each in inputs]
    assert list(axis.inside) == [output for output, all_real in enumerate(inside) if all_real]
    assert axis.covered == inputs[-1][-1] - inputs[0][0] + 1
    assert axis.taken == min(axis.size, inputs[-1][-1] + 1)
    assert axis.padded >= axis.covered and axis.padded >= axis.pad + axis.size
    assert axis.inside_share == np.mean([0 <= i < axis.size for each in inputs for i in each])


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("longest", [1, 2, 3, 8])
def test_strips_cover_every_output_once(axis: Axis, longest: int) -> None:
    for found in (strips(axis.places, longest), edged_strips(axis, longest)):
        outputs = [strip.place + i for strip in found for i in range(strip.size * strip.count)]
        assert outputs == list(range(axis.places))
        assert max(strip.size for strip in found) <= longest
    for strip in edged_strips(axis, longest):
        met = axis.taps_at(strip.place, strip.size)
        for place in range(strip.place, strip.stop, strip.size):
            left = place * axis.stride - axis.pad
            wanted = {
                (output, tap)
                for output in range(strip.size)
                for tap, at in enumerate(under(axis, place + output))
                if 0 <= at < axis.size
            }
            assert {pair for pairs in met.values() for pair in pairs} == wanted
            assert all(under(axis, place + o)[t] - left == at for at, pairs in met.items() for o, t in pairs)


def test_equal_strips_are_one() -> None:
    assert strips(10, 4) == [Strip(0, 4), Strip(4, 3, 2)]
    assert edged_strips(Axis(12, 12, 3, 1, 1, 1), 3) == [Strip(0, 3), Strip(3, 3, 2), Strip(9, 3)]


def test_a_convolution() -> None:
    made = window_of(site(Conv2D((2, 1), (1, 2), ((0, 1), (2, 2)), 2), (8, 6, 4), (3, 3, 2, 10)))
    assert made == Window(Axis(8, 4, 3, 2), Axis(6, 6, 3, 1, 2, 2), 4, 2, 10, 2)
    assert (made.share, made.line, made.step, made.taps) == (5, 24, 4, 18)
    assert not made.contiguous and (made.runs, made.run) == (3, 2)
    assert replace(made, groups=1, depth=4, columns=Axis(6, 4, 3)).run == 12
    assert made.padded_line == 10 * 4


def test_a_pool_behind_it_takes_whole_windows_only() -> None:
    first = site(Conv2D(), (9, 8, 3), (3, 3, 3, 5))
    pool = Site(replace(first.op, attributes=Pool2D()), first.outputs, first.outputs, {})
    made = window_of(replace(first, tail=(pool,)))
    assert (made.rows.places, made.columns.places) == (6, 6) and made.outputs == (3, 3)
    assert made.rows_under(1) == 4 and made.rows_under(3) == 8 and made.row_step == 2
    assert made.positions(2, made.line) == [0, 3, 24, 27, 6, 9, 30, 33]


def test_others_are_windows_too() -> None:
    depthwise = window_of(site(DepthwiseConv2D((1, 1)), (5, 5, 4), (3, 3, 4, 2)))
    assert (depthwise.depth, depthwise.filters, depthwise.groups, depthwise.taps) == (1, 8, 4, 9)
    pool = window_of(site(Pool2D("average", (2, 3), (2, 3)), (6, 6, 7)))
    assert (pool.rows, pool.columns) == (Axis(6, 3, 2, 2), Axis(6, 2, 3, 3)) and pool.inside
    rows = window_of(site(Dense(), (3, 4, 6), (6, 9)))
    assert rows == Window(Axis(12, 12), Axis(1, 1), 6, 6, 9) and rows.flat
    assert rows.joined().outputs == (1, 12)


def test_rows_are_joined_where_every_position_is_alike() -> None:
    plain = window_of(site(Conv2D(), (40, 20, 3), (1, 1, 3, 2)))
    assert plain.joined().outputs == (8, 100)
    for other in (Conv2D((2, 2)), Conv2D(padding=((1, 1), (0, 0)))):
        made = window_of(site(other, (40, 20, 3), (1, 1, 3, 2)))
        assert not made.flat and made.joined() == made
