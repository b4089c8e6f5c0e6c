"""A bad line: 1 % of all bytes harmed, each way of harm by itself and all together. No wrong result, no hang.

The line is simulated with a clock of its own, so hundreds of trials take seconds and every one can be repeated.
"""

from __future__ import annotations

import numpy as np
import pytest
from link_devices import Faults, MemoryDevice, MemoryTransport, fake_outputs, memory_link, samples

from nnbuild.device.session import open_model, run_samples

FEW, MANY = 40, 400

KINDS = {
    "dropped": Faults(drop=0.01),
    "flipped": Faults(flip=0.01),
    "doubled": Faults(double=0.01),
    "injected": Faults(inject=0.01),
    "delayed": Faults(delay=0.01),
    "mixed": Faults(drop=0.002, flip=0.002, double=0.002, inject=0.002, delay=0.002),
}


def one_trial(device: MemoryDevice, faults: Faults, seed: int, count: int) -> MemoryTransport:
    device.start()
    transport = MemoryTransport(device, faults, seed)
    link = memory_link(transport, seed)
    model = open_model(link)
    given = samples(count, seed)
    runs = run_samples(link, model, given, stateful=True)
    for index, sample in enumerate(given):
        total, mixed = fake_outputs(sample, index)
        assert np.array_equal(runs.raw[0][index], total)
        assert np.array_equal(runs.raw[1][index], mixed)
    return transport


@pytest.mark.turns(9)
@pytest.mark.parametrize("trials", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.full] * (kind in ("doubled", "delayed"))) for kind in KINDS]
)
def test_results_stay_right(device: MemoryDevice, kind: str, trials: int) -> None:
    for seed in range(trials):
        transport = one_trial(device, KINDS[kind], seed, count=3)
        assert transport.clock < 120


def test_chunks_shrink_on_a_bad_line_and_recover(device: MemoryDevice) -> None:
    transport = MemoryTransport(device, Faults(flip=0.01), 1)
    link = memory_link(transport)
    hello = link.hello()
    whole = link._read_chunks(hello.descriptor_size, link._describe_chunk)
    assert 8 <= link._chunk <= 256
    transport.faults = Faults()
    for _ in range(40):
        assert link._read_chunks(hello.descriptor_size, link._describe_chunk) == whole
    assert link._chunk == 1024


@pytest.mark.slow
def test_replies_that_come_too_late_are_not_taken_for_others(device: MemoryDevice) -> None:
    """Everything is held up for longer than the host waits: every request is repeated, every reply comes twice."""
    for seed in range(FEW):
        one_trial(device, Faults(delay=0.05), seed, count=2)


@pytest.mark.turns(4)
@pytest.mark.fuzz
@pytest.mark.parametrize("percent", [2, pytest.param(4, marks=pytest.mark.full)])
def test_worse_lines_stay_right_too(device: MemoryDevice, percent: int) -> None:
    share = percent / 500
    for seed in range(MANY):
        one_trial(device, Faults(share, share, share, share, share), seed, count=2)
