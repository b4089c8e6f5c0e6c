"""Operators of onnxruntime's own domain."""

from __future__ import annotations

from collections.abc import Callable

from nnbuild.frontend.onnx import distances, fused, integer_operators, narrow_weights
from nnbuild.frontend.onnx.call import Call

OPERATORS: dict[str, Callable[[Call], None]] = {
    **integer_operators.FOREIGN,
    **distances.OPERATORS,
    **fused.FOREIGN,
    **narrow_weights.FOREIGN,
}
