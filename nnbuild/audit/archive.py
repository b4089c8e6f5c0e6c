"""Opens the files given to the audit: ELF files as they are, `ar` archives member by member."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nnbuild.audit.elf import BITCODE, ObjectFile, bad_object, read_elf, text_at

MAGIC, THIN_MAGIC = b"!<arch>\n", b"!<thin>\n"
HEADER_SIZE = 60
INDEX_NAMES = ("/", "/SYM64/", "__.SYMDEF", "__.SYMDEF SORTED")


@dataclass(frozen=True)
class OpenedFile:
    """The objects in one path, and notes on parts that could not be read."""

    path: Path
    objects: tuple[ObjectFile, ...]
    notes: tuple[str, ...]


def open_file(path: Path) -> OpenedFile:
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise bad_object(str(path), f"cannot be read ({problem.strerror}).", "Check the path.") from None
    if not data.startswith((MAGIC, THIN_MAGIC)):
        return OpenedFile(path, (read_elf(path.name, data),), ())
    objects, notes = [], []
    for name, content in _members(path, data):
        label = f"{path.name}({name})"
        if content.startswith((b"\x7fELF", *BITCODE)):
            objects.append(read_elf(label, content))
        else:
            notes.append(f"{label}: not an ELF object, so not audited")
    if not objects:
        notes.append(f"{path.name}: the archive contains no ELF object")
    return OpenedFile(path, tuple(objects), tuple(notes))


def _members(path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:
    thin = data.startswith(THIN_MAGIC)
    long_names, position = b"", len(MAGIC)
    while position < len(data):
        header = data[position : position + HEADER_SIZE]
        if len(header) < HEADER_SIZE or header[58:] != b"`\n":
            raise bad_object(path.name, f"the archive is truncated or damaged at byte {position}.")
        size = _number(path, header[48:58], position)
        raw = header[:16].decode("latin-1").rstrip(" ")
        start = position + HEADER_SIZE
        stored = not thin or raw in (*INDEX_NAMES, "//")
        if stored and start + size > len(data):
            raise bad_object(path.name, f"the archive is truncated inside its member {raw!r}.")
        content = data[start : start + size] if stored else b""
        position = start + (size + (size & 1) if stored else 0)
        if raw == "//":
            long_names = content
        elif raw not in INDEX_NAMES:
            name, skip = _member_name(path, raw, long_names, content)
            if name not in INDEX_NAMES:
                yield name, (content[skip:] if stored else _thin_content(path, name))


def _number(path: Path, field: bytes, position: int) -> int:
    text = field.decode("latin-1").strip()
    if not text.isascii() or not text.isdigit():
        raise bad_object(path.name, f"the archive's member at byte {position} has no valid size.")
    return int(text)


def _member_name(path: Path, raw: str, long_names: bytes, content: bytes) -> tuple[str, int]:
    """The member's name, and how many bytes of its content the name takes (BSD archives put long names there)."""
    if raw.startswith("#1/") and raw[3:].isdigit():
        length = int(raw[3:])
        return content[:length].rstrip(b"\0").decode("utf-8", "backslashreplace"), length
    if raw.startswith("/") and raw[1:].isdigit():
        offset = int(raw[1:])
        end = long_names.find(b"\n", offset)
        if offset >= len(long_names) or end < 0:
            raise bad_object(path.name, f"a member's name lies outside the archive's table of names ({raw}).")
        return text_at(long_names[:end], offset).removesuffix("/"), 0
    return raw.removesuffix("/"), 0


def _thin_content(path: Path, name: str) -> bytes:
    """A thin archive contains only paths, relative to itself."""
    member = path.parent / name
    try:
        return member.read_bytes()
    except (OSError, ValueError):
        raise bad_object(path.name, f"the thin archive's member {name} cannot be read.", "Build it again.") from None
