"""Mean, sum, maximum and minimum over neighbouring axes, in vectors of floats.

Where something lies behind the axes, the lanes are neighbouring outputs. Where nothing does, each output is taken
together from the lanes of its own values.
"""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa.vector_sets import SETS
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.contract import Demand, Names, Variant, only_float
from nnbuild.kernels.loops.dot import offset
from nnbuild.kernels.window_loops import product
from nnbuild.ops.base import around
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.site import Site

OPERATIONS = {"mean": "add", "sum": "add", "max": "max", "min": "min"}
TOGETHER = 4
"""Vectors that are added to in turns."""


def _function(site: Site[Reduce]) -> tuple[str, int, int, int]:
    """(function, how much lies before the axes, in them, and behind)."""
    attributes = site.attributes
    return attributes.function, *around(site.shape(), attributes.axis, attributes.count)


def _variant(floats: Vectors) -> Variant:
    def accepts(site: Site[Reduce]) -> str | None:
        _, _, size, after = _function(site)
        if after == 1 and size < floats.lanes:
            return "its values do not fill a vector"
        return only_float(site)

    def demand(site: Site[Reduce]) -> Demand:
        return Demand(extent=_function(site)[1])

    def emit(w: Writer, site: Site[Reduce], names: Names) -> None:
        function, before, size, after = _function(site)
        with w.loop("row", "end", start="begin", trips=before):
            w(f"const float *from = {names.inputs[0]} + {product('row', size * after)};")
            w(f"float *to = {names.outputs[0]} + {product('row', after)};")
            if after == 1:
                _lanes_of_one(w, floats, function, size)
            else:
                _columns(w, floats, function, size, after)

    return Variant(floats.name, frozenset({floats.name}), accepts, demand, emit)


def _columns(w: Writer, floats: Vectors, function: str, size: int, after: int) -> None:
    width = TOGETHER * floats.lanes
    whole = after // width * width
    if whole:
        with w.loop("c", whole, step=width):
            _some_columns(w, floats, function, (size, after), "c", width)
    if whole < after:
        with w.block(""):
            _some_columns(w, floats, function, (size, after), str(whole), after - whole)


def _some_columns(w: Writer, floats: Vectors, function: str, shape: tuple[int, int], column: str, count: int) -> None:
    """The results of `count` columns from one on; there are shape[0] values of shape[1] columns."""
    parts = [(i, min(floats.lanes, count - i)) for i in range(0, count, floats.lanes)]
    w(f"const float *value = from + {column};")
    for i, lanes in parts:
        floats.declare(w, f"result{i}", floats.load(w, offset("value", i), lanes))
    with w.loop("i", shape[0], start=1):
        w(f"value += {shape[1]};")
        for i, lanes in parts:
            loaded = floats.load(w, offset("value", i), lanes)
            w(f"result{i} = {floats.use(w, OPERATIONS[function], f'result{i}', loaded)};")
    for i, lanes in parts:
        address = f"to + {column}" if not i else f"to + {column} + {i}"
        floats.store(w, address, _finished(w, floats, function, f"result{i}", shape[0]), lanes)


def _lanes_of_one(w: Writer, floats: Vectors, function: str, size: int) -> None:
    """The last vector of a maximum may hold values again; a sum takes the rest with zeros."""
    operation, whole = OPERATIONS[function], size // floats.lanes
    together = min(TOGETHER, whole)
    for i in range(together):
        floats.declare(w, f"result{i}", floats.load(w, offset("from", i * floats.lanes)))
    rounds, left = divmod(whole - together, together)
    with w.loop(
        "i", (1 + rounds) * together * floats.lanes, start=together * floats.lanes, step=together * floats.lanes
    ):
        for i in range(together):
            _take(w, floats, operation, i, floats.load(w, f"from + i + {i * floats.lanes}"))
    for i in range(left):
        _take(w, floats, operation, i, floats.load(w, f"from + {((1 + rounds) * together + i) * floats.lanes}"))
    if size % floats.lanes:
        again = operation != "add"
        at = size - floats.lanes if again else whole * floats.lanes
        _take(w, floats, operation, 0, floats.load(w, f"from + {at}", None if again else size % floats.lanes))
    for i in range(1, together):
        _take(w, floats, operation, 0, f"result{i}")
    w(f"result0 = {floats.across(w, operation, 'result0')};")
    floats.store(w, "to", _finished(w, floats, function, "result0", size), 1)


def _take(w: Writer, floats: Vectors, operation: str, index: int, value: str) -> None:
    w(f"result{index} = {floats.use(w, operation, f'result{index}', value)};")


def _finished(w: Writer, floats: Vectors, function: str, result: str, size: int) -> str:
    return floats.use(w, "div", result, floats.each(w, size)) if function == "mean" else result


VARIANTS = tuple(_variant(floats) for floats in SETS)
