"""Differences between versions of Keras. No other module asks for a version."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nnbuild.base.errors import ModelError
from nnbuild.ops.functions import Function

NO_BOUND = float("inf")


@dataclass(frozen=True)
class Dialect:
    """The version that wrote the file; (2, 4, 0) for "2.4.0" and "2.4.0-tf"."""

    version: tuple[int, int]

    @property
    def keras3(self) -> bool:
        return self.version[0] >= 3

    @property
    def hard_sigmoid(self) -> Function:
        """Keras 2 uses clip(0.2 x + 0.5), Keras 3 clip(x / 6 + 0.5)."""
        return ("hard_sigmoid" if self.keras3 else "hard_sigmoid_fifth", ())

    @property
    def leaky_slope(self) -> tuple[str, ...]:
        """The option with LeakyReLU's slope; a few versions used the other spelling."""
        return ("negative_slope", "alpha") if self.keras3 else ("alpha", "negative_slope")

    @property
    def gru_resets_after(self) -> bool:
        """The default of a GRU without the option: TensorFlow's Keras changed it."""
        return self.version >= (2, 3)

    @property
    def zeros_where_all_is_masked(self) -> bool:
        """Whether a Softmax layer gives zeros where it has nothing but masked numbers, rather than equal shares."""
        return self.version >= (3, 10)


def dialect(version: str, where: str) -> Dialect:
    found = re.match(r"(\d{1,4})\.(\d{1,4})", version)
    if found is None or not 2 <= int(found[1]) <= 3:
        raise ModelError(
            where,
            f"it was written by Keras {version[:40]!r}, whose files nnbuild does not read.",
            "Load it with Keras 2 or 3 and save it again.",
        )
    return Dialect((int(found[1]), int(found[2])))
