"""Vectors in a kernel of 64-bit Arm: on processors that have a set, and on one that has not."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.kmod.workshop import SHARED, Recipe, Workshop, require_kernel

pytestmark = pytest.mark.kernel

RUN = """\
insmod /nn_f.ko 2>&1 || verdict the module is not loaded
cat /sys/kernel/debug/nn_f/counters
rmmod nn_f || verdict the module is not unloaded
verdict passed
"""
PLAIN = Recipe("f", board="linux-kmod-arm64")
LONGEST = 100_000
"""Instructions in a section: 100 microseconds of a processor at 1 GHz that begins one in each cycle."""
NANOSECOND = "shift=0,sleep=off"
"""An instruction each, so that times are counts."""


@pytest.fixture
def arm64(workshop: Workshop) -> Workshop:
    require_kernel(PLAIN)
    return workshop


@pytest.mark.turns(4)
@pytest.mark.parametrize(
    ("processor", "isa"),
    [("cortex-a72", "neon_dotprod"), pytest.param("cortex-a76", "neon_i8mm", marks=pytest.mark.full)],
)
def test_a_processor_without_the_set(arm64: Workshop, processor: str, isa: str) -> None:
    outcome = arm64.run(arm64.build(replace(PLAIN, isa=isa)), {}, RUN, processor=processor)
    assert "this processor lacks what the module was built for" in outcome.log
    assert outcome.verdict == "the module is not loaded" and not outcome.trouble


@pytest.mark.full
@pytest.mark.parametrize(
    ("quantize", "isa", "processor"),
    [
        ("float", "neon", "cortex-a72"),
        ("float", "neon", "max"),
        ("int8", "neon", "cortex-a72"),
        ("int8", "neon", "max"),
        ("int8", "neon_dotprod", "max"),
        ("int8", "neon_i8mm", "max"),
    ],
)
def test_resnet8(arm64: Workshop, quantize: str, isa: str, processor: str) -> None:
    """Loading computes samples with their wanted outputs; no section is long."""
    recipe = replace(PLAIN, model=SHARED / "pretrainedResnet.h5", quantize=quantize, isa=isa)
    if not recipe.model.is_file():
        pytest.skip(f"{recipe.model.name} is not here")
    outcome = arm64.run(arm64.build(recipe), {}, RUN, 400.0, processor=processor, icount=NANOSECOND)
    assert outcome.passed, outcome.log[-3000:]
    found = re.search(r"longest_section_ns (\d+)", outcome.log)
    assert found is not None
    print(f"ResNet8 in {quantize}, {isa} on {processor}: {int(found[1]):,} instructions in the longest section")
    assert 0 < int(found[1]) <= LONGEST
