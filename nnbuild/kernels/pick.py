"""Elements at known indices along each axis; the indices of an axis are a table."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Kernel, Names, any_format
from nnbuild.kernels.loops.strided import contiguous
from nnbuild.model.graph import Array
from nnbuild.ops.pick import Pick
from nnbuild.ops.site import Site


def _demand(site: Site[Pick]) -> Demand:
    own = contiguous(site.shape())
    packed: dict[str, Array] = {
        f"axis{axis}": (np.asarray(places) * own[axis]).astype(np.int32)
        for axis, places in enumerate(site.attributes.places)
        if places is not None
    }
    return Demand(extent=site.output_shape()[0], packed=packed)


def _emit(w: Writer, site: Site[Pick], names: Names) -> None:
    own, out = contiguous(site.shape()), contiguous(site.output_shape())
    source, target = [], []
    with ExitStack() as nested:
        for axis, size in enumerate(site.output_shape()):
            loop = w.loop(f"i{axis}", size) if axis else w.loop("i0", "end", start="begin", trips=size)
            nested.enter_context(loop)
            table = names.packed.get(f"axis{axis}")
            source.append(f"{table}[i{axis}]" if table else f"i{axis} * {own[axis]}")
            target.append(f"i{axis} * {out[axis]}")
            w.bill(c99.LOAD.cycles if table else 0)
        w.bill(c99.LOAD.cycles)
        w(w.use(c99.STORE, f"{names.outputs[0]}[{' + '.join(target)}]", f"{names.inputs[0]}[{' + '.join(source)}]"))


VARIANTS = (Kernel("scalar", PORTABLE, any_format, _demand, _emit),)
