"""Chooses a kernel for every operation: the best candidate by the optimization goal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial, total_ordering
from hashlib import sha1
from math import prod
from typing import Any

from nnbuild.base.cost_model import OpCounts
from nnbuild.base.errors import ModelError
from nnbuild.isa.encoding import encoding_of
from nnbuild.kernels.contract import Demand, Kernel
from nnbuild.kernels.registry import kernels_of
from nnbuild.ops.device_arithmetic import device_arithmetic_of
from nnbuild.ops.site import Site
from nnbuild.plan.code_size import Code, code_of
from nnbuild.plan.measured import measured
from nnbuild.plan.printed import Printed, printed_or_refused
from nnbuild.plan.target import Target

NEEDS = "it needs"
"""Prefix of the reason that refuses a kernel of another instruction set."""
OPTIMIZE = ("speed", "size", "ram")
PRICES = ("cycles", "instructions")
CORE_MEMORY_SHARE = 3 / 4
"""The share of a core's local memory that constants and scratch may take."""
MIN_GAIN = 0.05
"""The share of its cycles that a layer must save to justify larger constants."""
CALL = 30
"""Instructions of a call on a microcontroller: its arguments, registers that it keeps, the range that it computes."""
MICROCONTROLLERS = frozenset({"cortex_m", "rv32"})
CACHE_BYTES, BYTES_PER_CYCLE = 8 << 20, 10
"""Bytes of constants beyond which they do not stay in a PC's caches, and bytes that its memory delivers in a cycle."""


@dataclass(frozen=True, eq=False)
class Price:
    """Cycles, and bytes of constants, of code and of scratch. Cycles are estimated unless `measured`; the code is
    measured when it is asked for, which takes as long as printing it."""

    cycles: float
    weights: int
    measure: Callable[[], Code]
    scratch: int
    measured: bool = False

    @cached_property
    def code(self) -> Code:
        return self.measure()

    @property
    def size(self) -> int:
        return self.weights + self.code.total

    def key(self, optimize: str) -> tuple[Any, ...]:
        """Sort key, most important criterion first."""
        size = _Size(self)
        return {
            "speed": (self.cycles, size, self.scratch),
            "size": (size, self.cycles, self.scratch),
            "ram": (self.scratch, self.cycles, size),
        }[optimize]

    def plus(self, other: Price) -> Price:
        """The price of running both, one after the other."""
        return Price(
            self.cycles + other.cycles,
            self.weights + other.weights,
            lambda: self.code.plus(other.code),
            max(self.scratch, other.scratch),
            self.measured and other.measured,
        )


@total_ordering
@dataclass(frozen=True, eq=False)
class _Size:
    """A size that is measured only where it decides."""

    of: Price

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Size) and self.of.size == other.of.size

    def __lt__(self, other: _Size) -> bool:
        return self.of.size < other.of.size


@dataclass(frozen=True)
class Alternative:
    """A kernel that was considered: its price, or the reason why it was refused."""

    kernel: str
    price: Price | None = None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Offer:
    """A usable kernel with its demand and price."""

    kernel: Kernel
    demand: Demand
    price: Price

    @cached_property
    def arrays(self) -> dict[str, int]:
        """The bytes of its packed arrays, by what they hold."""
        packed = self.demand.packed.values()
        return {f"{data.dtype}{data.shape}{sha1(data.tobytes()).hexdigest()}": data.nbytes for data in packed}


@dataclass(frozen=True, eq=False)
class Choice:
    """All usable kernels, best first; which of them is taken; and the refused ones."""

    offers: tuple[Offer, ...]
    refused: tuple[Alternative, ...]
    taken: int = 0

    @property
    def kernel(self) -> Kernel:
        return self.offers[self.taken].kernel

    @property
    def demand(self) -> Demand:
        return self.offers[self.taken].demand

    @property
    def price(self) -> Price:
        return self.offers[self.taken].price

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The kernel that is taken, then the others in order."""
        accepted = [Alternative(offer.kernel.name, offer.price) for offer in self.offers]
        return (accepted.pop(self.taken), *accepted, *self.refused)


def choose(site: Site, target: Target) -> Choice:
    """The best kernel for an operation or a chain; ModelError where there is none."""
    found = offers(site, target)
    if isinstance(found, Choice):
        return found
    raise _no_kernel(site, found)


def offers(site: Site, target: Target) -> Choice | list[Alternative]:
    """The choice, or where no kernel is usable, the reasons."""
    found: list[Offer] = []
    refused: list[Alternative] = []
    for kernel in _candidates(site, target):
        result = _unsuitable(kernel, site, target) or printed_or_refused(kernel, site)
        if isinstance(result, Printed):
            found.append(offer_of(kernel, site, result, target))
        else:
            refused.append(Alternative(kernel.name, reason=result))
    found, large = _fit_core_memory(site, found, target)
    refused += large
    if not found:
        return refused
    found.sort(key=lambda offer: offer.price.key(target.optimize))
    if target.pace is not None and target.optimize == "speed":
        found.insert(0, found.pop(_lightest_near_fastest(found)))
    return Choice(tuple(found), tuple(refused))


def _candidates(site: Site, target: Target) -> list[Kernel]:
    """The kernel that the target forces, if it is usable; otherwise all."""
    kernels = [kernel for kernel in kernels_of(site) if not kernel.joins or _joins_follower(kernel, site, target)]
    named = [kernel for kernel in kernels if kernel.name == target.forced_kernels.get(site.op.name)]
    return named if named and refusal(named[0], site, target) is None else kernels


def _joins_follower(kernel: Kernel, site: Site, target: Target) -> bool:
    """Whether the operation that the kernel joins follows. Not in chunked steps: every chunk would repeat the copy."""
    return not target.chunked and kernel.joins in [follower.op.kind for follower in site.tail[:1]]


def _fit_core_memory(site: Site, found: list[Offer], target: Target) -> tuple[list[Offer], list[Alternative]]:
    """Splits off the kernels that leave no room for tiles in core-local memory; keeps all where none fits. A chain that
    does not fit is given up instead. Floats keep their kernel, since the kernel determines their bits."""
    memory = target.cores.local
    if memory is None or any(tensor.dtype == "float32" for tensor in (*site.reads, *site.writes)):
        return found, []
    limit = memory.size * CORE_MEMORY_SHARE
    fitting = [offer for offer in found if offer.price.weights / offer.demand.slices + offer.demand.scratch <= limit]
    if not fitting and not site.tail:
        return found, []
    reason = "its constants and scratch leave no room in a core's own memory"
    return fitting, [Alternative(offer.kernel.name, reason=reason) for offer in found if offer not in fitting]


def _lightest_near_fastest(found: list[Offer]) -> int:
    """Index of the kernel with the fewest bytes of constants among those within MIN_GAIN of the fastest. `found` is
    sorted by time."""
    enough = found[0].price.cycles / (1 - MIN_GAIN)
    return min(range(len(found)), key=lambda at: (found[at].price.cycles > enough, found[at].price.weights, at))


def refusal(kernel: Kernel, site: Site, target: Target) -> str | None:
    """The reason why a kernel is not usable here, or None."""
    return _unsuitable(kernel, site, target) or kernel.accepts(site)


def _unsuitable(kernel: Kernel, site: Site, target: Target) -> str | None:
    """The target's reasons."""
    missing = kernel.needs - target.isa.features - target.features
    if missing:
        return f"{NEEDS} {', '.join(sorted(missing))}"
    if kernel.unless in target.isa.features:
        return "its set has the same one with other prices"
    if not {follower.op.kind for follower in site.tail} <= kernel.fuses:
        return "it computes one operation at a time"
    if target.bounded and not kernel.bounded:
        return "inputs decide where it stores, so its instructions cannot be bounded"
    if kernel.encoding and target.swappable:
        return "its constants are as many as its weights want, and these may be exchanged"
    if any(device_arithmetic_of(op) for op in site.ops) and not kernel.device_arithmetic:
        return "it computes as TFLite does, not as the device"
    return None


def offer_of(kernel: Kernel, site: Site, made: Printed, target: Target) -> Offer:
    """Prices a kernel by what it prints; a measured cost of the same work takes precedence. It runs for each index of
    the outer axes."""
    weights = sum(data.nbytes for data in made.demand.packed.values())
    known = measured(target.table, site, kernel.name)
    cycles = known if known is not None else _cycles(made.text.counts, weights, target) * prod(site.op.outer)
    encoding = encoding_of(target.architecture, target.isa, target.compact)
    code, scratch = partial(code_of, made.text, encoding), made.demand.scratch
    return Offer(kernel, made.demand, Price(cycles * encoding.slowdown, weights, code, scratch, known is not None))


def _cycles(counts: OpCounts, weights: int, target: Target) -> float:
    counts = counts.plus(OpCounts(CALL if target.architecture in MICROCONTROLLERS else 0))
    slow = counts.floats * (target.float_operation - 1) + counts.wides * (target.wide_product - 1)
    if target.pace is not None:
        return counts.cycles(target.pace, weights) + slow * target.pace.instruction
    far = weights / BYTES_PER_CYCLE if target.host_memory and weights > CACHE_BYTES else 0
    return counts.instructions + slow + far


def _no_kernel(site: Site, refused: list[Alternative]) -> ModelError:
    reasons = "; ".join(f"{a.kernel}: {a.reason}" for a in refused if not a.reason.startswith(NEEDS))
    return ModelError(
        f"layer {site.op.layer or site.op.name!r}",
        f"no kernel can compute this {site.op.kind} ({reasons}).",
        "Use another --quantize, or keep this layer in float.",
    )
