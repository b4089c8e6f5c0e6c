"""Depthwise convolutions whose channels do not fill vectors: no set computes them one by one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nnbuild.emit.emit import emit
from nnbuild.isa.registry import isas, vector_sets
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.depthwise.padded_rows import Interleaved
from nnbuild.kernels.lanes.tap_vectors import tap_vectors
from nnbuild.kernels.registry import variants
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.site import Site, site_of
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.target import Target
from tests.kernels.cases import normal
from tests.support.graphs import single
from tests.support.quantized import quantized

SETS = [v for v in vector_sets() if {"integer", "sums"} & set(v.kernels)]


def plan(isa: str, channels: int, form: str = "int8", width: int = 9, stride: int = 1, multiplier: int = 1) -> Plan:
    layer = DepthwiseConv2D((stride, stride), padding=((1, 1), (1, 1)))
    graph = single(layer, [(9, width, channels)], {"kernel": normal(3, 3, channels, multiplier)})
    return make_plan(graph if form == "float" else quantized(graph, form, seed=1), "net", Target(isas()[isa]))


def site(made: Plan) -> Site[DepthwiseConv2D]:
    return site_of(made.graph, made.graph.ops[0]).of(DepthwiseConv2D)


@pytest.mark.parametrize("v", SETS, ids=lambda v: v.name)
def test_any_number_of_channels_fills_vectors(v: Vectors) -> None:
    for channels in (1, 3, 13, 31, 33, 65, 127):
        made = plan(v.name, channels, width=40)
        assert "_integers" in made.steps[0].kernel_name
        nest = Interleaved(site(made), tap_vectors(v, site(made)))
        assert len(nest.starts) <= 1.08 * -(-nest.outputs // nest.group), channels


@pytest.mark.slow
@pytest.mark.turns(3)
@pytest.mark.parametrize("form", ["float", "int8", "int16"])
@pytest.mark.parametrize("v", vector_sets(), ids=lambda v: v.name)
def test_several_output_channels_of_an_input_channel(v: Vectors, form: str) -> None:
    """No kernel refuses them that takes one."""
    for channels, multiplier in ((1, 13), (5, 2), (32, 3)):
        names = {
            found: {kernel.name for kernel in variants("depthwise_conv2d") if kernel.accepts(site(made)) is None}
            for found, made in ((times, plan("c99", channels, form, multiplier=times)) for times in (1, multiplier))
        }
        assert {name for name in names[1] if name.startswith(v.name)} <= names[multiplier]


@pytest.mark.slow
@pytest.mark.turns(3)
@pytest.mark.skipif(shutil.which("clang-19") is None, reason="needs clang-19")
@pytest.mark.parametrize("form", ["int8", "int16"])
@pytest.mark.parametrize("channels", [3, 5, 8, 13, 16, 32])
def test_no_vector_waits_on_the_stack(channels: int, form: str, tmp_path: Path) -> None:
    """Its size there is a processor's longest vector."""
    for width, stride, multiplier in ((9, 1, 1), (9, 2, 1), (40, 1, 1), (9, 1, 2)):
        made = plan("rvv", channels, form, width, stride, multiplier)
        for name, content in emit(made).files.items():
            (tmp_path / name).write_bytes(content)
        flags = "--target=riscv64-linux-gnu -march=rv64gcv -fno-vectorize -fno-slp-vectorize -O2 -S -o -"
        command = ["clang-19", *flags.split(), "net_kernels.c"]
        found = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        assert "zve32x_dot_lanes" in (tmp_path / "net_kernels.c").read_text()
        assert sum(map(int, re.findall(r"vs(\d)r\.v", found))) <= 2, (channels, width, stride)
