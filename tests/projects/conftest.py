"""The built wheel in an environment that has nothing else, and PlatformIO in another one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.once import made_once
from tests.support.running import ROOT, Done

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "build", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis", "tests"
)


@dataclass(frozen=True)
class Installed:
    """A Python environment of its own, in which programs are started as its user would."""

    folder: Path
    settings: Mapping[str, str]

    def start(self, line: str, folder: Path) -> Done:
        """A line of a README, in the shell; nothing of this checkout is in reach."""
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        path = os.pathsep.join([str(self.folder / "bin"), kept["PATH"]])
        env = {**kept, "PATH": path, **self.settings}
        done = subprocess.run(
            ["sh", "-ec", line], cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        return Done(done.returncode, done.stdout)

    def well(self, line: str, folder: Path) -> str:
        done = self.start(line, folder)
        assert done.status == 0, f"$ {line}\n{done.text}"
        return done.text


def environment(folder: Path, *packages: str | Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "-q", "--disable-pip-version-check"]
    command = [*pip, "install", "--no-compile", *packages]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no packages can be installed here: {done.stderr[-300:]}")
    return folder


def build_wheel(folder: Path) -> None:
    """From a copy, because setuptools leaves its own files behind."""
    shutil.copytree(ROOT, source := folder / "source" / "nnbuild", ignore=LEFT_OUT, dirs_exist_ok=True)
    command = [sys.executable, "-m", "pip", "-q", "wheel", source, "--no-deps", "-w", folder]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0 and "No matching distribution" in done.stderr:
        pytest.skip("setuptools cannot be fetched here")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (found,) = made_once(tmp_path_factory, "wheel", build_wheel).glob("*.whl")
    return found


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    made = made_once(tmp_path_factory, "bare", lambda folder: environment(folder / "venv", wheel))
    return Installed(made / "venv", {})


SCONS = "4.41101.0"
STUB = {
    "platform.json": json.dumps(
        {
            "name": "native",
            "title": "This PC",
            "description": "Builds with this PC's own compiler",
            "version": "1.0.0",
            "license": "Apache-2.0",
            "repository": {"type": "git", "url": "https://example.org/native.git"},
            "frameworks": {},
            "packages": {},
        }
    ),
    "platform.py": (
        "from platformio.public import PlatformBase\n\n\nclass NativePlatform(PlatformBase):\n"
        '    """Nothing beyond what every platform has."""\n'
    ),
    "builder/main.py": (
        "from SCons.Script import AlwaysBuild, Default, DefaultEnvironment\n\n"
        "env = DefaultEnvironment()\n"
        'env.Replace(CC="gcc", AR="ar", LINK="gcc", OBJSUFFIX=".o", PROGSUFFIX="")\n'
        "program = env.BuildProgram()\n"
        'AlwaysBuild(env.Alias("buildprog", program))\nDefault([program])\n'
    ),
}
"""A platform on this disk, because PlatformIO's registry may be out of reach."""
TOOL = {
    "package.json": json.dumps({"name": "tool-scons", "version": SCONS, "description": "SCons of this environment"}),
    ".piopm": json.dumps(
        {
            "type": "tool",
            "name": "tool-scons",
            "version": SCONS,
            "spec": {"owner": "platformio", "id": None, "name": "tool-scons", "requirements": None, "uri": None},
        }
    ),
    "scons.py": "import SCons.Script\n\nSCons.Script.main()\n",
}
"""SCons as PlatformIO would fetch it from there."""


def lay_out(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@dataclass(frozen=True)
class PlatformIo:
    """PlatformIO with nnbuild in reach, and the stand-in for its platform."""

    installed: Installed
    platform: Path


@pytest.fixture(scope="session")
def platformio(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> PlatformIo:
    def make(folder: Path) -> None:
        environment(folder / "venv", "platformio==6.2.0", "scons==4.11.1")
        lay_out(folder / "native", STUB)
        lay_out(folder / "core" / "packages" / "tool-scons", TOOL)

    folder = made_once(tmp_path_factory, "platformio", make)
    settings = {
        "PLATFORMIO_CORE_DIR": str(folder / "core"),
        "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no",
        # nnbuild alone comes from the other environment, as a user's own would.
        "PATH": os.pathsep.join([str(folder / "venv" / "bin"), str(installed.folder / "bin"), os.environ["PATH"]]),
    }
    return PlatformIo(Installed(folder / "venv", settings), folder / "native")
