"""The check cannot be fooled: wrong programs fail it, whatever the tolerance is made of, and right ones pass."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnbuild.device.session import Runs
from nnbuild.jobs import job
from tests.cli.conftest import Nnbuild, numbers
from tests.frontend.keras_files import dense, h5_bytes, input_layer, put, random_arrays, sequential

pytestmark = pytest.mark.slow

WIDTH = 6


def layers(path: Path, last: dict[str, str] | None = None, spread: float = 1.0) -> Path:
    """x[6] -> a -> b -> last, each Dense(6)."""
    config = sequential(
        input_layer("x", [WIDTH]), dense("a", WIDTH), dense("b", WIDTH), dense("last", WIDTH, **(last or {}))
    )
    chance = np.random.default_rng(3)

    def drawn(scale: float = 1.0) -> list[np.ndarray]:
        return [(chance.normal(size=shape) * scale).astype(np.float32) for shape in ((WIDTH, WIDTH), (WIDTH,))]

    return put(path, h5_bytes(config, {"a": drawn(), "b": drawn(), "last": drawn(spread)}))


def running(monkeypatch: pytest.MonkeyPatch, change: Callable[[Runs], Runs]) -> None:
    """The device gives something else than what the program computes."""
    honest = job.run_samples
    monkeypatch.setattr(job, "run_samples", lambda *args, **named: change(honest(*args, **named)))


def zeroed(runs: Runs) -> Runs:
    return replace(runs, raw=tuple(np.zeros_like(v) for v in runs.raw), y=tuple(np.zeros_like(v) for v in runs.y))


@pytest.mark.turns(2)
@pytest.mark.parametrize("keep", ["a=float", "last=float"])
def test_a_layer_kept_in_float_hides_no_last_layer_of_zeros(
    nnbuild: Nnbuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str
) -> None:
    np.savez(tmp_path / "x.npz", x=numbers(64, WIDTH))
    options = ("--quantize", "int8", "--calibrate", tmp_path / "x.npz", "--keep", keep)
    model = layers(tmp_path / "net.h5")
    right = nnbuild("check", model, *options)
    assert right.status == 0, right.out
    running(monkeypatch, zeroed)
    wrong = nnbuild("check", model, *options)
    assert wrong.status == 1
    assert re.search(r"^missed  output 'last': .* the reference", wrong.out, re.MULTILINE)


def test_one_sample_that_overflows_excuses_no_other(
    nnbuild: Nnbuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not finite is judged by its kind, and the others as if it were not there."""
    x = numbers(20, WIDTH)
    x[13] *= 1e38
    np.savez(tmp_path / "x.npz", x=x)
    model = layers(tmp_path / "net.h5")
    right = nnbuild("check", model, "--inputs", tmp_path / "x.npz")
    assert right.status == 0, right.out

    def off(runs: Runs) -> Runs:
        y = runs.raw[0].copy()
        y[4, 2] += 1e-3
        return replace(runs, raw=(y,), y=(y,))

    def tamed(runs: Runs) -> Runs:
        y = np.nan_to_num(runs.raw[0])
        return replace(runs, raw=(y,), y=(y,))

    for change, said in ((off, "0.001"), (tamed, "inf at sample 13"), (zeroed, "the reference is")):
        with monkeypatch.context() as patch:
            running(patch, change)
            wrong = nnbuild("check", model, "--inputs", tmp_path / "x.npz")
        assert wrong.status == 1
        assert said in wrong.out


def test_classes_that_tie_are_no_disagreement(
    nnbuild: Nnbuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With weights like noise every class is as likely as any other: who comes first is a matter of the last bit."""
    np.savez(tmp_path / "x.npz", x=numbers(20, WIDTH))
    model = layers(tmp_path / "net.h5", last={"activation": "softmax"}, spread=1e-9)

    def nudged(runs: Runs) -> Runs:
        chance = np.random.default_rng(0)
        y = (runs.raw[0] + chance.normal(size=runs.raw[0].shape) * 1e-8).astype(np.float32)
        assert (y.argmax(axis=1) != runs.raw[0].argmax(axis=1)).any()
        return replace(runs, raw=(y,), y=(y,))

    running(monkeypatch, nudged)
    said = nnbuild("check", model, "--inputs", tmp_path / "x.npz")
    assert said.status == 0, said.out
    assert "top-1 agreement with float is 1, at least 0.98 wanted: 18 of 20 samples are enough" in said.out


@pytest.mark.parametrize(
    ("activation", "error", "status"), [("sigmoid", 6e-8, 0), ("sigmoid", 1e-6, 1), ("exponential", 6e-8, 1)]
)
def test_golden_outputs_near_zero(activation: str, error: float, status: int, nnbuild: Nnbuild, tmp_path: Path) -> None:
    """Frameworks that compute a logistic function as a half and something round its results as 1 is rounded."""
    head = dense("head", 3, activation=activation)
    arrays = {"head": [random_arrays((4, 3))[0] * 0.1, np.full(3, -24, np.float32)]}
    model = put(tmp_path / "small.h5", h5_bytes(sequential(input_layer("x", [4]), head), arrays))
    x = numbers(8, 4)
    y = np.exp(x.astype(np.float64) @ arrays["head"][0] - 24)  # so small that both functions are equal in a float
    np.savez(tmp_path / "golden.npz", x=x, y=(y + error).astype(np.float32))
    said = nnbuild("check", model, "--inputs", tmp_path / "golden.npz")
    assert said.status == status, said.out
    assert ("missed  output 'head': error against the golden output" in said.out) == bool(status)


def test_every_gate_is_printed_with_its_limit(nnbuild: Nnbuild, tmp_path: Path) -> None:
    said = nnbuild("check", layers(tmp_path / "net.h5"), "--max-rmse", "1", "--min-cosine", "0.5")
    assert said.status == 0
    lines = re.findall(r"^passed  (.*)$", said.out, re.MULTILINE)
    assert len(lines) == int(re.search(r"PASS: 21 samples, (\d+) gates", said.out)[1])  # type: ignore[index]
    assert any("rmse against float is" in line and "at most 1 allowed" in line for line in lines)
    assert any("cosine against float is" in line and "at least 0.5 wanted" in line for line in lines)
    assert any(re.search(r"error against the reference is \S+ at sample \d+, \S+ allowed", at) for at in lines)


def test_a_tolerance_that_is_given_is_absolute(nnbuild: Nnbuild, tmp_path: Path) -> None:
    model = layers(tmp_path / "net.h5")
    assert nnbuild("check", model, "--float-tolerance", "0").status == 1
    assert "0.5 allowed there" in nnbuild("check", model, "--float-tolerance", "0.5").out


def test_a_program_that_describes_its_outputs_wrongly_fails(nnbuild: Nnbuild, tmp_path: Path) -> None:
    """Right integers, read with a wrong scale, are wrong numbers."""
    np.savez(tmp_path / "x.npz", x=numbers(64, WIDTH))
    options = ("--quantize", "int8", "--calibrate", tmp_path / "x.npz")
    model, built = layers(tmp_path / "net.h5"), tmp_path / "built"
    assert nnbuild("build", model, *options, "-o", built).status == 0
    program = built / "program"
    honest = program.read_bytes()
    scale = re.findall(rb'"name":"last",[^}]*"scale":(0\.\d+)', honest)[0]
    program.write_bytes(honest.replace(b'"scale":' + scale, b'"scale":' + scale[:-1] + b"0"))
    wrong = nnbuild("check", model, *options, "--program", program)
    assert wrong.status == 2
    assert re.search(r"The firmware describes its output 0 as 'last' \(.*; the model's is 'last' \(", wrong.err)
