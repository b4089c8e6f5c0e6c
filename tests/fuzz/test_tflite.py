"""A short run of the `.tflite` fuzzer, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("tflite")


@pytest.mark.fuzz
def test_spoilt_files_are_refused_in_words() -> None:
    command = [sys.executable, "-m", "tests.fuzz.tflite", "--cases", "800", "--seed", "11"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.full
@pytest.mark.fuzz
def test_many_spoilt_files_are_refused_in_words() -> None:
    command = [sys.executable, "-m", "tests.fuzz.tflite", "--cases", "12000", "--seed", "12"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
