"""Generate test models once and keep them: the second test run finds them ready."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent

_PACKAGES = ("tensorflow", "keras", "tf-keras", "h5py", "numpy")
_KEPT_DAYS = 14
_TIMEOUT_SECONDS = 1200


def cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nnbuild" / "zoo"


def generated(name: str, sources: tuple[str, ...], *arguments: str) -> Path:
    """The directory that the first of `sources` fills when run with the arguments and `--out DIR`.

    `sources` are files here, or patterns for them. The directory is made at most once for the same sources and package
    versions. Processes that ask at the same time wait for the first, so pytest-xdist may run as many workers as it
    likes. Without TensorFlow the test that asks is skipped, unless an earlier run left the files behind.
    """
    directory = cache_root() / f"{name}-{_digest(sources)}"
    if not directory.is_dir():  # a directory appears whole, so what is there needs no lock
        with _lock(cache_root() / f"{directory.name}.lock"):
            if not directory.is_dir():
                _skip_without_tensorflow()
                _remove_old(name)
                _generate(directory, sources[0], arguments)
    os.utime(directory)
    return directory


def _digest(sources: tuple[str, ...]) -> str:
    """Changes whenever what would be written may change."""
    state = hashlib.sha256()
    for source in sources:
        for path in sorted(HERE.glob(source)):
            state.update(path.relative_to(HERE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for package in _PACKAGES:
        state.update(f"{package} {_version(package)}\n".encode())
    return state.hexdigest()[:16]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _skip_without_tensorflow() -> None:
    missing = [name for name in ("tensorflow", "keras", "tf_keras") if importlib.util.find_spec(name) is None]
    if missing:
        import pytest

        pytest.skip(f"needs {', '.join(missing)} to write models: pip install -e .[oracle]")


def _remove_old(name: str) -> None:
    """Forget what other versions of the sources made and nobody has asked for lately."""
    oldest = time.time() - _KEPT_DAYS * 24 * 3600
    for path in cache_root().glob(f"{name}-*"):
        if path.stat().st_mtime >= oldest:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _generate(directory: Path, script: str, arguments: tuple[str, ...]) -> None:
    """Fill a temporary directory and rename it, so that an interrupted run leaves nothing half done."""
    partial = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        command = [sys.executable, str(HERE / script), *arguments, "--out", str(partial)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"{script} {' '.join(arguments)} failed:\n{result.stderr[-4000:]}")
        partial.chmod(0o755)
        partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
