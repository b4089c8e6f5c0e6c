"""Finds every kernel by the name of its operation: the file of this package with that name, or the folder."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import cast

from nnbuild.kernels.contract import Kernel, Variant
from nnbuild.model.graph import A
from nnbuild.ops.site import Site


@cache
def variants(kind: str) -> tuple[Kernel, ...]:
    """The kernels of one kind of operation; the scalar one, which every kind has, comes first."""
    package = f"nnbuild.kernels.{kind}"
    place = Path(__file__).parent / kind
    names = sorted(f"{package}.{module.name}" for module in pkgutil.iter_modules([str(place)]))
    modules = [importlib.import_module(name) for name in ([package] if place.with_suffix(".py").is_file() else names)]
    kernels = [kernel for module in modules for kernel in _kernels(module)]
    return tuple(sorted(kernels, key=lambda kernel: variant_name(kernel) != "scalar"))


def kernels_of(site: Site[A]) -> tuple[Kernel[A], ...]:
    """The kernels of a site's operation: they are looked up by its kind, which no type checker can follow."""
    return cast(tuple[Kernel[A], ...], variants(site.op.kind))


def _kernels(module: ModuleType) -> tuple[Kernel, ...]:
    """A module is a kernel itself, or lists several in VARIANTS; the others are what kernels share."""
    return cast(tuple[Kernel, ...], getattr(module, "VARIANTS", (module,) if hasattr(module, "accepts") else ()))


def variant_name(kernel: Kernel) -> str:
    """Its file's name, or the one it has among the variants of a file."""
    return kernel.name if isinstance(kernel, Variant) else cast(ModuleType, kernel).__name__.rpartition(".")[2]
