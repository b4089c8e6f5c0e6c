"""Finds every kernel by the name of its operation: the file of this package with that name lists its VARIANTS."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import cast

from nnbuild.kernels.contract import Kernel
from nnbuild.model.graph import A
from nnbuild.ops.site import Site


@cache
def variants(kind: str) -> tuple[Kernel, ...]:
    """The kernels of one kind of operation; the scalar one, which every kind has, comes first."""
    if not (Path(__file__).parent / f"{kind}.py").is_file():
        return ()
    module = importlib.import_module(f"nnbuild.kernels.{kind}")
    return cast(tuple[Kernel, ...], getattr(module, "VARIANTS", ()))


def kernels_of(site: Site[A]) -> tuple[Kernel[A], ...]:
    """The kernels of a site's operation: they are looked up by its kind, which no type checker can follow."""
    return cast(tuple[Kernel[A], ...], variants(site.op.kind))
