"""Sizes of tensors, and the arithmetic with them: tf.shape(x)[1] // 2 is a number once the model's inputs are fixed.

The batch is that of the compiled model, which computes one sample at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from nnbuild.frontend.builder import GraphBuilder
from nnbuild.frontend.checked_config import Config, is_integer, shown
from nnbuild.frontend.keras_config import LayerSpec
from nnbuild.frontend.keras_layers.base import Wire, wires
from nnbuild.frontend.keras_names import snake_case
from nnbuild.model.graph import Array

MOST, MOST_OF_ALL = 1 << 18, 1 << 22
"""Numbers that an operation of sizes may make, and all of a model."""
ELSEWHERE = "Compute it outside the model, with the sizes as numbers."
NOT_OPERANDS = ("name", "dtype", "out_type", "axis", "num", "keepdims", "optimize", "layout")
KINDS = {"float": np.float32, "double": np.float32, "half": np.float32, "int": np.int64, "uint": np.int64}


def known_outputs(spec: LayerSpec, arguments: tuple[Any, ...], named: Mapping[str, Any], builder: GraphBuilder) -> Any:
    """The numbers that an operation makes of sizes or of numbers alone, for each of its outputs; None for others."""
    name, given = _name(spec), tuple(wires((arguments, named)))
    if name in OF_A_TENSOR and len(given) == 1:
        return (_plain(OF_A_TENSOR[name]((1, *builder.shape(given[0])))),)
    if name not in _OF_NUMBERS or given:
        return None
    operands = [*arguments, *(value for key, value in named.items() if key not in NOT_OPERANDS and value is not None)]
    options = {**spec.config.values, **named}
    try:
        with np.errstate(all="raise"):
            made = _OF_NUMBERS[name](operands, options)
    except (ValueError, TypeError, IndexError, ArithmeticError, AttributeError):
        cause = f"what it makes of {shown(tuple(operands))} is not known before the model runs."
        raise spec.config.error(cause, ELSEWHERE) from None
    several = made if name == "unstack" else (made,)
    count = sum(part.size for part in several)
    builder.numbers += count
    if count > MOST or builder.numbers > MOST_OF_ALL or not all(np.isfinite(part).all() for part in several):
        cause = f"it makes more than {MOST} numbers of sizes, the model more than {MOST_OF_ALL}, or not finite ones."
        raise spec.config.error(cause, ELSEWHERE)
    return tuple(_plain(part) for part in several)


def tensor_of(value: Any, config: Config) -> Wire:
    if not isinstance(value, Wire):
        raise config.error("one of its outputs is a size, not a tensor.", "Leave this output out.")
    return value


def _name(spec: LayerSpec) -> str:
    if spec.class_name in ("TFOpLambda", "SlicingOpLambda"):
        function = spec.config.get("function")
        return function.rpartition(".")[2] if isinstance(function, str) else ""
    return snake_case(spec.class_name) if spec.operation else ""


def _plain(values: Any) -> Any:
    """Numbers, or nested tuples of them."""

    def nested(value: Any) -> Any:
        return tuple(map(nested, value)) if isinstance(value, list) else value

    return nested(np.asarray(values).tolist())


def _array(value: Any) -> Array:
    """Whole numbers stay whole; others are single, as in TensorFlow."""
    found = np.asarray(value)
    if found.dtype.kind not in "bif":
        raise ValueError
    return found.astype(np.float32) if found.dtype.kind == "f" and found.size else found.astype(np.int64)


def _elementwise(function: Callable[..., Any]) -> Callable[[Sequence[Any], Mapping[str, Any]], Array]:
    def make(given: Sequence[Any], options: Mapping[str, Any]) -> Array:
        values = [_array(item) for item in given]
        if prod(np.broadcast_shapes(*(value.shape for value in values))) > MOST:
            raise ValueError
        return np.asarray(function(*values))

    return make


def _shape(value: Any) -> tuple[int, ...]:
    items = value if isinstance(value, (list, tuple)) else (value,)
    if not all(is_integer(n) and 0 <= n <= MOST for n in items) or prod(items) > MOST:
        raise ValueError
    return tuple(items)


def _filled(number: float) -> Callable[[Sequence[Any], Mapping[str, Any]], Array]:
    def make(given: Sequence[Any], options: Mapping[str, Any]) -> Array:
        (shape,) = given
        return _cast([np.full(_shape(shape), number)], options)

    return make


def _cast(given: Sequence[Any], options: Mapping[str, Any]) -> Array:
    """As the type asked for: of floats where none is given."""
    (value,) = given
    kind = str(options.get("dtype") or "float32").rstrip("0123456789")
    return np.asarray(value).astype(KINDS[kind]) if kind in KINDS else np.asarray(value).astype(bool)


def _fill(given: Sequence[Any], options: Mapping[str, Any]) -> Array:
    shape, value = given
    return np.full(_shape(shape), _array(value))


def _range(given: Sequence[Any], options: Mapping[str, Any]) -> Array:
    begin, end, step = (0, *given, 1)[:3] if len(given) == 1 else (*given, 1)[:3]
    if not abs(end - begin) <= MOST * abs(step):
        raise ValueError
    return _array(np.arange(begin, end, step))


def _item(given: Sequence[Any], options: Mapping[str, Any]) -> Array:
    value, wanted = given
    places = wanted if isinstance(wanted, (list, tuple)) else (wanted,)
    return np.asarray(_array(value)[tuple(_place(place) for place in places)])


def _place(item: Any) -> Any:
    if isinstance(item, Mapping):
        if item.get("class_name") == "__ellipsis__":
            return Ellipsis
        return slice(*(item.get(key) for key in ("start", "stop", "step")))
    if item is None or is_integer(item):
        return item
    raise ValueError


def _axis(options: Mapping[str, Any]) -> Any:
    axis = options.get("axis")
    return tuple(axis) if isinstance(axis, (list, tuple)) else axis


def _several(items: Any) -> list[Array]:
    parts = [_array(part) for part in items]
    if sum(part.size for part in parts) > MOST:
        raise ValueError
    return parts


def _joined(given: Sequence[Any], options: Mapping[str, Any]) -> Array:
    (parts,) = given
    return np.concatenate(_several(parts), axis=options.get("axis") or 0)


def _stacked(given: Sequence[Any], options: Mapping[str, Any]) -> Array:
    return np.stack(_several(given[0] if len(given) == 1 else given), axis=options.get("axis") or 0)


def _unstacked(given: Sequence[Any], options: Mapping[str, Any]) -> list[Array]:
    (value,) = given
    return list(np.moveaxis(_array(value), options.get("axis") or 0, 0))


def _reduced(function: Any) -> Callable[[Sequence[Any], Mapping[str, Any]], Array]:
    def make(given: Sequence[Any], options: Mapping[str, Any]) -> Array:
        (value,) = given
        return np.asarray(function(_array(value), axis=_axis(options), keepdims=options.get("keepdims") is True))

    return make


def _repeated(given: Sequence[Any], options: Mapping[str, Any]) -> Array:
    value, times = _array(given[0]), _shape(given[1])
    if prod(times) * value.size > MOST:
        raise ValueError
    return np.tile(value, times)


OF_A_TENSOR: dict[str, Callable[[tuple[int, ...]], Any]] = {"shape": tuple, "size": prod, "rank": len, "ndim": len}
_OF_NUMBERS: dict[str, Callable[[Sequence[Any], Mapping[str, Any]], Any]] = {
    "getitem": _item,
    "get_item": _item,
    "add": _elementwise(np.add),
    "subtract": _elementwise(np.subtract),
    "multiply": _elementwise(np.multiply),
    **dict.fromkeys(("floordiv", "floor_div", "floor_divide"), _elementwise(np.floor_divide)),
    **dict.fromkeys(("truediv", "true_divide", "divide"), _elementwise(np.true_divide)),
    **dict.fromkeys(("mod", "floormod"), _elementwise(np.mod)),
    **dict.fromkeys(("pow", "power"), _elementwise(np.power)),
    "maximum": _elementwise(np.maximum),
    "minimum": _elementwise(np.minimum),
    "negative": _elementwise(np.negative),
    "sqrt": _elementwise(np.sqrt),
    "rsqrt": _elementwise(lambda x: 1 / np.sqrt(x)),
    "cast": _cast,
    **dict.fromkeys(("convert_to_tensor", "identity"), _elementwise(np.asarray)),
    **dict.fromkeys(("concat", "concatenate"), _joined),
    "stack": _stacked,
    "unstack": _unstacked,
    **dict.fromkeys(("reduce_prod", "prod"), _reduced(np.prod)),
    **dict.fromkeys(("reduce_sum", "sum"), _reduced(np.sum)),
    "equal": _elementwise(np.equal),
    "not_equal": _elementwise(np.not_equal),
    "greater": _elementwise(np.greater),
    "greater_equal": _elementwise(np.greater_equal),
    "less": _elementwise(np.less),
    "less_equal": _elementwise(np.less_equal),
    "where": _elementwise(np.where),
    "ones_like": _elementwise(np.ones_like),
    "zeros_like": _elementwise(np.zeros_like),
    "zeros": _filled(0),
    "ones": _filled(1),
    "fill": _fill,
    **dict.fromkeys(("range", "arange"), _range),
    "expand_dims": lambda given, options: np.expand_dims(_array(given[0]), options.get("axis") or 0),
    "reshape": lambda given, options: _array(given[0]).reshape(given[1]),
    "tile": _repeated,
    "broadcast_to": lambda given, options: np.array(np.broadcast_to(_array(given[0]), _shape(given[1]))),
}
