"""What is generated and packed, without a kernel."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.backends.kmod import bridge as kmod_bridge
from nnbuild.backends.kmod import folder as kmod
from nnbuild.backends.kmod import packages
from nnbuild.backends.kmod.bridge import fixed_scale
from nnbuild.backends.kmod.cpio import archive
from nnbuild.backends.kmod.guest import release_of
from nnbuild.backends.kmod.versions import kernels_of
from nnbuild.base.errors import ToolMissing, UsageError
from nnbuild.base.paths import FIRMWARE
from nnbuild.board.tables import find
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model
from tests.kmod.workshop import MNIST, POLICY, ROOT
from tests.streaming.test_mistakes import strided_window

STRICT = "-std=c99 -O2 -Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror".split()


@pytest.fixture(scope="module")
def policy() -> Compiled:
    return compile_model(Options(POLICY / "policy.h5", "linux-kmod"))


def test_the_folder_is_complete_and_always_the_same(policy: Compiled) -> None:
    board, plan = policy.board, policy.plan
    files = kmod.files(board, plan)
    assert set(files) == set(kmod.file_names(board, "policy"))
    assert files == kmod.files(board, plan)
    assert not any(str(ROOT).encode() in data for data in files.values())


@pytest.mark.slow
def test_integer_registers_have_kernels_of_their_own() -> None:
    """But not where weights are exchangeable, on whose values they may depend."""
    taken = []
    for swappable in (False, True):
        samples = MNIST / "calibration.npz"
        options = Options(MNIST / "mnist.h5", "linux-kmod", quantize="int8", calibrate=samples, swappable=swappable)
        plan = compile_model(options).plan
        assert plan.isa.name == "c99" and not kmod_bridge.needs_fpu(plan)
        taken.append({step.versions[0].choice.kernel.needs for step in plan.steps})
    assert any("rv32im" in needs for needs in taken[0]) and not any("rv32im" in needs for needs in taken[1])


def test_runs_of_a_stream_take_turns_at_the_end_of_the_last_step(tmp_path: Path) -> None:
    """A step is computed in pieces, so the turn goes on with the last piece of the last one."""
    pytest.importorskip("tflite")
    strided_window(tmp_path / "net.tflite")
    plan = compile_model(Options(tmp_path / "net.tflite", "linux-kmod", stream="0,hop=1")).plan
    assert plan.banks == 2
    *_, before, last = kmod_bridge.bridge(plan).split("    case ")[: len(plan.steps) + 1]
    extent = plan.steps[-1].extent(plan.steps[-1].versions[0])
    assert f"if (end == {extent}) {{\n            context->bank = context->bank + 1 < 2" in last
    assert "context->bank = " not in before


def test_gcc_does_not_rely_on_registers_of_static_functions(policy: Compiled) -> None:
    """The kernel overwrites x9 at the entry of every function that can be traced. A pointer to a state, which gcc held
    there across a call of a static function, became one to the module's code."""
    assert "ccflags-$(CONFIG_CC_IS_GCC) += -fno-ipa-ra" in kmod.kbuild(policy.plan).splitlines()


def test_models_without_floats_are_built_without_the_fpu() -> None:
    options = Options(MNIST / "mnist.h5", "linux-kmod", "int8", MNIST / "calibration.npz")
    text = kmod.kbuild(compile_model(options).plan)
    assert "NN_FPU" not in text and "nn-fpu" not in text and "-mhard-float" not in text


def test_glue_and_model_see_different_headers(policy: Compiled) -> None:
    """Of the model's own files none includes a kernel header; of the rest none includes the model's."""
    files = {
        name: data.decode() for name, data in {**policy.artifact.files, **kmod.files(policy.board, policy.plan)}.items()
    }
    model = [name for name in files if name.startswith("policy") and name.endswith(".c") and "_kmod" not in name]
    assert {"policy_kernels.c", "policy_bridge.c", "policy_weights.c"} <= set(model)
    assert not any("<linux/" in files[name] or "<asm/" in files[name] for name in model)
    glue = [name for name in files if name.endswith((".c", ".h")) and name.startswith("nn_")]
    assert not any(
        "policy" in files[name] or "float " in files[name].replace("float32", "") for name in glue if name != "nn_q16.h"
    )
    assert "-msse" not in "".join(line for line in files["Kbuild"].splitlines() if "kernel_include" in line)


def test_a_layer_that_cannot_be_cut_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kmod_bridge, "LONGEST_PIECE", 100)
    note, *_ = compile_model(Options(POLICY / "policy.h5", "linux-kmod")).graph.notes
    assert re.fullmatch(r"one piece of layer 'memory' takes about [\d,]+ cycles, and others wait that long", note)
    options = Options(POLICY / "policy.h5", "linux-kmod", "int16", POLICY / "calibration.npz")
    assert not [text for text in compile_model(options).graph.notes if "one piece" in text]


@pytest.mark.parametrize("isa", ["avx512", "sse2,avx2"])
def test_sets_that_a_module_cannot_ask_about(isa: str) -> None:
    with pytest.raises(UsageError, match="an instruction set that it can query the kernel for"):
        compile_model(Options(POLICY / "policy.h5", "linux-kmod", isa=isa))


def test_a_name_that_is_too_long() -> None:
    compiled = compile_model(Options(POLICY / "policy.h5", "linux-kmod", name="m" * 41))
    with pytest.raises(UsageError, match="a module's name may not be longer than 43 characters"):
        kmod.files(compiled.board, compiled.plan)


def test_an_initramfs_is_what_cpio_reads(tmp_path: Path) -> None:
    if shutil.which("cpio") is None:
        pytest.skip("cpio is not installed")
    data = archive({"/init": b"#!/bin/sh\n", "/lib/firmware/a.nnw": b"\0\1\2"})
    subprocess.run(["cpio", "-id", "--quiet"], input=data, cwd=tmp_path, check=True)
    assert (tmp_path / "init").read_bytes() == b"#!/bin/sh\n"
    assert (tmp_path / "init").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "lib" / "firmware" / "a.nnw").read_bytes() == b"\0\1\2"


def test_what_is_no_module(tmp_path: Path) -> None:
    path = tmp_path / "x.ko"
    path.write_bytes(b"nothing")
    with pytest.raises(UsageError, match=r"it is not a kernel module\. Give a \.ko that was built for a kernel\."):
        release_of(path)


@pytest.mark.slow
def test_a_package_that_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("apt-get is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ToolMissing, match="it cannot be fetched"):
        packages.unpacked("linux-image-0.0.1-nowhere", packages.native())
    assert not list((tmp_path / "nnbuild").glob("linux-image*"))


def test_without_debians_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "native", lambda: "amd64")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ToolMissing, match=r"apt-cache is not installed\. .*give kdir="):
        packages.depends("linux-image-cloud-amd64", "amd64")


def test_every_board_names_its_kernels() -> None:
    for name in ("linux-kmod", "linux-kmod-arm64"):
        kernels = kernels_of(find(name))
        assert {version.name for version in kernels.versions} == {"6.1-cloud", "6.1", "6.1-rt", "6.12-cloud"}
        assert kernels.find(None).name == "6.1-cloud"
        assert all(version.release.endswith(kernels.debian) for version in kernels.versions)


@pytest.fixture(scope="module")
def q16(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    target = tmp_path_factory.mktemp("q16") / "q16.so"
    source = FIRMWARE / "kmod" / "nn_q16.c"
    subprocess.run(["gcc", *STRICT, "-shared", "-fPIC", str(source), "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))
    library.nn_q16_to_float.restype = ctypes.c_uint32
    library.nn_q16_to_float.argtypes = [ctypes.c_int32]
    library.nn_q16_from_float.restype = ctypes.c_int32
    library.nn_q16_from_float.argtypes = [ctypes.c_uint32]
    library.nn_q16_scale.restype = ctypes.c_int64
    library.nn_q16_scale.argtypes = [ctypes.c_int64, ctypes.c_uint32, ctypes.c_uint32]
    return library


def numbers() -> list[int]:
    """Every power of two and its neighbours, and random ones."""
    near = [sign * ((1 << power) + by) for power in range(32) for by in range(-3, 4) for sign in (1, -1)]
    random = np.random.default_rng(0).integers(-(2**31), 2**31, 20_000).tolist()
    return [n for n in (*near, *random) if -(2**31) <= n < 2**31]


def test_fixed_point_becomes_the_nearest_float(q16: ctypes.CDLL) -> None:
    for number in numbers():
        wanted = np.float32(number / 65536).view(np.uint32)
        assert q16.nn_q16_to_float(number) == wanted, number


def test_floats_become_fixed_point(q16: ctypes.CDLL) -> None:
    chance = np.random.default_rng(1)
    bits = chance.integers(0, 2**32, 20_000, dtype=np.uint32)
    edges = np.array(
        [0.0, -0.0, 1.0, -1.0, 32767.99, 32768.0, -32768.0, 1e9, -1e9, 1e-5, -1e-6, np.inf, -np.inf, 1e-45], np.float32
    )
    for value in (*edges, *bits.view(np.float32)):
        single = np.float32(value)
        wanted = 0 if np.isnan(single) else int(np.clip(np.trunc(np.float64(single) * 65536), -(2**31), 2**31 - 1))
        assert q16.nn_q16_from_float(int(single.view(np.uint32))) == wanted, single


@pytest.mark.parametrize("scale", [1 / 255, 0.0078125, 3.7e-5, 0.5, 12.0])
def test_fixed_point_becomes_integers(q16: ctypes.CDLL, scale: float) -> None:
    there, back = fixed_scale(1 / (scale * 65536)), fixed_scale(scale * 65536)
    for number in range(-128, 128):
        value = q16.nn_q16_scale(number, *back)
        assert abs(value - number * scale * 65536) <= 0.5 + abs(number * scale) * 1e-4
        assert abs(q16.nn_q16_scale(value, *there) - number) <= (1 if scale < 1e-3 else 0)
