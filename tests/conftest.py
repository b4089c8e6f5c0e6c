"""Options of the test run."""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: tests run side by side, and its threads would wait

os.environ.setdefault("NNBUILD_QUIET", "1")  # or a loaded machine would have commands say what takes them long

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # a loaded machine is no mistake of the code
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden C files anew instead of comparing")
    parser.addoption("--trials", default="0:200", help="seeds of what goes wrong on a board's line, FIRST:END")
