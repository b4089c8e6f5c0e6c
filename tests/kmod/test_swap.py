"""Weights exchanged while a model runs."""

from __future__ import annotations

import re
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from nnbuild.backends.kmod import weights as kmod_weights
from nnbuild.backends.kmod.folder import kernel_target
from nnbuild.backends.kmod.weights import weights_file
from nnbuild.base.errors import ModelError
from nnbuild.jobs.options import Options, target_of
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.kernels.loops.dense_row import SingleRow
from nnbuild.ops import interpret
from nnbuild.plan.plan import make_plan
from tests.kmod.workshop import FLOAT, MNIST, POLICY, Recipe, Workshop

SWAPPABLE = Recipe("f", swappable=True)
CRC, DATA = slice(4, 8), 64


def retrained(model: Path, target: Path, by: float = 0.01, only: str = "") -> Path:
    """The same network with other weights."""
    shutil.copy(model, target)
    with h5py.File(target, "r+") as file:

        def change(name: str, item: object) -> None:
            if isinstance(item, h5py.Dataset) and name.startswith("model_weights") and only in name:
                item[...] = np.asarray(item) + by

        file.visititems(change)
    return target


def other(folder: Path, name: str = "f", by: float = 0.01, only: str = "") -> Compiled:
    model = retrained(POLICY / "policy.h5", folder / "other.h5", by, only)
    return compile_model(Options(model, "linux-kmod", name=name, swappable=True))


def result(compiled: Compiled) -> bytes:
    """What the model gives for zeros at the start of a sequence."""
    zeros = {name: np.zeros((1, *compiled.graph.tensors[name].shape)) for name in compiled.graph.inputs}
    values = interpret.run(compiled.graph, zeros, "float64")
    return values[compiled.graph.outputs[0]].astype("<f4").tobytes()


LOAD = """\
insmod /nn_f.ko || verdict not loaded
here=/sys/class/misc/nn_f
before=$(cat $here/hash)
"""
END = """\
rmmod nn_f || verdict not unloaded
verdict passed
"""


@pytest.mark.turns(4)
@pytest.mark.kernel
def test_every_run_sees_one_set_of_weights(workshop: Workshop, tmp_path: Path) -> None:
    built, exchanged = workshop.build(SWAPPABLE), other(tmp_path)
    files = {
        "/once": workshop.program("once"),
        "/lib/firmware/a.nnw": weights_file(built.compiled.plan),
        "/lib/firmware/b.nnw": weights_file(exchanged.plan),
    }
    script = f"""{LOAD}
a=$(/once /dev/nn_f 16 4 1 | cut -d' ' -f2)
echo b.nnw >$here/weights || verdict not exchanged
b=$(/once /dev/nn_f 16 4 1 | cut -d' ' -f2)
echo "results $a $b hashes $before $(cat $here/hash)"
/once /dev/nn_f 16 4 20000 $a $b & /once /dev/nn_f 16 4 20000 $a $b &
n=0
while [ $n -lt 200 ]; do
    echo a.nnw >$here/weights || verdict not exchanged
    echo b.nnw >$here/weights || verdict not exchanged
    n=$((n + 1))
done
wait
cat /sys/kernel/debug/nn_f/counters
{END}"""
    outcome = workshop.run(built, files, script, processors=4, patience=240.0)
    assert outcome.passed, outcome.log[-3000:]
    found = re.search(r"results (\w{8}) (\w{8}) hashes (\w{16}) (\w{16})", outcome.log)
    assert found is not None, outcome.log[-3000:]
    for text, compiled in zip(found.groups()[:2], (built.compiled, exchanged), strict=True):
        given, wanted = (np.frombuffer(data, "<f4")[0] for data in (bytes.fromhex(text), result(compiled)))
        assert abs(given - wanted) < 1e-6
    assert found[1] != found[2] and found[3] != found[4]
    seen = re.findall(r"once: \w+ wrong (\d+) seen (\d+) (\d+)", outcome.log)
    assert len(seen) == 2
    assert all(int(wrong) == 0 and int(first) > 100 and int(second) > 100 for wrong, first, second in seen)
    assert "weight_swaps 401" in outcome.log
    assert "unloaded, 0 allocations left" in outcome.log


def damaged(blob: bytes) -> bytes:
    return blob[:-1] + bytes([blob[-1] ^ 1])


def of_another_shape(blob: bytes) -> bytes:
    """Of another plan, with everything else right."""
    changed = blob[:16] + b"0123456789abcdef" + blob[32:]
    return changed[:4] + zlib.crc32(changed[16:]).to_bytes(4, "little") + changed[8:]


@pytest.mark.turns(2)
@pytest.mark.kernel
def test_what_is_wrong_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    built = workshop.build(SWAPPABLE)
    good = weights_file(other(tmp_path).plan)
    bad = {
        "cut": (good[:-100], "Invalid argument"),
        "head": (good[:40], "Invalid argument"),
        "long": (good + b"\0" * 64, "Invalid argument"),
        "shape": (of_another_shape(good), "Invalid argument"),
        "damaged": (damaged(good), "Bad message"),
        "magic": (b"XXXX" + good[4:], "Invalid argument"),
        "missing": (None, "No such file or directory"),
    }
    files = {f"/lib/firmware/{name}": data for name, (data, _) in bad.items() if data is not None}
    tries = "\n".join(
        f'echo {name} >$here/weights 2>/tmp/said && verdict {name} was taken; echo "{name}: $(cat /tmp/said)"'
        for name in bad
    )
    script = f"""{LOAD}
a=$(/once /dev/nn_f 16 4 1 | cut -d' ' -f2)
{tries}
echo >$here/weights 2>/tmp/said && verdict an empty name was taken
[ $(cat $here/hash) = $before ] || verdict the hash changed
/once /dev/nn_f 16 4 3 $a || verdict the results changed
cat /sys/kernel/debug/nn_f/counters
{END}"""
    outcome = workshop.run(built, {"/once": workshop.program("once"), **files}, script)
    assert outcome.passed, outcome.log[-3000:]
    for name, (_, answer) in bad.items():
        assert re.search(rf"^{name}: .*write error: {answer}", outcome.log, re.MULTILINE), (name, outcome.log[-3000:])
    assert f"weight_swaps_refused {len(bad)}" in outcome.log
    assert "unloaded, 0 allocations left" in outcome.log


@pytest.mark.turns(3)
@pytest.mark.kernel
def test_a_module_that_was_not_built_for_it(workshop: Workshop, tmp_path: Path) -> None:
    built = workshop.build(FLOAT)
    script = f"{LOAD}\necho b.nnw >$here/weights 2>/tmp/said; cat /tmp/said\n{END}"
    outcome = workshop.run(built, {"/lib/firmware/b.nnw": weights_file(other(tmp_path).plan)}, script)
    assert outcome.passed and "Operation not supported" in outcome.log


@pytest.mark.parametrize("quantize", ["float", "int8", "int16"])
def test_other_weights_have_the_same_plan(tmp_path: Path, quantize: str) -> None:
    """For integers with the scales of activations as they were: those belong to the plan."""
    options = Options(MNIST / "mnist.h5", "linux-kmod", quantize, MNIST / "calibration.npz", name="f", swappable=True)
    if quantize == "float":
        options = Options(MNIST / "mnist.h5", "linux-kmod", name="f", swappable=True)
    compiled = compile_model(options)
    changed = kmod_weights._changed(compiled.graph, kmod_weights._mixed)
    again = make_plan(changed, "f", kernel_target(changed, target_of(options, compiled.board), None))
    first, second = weights_file(compiled.plan), weights_file(again)
    assert first[16:32] == second[16:32] and len(first) == len(second)
    assert first[32:48] != second[32:48] and first[DATA:] != second[DATA:]
    assert first[CRC] == zlib.crc32(first[16:]).to_bytes(4, "little")


DIGITS = Options(MNIST / "mnist.h5", "linux-kmod", "int8", MNIST / "calibration.npz", swappable=True)


@pytest.mark.slow
def test_code_of_few_bytes_is_compared_with_its_like() -> None:
    compiled = compile_model(replace(DIGITS, optimize="size"))
    assert compiled.plan.swappable and compiled.plan.encoding.compact


@pytest.mark.turns(3)
@pytest.mark.slow
def test_code_in_short_pieces_is_compared_with_its_like() -> None:
    """Of other weights, too, kernels are chosen whose pieces do not block the processor for long."""
    plan = compile_model(replace(DIGITS, isa="sse2")).plan
    assert any(step.kernel_name == "sse2_integers_cut" for step in plan.steps)


def test_another_network_has_another_plan(tmp_path: Path) -> None:
    policy = compile_model(Options(POLICY / "policy.h5", "linux-kmod", name="f", swappable=True))
    digits = compile_model(Options(MNIST / "mnist.h5", "linux-kmod", name="f", swappable=True))
    assert weights_file(policy.plan)[16:32] != weights_file(digits.plan)[16:32]


def test_code_that_depends_on_weights_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = SingleRow.emit

    def emit(self, w, names):  # type: ignore[no-untyped-def]
        w(f"(void){float(self.site.constant('kernel').reshape(-1)[0])!r};")
        plain(self, w, names)

    monkeypatch.setattr(SingleRow, "emit", emit)
    with pytest.raises(ModelError) as caught:
        compile_model(Options(POLICY / "policy.h5", "linux-kmod", isa="c99", swappable=True))
    assert str(caught.value) == (
        "layer 'change': its code (scalar) depends on the weights, so they cannot be exchanged. "
        "Build without --swappable, or with another --quantize or --isa."
    )
