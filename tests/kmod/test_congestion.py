"""The example: TCP steered by a network, in a guest, over loopback."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from nnbuild.backends.kmod.build import KernelChoice, build
from nnbuild.backends.kmod.weights import weights_file
from nnbuild.plan.plan import Plan
from tests.kmod.test_swap import other
from tests.kmod.workshop import POLICY, Built, Recipe, Workshop

pytestmark = pytest.mark.kernel

INTEGERS = Recipe("policy", quantize="int16")
FLOATS = Recipe("policy", swappable=True)


def congestion_control(workshop: Workshop, built: Built) -> Path:
    folder = workshop.folder / f"tcp-{built.folder.name}"
    if not folder.is_dir():
        folder.mkdir()
        for name in ("tcp_nn.c", "Kbuild", "Makefile"):
            shutil.copy(POLICY / name, folder)
    return build(built.compiled.board, folder, KernelChoice(), {"MODEL": str(built.folder)})


START = """\
ip link set lo up
insmod /tcp_nn.ko 2>/dev/null && verdict loaded without its model
insmod /nn_policy.ko || verdict the model is not loaded
insmod /tcp_nn.ko || verdict the example is not loaded
"""
COUNTS = 'for n in decisions raised lowered refused; do echo "$n $(cat /sys/module/tcp_nn/parameters/$n)"; done\n'
END = """\
rmmod tcp_nn || verdict the example is not unloaded
rmmod nn_policy || verdict the model is not unloaded
verdict passed
"""


def windows(log: str) -> list[tuple[int, ...]]:
    found = re.findall(r"traffic: nn first (\d+) last (\d+) least (\d+) most (\d+) changes (\d+) bytes (\d+)", log)
    return [tuple(map(int, entry)) for entry in found]


def count(log: str, name: str) -> list[int]:
    return [int(n) for n in re.findall(rf"^{name} (\d+)$", log, re.MULTILINE)]


@pytest.mark.turns(4)
def test_it_steers_and_cannot_be_unloaded_meanwhile(workshop: Workshop) -> None:
    built = workshop.build(INTEGERS)
    module = congestion_control(workshop, built)
    script = f"""{START}
rmmod nn_policy && verdict the model was unloaded while it is used
/traffic nn 4000
/traffic nn hold &
usleep 500000
rmmod tcp_nn && verdict the example was unloaded while a connection uses it
wait
usleep 1000000
{COUNTS}{END}"""
    files = {"/tcp_nn.ko": module.read_bytes(), "/traffic": workshop.program("traffic")}
    outcome = workshop.run(built, files, script)
    assert outcome.passed, outcome.log[-3000:]
    assert outcome.log.count("Resource temporarily unavailable") == 2
    ((first, _, least, most, changes, sent),) = windows(outcome.log)
    assert first == 10 and most > least and changes > 1 and sent > 0
    (decisions,), (raised,), (lowered,) = (count(outcome.log, n) for n in ("decisions", "raised", "lowered"))
    assert decisions > 1 and raised + lowered > 1
    assert count(outcome.log, "refused") == [0]
    assert "unloaded, 0 allocations left" in outcome.log


@pytest.mark.full
def test_the_network_decides(workshop: Workshop, tmp_path: Path) -> None:
    """Weights that always say more, and weights that always say less: the window follows at once."""
    built = workshop.build(FLOATS)
    module = congestion_control(workshop, built)
    blobs = {
        f"/lib/firmware/{name}": weights_file(biased(tmp_path / name, by))
        for name, by in (("more", 50.0), ("less", -50.0))
    }
    script = f"""{START}
echo more >/sys/class/misc/nn_policy/weights || verdict not exchanged
/traffic nn 4000
{COUNTS}
echo less >/sys/class/misc/nn_policy/weights || verdict not exchanged
/traffic nn 4000
{COUNTS}usleep 1000000
{END}"""
    files = {"/tcp_nn.ko": module.read_bytes(), "/traffic": workshop.program("traffic"), **blobs}
    outcome = workshop.run(built, files, script)
    assert outcome.passed, outcome.log[-3000:]
    up, down = windows(outcome.log)
    assert up[1] > up[0] == 10, "raised"
    assert down[1] == 2, "lowered to the least there is"
    raised, lowered = count(outcome.log, "raised"), count(outcome.log, "lowered")
    assert raised[0] > 0 and lowered[0] == 0 and raised[1] == raised[0] and lowered[1] > 0


def biased(folder: Path, by: float) -> Plan:
    folder.mkdir()
    return other(folder, "policy", by, "change/bias").plan
