"""What random tasks do not meet: registers, errors, the queue, resets. Each takes a fresh device."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from nnbuild.offload.task import Addresses, Layout, Task
from tests.systolic.simulated import Simulated, extent, got, moved, random_inputs, random_task, triple

WHERE = 1 << 19
SMALL = Layout((4, 4, 8), 32, 8)


def pool(size: int = 4) -> Task:
    whole = Layout((size, size, 8), 8 * size, 8)
    return Task("max_pool", "pool", (whole,), whole)


def written(sim: Simulated, descriptor: bytes, at: int = WHERE) -> int:
    sim.memory[at : at + 64] = np.frombuffer(descriptor, np.uint8)
    return at


def healthy(sim: Simulated) -> None:
    """A chain of tasks comes out right, whatever was before."""
    rng = np.random.default_rng(1)
    task = random_task(rng, sim.d.LANES)
    inputs = random_inputs(rng, task)
    descriptors, at, _ = triple(task, inputs, sim, 0, 0)
    assert sim.run(descriptors, WHERE) == 0
    assert np.array_equal(got(sim.memory, at, task.output), sim.d.compute(task, inputs))


def registers_read_as_the_table_says(sim: Simulated) -> None:
    d = sim.d
    assert sim.read("id") == d.ID
    scratch = (d.SCRATCH_BYTES // d.LANES).bit_length() - 1
    assert sim.read("version") == d.VERSION | d.LANES << 8 | d.QUEUE << 16 | scratch << 24
    sim.write("ctrl", 3)
    assert sim.read("ctrl") == 3
    sim.write("watchdog", 12345)
    assert sim.read("watchdog") == 12345
    sim.write("id", 0)
    assert sim.read("id") == d.ID
    assert sim.read("head") & 1 << 16 == 0
    first = sim.read("cycles")
    sim.step(10)
    assert sim.read("cycles") == first + 11
    assert int(sim._calls.systolic_sim_read(sim._sim, 0xF0)) == 0


def flipped_descriptors_stop_the_queue(sim: Simulated) -> None:
    for bit in range(0, 512, 7):
        descriptor = bytearray(sim.d.describe(pool(), Addresses((0,), 4096, tag=7)))
        descriptor[bit // 8] ^= 1 << bit % 8
        sim.submit(written(sim, bytes(descriptor)))
        assert sim.finish() == sim.d.ERRORS["descriptor"]
        assert sim.read("done") == 0
        sim.reset()
    healthy(sim)


def nonsense_with_a_right_crc_is_refused(sim: Simulated) -> None:
    good = sim.d.describe(pool(), Addresses((0,), 4096, tag=9))
    for place, value in ((0, 0), (0, 99), (4, 77), (20, 0), (50, 1)):  # operation, version, height, reserved
        body = bytearray(good[:60])
        body[place] = value
        sim.submit(written(sim, bytes(body) + zlib.crc32(bytes(body)).to_bytes(4, "little")))
        expected = sim.d.ERRORS["task"]
        if place == 50:
            expected = sim.finish()
        assert sim.finish() == expected, place
        sim.reset()
    healthy(sim)


def a_queue_that_overflows_says_so(sim: Simulated) -> None:
    at = written(sim, sim.d.describe(pool(16), Addresses((0,), 4096, tag=1)))
    for _ in range(9):
        sim.write("doorbell", at)
    assert sim.finish() == sim.d.ERRORS["overflow"]
    sim.reset()
    healthy(sim)


def addresses_outside_are_errors(sim: Simulated) -> None:
    last = sim.d.SCRATCH_BYTES - sim.d.LANES
    cases = [
        (pool(), Addresses((last,), 0)),
        (pool(), Addresses((0,), last)),
        (moved("load", 64, sim.d.LANES), Addresses((0,), last)),
        (moved("store", 64, sim.d.LANES), Addresses((last,), 0)),
    ]
    if sim.d.SCRATCH_BYTES // sim.d.LANES < 1 << 16:
        for task, addresses in cases:
            sim.submit(written(sim, sim.d.describe(task, addresses)))
            sim.step(500)
            assert sim.field("status", "error") == sim.d.ERRORS["address"]
            sim.reset()
    healthy(sim)


def memory_that_is_not_there_is_an_error(sim: Simulated) -> None:
    sim.submit(written(sim, sim.d.describe(moved("load", 64, sim.d.LANES), Addresses((1 << 30,), 0, tag=3))))
    assert sim.finish() == sim.d.ERRORS["memory"]
    assert sim.field("tag", "failed") == 3
    sim.reset()
    healthy(sim)


def flipped_constants_are_found(sim: Simulated) -> None:
    rng = np.random.default_rng(2)
    task = random_task(rng, sim.d.LANES)
    while task.operation != "conv2d":
        task = random_task(rng, sim.d.LANES)
    for after in (0, 5, 12):
        descriptors, _, _ = triple(task, random_inputs(rng, task), sim, 0, 0, tag=20)
        sim.fault(5, after, 0, 1 << 13)
        sim.run(descriptors, WHERE)
        assert sim.field("status", "error") == sim.d.ERRORS["constants"]
        assert sim.field("tag", "failed") == 21
        sim.reset()
    healthy(sim)


def the_watchdog_ends_what_hangs(sim: Simulated) -> None:
    sim.write("watchdog", 700)
    sim.fault(1, 30)
    sim.submit(written(sim, sim.d.describe(moved("load", 4096, sim.d.LANES), Addresses((0,), 0))))
    sim.step(1500)
    assert sim.field("status", "error") == sim.d.ERRORS["watchdog"]
    sim.reset()
    sim.write("watchdog", 0)
    healthy(sim)


def the_interrupt_comes_and_goes(sim: Simulated) -> None:
    sim.write("ctrl", 3)
    sim.submit(written(sim, sim.d.describe(pool(), Addresses((0,), 4096, tag=5, interrupt=True))))
    assert sim.step(5000) < 5000
    assert sim.interrupt()
    assert sim.read("irq") == 1
    assert sim.field("tag", "done") == 5
    sim.write("irq", 1)
    sim.step(1)
    assert not sim.interrupt()
    sim.submit(written(sim, bytes(64)))
    assert sim.step(5000) < 5000
    assert sim.read("irq") == 2
    sim.write("irq", 2)
    sim.reset()
    healthy(sim)


def a_device_that_is_not_enabled_waits(sim: Simulated) -> None:
    sim.write("ctrl", 0)
    sim.submit(written(sim, sim.d.describe(pool(), Addresses((0,), 4096))))
    sim.step(500)
    assert sim.read("done") == 0
    assert sim.field("status", "busy") == 1
    sim.write("ctrl", 1)
    assert sim.finish() == 0


def tasks_are_reported_in_order(sim: Simulated) -> None:
    """A long task of the array, and short copies beside it: those that are done first are not reported first."""
    window = Layout((16, 16, 8), 128, 8)
    long = Task("max_pool", "pool", (window,), Layout((1, 1, 8), 8, 8), window=(16, 16))
    short = moved("load", 64, sim.d.LANES)
    tasks = [(long, Addresses((0,), 8192, tag=1))]
    tasks += [(short, Addresses((0,), 32768, tag=tag)) for tag in (2, 3)]
    for index, (task, addresses) in enumerate(tasks):
        sim.submit(written(sim, sim.d.describe(task, addresses), WHERE + 64 * index))
    sim.step(250)
    assert sim.field("status", "array_busy") == 1
    assert sim.field("status", "dma_busy") == 0
    assert sim.read("dma") > 2 * 64 // sim.d.LANES
    assert sim.read("done") == 0
    assert sim.finish() == 0
    assert (sim.read("done"), sim.field("tag", "done")) == (3, 3)


def a_fence_waits(sim: Simulated) -> None:
    """Without fences a store overtakes the task before it; with them it brings what was computed."""
    rng = np.random.default_rng(3)
    values = rng.integers(-128, 128, (16, 16, 8)).astype(np.int8)
    task = pool(16)
    whole = moved("load", 2048, sim.d.LANES), moved("store", 2048, sim.d.LANES)
    sim.memory[:2048] = values.ravel().view(np.uint8)
    for fences, equal in (((frozenset(), frozenset()), False), ((frozenset({"dma"}), frozenset({"array"})), True)):
        descriptors = [
            sim.d.describe(whole[0], Addresses((0,), 0)),
            sim.d.describe(task, Addresses((0,), 4096, after=fences[0])),
            sim.d.describe(whole[1], Addresses((4096,), 8192, after=fences[1])),
        ]
        assert sim.run(descriptors, WHERE) == 0
        assert np.array_equal(got(sim.memory, 8192, task.output), values) == equal
        values = ~values
        sim.memory[:2048] = values.ravel().view(np.uint8)


def a_reset_under_way_leaves_nothing_behind(sim: Simulated) -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        task = random_task(rng, sim.d.LANES)
        if sum(extent(each) + 16 for each in (*task.inputs, task.output)) > sim.d.SCRATCH_BYTES:
            continue
        descriptors, _, _ = triple(task, random_inputs(rng, task), sim, 0, 0)
        for index, descriptor in enumerate(descriptors[:4]):
            sim.write("doorbell", written(sim, descriptor, WHERE + 64 * index))
        sim.step(int(rng.integers(1, 400)))
        sim.reset()
        healthy(sim)


def counters_begin_again(sim: Simulated) -> None:
    healthy(sim)
    assert sim.read("span") > 0
    assert sim.read("reads") > 0
    assert sim.read("writes") > 0
    sim.write("ctrl", 1 | 8)
    names = ("span", "idle", "array", "stall", "mac", "dma", "empty", "reads", "writes")
    assert [sim.read(name) for name in names] == [0] * len(names)


DIRECTED: list[Callable[[Simulated], None]] = [
    registers_read_as_the_table_says,
    flipped_descriptors_stop_the_queue,
    nonsense_with_a_right_crc_is_refused,
    a_queue_that_overflows_says_so,
    addresses_outside_are_errors,
    memory_that_is_not_there_is_an_error,
    flipped_constants_are_found,
    the_watchdog_ends_what_hangs,
    the_interrupt_comes_and_goes,
    a_device_that_is_not_enabled_waits,
    tasks_are_reported_in_order,
    a_fence_waits,
    a_reset_under_way_leaves_nothing_behind,
    counters_begin_again,
]
