"""The Rust crate: built offline, answers held against those of the C, its build script on other targets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.frontend.keras_files import called, functional, h5_bytes, input_layer, layer, random_arrays
from tests.scons.conftest import write_model
from tests.support.running import EXAMPLE, NNBUILD, ROOT, printed, start, well
from tests.support.rust import needs_rust

pytestmark = pytest.mark.projects

BUILD = ["cargo", "build", "--release", "--offline", "--quiet"]
QUANTIZED = ["--quantize", "int8", "--calibrate", EXAMPLE / "calibration.npz"]


@pytest.fixture(autouse=True)
def needs_cargo() -> None:
    needs_rust()


def crate(folder: Path, model: Path, *options: object) -> Path:
    well(*NNBUILD, "compile", model, "-o", folder, "--output", "rust", *options)
    return folder


def answers(folder: Path, sample: np.ndarray) -> np.ndarray:
    """What the crate's own example prints."""
    well(*BUILD, "--example", "image", folder=folder)
    program = folder / "target" / "release" / "examples" / "image"
    done = subprocess.run([program], input=sample.astype("<f4").tobytes(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return np.array([float(line) for line in done.stdout.split()])


def libraries(program: Path) -> set[str]:
    """Shared libraries beside the loader and the kernel's own."""
    names = {line.split()[0].rpartition("/")[2] for line in well("ldd", program).splitlines()}
    return {name for name in names if not name.startswith(("ld-linux", "linux-vdso"))}


@pytest.mark.turns(3)
def test_the_example_in_integers(tmp_path: Path) -> None:
    folder = crate(tmp_path / "digits é", EXAMPLE / "mnist.h5", *QUANTIZED)
    with np.load(EXAMPLE / "samples.npz") as samples:
        sample, label = samples["x"][0], int(samples["labels"][0])
    answer = answers(folder, sample)
    assert int(answer.argmax()) == label
    well(*NNBUILD, "run", EXAMPLE / "mnist.h5", *QUANTIZED, *_one(sample, tmp_path))
    with np.load(tmp_path / "y.npz") as outputs:
        assert np.array_equal(answer.astype(np.float32), outputs["y"][0])
    assert libraries(folder / "target" / "release" / "examples" / "image") == {"libc.so.6"}


def _one(sample: np.ndarray, folder: Path) -> list[object]:
    np.savez(folder / "x.npz", x=sample[None])
    return ["--inputs", folder / "x.npz", "--outputs", folder / "y.npz"]


def test_floats_and_the_same_c(tmp_path: Path) -> None:
    folder = crate(tmp_path / "digits", EXAMPLE / "mnist.h5")
    with np.load(EXAMPLE / "samples.npz") as samples:
        sample, golden = samples["x"][0], samples["y"][0]
    np.testing.assert_allclose(answers(folder, sample), golden, atol=1e-5)
    well(*NNBUILD, "compile", EXAMPLE / "mnist.h5", "-o", tmp_path / "here")
    assert printed(folder / "csrc", "mnist") == printed(tmp_path / "here", "mnist")


def test_several_sets_of_instructions(tmp_path: Path) -> None:
    """The context also holds which of them the processor was found to have."""
    folder = crate(tmp_path / "digits", EXAMPLE / "mnist.h5", "--isa", "avx2_fma,sse2")
    with np.load(EXAMPLE / "samples.npz") as samples:
        sample, golden = samples["x"][0], samples["y"][0]
    np.testing.assert_allclose(answers(folder, sample), golden, atol=1e-5)


@pytest.mark.turns(3)
def test_it_is_neat(tmp_path: Path) -> None:
    """Formatted, without a warning, and its documented example compiles."""
    folder = crate(tmp_path / "digits", EXAMPLE / "mnist.h5", *QUANTIZED)
    well("cargo", "test", "--offline", "--quiet", folder=folder, env={"RUSTFLAGS": "-D warnings"})
    for tool, words in (
        ("cargo-fmt", ["fmt", "--check"]),
        ("cargo-clippy", ["clippy", "--offline", "--", "-Dwarnings"]),
    ):
        if shutil.which(tool) is not None:
            well("cargo", *words, folder=folder)


@pytest.mark.turns(3)
def test_two_models_in_one_program(tmp_path: Path) -> None:
    """One of them changed afterwards: it alone is compiled again."""
    write_model(tmp_path / "small.h5")
    crate(tmp_path / "one", tmp_path / "small.h5", "--name", "one")
    crate(tmp_path / "two", tmp_path / "small.h5", "--name", "two", "--quantize", "int16")
    user = tmp_path / "user"
    (user / "src").mkdir(parents=True)
    (user / "Cargo.toml").write_text(
        '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\n\n'
        '[dependencies]\none = { path = "../one" }\ntwo = { path = "../two" }\n'
    )
    (user / "src" / "main.rs").write_text(
        "fn main() {\n"
        "    let mut one = one::Context::new();\n    let mut memory = Box::new_uninit();\n"
        "    let two = two::Context::new_in(&mut memory);\n"
        "    one.input0().copy_from_slice(&[0.1, -0.2, 0.3, 0.4]);\n"
        "    for (integer, real) in two.input0().iter_mut().zip([0.1, -0.2, 0.3, 0.4]) {\n"
        "        *integer = two::Context::quantize_input0(real);\n    }\n"
        "    one.run().unwrap();\n    two.run().unwrap();\n"
        "    for (exact, near) in one.output0().iter().zip(two.output0()) {\n"
        "        assert!((exact - two::Context::dequantize_output0(*near)).abs() < 1e-2);\n    }\n"
        '    println!("{}", one.step(99).is_err());\n}\n'
    )
    assert well("cargo", "run", "--release", "--offline", "--quiet", folder=user) == "true\n"
    write_model(tmp_path / "small.h5", 2.0)
    crate(tmp_path / "two", tmp_path / "small.h5", "--name", "two", "--quantize", "int16")
    text = well("cargo", "build", "--release", "--offline", folder=user)
    assert "Compiling two" in text
    assert "Compiling one" not in text


ROWS = """\
use {name}::{{Context, Row, ROWS_PER_STEP, STEPS, WARM_UP}};

fn main() {{
    let mut rows = Context::new();
    let mut parts = Context::new();
    let mut news = 0;
    for at in 0..4 * WARM_UP * ROWS_PER_STEP {{
        let mut row: Row = Default::default();
        for (index, value) in row.iter_mut().enumerate() {{
            *value = ((at as usize * 31 + index * 17) % 97) as f32 / 97.0;
        }}
        let first = (at % ROWS_PER_STEP) as usize * row.len();
        parts.input0()[first..first + row.len()].copy_from_slice(&row);
        if rows.take(&row).unwrap() {{
            (0..STEPS).for_each(|step| parts.step(step).unwrap());
            assert!(rows.output0() == parts.output0());
            news += 1;
        }}
    }}
    assert!(parts.step(STEPS).is_err());
    println!("{{news}} of {{ROWS_PER_STEP}}");
}}
"""


def test_rows_of_a_stream(tmp_path: Path) -> None:
    """A row at a time; and a run's steps, whose C function has another name there."""
    layers = [
        called(input_layer("x", [12, 5])),
        called(layer("Conv1D", "conv", filters=4, kernel_size=[3], use_bias=True), "x"),
        called(layer("GlobalAveragePooling1D", "mean"), "conv"),
    ]
    config = functional(layers, ["x"], ["mean"])
    (tmp_path / "net.h5").write_bytes(h5_bytes(config, {"conv": random_arrays((3, 5, 4), (4,))}))
    folder = crate(tmp_path / "net", tmp_path / "net.h5", "--stream", "0,hop=2")
    (folder / "examples" / "rows.rs").write_text(ROWS.format(name="net"))
    assert well("cargo", "run", "--release", "--offline", "--quiet", "--example", "rows", folder=folder) == "24 of 2\n"
    if shutil.which("cargo-fmt") is not None:
        well("cargo", "fmt", "--check", folder=folder)


SPREAD = """\
use {name}::Context;

fn main() {{
    let mut whole = Context::new();
    let mut parts = Context::new();
    let mut left = Context::new();
    let mut most = 0;
    for model in [&mut whole, &mut parts, &mut left] {{
        for (index, value) in model.input0().iter_mut().enumerate() {{
            *value = (index % 7) as f32;
        }}
    }}
    whole.run().unwrap();
    let threads = |parts: &mut [{name}::Part<'_>]| {{
        most = most.max(parts.len());
        std::thread::scope(|scope| {{
            for part in parts.iter_mut() {{
                scope.spawn(|| part.run());
            }}
        }})
    }};
    parts.run_parallel(threads).unwrap();
    left.run_parallel(|parts| parts[0].run()).unwrap();
    assert!(whole.output0() == parts.output0() && whole.output0() == left.output0());
    println!("{{most}}");
}}
"""


def test_a_run_in_parts(tmp_path: Path) -> None:
    """With threads of the caller's; what the caller leaves is computed all the same."""
    config = functional(
        [
            called(input_layer("x", [48, 48, 8])),
            called(layer("Conv2D", "conv", filters=64, kernel_size=[3, 3], use_bias=True), "x"),
        ],
        ["x"],
        ["conv"],
    )
    (tmp_path / "wide.h5").write_bytes(h5_bytes(config, {"conv": random_arrays((3, 3, 8, 64), (64,))}))
    folder = crate(tmp_path / "wide", tmp_path / "wide.h5", "--threads", "3")
    (folder / "examples" / "parts.rs").write_text(SPREAD.format(name="wide"))
    assert well("cargo", "run", "--release", "--offline", "--quiet", "--example", "parts", folder=folder) == "3\n"
    if shutil.which("cargo-clippy") is not None:
        well("cargo", "clippy", "--offline", "--", "-Dwarnings", folder=folder)
    if shutil.which("cargo-fmt") is not None:
        well("cargo", "fmt", "--check", folder=folder)


@pytest.fixture(scope="module")
def build_script(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A crate of portable C, and its build script as a program, so that no target need be installed."""
    needs_rust()
    folder = tmp_path_factory.mktemp("script")
    write_model(folder / "small.h5")
    made = crate(folder / "small", folder / "small.h5", "--isa", "c99")
    well("rustc", "--edition", "2021", made / "build.rs", "-o", folder / "script")
    return made, folder / "script"


def built(build_script: tuple[Path, Path], out: Path, target: str, **variables: str) -> tuple[int, str]:
    folder, script = build_script
    out.mkdir()
    host = "x86_64-unknown-linux-gnu"
    machine = target.split("-")[0]
    given = {"TARGET": target, "HOST": host, "OUT_DIR": str(out), "CARGO_MANIFEST_DIR": str(folder)}
    given |= {"CARGO_CFG_TARGET_ARCH": "arm" if machine.startswith("thumb") else machine, "NUM_JOBS": "2"}
    done = start(script, env={**given, **variables})
    return done.status, done.text


TARGETS = {
    "thumbv7em-none-eabihf": ("arm-none-eabi-gcc", "Tag_FP_arch: VFPv4-D16"),
    "thumbv6m-none-eabi": ("arm-none-eabi-gcc", "Tag_CPU_name"),
    "riscv32imac-unknown-none-elf": ("riscv64-unknown-elf-gcc", "rv32i"),
    "aarch64-unknown-linux-gnu": ("aarch64-linux-gnu-gcc", ""),
}


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets(target: str, build_script: tuple[Path, Path], tmp_path: Path) -> None:
    compiler, mark = TARGETS[target]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    status, text = built(build_script, tmp_path / "out", target)
    assert status == 0, text
    assert "cargo:rustc-link-lib=static=small" in text
    assert mark in well("readelf", "-A", tmp_path / "out" / "libsmall.a")


def test_a_compiler_that_the_environment_names(build_script: tuple[Path, Path], tmp_path: Path) -> None:
    """For this very target before any target, and with blanks in its path."""
    own = tmp_path / "my tools" / "cc"
    own.parent.mkdir()
    own.write_text('#!/bin/sh\necho "called" >&2\nexec gcc "$@"\n')
    own.chmod(0o755)
    target = "x86_64-unknown-linux-gnu"
    more = {"CC": "false", f"CC_{target.replace('-', '_')}": str(own), "CFLAGS": "-O1"}
    status, text = built(build_script, tmp_path / "out", target, **more)
    assert status == 0, text
    assert "called" in text


@pytest.mark.parametrize("variable", ["TARGET_CC", "CC", "CC_thumbv7em-none-eabihf"])
def test_no_compiler(variable: str, build_script: tuple[Path, Path], tmp_path: Path) -> None:
    status, text = built(build_script, tmp_path / "out", "thumbv7em-none-eabihf", **{variable: "no-such-cc"})
    assert status == 1
    assert 'nnbuild: small: "no-such-cc" cannot be started (No such file or directory (os error 2)).' in text
    assert "Install it, or name another one with CC or TARGET_CC" in text


def test_instructions_that_the_target_has_not(tmp_path: Path) -> None:
    write_model(tmp_path / "small.h5")
    folder = crate(tmp_path / "small", tmp_path / "small.h5", "--isa", "sse2")
    well("rustc", "--edition", "2021", folder / "build.rs", "-o", tmp_path / "script")
    status, text = built((folder, tmp_path / "script"), tmp_path / "out", "thumbv7em-none-eabihf")
    assert status == 1
    cause = "it was printed with the instructions of x86_64, which thumbv7em-none-eabihf has not."
    assert f"nnbuild: small: {cause}" in text


WIDE_RESNET_PARAMETERS = 24_463_959


@pytest.mark.full
@pytest.mark.oracle
def test_a_wide_resnet(tmp_path: Path) -> None:
    """98 MB of weights and two outputs: as Keras answers, no larger than it must be, and built at once."""
    env = {"PYTHONPATH": str(ROOT)}
    well(sys.executable, ROOT / "tests" / "zoo" / "wide_resnet.py", "--out", tmp_path, env={**os.environ, **env})
    before = time.monotonic()
    folder = crate(tmp_path / "crate", tmp_path / "wide_resnet.h5")
    with np.load(tmp_path / "wide_resnet.npz") as golden:
        sample, wanted = golden["x"][0], np.concatenate([golden["y0"][0], golden["y1"][0]])
    answer = answers(folder, sample)
    print(f"printed, built and run in {time.monotonic() - before:.1f} s")
    np.testing.assert_allclose(answer, wanted, atol=1e-4)
    program = folder / "target" / "release" / "examples" / "image"
    assert program.stat().st_size <= 4 * WIDE_RESNET_PARAMETERS + 1_000_000
    assert libraries(program) == {"libc.so.6"}
