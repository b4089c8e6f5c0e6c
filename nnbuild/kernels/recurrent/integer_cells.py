"""The common part of integer LSTM, GRU and SimpleRNN kernels; the arithmetic is that of `ops.recurrent_rules`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import PORTABLE, Demand, Names
from nnbuild.kernels.parts.integer_steps import declare
from nnbuild.kernels.recurrent import cells
from nnbuild.model.graph import Array
from nnbuild.numeric.tables import fine_table
from nnbuild.ops import activation_rules
from nnbuild.ops.recurrent import Recurrent, rules_of
from nnbuild.ops.recurrent_rules import Curve, Products, Smooth
from nnbuild.ops.site import Site
from nnbuild.ops.tflite_lstm import TfliteLstm

WIDEST = 1 << 30
"""The range that `nn_scale_wide` scales to."""


ALL = slice(None)
"""All gates."""
R = TypeVar("R", Recurrent, TfliteLstm)


class Part(NamedTuple):
    """What the input or the state contributes to some sums of every unit, by their names."""

    sums: Sequence[str]
    vector: str
    size: int
    name: str
    products: Products

    @property
    def places(self) -> list[str]:
        """The index of the unit's number for each sum."""
        return [f"unit * {len(self.sums)} + {index}" for index in range(len(self.sums))]

    @property
    def totals(self) -> list[str]:
        """The names of the sums that are not scaled yet."""
        return [f"{one}_sum" for one in self.sums]

    @property
    def kind(self) -> str:
        """The type that holds its sums."""
        return "int32_t" if self.products.narrow else "int64_t"

    def declare(self, w: Writer, start: str | None, kind: str = "") -> None:
        """Declares the sums of the unit; they begin with the numbers of an array, if any."""
        for one, at in zip(self.totals, self.places, strict=True):
            declare(w, one, f"{start}[{at}]" if start else "0", kind or self.kind)


def both_products(site: Site[Recurrent]) -> tuple[Products, Products]:
    """The products of the input and of the state."""
    return rules_of(site).of_input, rules_of(site).of_state


def parts_of(
    site: Site[R], names: Sequence[str], state: str, products: tuple[Products, Products], which: str = ""
) -> tuple[Part, Part]:
    """What the input and the state contribute to the sums of these names; `which` marks the constants of some."""
    units, features = site.attributes.units, site.shape()[1]
    return (
        Part([f"{name}_x" for name in names], "x", features, f"kernel{which}", products[0]),
        Part([f"{name}_h" for name in names], state, units, f"recurrent{which}", products[1]),
    )


class Sums:
    """Computes weighted sums one product at a time; sets of instructions have subclasses."""

    needs: ClassVar[frozenset[str]] = PORTABLE

    def accepts(self, site: Site[Recurrent]) -> str | None:
        if site.inputs[0].dtype not in ("int8", "int16"):
            return f"it computes from int8 or int16 only, not {site.inputs[0].dtype}"
        try:
            rules_of(site)
        except ValueError as error:
            return str(error)
        return None

    def packed(self, site: Site[Recurrent], name: str, products: Products, gates: slice = ALL) -> dict[str, Array]:
        """The weights of some gates and the columns' further constants, unit by unit."""
        count = site.attributes.gates
        made = {name: by_unit(products.weights, count)[:, :, gates]}
        for part, values in columns(products).items():
            made[f"{name}_{part}"] = values.reshape(count, -1).T[:, gates]
        return made

    def demand(self, site: Site[Recurrent], packed: dict[str, Array], held: int = 1) -> Demand:
        """`held` numbers per unit are kept in scratch."""
        return cells.demand(site, packed | _tables(site), held, "int16" if held == 1 else "int32")

    def room(self, site: Site[Recurrent]) -> int:
        """Bytes of scratch for the sums."""
        return 0

    def kept(self, site: Site[Recurrent], names: Names, index: int) -> str:
        """Where the number `index` of each unit is kept in scratch, as an int32_t; number 0 is its new state."""
        return f"{names.scratch} + {index * site.attributes.units}"

    def all_gates(self, site: Site[Recurrent]) -> Demand:
        """The demand where all sums of a unit are computed together."""
        of_input, of_state = both_products(site)
        kernel = self.packed(site, "kernel", of_input)
        return self.demand(site, kernel | self.packed(site, "recurrent", of_state))

    def before_units(self, w: Writer, site: Site[Recurrent], names: Names, parts: Sequence[Part], held: int) -> None:
        """Prints the work of a time step before the loop over units, whose `weighted` takes these parts; `held` numbers
        per unit are kept in scratch."""

    def weighted(self, w: Writer, names: Names, part: Part) -> None:
        """Declares the part's contribution to each of its sums, in their unit."""
        for one, total, at in zip(part.sums, self.totals(w, names, part), part.places, strict=True):
            self.scaled(w, names, part, one, total, at)

    def totals(self, w: Writer, names: Names, part: Part) -> list[str]:
        """The part's sums of the unit, with their starts."""
        part.declare(w, names.packed.get(f"{part.name}_start"))
        with w.loop("i", part.size):
            declare(w, "value", f"{part.vector}[i]", "const int32_t")
            for index, one in enumerate(part.sums):
                at = f"(unit * {part.size} + i) * {len(part.sums)} + {index}"
                multiply_add = c99.MULTIPLY_ADD if part.products.narrow else c99.MULTIPLY_ADD_LONG
                w(w.use(multiply_add, f"{one}_sum", "value", f"{names.packed[part.name]}[{at}]"))
        return part.totals

    def scaled(self, w: Writer, names: Names, part: Part, result: str, total: str, at: str) -> None:
        """Declares a sum of the unit, scaled to the unit of its destination."""
        scale = [f"{names.packed[f'{part.name}_{what}']}[{at}]" for what in ("multiplier", "right")]
        declare(w, result, w.helper("scale_wide" if part.products.largest > WIDEST else "scale_long", total, *scale))


def largest_of(*parts: Products) -> int:
    """The bound of the sum of the scaled parts, each of which is clamped to `WIDEST`."""
    return sum(min(part.largest, WIDEST) for part in parts)


def by_unit(matrix: Array, gates: int) -> Array:
    """Keras' [rows, gates * units] -> [units, rows, gates]."""
    rows, width = matrix.shape
    return matrix.reshape(rows, gates, width // gates).transpose(2, 0, 1)


def columns(products: Products) -> dict[str, Array]:
    """The constants of every column of a product besides its weights, by name."""
    start = products.start.astype(np.int32 if products.narrow else np.int64)
    made: dict[str, Array] = {"start": start} if start.any() else {}
    return made | {"multiplier": products.multiplier.astype(np.int32), "right": products.right.astype(np.int8)}


def _tables(site: Site[Recurrent]) -> dict[str, Array]:
    """The look-up tables of functions."""
    rules = rules_of(site)
    made: dict[str, Array] = {}
    for name, curve in {"gate": rules.gate, "activation": rules.value}.items():
        if name == "gate" and site.attributes.gates == 1:
            continue
        match curve.rule:
            case Smooth():
                made["sigmoid"] = fine_table().astype(np.int32)
            case activation_rules.Table(entries):
                made[f"{name}_table"] = entries.astype(np.int16)
    return made


def bounds_of(curve: Curve) -> tuple[int, int]:
    """The bounds of the rule and of the curve combined."""
    form = getattr(curve.rule, "format", None)
    low, high = form.bounds if form is not None else curve.bounds
    return min(max(low, curve.bounds[0]), curve.bounds[1]), max(min(high, curve.bounds[1]), curve.bounds[0])
