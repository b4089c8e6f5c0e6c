"""The command line: finds the command, prints errors as one paragraph, and turns the outcome into an exit code."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from nnbuild import __version__
from nnbuild.backends.listing import commands
from nnbuild.base.errors import NnbuildError
from nnbuild.base.paths import CMAKE, PLATFORMIO
from nnbuild.base.progress import set_listener
from nnbuild.base.sanitize import allow_unencodable, printable
from nnbuild.cli.parser import Parser, parser_of, with_short_usage

GROUPS = {
    "Start": {
        "inspect": "show a model's layers, shapes, parameters and operation counts",
        "new": "create a project: a model, its build files and a README",
        "docs": "show the documentation",
    },
    "Make C and programs": {
        "compile": "generate C from a model",
        "build": "build and audit the program that runs a model on a board",
        "flash": "write a model's program to a board's flash",
        "monitor": "show what your own program prints, in the emulator or on a board",
        "run": "build a model for a board, run samples there, write the outputs",
    },
    "Check and prove": {
        "check": "build a model for a board, run samples there, compare with the reference",
        "listen": "run a model with an audio front end on a recording or microphone",
        "mutate": "measure how many injected mistakes the samples detect",
        "bound": "prove the maximum number of instructions per run, over all inputs, on the linked program",
        "audit": "check the symbols, sections and stack of an object, archive or image",
        "evidence": "write proofs, traces, comparisons and coverage that a short script can re-check",
    },
    "Cost and loss": {
        "profile": "measure each layer's cost on a board",
        "quantize": "measure quantization loss, layer by layer",
        "report": "write one page with everything known about a model on a board",
        "diff": "compare two builds: size, memory, cost, accuracy",
    },
    "Boards": {
        "boards": "list the boards",
        "board": "create a table for your own board, or check one for contradictions",
    },
}
PLACES = {"--cmakedir": ("the CMake package", CMAKE), "--platformio-script": ("the PlatformIO script", PLATFORMIO)}
WRONG_USAGE = 2


def known() -> dict[str, tuple[str, str]]:
    """Every command with its summary and module: nnbuild's own, and those of back ends."""
    ours = {name: summary for group in GROUPS.values() for name, summary in group.items()}
    return {name: (summary, f"nnbuild.cli.{name}") for name, summary in ours.items()} | commands()


def overview() -> str:
    """Lists all commands by group."""
    added = {"More": {name: summary for name, (summary, _) in commands().items()}}
    lines = []
    for title, group in (GROUPS | added).items():
        lines += ["", f"{title}:", *(f"  {name:<10} {summary}" for name, summary in group.items())]
    return "\n".join([*lines[1:], "", "`nnbuild COMMAND --help` lists a command's options, with examples."])


class PrintPlace(argparse.Action):
    """Prints a path on one line, whatever its length; with forward slashes, for CMake on every system."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        print(Path(self.const).as_posix())
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """Imports a command's module only to run it or to show its help."""
    top = Parser(
        prog="nnbuild",
        usage="nnbuild COMMAND ...",
        description="Turns trained models into checked firmware.",
        epilog=overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"nnbuild {__version__}")
    for option, (what, path) in PLACES.items():
        top.add_argument(option, action=PrintPlace, nargs=0, const=path, help=f"print the path of {what}, and exit")
    parsers = top.add_subparsers(dest="command", metavar="COMMAND", required=True, help=argparse.SUPPRESS)
    for name in known():
        parsers.add_parser(name, add_help=False)
    return top


PATIENCE = 2.0
"""Seconds of work before a progress line, where there is no terminal."""


def _on_one_line(text: str) -> None:
    print(f"\r\x1b[K{printable(text)}{' …' if text else ''}", end="", file=sys.stderr, flush=True)


class _Lines:
    """Progress in a pipe: nothing for short work, then one plain line per kind of work."""

    def __init__(self) -> None:
        self._begun, self._now, self._told = time.monotonic(), "", ""
        late = threading.Timer(PATIENCE, self._tell)
        late.daemon = True
        late.start()

    def __call__(self, text: str) -> None:
        self._now = text
        if time.monotonic() - self._begun >= PATIENCE:
            self._tell()

    def _tell(self) -> None:
        text = self._now
        kind = text.split(" ")[0]
        if text and kind != self._told:
            self._told = kind
            print(f"nnbuild: {printable(text)}", file=sys.stderr, flush=True)


def _shower(is_command: bool) -> Callable[[str], None] | None:
    if sys.stderr.isatty():
        return _on_one_line
    return _Lines() if is_command and not os.environ.get("NNBUILD_QUIET") else None


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    allow_unencodable()
    set_listener(_shower(arguments is None))
    if arguments is None:
        _clear_up_when_ended()
    chosen, _ = parser().parse_known_args(words[:1])
    try:
        summary, name = known()[chosen.command]
        module = importlib.import_module(name)
        command = parser_of(chosen.command, summary)
        module.add_arguments(command)
        with_short_usage(command)
        command.set_defaults(words=words[1:])
        # Subcommands come before their options, as usual.
        parse = command.parse_args if getattr(module, "NESTED", False) else command.parse_intermixed_args
        status: int = module.run(parse(words[1:]))
        sys.stdout.flush()
        return status
    except NnbuildError as error:
        print(f"nnbuild: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno != errno.ENOSPC and not isinstance(error.filename, str):
            raise
        print(f"nnbuild: {_explained(error)}", file=sys.stderr)
        if error.errno == errno.ENOSPC:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return WRONG_USAGE
    except KeyboardInterrupt:
        print("nnbuild: stopped", file=sys.stderr)
        return 130


def _clear_up_when_ended() -> None:
    """A signal that ends the process leaves no temporary files, emulators or half-made programs, as Ctrl-C does not."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # not ignored, as under nohup
            signal.signal(number, _ended)


def _ended(number: int, _: object) -> NoReturn:
    print("nnbuild: stopped", file=sys.stderr)
    sys.exit(128 + number)


def _explained(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the disk is full. Free some space, or write elsewhere."
    return printable(f"{error.filename}: it cannot be used ({error.strerror}). Check the path and its permissions.")
