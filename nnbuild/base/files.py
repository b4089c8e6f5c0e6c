"""Writes files atomically: each appears complete or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from nnbuild.base.errors import UsageError


def write_whole(path: Path, content: bytes) -> None:
    write_together({path: content})


def write_together(files: Mapping[Path, bytes]) -> None:
    """Writes all files or none: they get their names only once the last of them is on the disk. Devices and pipes are
    written to, not replaced."""
    for path in files:  # known before the first file gets its name
        if path.is_dir():
            raise cannot_write(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
    whole = [path for path in files if path.is_file() or not path.exists()]
    partial = {path: path.with_name(f".{path.name}.{os.getpid()}.partial") for path in whole}
    at = next(iter(files), Path())
    try:
        for at, content in files.items():
            partial.get(at, at).write_bytes(content)
        for at, part in partial.items():
            part.replace(at)
    except BaseException as error:  # an interruption leaves nothing, either
        for part in partial.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise cannot_write(at, error) from None
        raise


@contextmanager
def removed_on_failure(*paths: Path) -> Iterator[None]:
    """Around a check of files that nobody may use if it fails."""
    try:
        yield
    except BaseException:
        remove(paths)
        raise


def remove(paths: Iterable[Path]) -> None:
    """Where nothing can be removed, that is the smaller trouble."""
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


@contextmanager
def alone_in(folder: Path, waiting: Callable[[str], object]) -> Iterator[None]:
    """Waits while another command is writing to the folder, as it tells `waiting`."""
    make_folder(folder)
    if os.name == "nt":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # of file systems without locks
            _lock(descriptor, lambda: waiting(f"waiting for another command that writes to {folder}"))
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, told: Callable[[], object]) -> None:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        told()
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None


def cannot_write(path: Path, error: OSError) -> UsageError:
    return UsageError(str(path), f"It cannot be written ({error.strerror}).", "Choose another path.")
