"""Chooses a kernel for every operation: of those that can serve it, the cheapest by its bill."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.errors import ModelError
from nnbuild.kernels.registry import variant_name, variants
from nnbuild.kernels.site import Demand, Kernel, Names, Site
from nnbuild.writer import Writer


@dataclass(frozen=True)
class Alternative:
    """A kernel that was considered: its price in cycles, or the reason why it could not serve."""

    kernel: str
    cycles: float = 0.0
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Choice:
    kernel: Kernel
    demand: Demand
    cycles: float
    alternatives: tuple[Alternative, ...]


def choose(site: Site, features: frozenset[str]) -> Choice:
    priced: list[tuple[float, Kernel, Demand]] = []
    refused: list[Alternative] = []
    for kernel in variants(site.op.kind):
        missing = kernel.needs - features
        reason = f"it needs {', '.join(sorted(missing))}" if missing else kernel.accepts(site)
        if reason:
            refused.append(Alternative(variant_name(kernel), reason=reason))
            continue
        demand = kernel.demand(site)
        priced.append((price(kernel, site, demand), kernel, demand))
    if not priced:
        raise _no_kernel(site, refused)
    cycles, kernel, demand = min(priced, key=lambda item: item[0])
    accepted = [Alternative(variant_name(k), cycles=c) for c, k, _ in sorted(priced, key=lambda item: item[0])]
    return Choice(kernel, demand, cycles, (*accepted, *refused))


def price(kernel: Kernel, site: Site, demand: Demand) -> float:
    """Printing a kernel prices it."""
    w = Writer("p")
    kernel.emit(w, site, plain_names(site, demand))
    return w.cycles


def plain_names(site: Site, demand: Demand) -> Names:
    """The parameter names of a kernel function; a lone input or output needs no number."""

    def numbered(base: str, count: int) -> tuple[str, ...]:
        return (base,) if count == 1 else tuple(f"{base}{i}" for i in range(count))

    packed = {name: f"p_{name}" for name in demand.packed}
    return Names(numbered("in", len(site.inputs)), numbered("out", len(site.outputs)), packed)


def _no_kernel(site: Site, refused: list[Alternative]) -> ModelError:
    reasons = "; ".join(f"{a.kernel}: {a.reason}" for a in refused)
    return ModelError(
        f"layer {site.op.layer or site.op.name!r}",
        f"no kernel can compute this {site.op.kind} ({reasons}).",
        "Use another --quantize, or keep this layer in float.",
    )
