"""Command-line parsing: short usage lines, examples below the help, suggestions for misspellings."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from typing import NoReturn

EXAMPLES = {
    "inspect": ("inspect kws.h5",),
    "new": ("new digits", "new mine --model mine.h5 --quantize int8 --calibrate calibration.npz --inputs samples.npz"),
    "compile": ("compile kws.h5 -o kws", "compile kws.h5 --quantize int8 --calibrate samples.npz --single-file -o src"),
    "build": ("build kws.h5 --board stm32 -o firmware",),
    "run": ("run kws.h5 --inputs x.npz --outputs y.npz",),
    "check": (
        "check kws.h5 --inputs golden.npz",
        "check kws.h5 --board stm32 --quantize int8 --calibrate samples.npz",
        "check kws.h5 --board stm32 --port /dev/ttyUSB0",
        "check kws.h5 --on farm.toml --junit farm.xml",
    ),
    "listen": ("listen kws.h5 --features features.toml --wav speech.wav",),
    "mutate": ("mutate kws.h5 --quantize int8 --inputs golden.npz",),
    "flash": ("flash kws.h5 --board stm32 --port /dev/ttyUSB0",),
    "profile": ("profile kws.h5 --board mps2-an386 --quantize int8", "profile kws.h5 --board stm32 --cycles"),
    "bound": ("bound kws.h5 --board stm32 --quantize int8",),
    "quantize": ("quantize kws.h5 --quantize int8 --calibrate samples.npz",),
    "report": ("report kws.h5 --board stm32 --quantize int8 -o kws.html",),
    "diff": ("diff before.json after.json --max-worse 5",),
    "audit": ("audit kws.o --policy mcu", "audit kws.o --why expf"),
    "board": ("board new mine --like nucleo-f446re", "board check mine"),
}


class Parser(argparse.ArgumentParser):
    """Ends errors with a suggestion."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: error: {message}{self._hint(message)}\n")

    def _hint(self, message: str) -> str:
        misspelt = re.search(r"unrecognized arguments: (\S+)", message)
        if misspelt is not None:
            return _nearest(misspelt[1].split("=")[0], [o for action in self._actions for o in action.option_strings])
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        return _nearest(choice[1], re.findall(r"'([^']+)'", choice[2])) if choice is not None else ""


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, 1, 0.6)
    return f". Did you mean {near[0]}?" if near else ""


def parser_of(name: str, summary: str) -> Parser:
    """The parser of one command; the command's module adds its options."""
    examples = "".join(f"\n  nnbuild {line}" for line in EXAMPLES.get(name, ()))
    return Parser(
        prog=f"nnbuild {name}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"for example:{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def with_short_usage(parser: Parser) -> Parser:
    """A usage line with only the required arguments; the help lists the options."""
    words = [word for action in parser._actions for word in _needed(action)]
    optional = any(action.option_strings and not action.required for action in parser._actions)
    parser.usage = " ".join([parser.prog, *words, *(["[options]"] if optional else [])])
    return parser


def _needed(action: argparse.Action) -> list[str]:
    shown = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.option_strings:
        return [action.option_strings[0], shown] if action.required else []
    many = {"*": f"[{shown} ...]", "?": f"[{shown}]", "+": f"{shown} ..."}
    return [many.get(str(action.nargs), f"{shown} ..." if action.nargs == argparse.PARSER else shown)]
