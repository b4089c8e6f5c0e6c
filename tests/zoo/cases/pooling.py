"""Max and average pooling over windows and over everything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tests.zoo.case import Case, one, tag

_PADDINGS = ("valid", "same")


def cases() -> Iterator[Case]:
    for kind, pool, padding, strides in product(("Max", "Average"), (2, 3, (2, 3)), _PADDINGS, (None, 1, 2, (3, 1))):
        variant = f"{kind.lower()}_p{tag(pool)}_{padding}_s{tag(strides)}"
        yield one("pool2d", variant, (7, 8, 3), f"{kind}Pooling2D", pool_size=pool, padding=padding, strides=strides)
    for kind, pool, padding, strides in product(("Max", "Average"), (2, 3), _PADDINGS, (None, 1, 3)):
        variant = f"{kind.lower()}_p{pool}_{padding}_s{tag(strides)}"
        yield one("pool1d", variant, (8, 3), f"{kind}Pooling1D", pool_size=pool, padding=padding, strides=strides)
    for kind in ("Max", "Average"):
        name = kind.lower()
        yield one("pool2d", f"{name}_whole_input", (4, 5, 3), f"{kind}Pooling2D", pool_size=(4, 5))
        yield one("pool2d", f"{name}_past_input_same", (3, 2, 3), f"{kind}Pooling2D", pool_size=5, strides=1,
                  padding="same")  # fmt: skip
        yield one("pool2d", f"{name}_p1_s2", (5, 5, 3), f"{kind}Pooling2D", pool_size=1, strides=2)
        yield one("pool1d", f"{name}_past_input_same", (3, 4), f"{kind}Pooling1D", pool_size=7, strides=2,
                  padding="same")  # fmt: skip
        for keepdims in (False, True):
            suffix = "_keepdims" if keepdims else ""
            yield one("globalpool", f"{name}_1d{suffix}", (7, 5), f"Global{kind}Pooling1D", keepdims=keepdims)
            yield one("globalpool", f"{name}_2d{suffix}", (6, 5, 3), f"Global{kind}Pooling2D", keepdims=keepdims)
        yield one("globalpool", f"{name}_one_pixel", (1, 1, 3), f"Global{kind}Pooling2D")
