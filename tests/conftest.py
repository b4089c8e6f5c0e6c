"""Options of the test run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from zlib import crc32

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: tests run side by side, and its threads would wait

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # its sums depend on the machine; its maxima over volumes crash

os.environ.setdefault("NNBUILD_QUIET", "1")  # or a loaded machine would have commands say what takes them long

import numpy as np
import pytest
from hypothesis import settings

from tests.zoo.case import PART, PARTS

settings.register_profile("untimed", deadline=None)  # a loaded machine is no mistake of the code
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden C files anew instead of comparing")
    parser.addoption("--trials", default="0:200", help="seeds of what goes wrong on a board's line, FIRST:END")
    parser.addoption("--turn", type=int, help="run an n-th of the cases marked as turns(n); this number tells which")


def pytest_configure(config: pytest.Config) -> None:
    turn = config.getoption("--turn")
    if turn is not None:
        os.environ[PART] = str(crc32(f"{turn}".encode()) % PARTS)  # whichever cases of families the number chooses


def pytest_report_header(config: pytest.Config) -> list[str]:
    turn = config.getoption("--turn")
    return [] if turn is None else [f"turn: {turn} (pytest --turn {turn} takes the same cases; without it, all)"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    turn = config.getoption("--turn")
    if turn is None:
        return
    waiting = {item for family in families(items) for item in of_other_turns(family, turn)}
    config.hook.pytest_deselected(items=[item for item in items if item in waiting])
    items[:] = [item for item in items if item not in waiting]


def families(items: list[pytest.Item]) -> Iterable[list[pytest.Item]]:
    """The cases of each test that takes turns, which may be one. Cases of full runs alone do not count."""
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("turns") and not item.get_closest_marker("full"):
            found.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return found.values()


def of_other_turns(family: list[pytest.Item], turn: int) -> list[pytest.Item]:
    """In an order without a pattern, so that no turn holds one model or one format alone, or most of the long tests."""
    marker = family[0].get_closest_marker("turns")
    assert marker is not None
    (count,) = marker.args
    mixed = sorted(family, key=lambda item: crc32(item.nodeid.encode()))
    first = crc32(family[0].nodeid.partition("[")[0].encode())
    return [item for place, item in enumerate(mixed, first) if place % count != turn % count]


@pytest.fixture(autouse=True)
def own_numbers(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test draws the same numbers from its module's generators, whichever tests ran before it in its process."""
    held = [value for value in vars(request.module).values() if isinstance(value, np.random.Generator)]
    states = [generator.bit_generator.state for generator in held]
    yield
    for generator, state in zip(held, states, strict=True):
        generator.bit_generator.state = state
