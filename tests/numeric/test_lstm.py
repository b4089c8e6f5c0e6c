"""The saturations of an LSTM step, on layers of one unit whose gates are chosen by hand."""

from __future__ import annotations

import numpy as np

from nnbuild.numeric import lstm
from nnbuild.numeric.multiplier import Multiplier, quantize_multiplier
from nnbuild.numeric.rounding import ints

CLOSED, OPEN = -32768, 32767


def gate(bias: int, input_weight: int = 0, hidden_weight: int = 0) -> lstm.Gate:
    """A gate whose value before the activation is bias + input_weight * x + hidden_weight * hidden."""
    one = quantize_multiplier(1.0)
    return lstm.Gate(ints([[input_weight]]), ints([[hidden_weight]]), ints([bias]), one, one)


def layer(**gates: lstm.Gate) -> lstm.Lstm:
    chosen = {"input": gate(CLOSED), "forget": gate(CLOSED), "cell": gate(0), "output": gate(OPEN), **gates}
    return lstm.Lstm(
        **chosen,
        input_zero=0,
        state_zero=0,
        hidden_zero=0,
        cell_power=-15,
        hidden_scale=Multiplier(2**30, -22),
        cell_clip=0,
    )


def run(constants: lstm.Lstm, x: int = 0, hidden: int = 0, cell: int = 0) -> tuple[int, int]:
    following, state = lstm.step([[x]], [[hidden]], [[cell]], constants)
    return int(following[0, 0]), int(state[0, 0])


def test_the_input_share_of_a_gate_saturates_before_the_hidden_share_joins_it() -> None:
    forget = gate(60000, hidden_weight=-500)
    opened, shut = run(layer(forget=forget), hidden=0, cell=30000), run(layer(forget=forget), hidden=100, cell=30000)
    assert opened[1] > 29900  # saturated at 32767, not 60000 …
    assert shut[1] < 500  # … so that -50000 closes the gate


def test_the_cell_state_saturates() -> None:
    both = layer(input=gate(OPEN), forget=gate(OPEN), cell=gate(OPEN))
    assert run(both, cell=32000)[1] == 32767


def test_the_cell_state_is_clipped() -> None:
    both = layer(input=gate(OPEN), forget=gate(OPEN), cell=gate(OPEN))
    assert run(both._replace(cell_clip=20000), cell=32000)[1] == 20000


def test_zero_points_are_taken_off_input_and_hidden_state() -> None:
    plain = layer(forget=gate(0, input_weight=100, hidden_weight=50))
    moved = plain._replace(input_zero=7, state_zero=-9)
    assert run(plain, x=20, hidden=30, cell=9000) == run(moved, x=27, hidden=21, cell=9000)


def test_the_hidden_state_saturates_at_eight_bits() -> None:
    wide = layer(forget=gate(OPEN))._replace(hidden_scale=Multiplier(2**30, -20))
    assert run(wide, cell=30000)[0] == 127
    assert np.sign(run(wide, cell=-30000)[0]) == -1
