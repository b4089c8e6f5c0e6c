"""Foreign text that is shown: nothing in it may steer a terminal, end a string, or turn the direction of reading."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable

QUOTES = "\"'`\\"


def escape_name(name: str) -> str:
    """A name out of a model or an archive: characters that do not print, and quotes, as their numbers. Names that
    differ stay different, since the backslash is one of these."""
    return "".join(_numbered(c) if c in QUOTES or not c.isprintable() else c for c in name)


def printable(text: str) -> str:
    """Whole sentences: lines and quotes are left, all else that does not print becomes a number."""
    return "".join(c if c in "\n\t" or c.isprintable() else _numbered(c) for c in text)


def _numbered(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def allow_unencodable(streams: Iterable[object] | None = None) -> None:
    """Characters that an output cannot encode are written as their numbers: they are no reason to fail."""
    for stream in (sys.stdout, sys.stderr) if streams is None else streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
