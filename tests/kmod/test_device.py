"""The character device: what it says to wrong use, and that nothing brings it down."""

from __future__ import annotations

import re

import pytest

from tests.kmod.workshop import FLOAT, INTEGER, Recipe, Workshop, with_extra

pytestmark = pytest.mark.kernel

ANSWERS = {
    "open": "0",
    "link read of nothing": "EAGAIN",
    "link read of no bytes": "0",
    "link write of no bytes": "0",
    "link write from nowhere": "EFAULT",
    "link events": "1",
    "unknown ioctl": "ENOTTY",
    "terminal ioctl": "ENOTTY",
    "mode from nowhere": "EFAULT",
    "mode that is none": "EINVAL",
    "seek": "ESPIPE",
    "pread": "ESPIPE",
    "mmap": "ENODEV",
    "plain mode": "0",
    "read before run": "ENODATA",
    "events before run": "1",
    "short write": "EINVAL",
    "long write": "EINVAL",
    "empty write": "EINVAL",
    "write from nowhere": "EFAULT",
    "read after failures": "ENODATA",
    "write": "1",
    "events after run": "1",
    "short read": "EINVAL",
    "read to nowhere": "EFAULT",
    "read": "1",
    "read again": "1",
    "reset": "0",
    "read after reset": "ENODATA",
}


@pytest.mark.turns(4)
def test_wrong_use(workshop: Workshop) -> None:
    built = workshop.build(FLOAT)
    script = """\
insmod /nn_f.ko || verdict not loaded
/poke /dev/nn_f 16 4
exec 5</dev/nn_f
rmmod nn_f && verdict unloaded while open
exec 5<&-
for name in hash plan version inputs outputs; do echo "$name: $(cat /sys/class/misc/nn_f/$name)"; done
cat /sys/kernel/debug/nn_f/latency /sys/kernel/debug/nn_f/counters
rmmod nn_f || verdict not unloaded
verdict passed
"""
    outcome = workshop.run(built, {"/poke": workshop.program("poke")}, script)
    assert outcome.passed, outcome.log[-3000:]
    assert dict(re.findall(r"poke: (.*): (\w+)", outcome.log)) == ANSWERS
    assert "can't unload module 'nn_f': Resource temporarily unavailable" in outcome.log
    assert "unloaded, 0 allocations left" in outcome.log
    assert re.search(r"^hash: [0-9a-f]{16}$", outcome.log, re.MULTILINE)
    assert re.search(r"^inputs: input_layer_1: float \[1\]\[4\]$", outcome.log, re.MULTILINE)
    assert re.search(r"^\d+ ns or more: \d+$", outcome.log, re.MULTILINE)
    assert re.search(r"^runs [1-9]\d*$", outcome.log, re.MULTILINE)


@pytest.mark.turns(3)
@pytest.mark.parametrize("recipe", [FLOAT, pytest.param(INTEGER, marks=pytest.mark.full)], ids=["float", "int8"])
@pytest.mark.parametrize("count", [10_000, pytest.param(500_000, marks=pytest.mark.full)])
def test_random_use(workshop: Workshop, recipe: Recipe, count: int) -> None:
    built = workshop.build(recipe)
    name = built.module.stem
    size = sum(built.compiled.plan.locations[name].size for name in built.compiled.graph.inputs)
    script = f"""\
insmod /{name}.ko || verdict not loaded
/fuzz /dev/{name} 1 {count} {size} || verdict the fuzzer ended badly
cat /sys/kernel/debug/{name}/counters
rmmod {name} || verdict not unloaded
verdict passed
"""
    outcome = workshop.run(built, {"/fuzz": workshop.program("fuzz")}, script, 60 + count / 200)
    assert outcome.passed, outcome.log[-3000:]
    assert f"fuzz: {count} operations" in outcome.log
    assert "unloaded, 0 allocations left" in outcome.log
    runs = re.search(r"^runs (\d+)$", outcome.log, re.MULTILINE)
    assert runs is not None and int(runs[1]) > count / 500, "the fuzzer hardly ever gets as far as a run"


HOOKS = with_extra(FLOAT, "-DNN_TEST_HOOKS")
MOST = 40
"""More requests than a loading makes."""


@pytest.mark.turns(4)
def test_no_memory(workshop: Workshop) -> None:
    """Every request for memory fails once, the first, the second and so on: while loading, then while opening."""
    script = f"""\
n=1
while ! insmod /nn_f.ko fail_allocation=$n 2>/tmp/said; do
    cat /tmp/said
    n=$((n + 1))
    [ $n -gt {MOST} ] && verdict never loaded
done
echo "loads fail: $((n - 1))"
n=1
while ! (echo $n >/sys/module/nn_f/parameters/fail_allocation; exec 5</dev/nn_f) 2>/tmp/said; do
    cat /tmp/said
    n=$((n + 1))
    [ $n -gt {MOST} ] && verdict never opened
done
echo "opens fail: $((n - 1))"
echo 0 >/sys/module/nn_f/parameters/fail_allocation
rmmod nn_f || verdict not unloaded
verdict passed
"""
    outcome = workshop.run(workshop.build(HOOKS), {}, script)
    assert outcome.passed, outcome.log[-3000:]
    loads = re.search(r"loads fail: (\d+)", outcome.log)
    assert loads is not None and int(loads[1]) >= 6
    assert outcome.log.count("Cannot allocate memory") >= int(loads[1])
    assert "opens fail: 3" in outcome.log
    left = re.findall(r"(?:not loaded|unloaded), (\d+) allocations left", outcome.log)
    assert set(left) == {"0"}
