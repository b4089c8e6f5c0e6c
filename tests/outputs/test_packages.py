"""What a model's C is handed over as: each kind is built the way its users build it."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from nnbuild.frontend import load
from nnbuild.ops.interpret import run
from nnbuild.outputs.library import archiver, shared_library
from tests.frontend.keras_files import h5_bytes, put, small
from tests.support.running import EXAMPLE, NNBUILD, files_of, printed, start, well

pytestmark = pytest.mark.slow

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]
MODEL = EXAMPLE / "mnist.h5"
MAIN = """\
#include <stdio.h>
#include "mnist.h"
static mnist_context model;
int main(void)
{
    mnist_init(&model);
    for (int i = 0; i < MNIST_INPUT0_SIZE; ++i) {
        mnist_input(&model, 0)[i] = 0.0f;
    }
    printf("%d", mnist_run(&model));
    for (int i = 0; i < MNIST_OUTPUT0_SIZE; ++i) {
        printf(" %.9g", (double)mnist_output(&model, 0)[i]);
    }
    return 0;
}
"""


def write(folder: Path, kind: str, *options: object) -> Path:
    well(*NNBUILD, "compile", MODEL, "-o", folder, "--output", kind, *options)
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("plain"), "c")


@pytest.fixture(scope="module")
def answer(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the plain files compute."""
    folder = tmp_path_factory.mktemp("answer")
    (folder / "main.c").write_text(MAIN)
    well("gcc", "-O1", f"-I{plain}", "main.c", *plain.glob("*.c"), "-o", "app", folder=folder)
    return well(folder / "app")


@pytest.mark.turns(3)
def test_a_single_file(plain: Path, answer: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "one", "single-file")
    assert sorted(files_of(folder)) == ["mnist.c", "mnist.h"]
    assert (folder / "mnist.h").read_bytes() == (plain / "mnist.h").read_bytes()
    for compiler in ("gcc", "clang"):
        well(compiler, *STRICT, "-O1", "-c", folder / "mnist.c", "-o", tmp_path / f"{compiler}.o")
    (folder / "main.c").write_text(MAIN)
    well("gcc", "-O1", "main.c", "mnist.c", "-o", "app", folder=folder)
    assert well(folder / "app") == answer


def test_the_flag_is_the_same_and_clears_the_other_files_away(tmp_path: Path) -> None:
    folder = write(tmp_path / "both", "c")
    well(*NNBUILD, "compile", MODEL, "-o", folder, "--single-file")
    assert sorted(files_of(folder)) == ["mnist.c", "mnist.h"]


def test_a_library(plain: Path, answer: str, tmp_path: Path) -> None:
    """Found by pkg-config alone, static and shared, also where the whole was moved to."""
    write(tmp_path / "made", "library")
    folder = (tmp_path / "made").rename(tmp_path / "moved")
    assert {name: c for name, c in printed(folder / "src", "mnist").items() if name.endswith(".c")} == {
        name: c for name, c in printed(plain, "mnist").items() if name.endswith(".c")
    }
    (tmp_path / "main.c").write_text(MAIN)
    path = {"PKG_CONFIG_PATH": str(folder / "lib" / "pkgconfig")}
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    flags = well("pkg-config", "--cflags", "--libs", "mnist", env=path).split()
    well("gcc", "main.c", *flags, f"-Wl,-rpath,{folder / 'lib'}", "-o", "shared", folder=tmp_path)
    assert "libmnist.so" in well("readelf", "-d", tmp_path / "shared")
    assert well(tmp_path / "shared") == answer
    (folder / "lib" / "libmnist.so").unlink()
    well("gcc", "main.c", *flags, "-o", "static", folder=tmp_path)
    assert well(tmp_path / "static") == answer


def test_a_library_for_a_microcontroller(tmp_path: Path) -> None:
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    folder = write(tmp_path / "made", "library", "--board", "stm32")
    assert not (folder / "lib" / "libmnist.so").exists()
    assert "Tag_CPU_name" in well("readelf", "-A", folder / "lib" / "libmnist.a")


def test_an_arduino_library(plain: Path, tmp_path: Path) -> None:
    folder = write(tmp_path / "mnist", "arduino")
    properties = dict(line.split("=", 1) for line in (folder / "library.properties").read_text().splitlines())
    wanted = "name version author maintainer sentence paragraph category url architectures includes"
    assert list(properties) == wanted.split()
    assert properties["includes"] == "mnist.h"
    portable = write(tmp_path / "portable", "c", "--isa", "c99")
    assert printed(folder / "src", "mnist") == printed(portable, "mnist"), "portable C, and nothing else"
    sketch = folder / "examples" / "mnist_sketch" / "mnist_sketch.ino"
    assert "zeros: put your data there" in sketch.with_name("mnist_sample.h").read_text()
    assert shown_by_sketch(folder).startswith("The largest is output ")


SERIAL = """\
#include <iostream>
#define delay(ms)
struct {
    void begin(int) {}
    template <class T> void print(T what) { std::cout << what; }
    template <class T> void println(T what, int = 2) { std::cout << what << std::endl; }
} Serial;
"""


def shown_by_sketch(folder: Path) -> str:
    """What the sketch of an Arduino library prints in one turn."""
    (sketch,) = folder.glob("examples/*/*.ino")
    made = folder.parent / "made"
    made.mkdir()
    (made / "sketch.cpp").write_text(SERIAL + sketch.read_text() + "int main() { setup(); loop(); return 0; }\n")
    well("gcc", "-c", *(folder / "src").glob("*.c"), folder=made)
    places = [f"-I{folder / 'src'}", f"-I{sketch.parent}"]
    well("g++", "-Wall", "-Werror", *places, "sketch.cpp", *sorted(made.glob("*.o")), "-o", "app", folder=made)
    return well(made / "app")


def test_the_sketch_names_the_class_of_a_real_sample(tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("".join(f"digit {number}\n" for number in range(10)))
    samples = EXAMPLE / "calibration.npz"
    folder = write(tmp_path / "mnist", "arduino", "--quantize", "int8", "--calibrate", samples, "--labels", names)
    with np.load(samples) as arrays:
        first = arrays[arrays.files[0]][:1]
    np.savez(tmp_path / "first.npz", x=first)
    said = re.fullmatch(r"It is: digit (\d), score ([\d.]+)\n", shown_by_sketch(folder))
    assert said is not None
    header = (folder / "examples" / "mnist_sketch" / "mnist_sample.h").read_text()
    numbers = [float(number) for number in re.findall(r"([-\d.e]+)f,", header)]
    assert np.array_equal(np.array(numbers, np.float32), first.reshape(-1))
    whole = load(MODEL, "mnist")
    answer = run(whole, {whole.inputs[0]: first})[whole.outputs[0]]
    assert int(said[1]) == int(np.argmax(answer)) and abs(float(said[2]) - float(np.max(answer))) < 0.05


def test_the_sketch_of_a_regression_prints_its_values(tmp_path: Path) -> None:
    model = put(tmp_path / "sample.h5", h5_bytes(*small()))
    well(*NNBUILD, "compile", model, "-o", tmp_path / "sample", "--output", "arduino", "--quantize", "int8")
    assert re.fullmatch(r"(-?[\d.e-]+\n)+", shown_by_sketch(tmp_path / "sample"))


def test_a_library_is_not_called_as_one_of_the_system(tmp_path: Path) -> None:
    model = put(tmp_path / "m.h5", h5_bytes(*small()))
    command = [*NNBUILD, "compile", model, "-o", tmp_path / "out", "--output", "library"]
    done = start(*command)
    assert done.status == 2 and not (tmp_path / "out").exists()
    cause = "libm.a would be linked in place of the system's library of that name."
    assert done.text == f"nnbuild: name 'm': {cause} Give another one with --name.\n"
    well(*command, "--name", "level")
    assert (tmp_path / "out" / "lib" / "liblevel.a").is_file()


def test_an_rt_thread_component(answer: str, tmp_path: Path) -> None:
    """Its build is SCons with a module of its own, of which a stand-in has what an SConscript needs."""
    folder = write(tmp_path / "packages" / "mnist", "rtthread", "--weights", "binary")
    (tmp_path / "building.py").write_text(
        "from SCons.Script import *\n\n\n"
        "def GetCurrentDir():\n    return Dir('.').srcnode().abspath\n\n\n"
        "def DefineGroup(name, src, depend, CPPPATH):\n"
        "    env = DefaultEnvironment()\n    env.AppendUnique(CPPPATH=CPPPATH)\n"
        "    return [env.Object(each) for each in src]\n"
    )
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "SConstruct").write_text(
        "import sys\nsys.path.insert(0, Dir('.').abspath)\n"
        "objects = SConscript('packages/mnist/SConscript', variant_dir='build', duplicate=0)\n"
        "DefaultEnvironment().Program('app', ['main.c', objects])\n"
    )
    well(sys.executable, "-m", "SCons", "-Q", folder=tmp_path)
    numbers = [[float(word) for word in text.split()] for text in (well(tmp_path / "app"), answer)]
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-5), "portable C adds in another order"
    assert (folder / "mnist_weights.S").is_file()


REFUSED = {
    (
        "--output",
        "rust",
        "--single-file",
    ): "--single-file: it cannot be combined with --output rust. Leave one of them out.",
    ("--single-file", "--link"): "--link: it cannot be combined with --output single-file. Leave one of them out.",
    ("--single-file", "--weights", "binary"): (
        "--weights binary: --output single-file cannot hold it. Leave it out, or give --weights array."
    ),
    ("--output", "rust", "--name", "match"): "name 'match': it is a word of Rust itself. Give another one with --name.",
    ("--isa", "armv9"): "isa 'armv9': there is none.",
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("options", REFUSED)
def test_what_does_not_go_together(options: tuple[str, ...], tmp_path: Path) -> None:
    done = start(*NNBUILD, "compile", MODEL, "-o", tmp_path / "out", *options)
    assert (done.status, done.text.startswith(f"nnbuild: {REFUSED[options]}")) == (2, True), done.text
    assert not (tmp_path / "out").exists()


def test_without_a_folder() -> None:
    done = start(*NNBUILD, "compile", MODEL)
    assert done.status == 2
    assert done.text == "nnbuild: nnbuild compile: no output folder was given. Give a folder: -o DIR\n"


def test_a_dry_run_says_what_a_run_says(tmp_path: Path) -> None:
    """Scales decide how weights are stored."""
    words = ["compile", MODEL, "--quantize", "int8", "--board", "microbit", "--calibrate", EXAMPLE / "calibration.npz"]
    dry, wet = (
        json.loads(well(*NNBUILD, *words, "-o", tmp_path / "out", "--json", *more)) for more in (["--dry-run"], [])
    )
    assert dry == wet


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    text = well(*NNBUILD, "compile", MODEL, "--dry-run", "-o", tmp_path / "out")
    assert "mnist_weights.c" in text
    assert not (tmp_path / "out").exists()


def test_an_instruction_set_without_a_board(tmp_path: Path) -> None:
    """Named alone, it stands for a board that has it."""
    alone = write(tmp_path / "alone", "c", "--isa", "armv7em_dsp", "--quantize", "int8")
    board = write(tmp_path / "board", "c", "--board", "mps2-an386", "--quantize", "int8")
    assert files_of(alone) == files_of(board)


def test_what_libraries_are_called_elsewhere() -> None:
    assert shared_library("kws", "linux") == ("libkws.so", ["-shared", "-Wl,-soname,libkws.so"])
    assert shared_library("kws", "darwin")[0] == "libkws.dylib"
    assert shared_library("kws", "win32") == ("kws.dll", ["-shared"])


@pytest.mark.parametrize(
    ("compiler", "archive"),
    [
        (("gcc",), ["ar"]),
        (("clang",), ["ar"]),
        (("arm-none-eabi-gcc",), ["arm-none-eabi-ar"]),
        (("C:/tools/bin/arm-none-eabi-gcc",), ["C:/tools/bin/arm-none-eabi-ar"]),
        (("python", "-m", "ziglang", "cc"), ["python", "-m", "ziglang", "ar"]),
    ],
)
def test_the_archiver_that_comes_with_a_compiler(compiler: tuple[str, ...], archive: list[str]) -> None:
    assert archiver(compiler) == archive
