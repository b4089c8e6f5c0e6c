"""The weighted sums of recurrent layers with 16-bit weights on cores that multiply 32 bits only, such as Cortex-M0.

Products of the weights' upper and lower bytes are summed apart, in 32 bits each, as far as these hold them.
"""

from __future__ import annotations

import numpy as np

from nnbuild.base.writer import Row, Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Names
from nnbuild.kernels.loops.window_loops import product, total
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.kernels.recurrent.integer_cells import Part, Sums, both_products
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.site import Site

MOST = 256
"""Products of 16 bits and an unsigned byte that 32 bits hold the sum of."""
LOAD = Row("const int32_t weight = {0};", 3)
ADD_UPPER = Row("{0} += {1} * (weight >> 8);", 4, products=1)
ADD_LOWER = Row("{0} += {1} * (weight & 255);", 4, products=1)


class HalvedSums(Sums):
    def accepts(self, site: Site[Recurrent]) -> str | None:
        reason = super().accepts(site)
        if reason:
            return reason
        wide = [part.weights.dtype for part in both_products(site) if not part.narrow]
        return None if wide and set(wide) == {np.dtype(np.int16)} else "its sums are not wider than 32 bits"

    def totals(self, w: Writer, names: Names, part: Part) -> list[str]:
        if part.products.narrow:
            return super().totals(w, names, part)
        part.declare(w, names.packed.get(f"{part.name}_start"))
        for first in range(0, part.size, MOST):
            with w.block(""):
                self._some(w, names, part, first, min(MOST, part.size - first))
        return part.totals

    def _some(self, w: Writer, names: Names, part: Part, first: int, count: int) -> None:
        """Adds the products of `count` inputs."""
        for one in part.sums:
            declare(w, f"{one}_upper", "0", "int32_t")
            declare(w, f"{one}_lower", "0", "int32_t")
        with w.loop("i", count):
            declare(w, "value", f"{part.vector}[{total(str(first), 'i')}]", "const int32_t")
            row = f"({total(product('unit', part.size), str(first))} + i) * {len(part.sums)}"
            for index, one in enumerate(part.sums):
                with w.block(""):
                    w(w.use(LOAD, f"{names.packed[part.name]}[{row} + {index}]"))
                    w(w.use(ADD_UPPER, f"{one}_upper", "value"))
                    w(w.use(ADD_LOWER, f"{one}_lower", "value"))
        for one in part.sums:
            w(w.use(c99.MULTIPLY_ADD_LONG, f"{one}_sum", f"{one}_upper", "256"))
            w(f"{one}_sum += {one}_lower;")
            w.bill(3)
