"""Finds every kernel by listing the folders of this package."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import cast

from nnbuild.kernels.contract import Kernel


@cache
def variants(kind: str) -> tuple[Kernel, ...]:
    """The kernels of one kind of operation; the scalar one, which every kind has, comes first."""
    package = f"nnbuild.kernels.{kind}"
    folder = Path(__file__).parent / kind
    names = sorted(module.name for module in pkgutil.iter_modules([str(folder)]))
    modules = [importlib.import_module(f"{package}.{name}") for name in names]
    kernels = [cast(Kernel, module) for module in modules if hasattr(module, "accepts")]
    return tuple(sorted(kernels, key=lambda kernel: variant_name(kernel) != "scalar"))


def variant_name(kernel: Kernel) -> str:
    return kernel.__name__.rpartition(".")[2]
