"""Puts into the wheel what lies beside the package in a checkout; everything else is said in pyproject.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
BESIDE = (
    "boards/**/*",
    "devices/**/*",
    "firmware/**/*",
    "docs/*.md",
    "examples/mnist/*.h5",
    "examples/mnist/*.npz",
    "examples/mnist/*.txt",
)


class BuildWithData(build_py):
    """nnbuild/base/paths.py looks for these files inside the package when it is installed."""

    def run(self) -> None:
        super().run()
        if getattr(self, "editable_mode", False):
            return  # the checkout itself is what is imported then
        package = Path(self.build_lib) / "nnbuild"
        for pattern in BESIDE:
            for source in sorted(HERE.glob(pattern)):
                if source.is_file() and "__pycache__" not in source.parts:
                    target = package / source.relative_to(HERE)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, target)


setup(cmdclass={"build_py": BuildWithData})
