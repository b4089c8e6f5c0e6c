"""Adds a model to a PlatformIO build. In platformio.ini:

    extra_scripts = pre:nnbuild_model.py       ; asks nnbuild for this file's path, see docs/platformio.md
    custom_nnbuild_model = kws.h5
    custom_nnbuild_quantize = int8
    custom_nnbuild_calibrate = samples.npz

PlatformIO has its own Python, in which nnbuild need not be installed: it is called as a program here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

from SCons.Script import COMMAND_LINE_TARGETS, Import

Import("env")
env: Any = globals()["env"]

PACKAGE = Path(sys._getframe().f_code.co_filename).resolve().parents[2]
"""SCons scripts have no __file__."""
WORDS = (
    *("name", "isa", "board", "quantize", "calibrate", "calibration", "image_range", "io"),
    *("accuracy_drop", "optimize", "price", "memory", "threads", "weights", "io_layout", "labels", "stream"),
    *("prune", "share", "weights_bits", "flash", "features"),
)
"""Options with one value: custom_nnbuild_quantize becomes --quantize."""
FILES = ("calibrate", "labels", "features")
LISTS = ("keep", "shape", "fix")
"""Options of several values, with spaces or lines between them."""
OTHERS = ("model", "no_bias_correction", "python", "flags")


def refuse(cause: str) -> NoReturn:
    """Ends the build in PlatformIO's way."""
    sys.stderr.write(f"nnbuild: {cause}\n")
    sys.exit(2)


def option(name: str, default: str = "") -> str:
    value: str = env.GetProjectOption(f"custom_nnbuild_{name}", default)
    return value


def misspelt() -> list[str]:
    """Unknown options with our prefix."""
    known = {f"custom_nnbuild_{name}" for name in (*WORDS, *LISTS, *OTHERS)}
    section = f"env:{env['PIOENV']}"
    given = env.GetProjectConfig().options(section)
    return sorted(name for name in given if name.startswith("custom_nnbuild_") and name not in known)


def command() -> list[str]:
    """Runs the nnbuild of this file, in the named Python or the one beside it."""
    home = PACKAGE.parent
    beside = [home / ".venv" / "bin" / "python3"]
    if home.name == "site-packages":
        beside = [home.parents[2] / "bin" / "python3", home.parents[1] / "Scripts" / "python.exe"]
    found = [str(path) for path in beside if path.is_file()]
    return [option("python") or (found[0] if found else sys.executable), "-m", "nnbuild"]


def environment() -> dict[str, str]:
    """Always runs the nnbuild of this file, whatever else is installed."""
    search = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(search)}


def whole(path: str) -> str:
    """Paths are relative to the project, wherever the build was started."""
    return str(Path(env.subst("$PROJECT_DIR")) / Path(path).expanduser())


def arguments(model: str) -> list[str]:
    words = [model]
    for name in WORDS:
        value = option(name)
        if value:
            value = whole(value) if name in FILES else value
            words += [f"--{name.replace('_', '-')}", value]
    for name in LISTS:
        words += [word for each in option(name).split() for word in (f"--{name}", each)]
    if option("no_bias_correction").lower() in ("yes", "true", "1"):
        words += ["--no-bias-correction"]
    native = env.subst("$PIOPLATFORM") == "native"
    if not option("isa") and not option("board") and not native:
        words += ["--isa", "c99"]  # this PC's instructions may not fit the board, whose own are unknown
    if not option("weights") and native and sys.platform in ("darwin", "win32"):
        words += ["--weights", "array"]  # the .S is written for ELF
    return words


def run(words: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command(), *words], env=environment(), encoding="utf-8", errors="replace", **more)


def expected(words: list[str]) -> Any:
    """The build's outputs, without building."""
    done = run(["compile", *words, "--dry-run", "--json"], capture_output=True)
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def add_model() -> None:
    model = option("model")
    if not model:
        refuse("platformio.ini does not name a model. Write custom_nnbuild_model = kws.h5")
    for name in misspelt():
        refuse(f"unknown option {name}. `nnbuild docs platformio` lists the options.")
    words = arguments(whole(model))
    facts = expected(words)
    folder = Path(env.subst("$BUILD_DIR")) / "nnbuild"
    words += ["--weights", facts["form"]]

    def compile_model(target: Any, source: Any, env: Any) -> int:
        return run(["compile", *words, "-o", str(folder)]).returncode

    files = env.Command(
        [str(folder / name) for name in facts["files"]],
        [whole(model), *(whole(option(name)) for name in FILES if option(name))],
        env.VerboseAction(compile_model, f"nnbuild compile {model}"),
    )
    sources = [*sorted(PACKAGE.rglob("*.py")), *sorted(PACKAGE.rglob("*.toml")), *sorted(PACKAGE.rglob("*.[ch]"))]
    env.Depends(files, [env.Value(json.dumps(words)), *(env.File(str(path)) for path in sources)])
    env.Append(CPPPATH=[str(folder)])
    # Kernels need optimization, and contracted products would change the last bits of floats.
    compiler = f"$CCCOM {option('flags', '-O2 -ffp-contract=off')}"
    objects = [env.Object(node, CCCOM=compiler) for node in files if str(node).endswith((".c", ".S"))]
    env.Depends(objects, files)  # the header is generated with them
    env.Append(PIOBUILDFILES=objects)


if not {"envdump", "idedata"} & set(COMMAND_LINE_TARGETS):
    add_model()
