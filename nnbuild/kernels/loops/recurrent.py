"""What the kernels of LSTM, GRU and SimpleRNN share: the walk over time, and the sums of one unit in portable floats.

The states live in the operation's state outputs. A new hidden state is gathered in scratch while the old one is
still read, and takes its place at the end of the time step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Writer
from nnbuild.isa import c99
from nnbuild.kernels.contract import Demand, Names, Overlap
from nnbuild.kernels.functions import spell
from nnbuild.kernels.window_loops import product
from nnbuild.model.graph import Array
from nnbuild.ops.functions import Function
from nnbuild.ops.recurrent import Recurrent
from nnbuild.ops.site import Site


def by_unit(matrix: Array, gates: int) -> Array:
    """Keras' [rows, gates * units] -> [units, rows, gates]."""
    rows, width = matrix.shape
    return matrix.reshape(rows, gates, width // gates).transpose(2, 0, 1)


def demand(
    site: Site[Recurrent], packed: dict[str, Array], scratch_vectors: int = 1, scratch_type: str = "float32"
) -> Demand:
    """An initial state may be the very storage of the state: it is read before it is written."""
    attributes = site.attributes
    first = int(attributes.sequences)
    shared = tuple(Overlap(first + i, 1 + i) for i in range(attributes.states)) if len(site.inputs) > 1 else ()
    return Demand(
        extent=site.shape()[0],
        scratch=scratch_vectors * attributes.units * np.dtype(scratch_type).itemsize,
        scratch_type=scratch_type,
        packed={name: np.ascontiguousarray(value).reshape(-1) for name, value in packed.items()},
        overlaps=shared,
    )


def all_gates(site: Site[Recurrent]) -> Demand:
    """What portable floats read where all sums of a unit are computed together."""
    gates = site.attributes.gates
    packed = {role: by_unit(site.constant(role), gates) for role in ("kernel", "recurrent")}
    if "bias" in site.constants:
        packed["bias"] = site.constant("bias").reshape(gates, -1).T
    return demand(site, packed)


def state_names(site: Site[Recurrent], names: Names) -> Sequence[str]:
    return names.outputs[int(site.attributes.sequences) :]


@contextmanager
def time_steps(w: Writer, site: Site[Recurrent], names: Names) -> Iterator[None]:
    """The loop over time; `x` is the step's input. Before the first step the states take their initial values."""
    attributes, (steps, features) = site.attributes, site.shape()
    states, is_float = state_names(site, names), site.dtypes == {"float32"}
    with w.block("if (begin == 0)"), w.loop("unit", attributes.units):
        for index, state in enumerate(states):
            zero = "0.0f" if is_float else "0"
            initial = f"{names.inputs[1 + index]}[unit]" if len(names.inputs) > 1 else zero
            w(w.use(c99.STORE, f"{state}[unit]", initial))
    with w.loop("t", "end", start="begin", trips=steps):
        step = f"{steps - 1} - t" if attributes.backwards else "t"
        w(f"const {C_TYPES[site.inputs[0].dtype]} *x = {names.inputs[0]} + {product(step, features)};")
        yield
        fresh = f"{names.scratch}[unit]" if is_float else f"(int16_t){names.scratch}[unit]"
        with w.loop("unit", attributes.units):
            w(w.use(c99.STORE, f"{states[0]}[unit]", fresh))
            if attributes.sequences:
                place = f"{names.outputs[0]}[{product('t', attributes.units)} + unit]"
                w(w.use(c99.STORE, place, fresh))


def sums(
    w: Writer,
    site: Site[Recurrent],
    names: Names,
    of_x: Sequence[str],
    of_h: Sequence[str] = (),
    state: str = "",
    suffix: str = "",
) -> None:
    """Declares the sums of the present unit, each beginning with its bias: those of the input, and of a state.

    Where `of_h` is not given both go into the same ones. `suffix` tells the constants of some gates from others.
    """
    of_h = of_h or of_x
    declared, bias = list(dict.fromkeys((*of_x, *of_h))), names.packed.get(f"bias{suffix}")
    for index, name in enumerate(declared):
        begin = f"{bias}[{product('unit', len(declared))} + {index}]" if bias else "0.0f"
        w(w.use(c99.LOAD_MUTABLE, name, begin))
    accumulate(w, of_x, "x", site.shape()[1], names.packed[f"kernel{suffix}"])
    state = state or state_names(site, names)[0]
    accumulate(w, of_h, state, site.attributes.units, names.packed[f"recurrent{suffix}"])


def accumulate(w: Writer, sums: Sequence[str], vector: str, size: int, weights: str, is_float: bool = True) -> None:
    """sums[g] += vector · weights of the present unit; `weights` is laid out [unit][size][gate]."""
    with w.loop("i", size):
        for index, name in enumerate(sums):
            place = f"{weights}[({product('unit', size)} + i) * {len(sums)} + {index}]"
            if is_float:
                c99.multiply_add(w, name, f"{vector}[i]", place)
            else:
                w(w.use(c99.MULTIPLY_ADD, name, f"{vector}[i]", place))


def apply(w: Writer, name: str, function: Function, argument: str) -> None:
    """Declares `name` = function(argument)."""
    w(w.use(c99.LOAD, name, spell(w, function[0], function[1], argument)))
