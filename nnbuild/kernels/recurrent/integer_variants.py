"""The integer kernels of LSTM, GRU and SimpleRNN, each with weighted sums of every kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from nnbuild.base.writer import Writer
from nnbuild.isa.vectors import Vectors
from nnbuild.kernels.compressed.narrow_dsp_rows import Code
from nnbuild.kernels.contract import Demand, Kernel, Names, OnEach
from nnbuild.kernels.recurrent.halved_sums import HalvedSums
from nnbuild.kernels.recurrent.integer_cells import Sums
from nnbuild.kernels.recurrent.pair_sums import PairedSums
from nnbuild.kernels.recurrent.scalar_cell import ScalarCell
from nnbuild.kernels.recurrent.scattered_sums import ScatteredSums
from nnbuild.kernels.recurrent.sparse_sums import Form, NarrowSums, SparsePairSums, SparseSums
from nnbuild.kernels.recurrent.vector_cell import VectorCell
from nnbuild.kernels.recurrent.vector_sums import CellSums, ColumnSums
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.site import Site

FORMS = {"integer": Sums(), "halves": HalvedSums(), "pairs_wide": PairedSums(True), "pairs": PairedSums(False)}
ENCODED = {
    "sparse": SparseSums(Form(False)),
    "sparse_shared": SparseSums(Form(True)),
    "sparse_pairs": SparsePairSums(False),
    "sparse_pairs_short": SparsePairSums(False, Form(True, 2)),
    "sparse_places": SparsePairSums(False, Form(True, 1, 4, 2)),
    "sparse_places_short": SparsePairSums(False, Form(True, 1, 2)),
    "sparse_apart": SparsePairSums(False, Form(False)),
    "sparse_scattered": ScatteredSums(False),
    "int4": NarrowSums(False, Code(False)),
    "codebook": NarrowSums(False, Code(True)),
}
"""Sums that skip zeros, and those with 4-bit weights."""
R = TypeVar("R", bound=Recurrent)
Cell = type[ScalarCell]


def integer_kernels(
    demand: Callable[[Sums, Site[R]], Demand], emit: Callable[[ScalarCell], None]
) -> tuple[Kernel[R] | OnEach[R], ...]:
    """Portable, with pairs for 16-bit and 8-bit weights, and on every vector set."""

    def kernel(name: str, needs: frozenset[str], sums: Sums, encoding: str = "", cell: Cell = ScalarCell) -> Kernel[R]:
        def emitted(w: Writer, site: Site[R], names: Names) -> None:
            emit(cell(sums, w, site, names))

        def accepts(site: Site[R]) -> str | None:
            return sums.accepts(site) or cell.refused(site)

        return Kernel(name, needs, accepts, partial(demand, sums), emitted, encoding=encoding)

    def on_vectors(v: Vectors) -> list[Kernel[R]]:
        return [kernel(f"{v.name}_integers", frozenset({v.name}), ColumnSums(v)), *cells(v)]

    def cells(v: Vectors) -> list[Kernel[R]]:
        return [kernel(f"{v.name}_cells", frozenset({v.name}), CellSums(v), cell=VectorCell)]

    dense = [kernel(name, sums.needs, sums) for name, sums in FORMS.items()]
    encoded = [
        kernel(name, sums.needs, sums, name if isinstance(sums, NarrowSums) else "blocks")
        for name, sums in ENCODED.items()
    ]
    return *dense, *encoded, OnEach("integer", on_vectors), OnEach("across", cells)
