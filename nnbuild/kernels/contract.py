"""What a kernel asks for, and what it is told when it prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol

from nnbuild.base.writer import Writer
from nnbuild.isa.c99 import SINGLE
from nnbuild.isa.vectors import Vectors
from nnbuild.model.graph import Array
from nnbuild.ops.base import Attributes, Pair
from nnbuild.ops.site import Site

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", bound=Attributes, default=Any, contravariant=True)
else:
    from typing import TypeVar

    K = TypeVar("K")  # Python 3.11 knows no default.


@dataclass(frozen=True)
class Overlap:
    """How an output may lie over an input that nothing else needs any more: it begins at least `lead` bytes before it.

    Then it is never written over what is still to be read. A lead below 0 lets it begin so many bytes after the input.
    `pieces` is the lead where the work is done in several calls, each of which may read again what the one before it
    had read already; it is the same unless it is given. Beginnings must be a multiple of `every` bytes apart, for
    kernels that do one channel after the other and may write nothing over another one.
    """

    output: int = 0
    input: int = 0
    lead: int = 0
    pieces: int | None = None
    every: int = 1

    def lead_of(self, in_pieces: bool) -> int:
        return self.pieces if in_pieces and self.pieces is not None else self.lead


@dataclass(frozen=True, eq=False)
class Demand:
    """What a kernel needs at one site.

    extent: how many pieces the work divides into; the printed function computes those from `begin` to `end`.
    scratch: bytes it may write while it runs and forget afterwards, seen as `scratch_type`.
    packed: constants in the order in which it reads them, flat, by the name it will use for them.
    overlaps: which outputs may lie over which inputs, and how.
    copied: of these, the bytes of constants that are copied there.
    rows: whether an equal number of pieces, one after the other, makes each row of the output, and reads only the rows
    of the first input that lie under its window, and the same row of other inputs.
    grain: so many pieces are computed together, so that a range is best a multiple of it.
    each: so many elements of its only output, one after the other, each piece makes, the last perhaps fewer, and reads
    only what `rows` says of the rows they lie in; 0 where that is not so, or `rows` says enough.
    costs: what each piece takes, compared with the others; nothing where all take the same.
    bands: where an output's bytes do not say what a piece reads: of each piece the first row of the output that it
    makes, and the one behind its last; it reads only what `rows` says of these.
    slices: the pieces are so many equal groups, one after the other, and each of them reads its own slice only of the
    one array that is packed: equal slices, one after the other, of a multiple of 64 bytes.
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
    """What things are called in the function being printed. The range is always `begin` to `end`."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    packed: Mapping[str, str]
    scratch: str = "scratch"


class Body(Protocol[K]):
    """What a kernel does at the sites of one operation.

    accepts: the reason when it cannot serve a site.
    """

    def accepts(self, site: Site[K]) -> str | None: ...
    def demand(self, site: Site[K]) -> Demand: ...
    def emit(self, w: Writer, site: Site[K], names: Names) -> None: ...


PORTABLE: frozenset[str] = frozenset()
"""What a kernel in portable C needs."""


def only_float(site: Site) -> str | None:
    return None if site.dtypes == {"float32"} else f"it computes float32 only, not {', '.join(sorted(site.dtypes))}"


def only_integer(site: Site) -> str | None:
    """One integer type throughout; its accumulators are those of TFLite."""
    fits = site.dtypes in ({"int8"}, {"int16"})
    return None if fits else f"it computes int8 or int16 only, not {', '.join(sorted(site.dtypes))}"


def any_format(site: Site) -> str | None:
    """One number format throughout, whichever."""
    return None if len(site.dtypes) == 1 else f"its formats are mixed: {', '.join(sorted(site.dtypes))}"


def only_int8(site: Site) -> str | None:
    return None if site.dtypes == {"int8"} else f"it computes int8 only, not {', '.join(sorted(site.dtypes))}"


def all_int8(site: Site) -> str | None:
    """Constants, too."""
    there = {*site.dtypes, *(constant.data.dtype.name for constant in site.constants.values())}
    return None if there == {"int8"} else "it computes int8 only"


@dataclass(frozen=True, eq=False)
class Kernel(Generic[K]):
    """One of the VARIANTS of an operation's file, by its name.

    A `Kernel[Conv2D]` serves convolutions; what the registry finds for a site is a `Kernel` of the site's operation.

    needs: the features of the instruction set that it cannot do without.
    fuses: the kinds of operation that it takes in a site's tail; it is asked by `accepts` whether it takes a given one.
    joins: the kind of the tail's first operation, where it computes nothing without one.
    encoding: how its weights are stored, where that is not one number after the other: then they take as many bytes as
    their values want, so others cannot take their place.
    obeys: whether it computes in the arithmetic of a device, where an operation has that of one.
    """

    name: str
    needs: frozenset[str]
    accepts: Callable[[Site[K]], str | None]
    demand: Callable[[Site[K]], Demand]
    emit: Callable[[Writer, Site[K], Names], None]
    fuses: frozenset[str] = frozenset()
    joins: str = ""
    encoding: str = ""
    obeys: bool = False


@dataclass(frozen=True, eq=False)
class OnEach(Generic[K]):
    """The kernels that `make` gives for each set of vectors with kernels of its own for `numbers`: "float", "integer",
    "sums", the integers of layers with weights, or "across". They are made when they are looked for, so a set that is
    added later has them too."""

    numbers: str
    make: Callable[[Vectors], Iterable[Kernel[K]]]


def on_each(numbers: str, body: Callable[[Vectors], Body[K]]) -> OnEach[K]:
    """One kernel for each such set, under the set's name, which is also what it needs."""

    def made(vectors: Vectors) -> Iterable[Kernel[K]]:
        k, name = body(vectors), set_name(numbers, vectors)
        return [Kernel(name, frozenset({vectors.name}), k.accepts, k.demand, k.emit)]

    return OnEach(numbers, made)


def on_any_floats(body: Callable[[Vectors], Body[K]]) -> tuple[Kernel[K] | OnEach[K], ...]:
    """The same for floats, with the scalar kernel: that of a single lane."""
    k = body(SINGLE)
    return Kernel("scalar", PORTABLE, k.accepts, k.demand, k.emit), on_each("float", body)


@dataclass(frozen=True, eq=False)
class Floats(Generic[K]):
    """Floats of any shape; `emitted` is told the set, and prints."""

    floats: Vectors
    demand: Callable[[Site[K]], Demand]
    emitted: Callable[[Vectors, Writer, Site[K], Names], None]

    def accepts(self, site: Site[K]) -> str | None:
        return only_float(site)

    def emit(self, w: Writer, site: Site[K], names: Names) -> None:
        self.emitted(self.floats, w, site, names)


NUMBERS = {"integer": "integers", "across": "across"}


def set_name(numbers: str, vectors: Vectors) -> str:
    """What a set's kernel is called."""
    return vectors.name if numbers == "float" else f"{vectors.name}_{NUMBERS[numbers]}"


T = TypeVar("T")


def of_set(
    v: Vectors,
    suffix: str,
    accepts: Callable[[Vectors, Site[K]], str | None],
    nest: Callable[[Vectors, Site[K]], Nest],
    fuses: frozenset[str] = frozenset(),
    encoding: str = "",
) -> Kernel[K]:
    """One of a set's kernels, which is called after the set and told it."""
    name, needs = f"{v.name}{suffix}", frozenset({v.name})
    return variant(name, needs, partial(accepts, v), partial(nest, v), fuses, encoding)


def by_depth(depth: int) -> str:
    """How the name of a set's kernel ends that multiplies so many neighbouring inputs at once."""
    return f"_by_{depth}" if depth > 1 else ""


def reason_of(found: object) -> str | None:
    """The reason, where one was found instead of what serves."""
    return found if isinstance(found, str) else None


def served(found: T | str) -> T:
    """What serves, where no reason was found."""
    assert not isinstance(found, str), found
    return found


class Nest(Protocol):
    """A loop nest that is laid out for one site, with the lanes that compute in it."""

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
    """A kernel that lays out a nest for every site it accepts."""

    def emit(w: Writer, site: Site[K], names: Names) -> None:
        nest(site).emit(w, names)

    return Kernel(name, needs, accepts, lambda site: nest(site).demand(), emit, fuses, encoding=encoding)
