"""What kernels print for a piece of work, from which their prices come; it is the longest part of making a plan."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, Kernel, Names
from nnbuild.ops.site import Site

ROOM = 256 << 20
"""Bytes of C and packed constants that are remembered; the oldest are forgotten first."""


@dataclass(frozen=True, eq=False)
class Printed:
    """A kernel's demand for some work, and its C."""

    demand: Demand
    text: Writer

    @property
    def nbytes(self) -> int:
        return sum(data.nbytes for data in self.demand.packed.values()) + self.text.nbytes


def printed(kernel: Kernel, site: Site) -> Printed:
    demand, w = kernel.demand(site), Writer("p")
    kernel.emit(w, site, plain_names(site, demand))
    return Printed(demand, w)


def plain_names(site: Site, demand: Demand) -> Names:
    """The parameter names of a kernel function; a single input or output gets no number."""

    def numbered(base: str, count: int) -> tuple[str, ...]:
        return (base,) if count == 1 else tuple(f"{base}{i}" for i in range(count))

    packed = {name: f"p_{name}" for name in demand.packed}
    return Names(numbered("in", len(site.reads)), numbered("out", len(site.writes)), packed)


class _Memory:
    """Results by kernel and work, with the objects that keys identify by address, which thus stay theirs."""

    def __init__(self) -> None:
        self.found: OrderedDict[Hashable, tuple[Printed | str, object]] = OrderedDict()
        self.nbytes = 0

    def result(self, kernel: Kernel, site: Site) -> Printed | str:
        key = (id(kernel), *(_identity(part) for part in (site, *site.tail)))
        if key in self.found:
            self.found.move_to_end(key)
            return self.found[key][0]
        result = _tried(kernel, site)
        self.found[key] = result, (kernel, [(op.attributes, op.arithmetic) for op in site.ops])
        self.nbytes += _size(result)
        while self.nbytes > ROOM:
            self.nbytes -= _size(self.found.popitem(last=False)[1][0])
        return result


_memories: list[_Memory] = []


@contextmanager
def remembering() -> Iterator[None]:
    """Meanwhile the same work is printed once, for however many plans."""
    _memories.append(_memories[-1] if _memories else _Memory())
    try:
        yield
    finally:
        _memories.pop()


def printed_or_refused(kernel: Kernel, site: Site) -> Printed | str:
    """What the kernel prints, or why it does not serve."""
    return _memories[-1].result(kernel, site) if _memories else _tried(kernel, site)


def _tried(kernel: Kernel, site: Site) -> Printed | str:
    return kernel.accepts(site) or printed(kernel, site)


def _identity(site: Site) -> Hashable:
    """Equal for equal work: weights are compared by content, as a search for few bytes makes the same ones again."""
    op, constants = site.op, sorted(site.constants.items())
    named = (op.name, op.inputs, op.outputs, op.outer, site.shared, site.inputs, site.outputs)
    weights = tuple((role, constant.name, constant.quant, constant.digest) for role, constant in constants)
    return (id(op.attributes), id(op.arithmetic), named, weights)


def _size(result: Printed | str) -> int:
    return result.nbytes if isinstance(result, Printed) else len(result)
