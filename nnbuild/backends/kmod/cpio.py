"""Makes an initramfs: a cpio archive in "newc" format, which the kernel unpacks into its first file system."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

FILE, FOLDER = 0o100755, 0o040755
MAGIC, TRAILER = "070701", "TRAILER!!!"


def archive(files: Mapping[str, bytes]) -> bytes:
    """An archive of files by absolute path, all executable; folders are added automatically."""
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents if str(parent) != "/"}
    entries = [_entry(name.lstrip("/"), FOLDER, b"", number) for number, name in enumerate(sorted(folders), 1)]
    start = len(entries) + 1
    entries += [_entry(p.lstrip("/"), FILE, content, n) for n, (p, content) in enumerate(sorted(files.items()), start)]
    return b"".join([*entries, _entry(TRAILER, 0, b"", 0)])


def _entry(name: str, mode: int, content: bytes, number: int) -> bytes:
    """A header of 13 hexadecimal numbers; names end with a zero, everything is padded to four bytes."""
    text = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(text), 0)
    head = (MAGIC + "".join(f"{field:08x}" for field in fields)).encode()
    return _padded(head + text) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
