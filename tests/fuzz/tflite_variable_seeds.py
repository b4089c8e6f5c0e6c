"""A sound `.tflite` file with a variable, in every type."""

from __future__ import annotations

from tests.frontend.tflite_files import File
from tests.support.streaming_files import Net


def ring(dtype: str) -> File:
    net = Net(dtype=dtype)
    x = net.tensor("x", (1, 2, 1, 3))
    net.once()
    return net.file([x], [net.ring(x, 3, "ring", initial=5)])


VARIABLES = {f"READ_VARIABLE-{dtype}": ring(dtype) for dtype in ("float32", "int8", "int16")}
