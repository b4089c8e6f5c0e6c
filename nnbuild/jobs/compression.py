"""Pruned, shared or narrower weights in a compilation; the plan's count of bytes decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from nnbuild.base.errors import CheckFailed, UsageError
from nnbuild.compress.compress import compress
from nnbuild.compress.float_weights import layers_of, rounded
from nnbuild.compress.options import WeightOptions
from nnbuild.compress.price import Price, Whole
from nnbuild.compress.record import Compression, described, trained
from nnbuild.compress.record import notes as recognised
from nnbuild.emit.weights import weights_bytes
from nnbuild.model.graph import Graph
from nnbuild.ops.site import Site
from nnbuild.plan.plan import Plan
from nnbuild.plan.select import Price as Offered
from nnbuild.plan.select import choose
from nnbuild.plan.target import Target
from nnbuild.quantize.data import Source
from nnbuild.report.weights import Stage, WeightRow, Weights

HARDLY = 0.99
CLEARLY = 0.8
"""The ratio of two prices from which one counts as better: a coarser pattern costs accuracy."""

AS_MANY = (
    "the fastest kernels store these weights in as many bytes as before: --optimize size, or a --flash budget, selects "
    "kernels that store them in fewer"
)
"""A note."""
TRIES = 2
"""Plans made for a limit of flash; a whole plan's bytes are a little more or less than its kernels'."""

Announce = Callable[[str], None]


def silent(_: str) -> None:
    """Discards progress lines."""


def model_flash(plan: Plan) -> int:
    """Bytes of flash of the model: its constants, and its estimated code."""
    return weights_bytes(plan) + plan.code


def within_flash(
    plan: Plan, flash: int | None, again: Callable[[int], Plan], smallest: Callable[[], Plan], least: Callable[[], int]
) -> Plan:
    """Returns the plan if it fits this many bytes of flash; otherwise one of the plans made for that limit that fits;
    otherwise the smallest plan. Where no kernels can make it fit, as at `least` so many bytes are needed, no other plan
    is looked for."""
    if flash is None or (model_flash(plan) > flash and (flash <= 0 or least() >= flash)):
        return plan
    limit = flash
    for _ in range(TRIES):
        if model_flash(plan) <= flash:
            return plan
        plan = again(max(0, limit))
        limit -= max(0, model_flash(plan) - flash)
    return plan if model_flash(plan) <= flash else min(smallest(), plan, key=model_flash)


def compiled_within(
    planned: Callable[[int], Plan], smallest: Callable[[], Plan], flash: int, measured: Callable[[Plan], int | None]
) -> Plan:
    """The plan for this many bytes of flash. Where its code is larger compiled than estimated, one for fewer bytes;
    where none is small enough, the smallest of all."""
    limit, sizes = flash, list[tuple[int, Plan]]()
    for turn in range(TRIES + 1):
        plan = planned(limit) if turn < TRIES else smallest()
        code = measured(plan)
        if code is None or weights_bytes(plan) + code <= flash:
            return plan
        sizes.append((weights_bytes(plan) + code, plan))
        limit = max(0, limit - (sizes[-1][0] - flash))
    return min(sizes, key=lambda size: size[0])[1]


def _estimate(plan: Plan) -> int:
    return plan.code


@dataclass(frozen=True, eq=False)
class Priced:
    """The candidate kernels of a target and their prices. With `smallest`, bytes count before time. `measured` is
    the size of a plan's compiled code, None if it cannot be compiled. `routines` are shared functions already paid
    for."""

    target: Target
    planned: Callable[[Graph], Plan]
    smallest: bool = False
    measured: Callable[[Plan], int | None] = _estimate
    routines: frozenset[str] | None = None

    def site(self, site: Site) -> Price:
        choice = choose(site, self.target)
        prices = [offer.price for offer in choice.offers] if self.by_bytes else [choice.price]
        return min((Price(self._bytes(price), price.cycles) for price in prices), key=lambda price: price.bytes)

    def _bytes(self, price: Offered) -> int:
        routines = {} if self.routines is None else price.code.shared
        more = sum(size for name, size in routines.items() if name not in (self.routines or ()))
        return price.weights + price.code.own + more

    def among(self, graphs: Iterable[Graph]) -> Priced:
        found = {
            name for graph in graphs for step in self.planned(graph).steps for name in step.choice.price.code.shared
        }
        return replace(self, routines=frozenset(found))

    @property
    def by_bytes(self) -> bool:
        return self.smallest or self.target.optimize == "size"

    def whole(self, graph: Graph) -> Whole:
        plan = self.planned(graph)
        by_op: dict[str, int] = {}
        for step in plan.steps:
            bytes_of = sum(version.choice.price.weights + version.choice.price.code.own for version in step.versions)
            by_op[step.op.name] = by_op.get(step.op.name, 0) + bytes_of
        code = self.measured(plan)
        return Whole(weights_bytes(plan) + (plan.code if code is None else code), by_op)

    def better(self, one: Price, other: Price) -> bool:
        return one.bytes < CLEARLY * other.bytes if self.by_bytes else one.cycles < CLEARLY * other.cycles


def with_wishes(
    original: Graph,
    graph: Graph,
    source: Source,
    wishes: WeightOptions,
    board: Priced,
    announce: Announce,
) -> tuple[Graph, Compression]:
    """Compresses the weights as requested and records the result; without a request, only describes the weights."""
    if wishes.given and all(tensor.quant is None for tensor in graph.tensors.values()):
        return _floats(graph, wishes, board)
    if not wishes.any:
        found = described(graph)
        return replace(graph, notes=(*graph.notes, *recognised(trained(graph, found)))), Compression(found)
    made, record = compress(original, graph, source, wishes, board, announce)
    said = () if made is graph else _said(record, board.by_bytes)
    return replace(made, notes=(*made.notes, *said)), record


def _floats(graph: Graph, wishes: WeightOptions, board: Priced) -> tuple[Graph, Compression]:
    """Rounds the weights of a float model to 8 bits where that was requested, or is needed to meet the limit."""
    layers = layers_of(graph)
    if not wishes.for_floats:
        raise UsageError(
            wishes.given,
            "it changes integers, and this model computes in floats.",
            "Give --quantize int8, too, and leave out --keep of the layers that it should change; or, for floats with "
            "weights of 8 bits, --weights-bits 8 alone.",
        )
    for layer in wishes.bits_by_layer:
        if layer not in layers:
            cause, names = "the model has no such layer with weights that can take 8 bits.", ", ".join(layers[:12])
            raise UsageError(f"--weights-bits {layer}=", cause, f"Its layers: {names}")
    before = board.whole(graph).bytes
    chosen = frozenset(filter(wishes.in_bytes, layers))
    if wishes.flash is not None and not wishes.limits_bits and before > wishes.flash:
        chosen = frozenset(layers)
    found = rounded(graph, chosen)
    after, (worst, lost) = board.whole(found.graph).bytes if found.layers else before, found.worst
    if wishes.flash is not None and after > wishes.flash:
        cause = f"the fewest bytes that were found for this model of floats are {after:,}, with weights of 8 bits."
        raise CheckFailed(f"--flash {wishes.flash:,}", cause, f"Allow --flash {after}, or give --quantize int8, too.")
    if not found.layers:
        return graph, Compression(())
    notes = [
        f"weights of {len(found.layers)} layers rounded to 8 bits: {before:,} -> {after:,} bytes of flash; the most "
        f"that one loses is {lost:.2g} of its weights' signal ({worst})"
    ]
    if not board.by_bytes and after > HARDLY * before:
        notes.append(AS_MANY)
    return replace(found.graph, notes=(*graph.notes, *notes)), Compression((), rounded=found.layers)


def weight_facts(record: Compression) -> Weights | None:
    """The record for reports; None without 8-bit weights."""
    rows = tuple(
        WeightRow(
            each.layer,
            each.role,
            each.count,
            each.zeros,
            each.distinct,
            each.kind,
            each.asked,
            each.lost,
            each.before,
            each.after,
        )
        for each in record.weights
    )
    path = tuple(Stage(stage.name, stage.value) for stage in record.path)
    sizes = record.bytes_before, record.bytes_after
    return Weights(rows, record.asked, record.measure, record.samples, record.apart, path, *sizes) if rows else None


def _said(record: Compression, by_bytes: bool) -> Iterator[str]:
    path = " -> ".join(f"{stage.name} {stage.value:.2f}" for stage in record.path)
    others = "samples that were not used for fitting" if record.apart else "samples, the ones used for fitting"
    yield (
        f"weights changed ({record.asked}): {record.bytes_before:,} -> {record.bytes_after:,} bytes of flash; "
        f"{record.measure}, %: {path}, on {record.samples:,} {others}"
    )
    if not by_bytes and record.bytes_after > HARDLY * record.bytes_before:
        yield AS_MANY
    if record.unlabelled:
        yield f"accuracy is not measured with labels: {record.unlabelled}"
