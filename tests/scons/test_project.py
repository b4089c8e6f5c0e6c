"""nnbuild in a project of one's own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nnbuild.base.paths import EXAMPLE
from tests.offload.made_up import made_up
from tests.scons.conftest import HEAD, ROOT, scons, write_model

pytestmark = pytest.mark.slow


def test_a_model_in_a_program_of_ones_own(project: Path) -> None:
    (project / "main.c").write_text(
        '#include <stdio.h>\n#include "small.h"\n\n'
        "static small_context model;\n\n"
        "int main(void)\n{\n    small_init(&model);\n"
        "    for (int i = 0; i < SMALL_INPUT0_SIZE; ++i) {\n        small_input(&model, 0)[i] = 0.0f;\n    }\n"
        '    printf("%d %d\\n", small_run(&model), SMALL_OUTPUT0_SIZE);\n    return 0;\n}\n'
    )
    (project / "SConstruct").write_text(
        HEAD
        + 'files = env.NNModel("small.h5")\n'
        + "env.Append(CPPPATH=[files[0].dir])\n"
        + 'env.Program("app", ["main.c", *[f for f in files if str(f).endswith(".c")]])\n'
    )
    said = scons(project, "-Q")
    assert said.status == 0, said.err
    done = subprocess.run([str(project / "app")], capture_output=True, text=True, check=True)
    assert done.stdout == "0 3\n"
    assert scons(project, "-Q").out == "scons: `.' is up to date.\n"


def test_the_files_and_the_program_of_one_model(project: Path) -> None:
    """Both are asked for, and printed once."""
    (project / "SConstruct").write_text(HEAD + 'env.NNModel("small.h5")\nenv.NNProgram("small.h5")\n')
    said = scons(project, "-Q")
    assert said.status == 0, said.err
    assert said.did("nnbuild compile") == ["nnbuild compile small.h5"]


@pytest.mark.turns(3)
def test_a_program_that_takes_sound_is_checked(project: Path) -> None:
    shutil.copy(EXAMPLE.parent / "keyword" / "words.h5", project)
    (project / "sound.toml").write_text((EXAMPLE.parent / "keyword" / "sound.toml").read_text())
    (project / "SConstruct").write_text(
        HEAD
        + 'options = dict(features="sound.toml")\nprogram = env.NNProgram("words.h5", **options)\n'
        + 'env.Alias("check", env.NNCheck("words.h5", program, **options))\n'
    )
    said = scons(project, "-Q", "check")
    assert said.status == 0, said.err
    assert "PASS" in said.out


def test_options_without_effect_are_named(project: Path) -> None:
    """As the command line names them."""
    options = 'io="float", image_range=(0.0, 255.0)'
    (project / "SConstruct").write_text(HEAD + f'env.NNModel("small.h5", {options})\n')
    said = scons(project, "-Q")
    assert said.status == 0
    assert "without --quantize these have no effect on the model: --image-range, --io\n" in said.err


def test_one_folder_takes_one_set_of_options(project: Path) -> None:
    (project / "SConstruct").write_text(HEAD + 'env.NNModel("small.h5", quantize="int8")\nenv.NNProgram("small.h5")\n')
    said = scons(project, "-Q")
    assert said.status == 2
    cause = "it is built twice with different options. Give one of them its own name= or folder=."
    assert said.err == f"nnbuild: model small.h5: {cause}\n"


MISTAKES = {
    'board="stm33"': "nnbuild: board 'stm33': there is no such board. ",
    'quantise="int8"': "nnbuild: option quantise=: there is no such option. The options are: board, quantize, ",
    'quantize="int4"': "nnbuild: quantize=int4: there is no such choice. Give one of float, int8, int16.",
    "keep=['dense']": "nnbuild: keep=['dense']: it needs pairs. ",
    'keep="dense"': "nnbuild: keep=dense: 'dense' is not a pair. Give for example keep=layer=int16,other=float.",
    'keep="dense=int7"': "nnbuild: keep=int7: for 'dense' there is no such choice. Give one of int8, int16, float.",
    'place="dense=gpu"': "nnbuild: place=gpu: for 'dense' there is no such choice. Give one of cpu, device.",
    'shape="x=1,b"': "nnbuild: shape=x=1,b: 'x=1,b' is not a pair. ",
    'fix="x=1,b"': "nnbuild: fix=x=1,b: 'x=1,b' is not a pair. Give for example fix=rate=16000;mask=1,0,1.",
    'fix=[("x", "a")]': "nnbuild: fix=[('x', 'a')]: it needs numbers. ",
    "fix=5": "nnbuild: fix=5: it needs pairs. ",
    'fix=[("x", [])]': "nnbuild: fix=[('x', [])]: it needs numbers. ",
    'fix={"x": 10**400}': "nnbuild: fix=(('x', 1000",
    "threads=0": "nnbuild: threads=0: it is not a positive whole number. ",
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("option", MISTAKES)
def test_a_mistake_in_the_options_is_told_in_words(option: str, project: Path) -> None:
    (project / "SConstruct").write_text(HEAD + f'env.NNModel("small.h5", {option})\n')
    said = scons(project, "-Q")
    assert said.status == 2
    assert said.err.startswith(MISTAKES[option])
    assert len(said.err.splitlines()) == 1, "no traceback"


def test_what_is_built_is_held_to_a_budget_of_flash(project: Path) -> None:
    """Its code was only estimated."""
    model = 'env.NNProgram("small.h5", quantize="int8", calibrate="small.npz", flash="30K")\n'
    np.savez(project / "small.npz", x=np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32))
    (project / "SConstruct").write_text(HEAD + model)
    said = scons(project, "-Q")
    assert said.status == 0, said.err
    (audited,) = project.rglob("audit.json")
    assert json.loads(audited.read_text())["budget"]["flash"] == 30 * 1024


@pytest.mark.turns(3)
@pytest.mark.slow
def test_two_models_are_built_in_parallel(project: Path) -> None:
    write_model(project / "other.h5", 0.5)
    (project / "SConstruct").write_text(
        HEAD
        + 'for name in ("small.h5", "other.h5"):\n'
        + "    program = env.NNProgram(name)\n"
        + '    env.Alias("check", env.NNCheck(name, program))\n'
    )
    said = scons(project, "-Q", "-j2", "check")
    assert said.status == 0, said.err
    assert sorted(said.did("nnbuild check")) == ["nnbuild check other.h5", "nnbuild check small.h5"]
    assert said.out.count("PASS: 21 samples") == 2


@pytest.mark.turns(4)
@pytest.mark.slow
def test_a_model_that_another_step_makes(project: Path) -> None:
    """It is not there when the build is read, and the build knows its files all the same."""
    write_model(project / "trained.bin")
    (project / "SConstruct").write_text(
        HEAD
        + 'env.Command("made/net.h5", "trained.bin", Copy("$TARGET", "$SOURCE"))\n'
        + 'program = env.NNProgram("made/net.h5")\n'
        + 'env.Alias("check", env.NNCheck("made/net.h5", program))\n'
    )
    said = scons(project, "-Q", "check")
    assert said.status == 0, said.err
    assert "PASS" in said.out
    assert scons(project, "-Q", "build").out == "scons: `build' is up to date.\n"
    write_model(project / "trained.bin", 3.0)
    said = scons(project, "-Q", "build")
    assert said.did("nnbuild compile") == ["nnbuild compile made/net.h5"]


@pytest.mark.turns(3)
def test_in_an_sconscript_of_a_folder(project: Path) -> None:
    (project / "SConstruct").write_text(HEAD + 'SConscript("part/SConscript", exports="env")\n')
    (project / "part").mkdir()
    write_model(project / "part" / "inner.h5")
    (project / "part" / "SConscript").write_text('Import("env")\nenv.NNProgram("inner.h5")\n')
    said = scons(project, "-Q")
    assert said.status == 0, said.err
    assert (project / "part" / "build" / "linux" / "inner" / "program").is_file()
    assert scons(project, "-Q").out == "scons: `.' is up to date.\n"


def test_a_broken_model_fails_the_build(project: Path) -> None:
    (project / "small.h5").write_bytes(b"hello")
    (project / "SConstruct").write_text(HEAD + 'env.NNProgram("small.h5")\n')
    said = scons(project, "-Q")
    assert said.status == 2
    assert "nnbuild: small.h5: it is not a model: neither HDF5, nor a Keras zip, nor TensorFlow Lite" in said.err
    assert "Traceback" not in said.err + said.out


@pytest.mark.turns(4)
def test_a_device_beside_the_core(project: Path) -> None:
    """Its driver is compiled into the program; nothing is done again until a file of the device changes."""
    mine = made_up(project / "mine")
    options = 'quantize="int8", calibrate="samples.npz", device="mine", isa="c99", place=[("*", "device")]'
    x = np.random.default_rng(2).normal(0, 1, (6, 4)).astype(np.float32)
    np.savez(project / "samples.npz", x=x)
    (project / "SConstruct").write_text(
        HEAD
        + f'program = env.NNProgram("small.h5", {options})\n'
        + f'env.Alias("check", env.NNCheck("small.h5", program, inputs="samples.npz", {options}))\n'
    )
    said = scons(project, "-Q", "check")
    assert said.status == 0, said.err + said.out
    assert "device     mine: 1 tasks a run" in said.out
    assert scons(project, "-Q", "check").did("nnbuild compile") == []
    driver = mine / "driver.c"
    driver.write_text(driver.read_text() + "\n/* another one */\n")
    assert scons(project, "-Q", "check").did("nnbuild compile") == ["nnbuild compile small.h5"]


@pytest.mark.skipif(shutil.which("verilator") is None, reason="the device's simulator is made by verilator")
def test_a_simulated_device_is_linked_with_programs_and_libraries(project: Path) -> None:
    options = 'quantize="int8", calibrate="samples.npz", device="systolic", isa="c99", place=[("*", "device")]'
    np.savez(project / "samples.npz", x=np.random.default_rng(2).normal(0, 1, (6, 4)).astype(np.float32))
    (project / "main.c").write_text(
        '#include "small.h"\nint main(void) { static small_context c; small_init(&c); return small_run(&c); }\n'
    )
    (project / "SConstruct").write_text(
        HEAD
        + f'program = env.NNProgram("small.h5", {options})\n'
        + f'library = env.NNLibrary("small.h5", {options})\n'
        + 'own = env.Program("own", ["main.c", *library])\n'
    )
    said = scons(project, "-Q")
    assert said.status == 0, said.err + said.out
    assert subprocess.run([project / "own"]).returncode == 0


@pytest.mark.turns(3)
def test_two_models_of_one_name_are_told_apart(project: Path) -> None:
    (project / "other").mkdir()
    write_model(project / "other" / "small.h5", 2.0)
    (project / "SConstruct").write_text(HEAD + 'env.NNLibrary("small.h5")\nenv.NNLibrary("other/small.h5")\n')
    said = scons(project, "-Q")
    assert said.status == 2
    assert "is built under the same name, small. Give one of them its own name=" in said.err
    (project / "SConstruct").write_text(
        HEAD + 'env.NNLibrary("small.h5", folder="a")\nenv.NNLibrary("other/small.h5", folder="b")\n'
    )
    said = scons(project, "-Q")
    assert said.status == 2
    assert "another library of this environment has the same functions, small_…" in said.err
    apart = 'env.Clone().NNLibrary("small.h5", folder="a")\nenv.Clone().NNLibrary("other/small.h5", folder="b")\n'
    (project / "SConstruct").write_text(HEAD + apart)
    assert scons(project, "-Q").status == 0


def test_other_calibration_is_another_build(project: Path) -> None:
    for name in ("a.npy", "b.npy"):
        np.save(project / name, np.ones((4, 4), np.float32))
    asked = [f'env.NNModel("small.h5", quantize="int8", calibrate="{name}.npy")\n' for name in "ab"]
    (project / "SConstruct").write_text(HEAD + "".join(asked))
    said = scons(project, "-Q")
    assert said.status == 2
    assert "it is built twice with different options" in said.err


WORDS = {
    'env.NNMonitor("app.elf")': "nnbuild: NNMonitor: it does not say on which board the program runs. ",
    'env.NNModel("small.h5", labels=["a", "b"])': "nnbuild: labels=['a', 'b']: it is not a text. ",
    'env.NNModel("small.h5", isa=["c99"])': "nnbuild: isa=['c99']: it is not a text. ",
    'env.NNModel("small.h5", board=5)': "nnbuild: board=5: it is not a text. ",
    'env.NNModel(["small.h5", "other.h5"])': "nnbuild: model ['small.h5', 'other.h5']: it is not one file. ",
}


@pytest.mark.parametrize("call", WORDS)
def test_calls_that_mean_nothing_are_told_in_words(call: str, project: Path) -> None:
    (project / "SConstruct").write_text(HEAD + call + "\n")
    said = scons(project, "-Q")
    assert said.status == 2
    assert said.err.startswith(WORDS[call])
    assert "Traceback" not in said.err


@pytest.mark.turns(3)
def test_results_of_builders_and_folders_are_taken(project: Path) -> None:
    (project / "samples").mkdir()
    for index in range(3):
        np.save(project / "samples" / f"{index}.npy", np.ones((2, 4), np.float32) * index)
    (project / "SConstruct").write_text(
        HEAD
        + 'made = env.Command("made/net.h5", "small.h5", Copy("$TARGET", "$SOURCE"))\n'
        + "env.NNLibrary(made)\n"
        + 'program = env.NNProgram("small.h5")\n'
        + 'env.Alias("check", env.NNCheck("small.h5", str(program[0])))\n'
    )
    said = scons(project, "-Q", "check")
    assert said.status == 0, said.err
    assert "PASS" in said.out


@pytest.mark.turns(3)
def test_a_changed_board_table_is_a_changed_option(project: Path) -> None:
    (project / "boards").mkdir()
    table = project / "boards" / "mine.toml"
    table.write_text('extends = "linux"\nsummary = "mine"\ntested_on = "build only"\n')
    (project / "SConstruct").write_text(HEAD + 'env.NNModel("small.h5", board="mine")\n')
    assert scons(project, "-Q").status == 0
    assert scons(project, "-Q").out == "scons: `.' is up to date.\n"
    table.write_text('extends = "linux"\nsummary = "mine"\ntested_on = "build only"\nalignment = 32\n')
    assert scons(project, "-Q").did("nnbuild compile") == ["nnbuild compile small.h5"]


@pytest.mark.turns(4)
def test_a_refused_audit_leaves_no_program(project: Path) -> None:
    """Neither the C nor an object changes with the stack that the audit allows, nor with its policy."""
    table, policy = project / "boards" / "mine.toml", project / "own.toml"
    table.parent.mkdir()
    shutil.copy2(ROOT / "nnbuild" / "audit" / "policies" / "mcu.toml", policy)
    (project / "SConstruct").write_text(HEAD + 'env.NNProgram("small.h5", board="boards/mine.toml")\n')
    built = project / "build" / "mine" / "small"
    for stack, passes in ((2048, True), (8, False), (2048, True)):
        audit = f'[audit]\nstack = {stack}\npolicy = "own.toml"\n'
        table.write_text(f'extends = "stm32f405"\nsummary = "mine"\ntested_on = "build only"\n{audit}')
        said = scons(project, "-Q")
        assert (said.status == 0) is passes, said.out + said.err
        assert said.did("nnbuild audit") == ["nnbuild audit small"]
        found = {path.suffix for path in built.glob("program.*")}
        assert found == ({".ld", ".elf", ".bin", ".hex"} if passes else {".ld"})
        assert (built / "audit.json").exists() is passes
    policy.write_text(policy.read_text() + "\n")
    assert scons(project, "-Q").steps == ["nnbuild audit small"]


@pytest.mark.turns(4)
def test_a_cache_holds_and_a_cleaning_removes_all_that_is_made(project: Path) -> None:
    """Also the compiler's tables of frames and calls, which the audit and the check read."""
    (project / "SConstruct").write_text(
        HEAD + 'CacheDir("cache")\nprogram = env.NNProgram("small.h5")\nDefault(env.NNCheck("small.h5", program))\n'
    )
    for compiled in (True, False):
        said = scons(project, "-Q")
        assert said.status == 0, said.err
        assert (len(said.did("gcc")) > 5) == compiled and (said.out.count("Retrieved") > 5) != compiled
        assert scons(project, "-Q", "-c").status == 0
        left = [path for path in (project / "build").rglob("*") if path.is_file()]
        assert left == []
