"""Finds the kernels of an operation: the file of this folder named after the operation lists them as VARIANTS."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

from nnbuild.isa.registry import vector_sets
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Kernel, OnEach
from nnbuild.model.graph import A
from nnbuild.ops.site import Site

INCLUDED_IN = {"sums": "integer", "float_sums": "float"}
"""What sets with kernels for layers with weights alone are offered, and what includes it."""


def variants(kind: str) -> tuple[Kernel, ...]:
    """The kernels of one kind of operation; the scalar one, which every kind has, comes first."""
    return _variants(kind, vector_sets())


@cache
def _variants(kind: str, sets: tuple[Vectors, ...]) -> tuple[Kernel, ...]:
    if not (Path(__file__).parent / f"{kind}.py").is_file():
        return ()
    module = importlib.import_module(f"nnbuild.kernels.{kind}")
    return tuple(_kernels(getattr(module, "VARIANTS", ()), sets))


def _kernels(listed: tuple[Kernel | OnEach, ...], sets: tuple[Vectors, ...]) -> Iterator[Kernel]:
    for entry in listed:
        if isinstance(entry, Kernel):
            yield entry
            continue
        for vectors in sets:
            if {entry.numbers, INCLUDED_IN.get(entry.numbers)} & {*vectors.kernels}:
                yield from entry.make(vectors)


def kernels_of(site: Site[A]) -> tuple[Kernel[A], ...]:
    """The kernels of a site's operation, looked up by its kind; no type checker can follow that."""
    return cast(tuple[Kernel[A], ...], variants(site.op.kind))
