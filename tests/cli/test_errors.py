"""Whatever goes wrong is said in one paragraph: where, why, what to do next. Nothing half done is left behind."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from nnbuild.cli import main
from nnbuild.cli.parser import EXAMPLES
from tests.cli.conftest import Nnbuild, Said, numbers
from tests.frontend.keras_files import h5_bytes, input_layer, layer, put, sequential

WRONG_USAGE, TOOL_MISSING = 2, 3


def assert_said(said: Said, text: str, status: int = WRONG_USAGE) -> None:
    assert said.err == f"nnbuild: {text}\n"
    assert said.status == status
    assert said.out == ""


@pytest.mark.parametrize("command", [["inspect"], ["compile", "-o", "OUT"], ["check"], ["profile"]])
def test_no_such_model(nnbuild: Nnbuild, tmp_path: Path, command: list[str]) -> None:
    missing = tmp_path / "missing.h5"
    arguments = [str(tmp_path / "out") if word == "OUT" else word for word in command]
    said = nnbuild(arguments[0], missing, *arguments[1:])
    assert_said(said, f"{missing}: it cannot be read (No such file or directory). Check the path.")
    assert list(tmp_path.iterdir()) == []


def test_the_model_is_a_folder(nnbuild: Nnbuild, tmp_path: Path) -> None:
    step = "Give a .h5 or .keras file written by model.save(), or a .tflite or .onnx file."
    assert_said(nnbuild("inspect", tmp_path), f"{tmp_path}: it is a folder, not a model. {step}")


def test_the_model_cannot_be_read(nnbuild: Nnbuild, tmp_path: Path) -> None:
    """A link that leads to itself cannot be opened by anyone, not even by root."""
    link = tmp_path / "loop.h5"
    link.symlink_to(link)
    cause = "it cannot be read (Too many levels of symbolic links)."
    assert_said(nnbuild("inspect", link), f"{link}: {cause} Check the path.")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89HDF", b"PK\x03\x04", bytes(4096)])
def test_the_file_is_no_model(nnbuild: Nnbuild, tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path / "model.h5", content)
    said = nnbuild("compile", path, "-o", tmp_path / "out")
    assert said.status == WRONG_USAGE
    assert said.err.startswith("nnbuild: ")
    assert "model.h5: " in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_unsupported_layer_leaves_nothing(nnbuild: Nnbuild, tmp_path: Path) -> None:
    config = sequential(input_layer("x", [4]), layer("Frobnicate", "odd"))
    said = nnbuild("compile", put(tmp_path / "odd.h5", h5_bytes(config, {})), "-o", tmp_path / "out")
    assert said.status == WRONG_USAGE
    assert "layer 'odd'" in said.err
    assert "'Frobnicate' is not supported" in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("board", "near"), [("lunix", "linux"), ("x68", "x86")])
def test_unknown_board(nnbuild: Nnbuild, model: Path, board: str, near: str) -> None:
    said = nnbuild("check", model, "--board", board)
    assert said.status == WRONG_USAGE
    assert said.err.startswith(f"nnbuild: board '{board}': there is no such board. Did you mean ")
    assert near in said.err
    assert said.err.endswith("All boards: nnbuild boards\n")


@pytest.mark.parametrize("family", ["cortex-m4f", "cortex-m4", "Cortex-M4"])
def test_a_family_of_boards(nnbuild: Nnbuild, model: Path, family: str) -> None:
    said = nnbuild("check", model, "--board", family)
    assert said.status == WRONG_USAGE
    told = f"nnbuild: board '{family}': that is a family of boards, not a board. Some of it: mps2-an386, stm32f405, "
    assert said.err.startswith(told)
    assert said.err.endswith("All boards: nnbuild boards\n")


NAMES = {
    "int": "'int' is a word of C or C++ itself.",
    "Class": "'class' is a word of C or C++ itself.",
    "2fast": "it does not begin with a letter.",
    "": "it is empty.",
    "caf\u00e9": "it holds other characters.",
    "a/../b": "it holds other characters.",
    "x" * 64: "it is longer than 63 characters.",
    "string": "'string.h' is a header of the C library.",
}


@pytest.mark.parametrize("name", NAMES)
def test_bad_name(nnbuild: Nnbuild, model: Path, tmp_path: Path, name: str) -> None:
    assert_said(
        nnbuild("compile", model, "-o", tmp_path / "out", "--name", name),
        f"name {name!r}: it cannot begin the names in the C code: {NAMES[name]} Give another one with --name, "
        "name= for scons or NAME for CMake, of letters, digits and underscores, beginning with a letter.",
    )
    assert not (tmp_path / "out").exists()


def test_a_file_whose_name_is_no_identifier(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    """It is compiled under a name made of it, or under another one."""
    odd = model.rename(tmp_path / "9 lives (1).h5")
    assert nnbuild("inspect", odd).status == 0
    assert nnbuild("compile", odd, "-o", tmp_path / "out").status == 0
    assert nnbuild("compile", odd, "-o", tmp_path / "out", "--name", "lives").status == 0
    assert (tmp_path / "out" / "lives.h").is_file()
    assert (tmp_path / "out" / "model_9_lives_1.h").is_file()


def test_a_name_that_the_program_has_already(nnbuild: Nnbuild, model: Path) -> None:
    assert_said(
        nnbuild("check", model, "--name", "main"),
        "'main.c' of the model: the program already has a file of that name. "
        "Give the model another name, with name= for scons and --name for nnbuild.",
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["compile", "MODEL", "-o", "x", "--frob"], "unrecognized arguments: --frob"),
        (["check", "MODEL", "--quantize", "int3"], "invalid choice: 'int3'"),
        (["check", "MODEL", "--agreement", "much"], "'much' is not a finite number"),
        (["run", "MODEL"], "the following arguments are required: --inputs, --outputs"),
    ],
)
def test_wrong_usage(nnbuild: Nnbuild, arguments: list[str], text: str) -> None:
    said = nnbuild(*arguments)
    assert said.status == WRONG_USAGE
    assert said.err.startswith("usage: nnbuild")
    assert text in said.err


def test_nowhere_to_write(nnbuild: Nnbuild) -> None:
    said = nnbuild("compile", "MODEL")
    assert (said.status, said.err) == (
        WRONG_USAGE,
        "nnbuild: nnbuild compile: no output folder was given. Give a folder: -o DIR\n",
    )


def test_the_output_folder_is_a_file(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    there = put(tmp_path / "there", b"mine")
    said = nnbuild("compile", model, "-o", there)
    assert_said(said, f"{there}: It cannot be written (File exists). Choose another path.")
    said = nnbuild("compile", model, "-o", there / "deeper")
    assert_said(said, f"{there}/deeper: It cannot be written (Not a directory). Choose another path.")
    assert there.read_bytes() == b"mine"


def test_all_files_or_none(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    """A folder in the place of one file: the others are not written either."""
    out = tmp_path / "out"
    (out / "small_kernels.c" / "full").mkdir(parents=True)
    said = nnbuild("compile", model, "-o", out)
    assert_said(said, f"{out}/small_kernels.c: It cannot be written (Is a directory). Choose another path.")
    assert [path.name for path in out.iterdir()] == ["small_kernels.c"]


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_a_report_that_cannot_be_written(nnbuild: Nnbuild, model: Path, tmp_path: Path, option: str) -> None:
    path = tmp_path / "nowhere" / "report"
    said = nnbuild("check", model, option, path)
    assert said.status == WRONG_USAGE
    assert said.err == f"nnbuild: {path}: It cannot be written (No such file or directory). Choose another path.\n"


@pytest.mark.slow
def test_outputs_that_cannot_be_written(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=numbers(1, 4))
    path = tmp_path / "nowhere" / "y.npz"
    assert_said(
        nnbuild("run", model, "--inputs", tmp_path / "x.npz", "--outputs", path),
        f"{path}: It cannot be written (No such file or directory). Choose another path.",
    )


def archive(**arrays: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def pickled() -> bytes:
    content = io.BytesIO()
    np.savez(content, x=np.array([{"a": 1}], dtype=object))
    return content.getvalue()


def not_npz() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("x.txt", "hello")
    return content.getvalue()


SAMPLES = {
    "empty": (b"", "It is no sound .npz file of plain numbers"),
    "text": (b"hello", "It is no sound .npz file of plain numbers"),
    "pickled": (pickled(), "It is no sound .npz file of plain numbers"),
    "zip": (not_npz(), "There is no array for input 'x'; it holds x.txt."),
    "cut": (archive(x=numbers(9, 4))[:200], "It is no sound .npz file of plain numbers"),
    "other": (archive(z=numbers(3, 4)), "There is no array for input 'x'; it holds z."),
    "shape": (archive(x=numbers(3, 5)), "Its shape is (3, 5), the model takes (samples, 4)."),
    "flat": (archive(x=np.float32(3)), "Its shape is (), the model takes (samples, 4)."),
    "none": (archive(x=numbers(0, 4)), "It holds no samples."),
    "nan": (archive(x=np.full((1, 4), np.nan)), "4 of its values are no finite float32, the first at (0, 0): nan."),
    "text array": (archive(x=np.array([["a"] * 4])), "Its type is <U1, which holds no plain numbers."),
    "golden": (archive(x=numbers(2, 4), y=numbers(3, 3)), "It has 3 rows for 2 samples."),
    "golden shape": (archive(x=numbers(2, 4), y=numbers(2, 4)), "Its shape is (2, 4), the model takes (samples, 3)."),
    "labels": (archive(x=numbers(2, 4), labels=np.array([-1, 0])), "A label is negative (-1)."),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_wrong_samples(nnbuild: Nnbuild, model: Path, tmp_path: Path, name: str) -> None:
    content, cause = SAMPLES[name]
    path = put(tmp_path / "x.npz", content)
    said = nnbuild("run", model, "--inputs", path, "--outputs", tmp_path / "y.npz")
    assert said.status == WRONG_USAGE
    assert said.err.startswith(f"nnbuild: {path}")
    assert cause in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / "y.npz").exists()


def test_samples_of_another_kind(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    path = put(tmp_path / "x.csv", b"1,2,3,4\n")
    said = nnbuild("run", model, "--inputs", path, "--outputs", tmp_path / "y.npz")
    assert_said(
        said,
        f"{path}: Samples come in a .npz file, or those of one input in a .npy file. "
        "Write one with numpy.savez(path, x=inputs).",
    )


def test_several_inputs_of_different_length(nnbuild: Nnbuild, forked: Path, tmp_path: Path) -> None:
    path = put(tmp_path / "x.npz", archive(left=numbers(2, 2), right=numbers(3, 3)))
    said = nnbuild("run", forked, "--inputs", path, "--outputs", tmp_path / "y.npz")
    cause = "The inputs have different numbers of samples: left 2, right 3."
    assert_said(said, f"{path}: {cause} Give each the same.")


def test_no_compiler(nnbuild: Nnbuild, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    said = nnbuild("check", model)
    cause = "none of its compilers is installed (gcc, clang)."
    assert_said(said, f"board 'linux': {cause} apt install gcc, or apt install clang", TOOL_MISSING)


def test_no_program(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    said = nnbuild("check", model, "--program", tmp_path / "none")
    assert said.status == TOOL_MISSING
    assert "It cannot be started (No such file or directory)." in said.err
    assert said.err.count("\n") == 1


def test_a_program_that_is_none_of_ours(nnbuild: Nnbuild, model: Path) -> None:
    said = nnbuild("check", model, "--program", "/bin/true")
    assert said.status == TOOL_MISSING
    assert "The program ended with code 0." in said.err


def test_a_port_on_this_pc(nnbuild: Nnbuild, model: Path) -> None:
    said = nnbuild("check", model, "--port", os.devnull)
    assert_said(said, "board 'linux': it runs on this PC and has no port. Leave out --port.")


@pytest.mark.parametrize("command", ["compile", "build"])
def test_an_output_folder_that_cannot_be(nnbuild: Nnbuild, model: Path, tmp_path: Path, command: str) -> None:
    said = nnbuild(command, model, "-o", model)
    assert_said(said, f"{model}: It cannot be written (File exists). Choose another path.")
    folder = tmp_path / ("long" * 100)
    said = nnbuild(command, model, "-o", folder)
    assert said.status == WRONG_USAGE and said.err.startswith(f"nnbuild: {folder}/"), said.err
    assert said.err.endswith(": it cannot be used (File name too long). Check the path and its permissions.\n")
    stamp = tmp_path / "none" / "stamp"
    said = nnbuild(command, model, "-o", tmp_path / "made", "--stamp", stamp)
    assert_said(said, f"{stamp}: It cannot be written (No such file or directory). Choose another path.")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_process_that_is_ended_clears_up(model: Path, tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "nnbuild", "check", str(model)]
    around = {**os.environ, "TMPDIR": str(tmp_path), "NNBUILD_QUIET": "1"}
    with subprocess.Popen(command, env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob("nnbuild-*/*.c")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate()
    assert (process.returncode, err) == (128 + number, "nnbuild: stopped\n")
    assert not list(tmp_path.glob("nnbuild-*"))


@pytest.mark.slow
def test_the_output_goes_to_a_full_disk(model: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "nnbuild", "inspect", str(model)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.stderr == "nnbuild: the disk is full. Free some space, or write elsewhere.\n"
    assert done.returncode == WRONG_USAGE


@pytest.mark.parametrize(("device", "status"), [("/dev/null", 0), ("/dev/full", WRONG_USAGE)])
def test_a_device_is_written_to_and_not_replaced(
    device: str, status: int, nnbuild: Nnbuild, model: Path, tmp_path: Path
) -> None:
    """Which an administrator could."""
    link = tmp_path / "device"
    link.symlink_to(device)
    assert nnbuild("compile", model, "-o", tmp_path / "out", "--json", link).status == status
    assert link.is_symlink()


def test_the_root_is_no_file(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    """It has no name beside which a part could be written."""
    said = nnbuild("compile", model, "-o", tmp_path / "out", "--json", "/")
    assert (said.status, said.err.splitlines()[-1]) == (
        WRONG_USAGE,
        "nnbuild: /: It cannot be written (Is a directory). Choose another path.",
    )


@pytest.mark.parametrize("text", ["1", "0,1,2", "a,b", ""])
def test_a_range_is_two_numbers(nnbuild: Nnbuild, model: Path, text: str) -> None:
    said = nnbuild("check", model, f"--image-range={text}")
    assert said.status == WRONG_USAGE
    assert f"{text!r} is not a range of two numbers, such as 0,1 or -1,1" in said.err


@pytest.mark.parametrize(
    ("option", "cause"),
    [
        ("--agreement=98", "gate 'agreement': 98 is beyond 0 to 1. Give a share: 0.98 for 98 %."),
        ("--agreement=-5", "gate 'agreement': -5 is below 0. Give a share: 0.98 for 98 %."),
        ("--min-cosine=-2", "gate 'min-cosine': -2 is below -1. Give one of -1 or more."),
        ("--float-tolerance=-1", "gate 'float-tolerance': -1 is below 0. Give one of 0 or more."),
    ],
)
def test_gates_out_of_their_range(nnbuild: Nnbuild, model: Path, option: str, cause: str) -> None:
    said = nnbuild("check", model, option)
    assert (said.status, said.err) == (WRONG_USAGE, f"nnbuild: {cause}\n")


def test_options_of_a_check_without_effect(nnbuild: Nnbuild, model: Path) -> None:
    said = nnbuild("check", model, "--reset-each", "--float-tolerance", "1")
    assert said.status == 0 and "next: --reset-each has no effect" in said.err
    assert "--float-tolerance has" not in said.err
    said = nnbuild("check", model, "--quantize", "int8", "--io", "integer", "--float-tolerance", "1")
    assert said.status == 0 and "must equal the reference: --float-tolerance has no effect" in said.err


def test_options_of_quantization_without_it(nnbuild: Nnbuild, model: Path, tmp_path: Path) -> None:
    options = ["--keep", "dense=float", "--calibrate", "x.npz", "--no-bias-correction", "--accuracy-drop", "1"]
    options += ["--image-range=0,255", "--io", "float"]
    said = nnbuild("compile", model, "-o", tmp_path / "out", *options)
    idle = "--calibrate, --keep, --accuracy-drop, --no-bias-correction, --image-range, --io"
    note = f"nnbuild: note: without --quantize these have no effect on the model: {idle}\n"
    assert said.status == 0 and note in said.err
    said = nnbuild("compile", model, "-o", tmp_path / "out", "--io", "integer", "--image-range=0,1")
    assert said.status == 0 and "no effect" not in said.err
    said = nnbuild("compile", model, "-o", tmp_path / "out", "--quantize", "int8", "--image-range=0,255")
    note = "nnbuild: note: without a folder of images (--calibrate) this has no effect: --image-range\n"
    assert said.status == 0 and note in said.err


@pytest.mark.parametrize("command", ["build", "check", "profile"])
@pytest.mark.parametrize("choice", ["kernel", "kdir"])
def test_a_kernel_for_a_program_without_one(
    nnbuild: Nnbuild, model: Path, tmp_path: Path, command: str, choice: str
) -> None:
    folder = ["-o", tmp_path / "out"] if command == "build" else []
    assert_said(
        nnbuild(command, model, "--board", "stm32", f"--{choice}", "/nope", *folder),
        f"board 'stm32f405': its build does not take the choice of a {choice}. "
        "Leave it out, or name a board that does: linux-kmod, linux-kmod-arm64.",
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["build", "check"])
def test_headers_that_do_not_exist(nnbuild: Nnbuild, tmp_path: Path, command: str) -> None:
    """They are refused before a model is read."""
    folder = ["-o", tmp_path / "out"] if command == "build" else []
    said = nnbuild(command, tmp_path / "no.h5", "--board", "linux-kmod", "--kdir", "/nope", *folder)
    cause = "KDIR /nope: there are no kernel headers. Give others with --kdir, or kdir= for scons."
    assert_said(said, cause, TOOL_MISSING)


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_module_that_is_not_loaded(nnbuild: Nnbuild, model: Path, tmp_path: Path, command: str) -> None:
    words = ["--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz"] if command == "run" else []
    said = nnbuild(command, model, "--board", "linux-kmod", "--port", "/dev/nn_small", *words)
    step = "Load the module: sudo insmod nn_small.ko; its device is /dev/nn_ and the model's name."
    assert (said.status, said.err) == (3, f"nnbuild: /dev/nn_small: There is no such device. {step}\n")


def test_samples_for_a_model(nnbuild: Nnbuild, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros(3))
    np.save(tmp_path / "x.npy", np.zeros(3))
    arrays = "x.npz: it is a file of arrays, as samples are, and not a model. "
    assert_said(
        nnbuild("inspect", tmp_path / "x.npz"), f"{arrays}Give the model, and samples with --inputs or --calibrate."
    )
    one = "x.npy: it is an array of NumPy, as samples are, and not a model. Give a .h5 or .keras file"
    said = nnbuild("inspect", tmp_path / "x.npy")
    assert said.status == 2 and one in said.err


@pytest.mark.parametrize(("option", "cause"), [("--io", "--io float"), ("--quantize", "--quantize int8")])
def test_a_quantized_file_stays_as_it_is(nnbuild: Nnbuild, tmp_path: Path, option: str, cause: str) -> None:
    path = Path(__file__).resolve().parents[3] / "shared" / "models" / "kws_ref_model.tflite"
    if not path.is_file():
        pytest.skip("needs ../shared/models/kws_ref_model.tflite")
    said = nnbuild("compile", path, "-o", tmp_path / "out", *cause.split())
    text = {
        "--io": "this model is already quantized; its inputs and outputs keep the types in the file. "
        "Leave --io out; the header gives the scales of inputs and outputs.",
        "--quantize": "this model is already quantized. Leave --quantize out, or give a float model.",
    }
    assert_said(said, f"{cause}: {text[option]}")
    assert not (tmp_path / "out").exists()


def test_quantize_means_int8_unless_said(nnbuild: Nnbuild, model: Path) -> None:
    said = nnbuild("quantize", model, "--json")
    assert said.status == 0
    assert {layer["format"] for layer in said.json()["layers"]} == {"int8"}
    assert said.err.startswith("nnbuild: note: calibrated with random numbers, because no --calibrate was given")
    assert_said(
        nnbuild("quantize", model, "--quantize", "float"),
        "--quantize float: a float model has no quantization loss. Give --quantize int8 or int16, or --weights-bits 8.",
    )


MISSPELT = [
    (["chek"], "Did you mean check?"),
    (["check", "net.h5", "--quantise", "int8"], "Did you mean --quantize?"),
    (["check", "net.h5", "--quantize", "int80"], "Did you mean int8?"),
    (["board", "chekc"], "Did you mean check?"),
    (["board", "new", "x", "--lik", "stm32", "--lke"], "unrecognized arguments: --lke"),
]


@pytest.mark.parametrize(("words", "told"), MISSPELT)
def test_what_is_misspelt_is_recognized(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    said = capsys.readouterr().err
    assert (ended.value.code == 2 and told in said and "[options]" in said) or words[0] in ("chek", "board")


def test_every_help_has_examples_that_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    """And no default that says nothing."""
    for command, lines in EXAMPLES.items():
        with pytest.raises(SystemExit):
            main([command, "--help"])
        said = capsys.readouterr().out
        assert all(f"nnbuild {line}" in said for line in lines)
        assert ("default: None" not in said and "[options]" in said.splitlines()[0]) or command == "board"
