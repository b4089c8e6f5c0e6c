"""Chains: an operation and the operations after it, each the only reader of the result before, computed by one kernel.

A chain is used where a kernel computes it for less than its parts cost one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from nnbuild.kernels.contract import Demand
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Graph, Op
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.site import Site, site_of
from nnbuild.plan.select import Choice, Offer, Price, choose, offers
from nnbuild.plan.target import Target


@dataclass(frozen=True, eq=False)
class Work:
    """An operation or a chain with its chosen kernel, and the kernels chosen for the target's further sets.

    on_device: whether the device computes it; the kernel is then the processor's fallback.
    """

    site: Site
    choice: Choice
    others: tuple[Choice, ...] = ()
    on_device: bool = False

    @property
    def demands(self) -> tuple[Demand, ...]:
        return tuple(choice.demand for choice in (self.choice, *self.others))


def divide(graph: Graph, target: Target, on_device: frozenset[str] = frozenset(), chains: bool = True) -> list[Work]:
    """All work in execution order; a chain takes the place of its last operation. Operations on the device are never
    chained; without `chains` none are."""
    ops = [op for op in graph.ops if not isinstance(op.attributes, Reshape)]
    sites = _sites(graph, ops, target)
    known: dict[str, Work] = {}

    def alone(site: Site) -> Work:
        """Cached: many chains are compared with it."""
        if site.op.name not in known:
            known[site.op.name] = _unchained(site, target)
        return known[site.op.name]

    done: set[str] = set()
    work: dict[int, Work] = {}
    place = {op.name: index for index, op in enumerate(ops)}
    readers = only_readers(graph, ops)
    for op in ops:
        if op.name in done:
            continue
        if op.name in on_device:
            work[place[op.name]] = _processor_fallback(sites[op.name], target)
            continue
        best = alone(sites[op.name])
        for tail in [] if target.keep_tensors or not chains else _tails(readers, sites, op, target):
            # two convolutions may both want one addition; an operation with a forced kernel has its own step
            if (on_device | done | target.forced_kernels.keys()).isdisjoint(site.op.name for site in tail):
                best = _better(best, replace(sites[op.name], tail=tail), target, alone)
        done |= {part.name for part in best.site.ops}
        work[place[best.site.ops[-1].name]] = best
    return [work[index] for index in sorted(work)]


def _sites(graph: Graph, ops: Sequence[Op], target: Target) -> dict[str, Site]:
    """The site of each operation. Steps whose constants lie side by side share none."""
    sites = {op.name: site_of(graph, op) for op in ops}
    held = {name: site.constants["kernel"].digest for name, site in sites.items() if "kernel" in site.constants}
    steps = Counter(held.values())
    shared = {name for name, key in held.items() if steps[key] > 1 and not target.in_block}
    return {name: replace(site, shared=name in shared) for name, site in sites.items()}


def _unchained(site: Site, target: Target) -> Work:
    others = (choose(site, replace(target, isa=isa)) for isa in target.extra_isas)
    return Work(site, choose(site, target), tuple(others))


def _processor_fallback(site: Site, target: Target) -> Work:
    """For an operation on the device: the smallest kernel of each set, since it only runs when the device fails."""
    sets = (choose(site, replace(target, isa=isa)) for isa in (target.isa, *target.extra_isas))
    choice, *others = (Choice((_smallest(each),), each.refused) for each in sets)
    return Work(site, choice, tuple(others), on_device=True)


def _smallest(choice: Choice) -> Offer:
    return min(choice.offers, key=lambda offer: offer.price.key("size"))


def _better(best: Work, chain: Site, target: Target, alone: Callable[[Site], Work]) -> Work:
    """The chain, where it is cheaper than the best so far plus the rest of the chain one by one. A kernel that the
    target forces wins over one that it does not."""
    choice = offers(chain, target)
    others = [offers(chain, replace(target, isa=isa)) for isa in target.extra_isas]
    able = tuple(other for other in others if isinstance(other, Choice))
    if not isinstance(choice, Choice) or len(able) < len(others):
        return best
    named = target.forced_kernels.get(chain.op.name)
    if (choice.kernel.name == named) != (best.choice.kernel.name == named):
        return Work(chain, choice, able) if choice.kernel.name == named else best
    rest = [alone(site).choice.price for site in chain.tail[len(best.site.tail) :]]
    apart = reduce(Price.plus, rest, best.choice.price)
    price, others_price = choice.price.key(target.optimize), apart.key(target.optimize)
    cheaper = price < others_price or (choice.kernel.joins != "" and price[0] <= others_price[0])
    return Work(chain, choice, able) if cheaper else best


def _tails(readers: Mapping[str, Op], sites: Mapping[str, Site], head: Op, target: Target) -> list[tuple[Site, ...]]:
    """Every sequence of followers, shortest first, that some kernel of the head's kind might fuse."""
    features = target.isa.features | target.features
    fused = {kernel.fuses for kernel in variants(head.kind) if kernel.needs <= features}
    found: list[tuple[Site, ...]] = []
    last = head
    while (follower := readers.get(last.name)) is not None and not follower.outer and not head.outer:
        tail = (*(found[-1] if found else ()), sites[follower.name])
        wanted = {site.op.kind for site in tail}
        if not any(wanted <= kinds for kinds in fused):
            return found
        found.append(tail)
        last = follower
    return found


def only_readers(graph: Graph, ops: Sequence[Op]) -> dict[str, Op]:
    """For each operation whose only result has one reader, that reader."""
    closed = {*graph.outputs, *(name for state in graph.states for name in (state.before, state.after))}
    closed |= {name for op in graph.ops if isinstance(op.attributes, Reshape) for name in op.inputs}
    readers: dict[str, list[Op]] = {}
    for op in ops:
        for name in op.inputs:
            readers.setdefault(name, []).append(op)
    made = {op.outputs[0]: op.name for op in ops if len(op.outputs) == 1 and op.outputs[0] not in closed}
    return {
        made[name]: found[0]
        for name, found in readers.items()
        if name in made and len(found) == 1 and len(found[0].outputs) == 1
    }
