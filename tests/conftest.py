"""Options of the test run."""

from __future__ import annotations

import os
from collections.abc import Iterator

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: tests run side by side, and its threads would wait

os.environ.setdefault("NNBUILD_QUIET", "1")  # or a loaded machine would have commands say what takes them long

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # a loaded machine is no mistake of the code
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden C files anew instead of comparing")
    parser.addoption("--trials", default="0:200", help="seeds of what goes wrong on a board's line, FIRST:END")


@pytest.fixture(autouse=True)
def own_numbers(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test draws the same numbers from its module's generators, whichever tests ran before it in its process."""
    held = [value for value in vars(request.module).values() if isinstance(value, np.random.Generator)]
    states = [generator.bit_generator.state for generator in held]
    yield
    for generator, state in zip(held, states, strict=True):
        generator.bit_generator.state = state
