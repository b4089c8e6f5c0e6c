"""Sanitizes foreign text for output: it must not control a terminal, end a string, or change the reading direction."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable

QUOTES = "\"'`\\"


def escape_name(name: str) -> str:
    """A name from a model or an archive, with non-printing characters and quotes as escapes. The backslash is escaped
    too, so different names stay different."""
    return "".join(_numbered(c) if c in QUOTES or not c.isprintable() else c for c in name)


def printable(text: str) -> str:
    """A whole message: newlines and quotes stay, other non-printing characters become escapes."""
    return "".join(c if c in "\n\t" or c.isprintable() else _numbered(c) for c in text)


def _numbered(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def allow_unencodable(streams: Iterable[object] | None = None) -> None:
    """Makes output streams escape characters that they cannot encode, rather than fail."""
    for stream in (sys.stdout, sys.stderr) if streams is None else streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
