"""Functions of one byte."""

from __future__ import annotations

import numpy as np

from nnbuild.kernels.parts import byte_tables
from nnbuild.numeric.rounding import Ints, ints
from nnbuild.ops.lookup import Lookup
from nnbuild.ops.site import Site


def _entries(site: Site[Lookup]) -> Ints:
    return ints(np.array(site.attributes.entries))


VARIANTS = (byte_tables.portable(_entries, "scalar"), byte_tables.in_vectors(_entries))
