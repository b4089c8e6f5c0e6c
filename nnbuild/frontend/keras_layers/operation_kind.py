"""What a table of operations says of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nnbuild.frontend.keras_layers.base import Call

OTHERWISE = "Express it with a Keras layer, or compute it outside the model."
REDUCED = ("axis", "keepdims")
"""Options of operations that reduce axes."""


@dataclass(frozen=True)
class Operation:
    """`options` are the arguments that `build` supports; any other argument is refused.

    `whole`: reads integers unchanged; other operations read them as floats.

    `numbers`: reads arrays of numbers among its operands; other operations take them as tensors.
    """

    build: Callable[[Call], str | tuple[str, ...]]
    options: tuple[str, ...] = ()
    whole: bool = False
    numbers: bool = False
