"""Kernels of floats whose weights are whole numbers of 8 bits times one factor for each output channel.

They are known by their values. The sums take the whole numbers, and the factor multiplies each sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from nnbuild.kernels.contract import FLOATS_IN_BYTES, Kernel, OnEach, each_changed
from nnbuild.model.graph import Constant
from nnbuild.numeric.whole_multiples import FEWEST, whole_multiples
from nnbuild.ops.site import Site

WEIGHTS = ("kernel", "recurrent")


@lru_cache(maxsize=256)
def _narrowed(site: Site) -> Site | None:
    """The site with its weights as whole numbers, and their factors."""
    if site.dtypes != {"float32"}:
        return None
    constants, depthwise = dict(site.constants), site.op.kind == "depthwise_conv2d"
    outputs = {
        role: site.output_shape()[-1] if depthwise else site.constant(role).shape[-1]
        for role in WEIGHTS
        if role in constants
    }
    if all(site.constant(role).size < FEWEST * count for role, count in outputs.items()):
        return None
    for role, count in outputs.items():
        given = site.constant(role)
        found = whole_multiples(given.reshape(-1, count))
        if found is None:
            return None
        numbers, factors = found[0].reshape(given.shape), found[1]
        constants |= {role: Constant(role, numbers), f"{role}_factor": Constant(f"{role}_factor", factors)}
    return replace(site, constants=constants)


def narrow(of: Iterable[Kernel[Any] | OnEach[Any]]) -> Iterator[Kernel[Any] | OnEach[Any]]:
    """Kernels of floats, with such weights."""
    return each_changed(of, lambda kernel, _: [_kernel(kernel)])


def _kernel(kernel: Kernel) -> Kernel:
    def accepts(site: Site) -> str | None:
        narrowed = _narrowed(site)
        return "its weights are not floats of 8 bits" if narrowed is None else kernel.accepts(narrowed)

    def of(site: Site) -> Site:
        narrowed = _narrowed(site)
        assert narrowed is not None
        return narrowed

    return replace(
        kernel,
        name=f"{kernel.name}_narrow",
        accepts=accepts,
        demand=lambda site: kernel.demand(of(site)),
        emit=lambda w, site, names: kernel.emit(w, of(site), names),
        encoding=FLOATS_IN_BYTES,
    )
