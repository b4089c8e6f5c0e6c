"""Runs commands, one after the other, on a Python that lacks what Windows lacks. Arguments: a file with a JSON list of
commands; prints, as JSON on the last line, their exit codes."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

MODULES = ("termios", "fcntl", "resource", "tty", "pty", "pwd", "grp", "readline", "curses", "syslog")
FUNCTIONS = (
    *("fork", "forkpty", "openpty", "setsid", "killpg", "getuid", "geteuid", "getgid", "sched_getaffinity"),
    *("sched_setaffinity", "mkfifo", "getpgid", "wait", "chown", "nice"),
)


def without_posix() -> None:
    for module in MODULES:
        sys.modules[module] = None  # type: ignore[assignment]
    for function in FUNCTIONS:
        if hasattr(os, function):
            delattr(os, function)


def main() -> int:
    commands = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    without_posix()
    warnings.filterwarnings("error", category=EncodingWarning, module=r"nnbuild(\.|$)")
    from nnbuild.cli import main as nnbuild

    codes = []
    for words in commands:
        try:
            codes.append(nnbuild(words))
        except SystemExit as ended:
            codes.append(int(ended.code or 0))
    print()
    print(json.dumps(codes))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
