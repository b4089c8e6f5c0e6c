"""A new project: a model with samples, the chosen build, and a page with the next steps."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import UsageError
from nnbuild.base.paths import EXAMPLE
from nnbuild.base.template import fill, fill_text
from nnbuild.board.board import Board
from nnbuild.board.tables import user_files
from nnbuild.frontend.import_options import LAYOUTS, Numbers
from nnbuild.jobs.application import application, sample_of
from nnbuild.jobs.options import Options, fix_texts, shape_texts
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.model.graph import Shape

BUILDS = ("scons", "cmake", "platformio")
SCONS_APP = """
# Your own program: main.c around the model, with the board's start-up code but without the check's link.
app = env.NNApplication("main.c", model, **options)
env.Alias("app", app)
env.Alias("monitor", env.NNMonitor(app, port=port, **options))
env.Alias("flash-app", env.NNFlash(model, app, port=port, **options))
"""
CMAKE_APP = """
# Your own program: main.c around the model, with the board's start-up code but without the check's link.
nnbuild_add_application(app SOURCES main.c MODEL "@MODEL@" BOARD @BOARD@
  QUANTIZE @QUANTIZE@@CMAKE_CALIBRATE@@CMAKE_LABELS@@CMAKE_IMPORT@)
"""
TARGETS = frozenset(
    "all app clean depend edit_cache help install list_install_components package package_source rebuild_cache server "
    "test".split()
)
"""Targets that the template or CMake itself defines."""


@dataclass(frozen=True)
class Parts:
    """The inputs of a project; the example's where the user gave none. Paths are those of the originals."""

    board: str
    model: Path = EXAMPLE / "mnist.h5"
    quantize: str = "int8"
    calibrate: Path | None = EXAMPLE / "calibration.npz"
    inputs: Path | None = EXAMPLE / "samples.npz"
    labels: Path | None = EXAMPLE / "labels.txt"
    shape: tuple[tuple[str, Shape], ...] = ()
    fix: tuple[tuple[str, Numbers], ...] = ()
    io_layout: str = LAYOUTS[0]

    @property
    def options(self) -> Options:
        """Without the calibration, on which no file of a project depends."""
        return Options(
            self.model,
            self.board,
            self.quantize,
            labels=self.labels,
            shape=self.shape,
            fix=self.fix,
            io_layout=self.io_layout,
        )


def project_files(build: str, parts: Parts) -> dict[str, bytes]:
    """All files of the project. Compiles the model, to refuse one that cannot be built."""
    compiled = compile_model(parts.options, sizes_only=True)
    copied = [path for path in (parts.model, parts.calibrate, parts.inputs, parts.labels) if path is not None]
    values = _values(build, parts, compiled)
    templates = _templates(build, compiled.board)
    sample = sample_of(compiled, parts.inputs)
    beside = {str(Path(name).with_name("sample.h")): sample.header for name in templates if name.endswith("main.c")}
    values |= application(compiled, sample)
    texts = {name: fill(template, values) for name, template in templates.items()} | beside
    return {
        **user_files(compiled.board),
        **{path.name: path.read_bytes() for path in copied},
        **{name: text.encode() for name, text in texts.items()},
    }


def _templates(build: str, board: Board) -> dict[str, str]:
    """The project's text files, each with its template."""
    hosted, backend = board.output == "host", backend_of(board)
    kind = "host" if hosted else "module" if backend.own_build is not None else "firmware"
    page = "device" if backend.cannot_run(board, None) else kind
    own = build != "platformio" and backend.application is not None
    main = {"main.c": "new/main.c" if hosted else "new/main.bare.c"} if hosted or own else {}
    if build == "scons":
        return {"SConstruct": f"new/SConstruct.{kind}", "README.md": f"new/README.scons.{page}.md", **main}
    if build == "cmake":
        return {"CMakeLists.txt": f"new/CMakeLists.{kind}.txt", "README.md": f"new/README.cmake.{page}.md", **main}
    return {
        "platformio.ini": "new/platformio.ini",
        "nnbuild_model.py": "new/nnbuild_model.txt",
        "src/main.c": "new/main.c",
        "README.md": f"new/README.platformio{'.device' if page == 'device' else ''}.md",
    }


def _values(build: str, parts: Parts, compiled: Compiled) -> dict[str, str]:
    board, prefix = compiled.board, compiled.plan.prefix
    calibrate = parts.calibrate.name if parts.calibrate is not None else None
    inputs = parts.inputs.name if parts.inputs is not None else None
    labels = parts.labels.name if parts.labels is not None else None
    platform, pio_board = _platformio(board) if build == "platformio" else ("", "")
    values = {
        "BOARD": board.name,
        "SUMMARY": board.summary,
        "MODEL": parts.model.name,
        "PREFIX": prefix,
        "UPPER": prefix.upper(),
        "QUANTIZE": parts.quantize,
        "NEEDS": _needs(board),
        "POLICY": board.audit_policy,
        "DEFAULT": "program" if backend_of(board).cannot_run(board, None) else "check",
        "PROGRAM": backend_of(board).program(prefix),
        "SCONS_CALIBRATE": f', calibrate="{calibrate}"' if calibrate else "",
        "SCONS_LABELS": f', labels="{labels}"' if labels else "",
        "CMAKE_LABELS": f' LABELS "{labels}"' if labels else "",
        "INI_LABELS": f"custom_nnbuild_labels = {labels}\n" if labels else "",
        "SCONS_INPUTS": f'inputs="{inputs}", ' if inputs else "",
        "CMAKE_CALIBRATE": f' CALIBRATE "{calibrate}"' if calibrate else "",
        "CMAKE_INPUTS": f' INPUTS "{inputs}"' if inputs else "",
        "INI_CALIBRATE": f"custom_nnbuild_calibrate = {calibrate}\n" if calibrate else "",
        "OPTIONS": _options(board, parts, calibrate),
        "INPUTS": f" --inputs {shlex.quote(inputs)}" if inputs else "",
        **_choices(board),
        "PLATFORM": platform,
        "PIO_BOARD": pio_board,
    }
    values |= _compiler(board) | _imported(parts) | _target(prefix)
    return values | {name: fill_text(text, values) for name, text in _own_program(board).items()}


def _target(prefix: str) -> dict[str, str]:
    """The library's target in CMake, which is also the prefix unless another target has this name."""
    if prefix in TARGETS or prefix.startswith("server_"):
        return {"TARGET": f"{prefix}_model", "CMAKE_NAME": f" NAME {prefix}"}
    return {"TARGET": prefix, "CMAKE_NAME": ""}


def _imported(parts: Parts) -> dict[str, str]:
    """Texts that say what the model's file leaves open."""
    given = {"shape": ";".join(shape_texts(parts.shape)), "fix": ";".join(fix_texts(parts.fix))}
    if parts.io_layout != LAYOUTS[0]:
        given["io_layout"] = parts.io_layout
    lists = {name.upper(): text.split(";") for name, text in given.items() if text}
    return {
        "SCONS_IMPORT": "".join(f', {name}="{text}"' for name, text in given.items() if text),
        "CMAKE_IMPORT": "".join(f" {name} " + " ".join(f'"{text}"' for text in lists[name]) for name in lists),
        "INI_IMPORT": "".join(f"custom_nnbuild_{name.lower()} = {' '.join(texts)}\n" for name, texts in lists.items()),
    }


def _choices(board: Board) -> dict[str, str]:
    """Texts that name the options of the back end's own build."""
    choices = backend_of(board).choices
    last = choices[-1:]
    return {
        "SCONS_CHOICES": ", ".join(f'"{choice.name}"' for choice in choices),
        "SCONS_EXAMPLE": " ".join(f"{choice.name}={choice.metavar}" for choice in last),
        "CMAKE_CHOICES": " or ".join(f"--{choice.name}={choice.metavar}" for choice in choices),
        "CMAKE_EXAMPLE": " ".join(f"--{choice.name}={choice.metavar}" for choice in last),
    }


def _compiler(board: Board) -> dict[str, str]:
    """Texts that choose the compiler of a program of one's own, where its system is not this PC's."""
    gcc = next((chain for chain in board.toolchains if chain.name == "gcc"), None)
    if board.output != "host" or board.architecture == "native" or gcc is None:
        return dict.fromkeys(("SCONS_COMPILER", "CMAKE_COMPILER", "CMAKE_BOARD"), "")
    flags = [flag for flag in gcc.flags if flag.startswith("-m")]
    return {
        "SCONS_COMPILER": f', CC="{gcc.command[0]}", CCFLAGS={flags}, LINKFLAGS=["-static"]'.replace("'", '"'),
        "CMAKE_COMPILER": (
            f"set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_C_COMPILER {gcc.command[0]})\n"
            f'set(CMAKE_C_FLAGS_INIT "{" ".join(flags)}")\nset(CMAKE_EXE_LINKER_FLAGS_INIT "-static")\n'
        ),
        "CMAKE_BOARD": f" BOARD {board.name}",
    }


def _own_program(board: Board) -> dict[str, str]:
    """Texts for the build and the page about the project's own program, on boards whose start-up code nnbuild
    supplies."""
    if backend_of(board).application is None:
        return dict.fromkeys(("SCONS_APP", "CMAKE_APP", "README_APP", "README_CMAKE_APP", "README_MAIN"), "")
    if board.emulator is not None:
        scons = "scons app monitor    # builds main.c, a program of your own, shows what it prints in the emulator\n"
        cmake = "cmake --build build --target app_monitor     # builds main.c, shows its output in the emulator\n"
    else:  # the same commands monitor and flash it once the board is connected
        scons = "scons app            # builds main.c, a program of your own; later: scons flash-app monitor port=…\n"
        cmake = "cmake --build build --target app             # builds main.c; later: app_flash and app_monitor\n"
    return {
        "SCONS_APP": SCONS_APP,
        "CMAKE_APP": CMAKE_APP,
        "README_APP": scons,
        "README_CMAKE_APP": cmake,
        "README_MAIN": "| `main.c` | your own program: shows the model the sample in `sample.h`, prints the answer |\n",
    }


def _options(board: Board, parts: Parts, calibrate: str | None) -> str:
    """The build's options as command-line arguments."""
    words = [parts.model.name, "--board", board.name, "--quantize", parts.quantize]
    words += parts.options.import_words
    return shlex.join(words + (["--calibrate", calibrate] if calibrate else []))


def _needs(board: Board) -> str:
    """Software to install besides nnbuild."""
    tools = [board.toolchains[0].install]
    if board.emulator is not None:
        tools.append(board.emulator.install)
    return " and ".join(f"`{tool}`" for tool in tools)


def _platformio(board: Board) -> tuple[str, str]:
    """The platform, and the line that names the board in PlatformIO."""
    if board.output == "host":
        return "native", ""
    table: Mapping[str, str] = board.table.get("platformio", {})
    if not table:
        raise UsageError(
            f"board {board.name!r}",
            "nnbuild does not know PlatformIO's name for it.",
            "Use --build scons or --build cmake, or start with --board linux and edit platformio.ini.",
        )
    return table["platform"], f"board = {table['board']}\nframework = {table['framework']}\n"
