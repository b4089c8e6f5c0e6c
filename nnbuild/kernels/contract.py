"""The interface of kernels: what one needs at a site, and what it is told when it prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol

from nnbuild.base.writer import Writer
from nnbuild.isa.c99 import SINGLE
from nnbuild.isa.vectors import Vectors
from nnbuild.model.graph import Array
from nnbuild.ops.base import Attributes, Pair
from nnbuild.ops.integer import gives_floats
from nnbuild.ops.site import Site

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", bound=Attributes, default=Any, contravariant=True)
else:
    from typing import TypeVar

    K = TypeVar("K")  # Python 3.11 knows no default.


@dataclass(frozen=True)
class Overlap:
    """An output may overlap an input that no later step needs, if it begins at least `distance` bytes before it.

    At this safe distance the kernel never overwrites input that it has yet to read. A negative distance lets the output
    begin that many bytes after the input. `split_distance` applies where the step is computed in several calls, which
    may read some inputs again; by default it equals `distance`. The two beginnings must lie a multiple of `step` bytes
    apart: kernels that compute channel by channel in place must not write over other channels.
    """

    output: int = 0
    input: int = 0
    distance: int = 0
    split_distance: int | None = None
    step: int = 1

    def distance_of(self, split: bool) -> int:
        return self.split_distance if split and self.split_distance is not None else self.distance


@dataclass(frozen=True, eq=False)
class Demand:
    """What a kernel needs at one site.

    extent: the number of work items; the printed function computes those from `begin` to `end`.
    scratch: bytes of working memory, used as `scratch_type`, whose content is lost after the call.
    packed: constants, flat, in the order in which the kernel reads them, by the name it uses for them.
    overlaps: which outputs may overlap which inputs, and at which distance.
    copied: the bytes of constants that the kernel copies into scratch.
    rows: whether each output row consists of the same number of consecutive work items, and these read only the rows of
    the first input under its window, and the same row of the other inputs.
    grain: work items that are computed together; ranges are best a multiple of it.
    each: consecutive elements that a work item makes of the only output (the last item may make fewer), if it reads
    only what `rows` says of the rows they lie in; 0 where that does not hold or `rows` says enough.
    costs: the relative cost of each work item; empty where all cost the same.
    bands: for each work item the range of output rows that it makes, where its output bytes do not tell what it reads;
    it reads only what `rows` says of these rows.
    slices: the number of equal, consecutive groups of work items, each of which reads only its own slice of the only
    packed array. Slices are equal and consecutive, and a multiple of 64 bytes long.
    """

    extent: int
    scratch: int = 0
    scratch_type: str = "float32"
    packed: Mapping[str, Array] = field(default_factory=dict)
    overlaps: tuple[Overlap, ...] = ()
    rows: bool = False
    copied: int = 0
    grain: int = 1
    costs: tuple[float, ...] = ()
    each: int = 0
    bands: tuple[Pair, ...] = ()
    slices: int = 1


@dataclass(frozen=True)
class Names:
    """The names in the printed function. Its range of work items is always `begin` to `end`."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    packed: Mapping[str, str]
    scratch: str = "scratch"
    block: str | None = None
    """The pointer to the block of which the packed constants are places."""


class Body(Protocol[K]):
    """A kernel of one operation. `accepts` gives the reason when it cannot serve a site, or None."""

    def accepts(self, site: Site[K]) -> str | None: ...
    def demand(self, site: Site[K]) -> Demand: ...
    def emit(self, w: Writer, site: Site[K], names: Names) -> None: ...


Refusal = Callable[[Site], "str | None"]
"""Gives the reason why a kernel cannot serve a site, or None."""
FLOATS_IN_BYTES = "8 bits"
"""The encoding of weights of floats in bytes, in their plain order."""
PORTABLE: frozenset[str] = frozenset()
"""The instruction set features that portable C needs."""


def _only(*kinds: str) -> Refusal:
    """One of these types throughout."""

    def refused(site: Site) -> str | None:
        others = f"it computes {' or '.join(kinds)} only, not {', '.join(sorted(site.dtypes))}"
        return None if len(site.dtypes) == 1 and site.dtypes <= set(kinds) else others

    return refused


only_float, only_int8, only_int16 = _only("float32"), _only("int8"), _only("int16")
only_integer = _only("int8", "int16")
"""With TFLite's accumulators."""


def any_format(site: Site) -> str | None:
    """Any number format, but only one."""
    return None if len(site.dtypes) == 1 else f"it mixes number formats: {', '.join(sorted(site.dtypes))}"


def _or_floats(of: Refusal) -> Refusal:
    """Also a layer of bytes whose sums become floats."""

    def refused(site: Site) -> str | None:
        behind = "it fuses nothing behind sums that become floats" if site.tail else None
        return behind if gives_floats(site) else of(site)

    return refused


any_layer, integer_layer, bytes_layer = map(_or_floats, (any_format, only_integer, only_int8))


def all_int8(site: Site) -> str | None:
    """int8 tensors and constants."""
    return None if kinds_of(site) == {"int8"} else "it computes int8 tensors and constants only"


def kinds_of(site: Site) -> set[str]:
    """The types of its tensors and constants."""
    return {*site.dtypes, *(constant.data.dtype.name for constant in site.constants.values())}


@dataclass(frozen=True, eq=False)
class Kernel(Generic[K]):
    """One of the VARIANTS of an operation's file. A `Kernel[Conv2D]` serves convolutions.

    needs: the instruction set features that it requires.
    fuses: the kinds of operation that it can compute in a site's tail; `accepts` decides on a given tail.
    joins: the kind that the first operation of the tail must have; "" where none is required.
    encoding: how weights are stored, if not plainly; their size then depends on their values, so that other weights
    cannot replace them.
    device_arithmetic: whether it computes operations in the arithmetic of an offload device.
    bounded: whether its instructions can be bounded for all inputs: none decides where it stores.
    unless: a feature of sets that have the same kernel with other prices.
    """

    name: str
    needs: frozenset[str]
    accepts: Callable[[Site[K]], str | None]
    demand: Callable[[Site[K]], Demand]
    emit: Callable[[Writer, Site[K], Names], None]
    fuses: frozenset[str] = frozenset()
    joins: str = ""
    encoding: str = ""
    device_arithmetic: bool = False
    bounded: bool = True
    unless: str = ""


@dataclass(frozen=True, eq=False)
class OnEach(Generic[K]):
    """Kernels that `make` creates for every vector set with kernels for `numbers`: "float", "integer", "float_sums" or
    "sums" (only layers with weights), "across" (sums across lanes), "tables" (look-ups), "bytes" (copies and maxima).
    They are made when asked for, so sets added later get them too."""

    numbers: str
    make: Callable[[Vectors], Iterable[Kernel[K]]]


def kernel_of(name: str, needs: frozenset[str], body: Body[K]) -> Kernel[K]:
    return Kernel(name, needs, body.accepts, body.demand, body.emit)


SUFFIXES = {"float": "", "integer": "_integers"}


def on_each(numbers: str, body: Callable[[Vectors], Body[K]], suffix: str | None = None) -> OnEach[K]:
    """One kernel for each such set, which it needs, named after the set and, unless told otherwise, the numbers."""
    added = SUFFIXES.get(numbers, f"_{numbers}") if suffix is None else suffix
    return OnEach(numbers, lambda v: [kernel_of(f"{v.name}{added}", frozenset({v.name}), body(v))])


def on_any_floats(body: Callable[[Vectors], Body[K]]) -> tuple[Kernel[K] | OnEach[K], ...]:
    """The same for floats, and the scalar kernel, which has a single lane."""
    return kernel_of("scalar", PORTABLE, body(SINGLE)), on_each("float", body)


@dataclass(frozen=True, eq=False)
class Functions(Generic[K]):
    """A body of three functions, of which most do not depend on the set."""

    accepts: Callable[[Site[K]], str | None]
    demand: Callable[[Site[K]], Demand]
    emit: Callable[[Writer, Site[K], Names], None]


def each_changed(
    of: Iterable[Kernel[Any] | OnEach[Any]], change: Callable[[Kernel[Any], Vectors | None], Iterable[Kernel[K]]]
) -> Iterator[Kernel[K] | OnEach[K]]:
    """What `change` makes of each kernel, and of each set's; it is told the set."""
    for entry in of:
        if isinstance(entry, Kernel):
            yield from change(entry, None)
        else:
            yield OnEach(entry.numbers, partial(_changed_on, entry, change))


def _changed_on(
    of: OnEach[Any], change: Callable[[Kernel[Any], Vectors | None], Iterable[Kernel[K]]], v: Vectors
) -> list[Kernel[K]]:
    return [changed for kernel in of.make(v) for changed in change(kernel, v)]


T = TypeVar("T")


def of_set(
    v: Vectors,
    suffix: str,
    accepts: Callable[[Vectors, Site[K]], str | None],
    nest: Callable[[Vectors, Site[K]], Nest],
    fuses: frozenset[str] = frozenset(),
    encoding: str = "",
) -> Kernel[K]:
    """A kernel of a set, named after it; its functions are given the set."""
    name, needs = f"{v.name}{suffix}", frozenset({v.name})
    return variant(name, needs, partial(accepts, v), partial(nest, v), fuses, encoding)


def on_nests(
    numbers: str,
    suffix: str,
    accepts: Callable[[Site[K]], str | None],
    nest: Callable[[Vectors, Site[K]], Nest],
    fuses: frozenset[str] = frozenset(),
    encoding: str = "",
) -> OnEach[K]:
    """One such kernel for each set; what it accepts does not depend on the set."""
    return OnEach(numbers, lambda v: [of_set(v, suffix, lambda _, site: accepts(site), nest, fuses, encoding)])


def by_depth(depth: int) -> str:
    """The suffix of a set's kernel that multiplies `depth` neighbouring inputs at once."""
    return f"_by_{depth}" if depth > 1 else ""


def reason_of(found: object) -> str | None:
    """The refusal, if `found` is one."""
    return found if isinstance(found, str) else None


def accepted(found: T | str) -> T:
    """The result, where there is no refusal."""
    assert not isinstance(found, str), found
    return found


class Nest(Protocol):
    """A loop nest for one site, with the lanes that compute in it."""

    def demand(self) -> Demand: ...
    def emit(self, w: Writer, names: Names) -> None: ...


def variant(
    name: str,
    needs: frozenset[str],
    accepts: Callable[[Site[K]], str | None],
    nest: Callable[[Site[K]], Nest],
    fuses: frozenset[str] = frozenset(),
    encoding: str = "",
) -> Kernel[K]:
    """A kernel that builds a nest for every site it accepts."""

    def emit(w: Writer, site: Site[K], names: Names) -> None:
        nest(site).emit(w, names)

    return Kernel(name, needs, accepts, lambda site: nest(site).demand(), emit, fuses, encoding=encoding)
