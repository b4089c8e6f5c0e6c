"""Kernels that only carry elements from one place to another, whatever their type."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Names
from nnbuild.kernels.strided import Walk, nest
from nnbuild.model.graph import Shape
from nnbuild.ops.site import Site


def same_type(site: Site) -> str | None:
    return None if len(site.dtypes) == 1 else "its input and output types differ"


def carry(w: Writer, names: Names, shape: Shape, walks: list[Walk]) -> None:
    """out[...] = in[...] along (output walk, input walk)."""

    def element(at: list[str]) -> None:
        w.bill(c99.LOAD.cycles)
        w(w.use(c99.STORE, f"{names.outputs[0]}[{at[0]}]", f"{names.inputs[0]}[{at[1]}]"))

    nest(w, shape, walks, element)
