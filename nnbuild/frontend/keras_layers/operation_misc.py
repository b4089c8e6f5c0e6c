"""More composed operations: remainders, logarithms, triangles, sorting, images."""

from __future__ import annotations

from math import log

import numpy as np

from nnbuild.frontend.keras_layers.base import Call, Wire, options
from nnbuild.frontend.keras_layers.merging import concatenated
from nnbuild.frontend.keras_layers.operation_formulas import PLAIN, by, filled, held, of, one_axis, two
from nnbuild.frontend.keras_layers.operation_shapes import BATCH, sizes_of
from nnbuild.frontend.keras_layers.resizing import INTERPOLATIONS, resized
from nnbuild.model.graph import Array
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice
from nnbuild.ops.top_k import TopK
from nnbuild.ops.transpose import Transpose

GRAY = (0.2989, 0.5870, 0.1140)


def rest(call: Call, quotient: str, left: object, right: object) -> str:
    """The remainder of a floored division."""
    where = Wire(quotient)
    if not all(isinstance(side, Wire | int | float) for side in (left, right)):
        raise call.config.error("it divides by several numbers.", PLAIN)
    if not isinstance(left, Wire):
        product = two(call, "multiply", quotient, right.name) if isinstance(right, Wire) else quotient
        return call.one(Binary("subtract"), product, left=held(call, float(str(left))))
    if isinstance(right, Wire):
        return two(call, "subtract", left.name, two(call, "multiply", where.name, right.name))
    return two(call, "subtract", left.name, by(call, "multiply", where.name, float(str(right))))


def logarithm(call: Call, base: float) -> str:
    return by(call, "multiply", of(call, "log", call.input), 1 / log(base))


def rounded(call: Call) -> str:
    found = options(call)
    places = found.one("decimals", 0) if found.get("decimals") is not None else 0
    if not places:
        return of(call, "round", call.input)
    return by(call, "multiply", of(call, "round", by(call, "multiply", call.input, 10.0**places)), 10.0**-places)


def power_of_two(call: Call) -> str:
    return of(call, "exponential", by(call, "multiply", call.input, log(2)))


def truncated(call: Call) -> str:
    """Rounds towards zero: the floor of positive numbers, the ceiling of others."""
    above = of(call, "floor", by(call, "maximum", call.input, 0.0))
    below = of(call, "ceil", by(call, "minimum", call.input, 0.0))
    return two(call, "add", above, below)


def hypotenuse(call: Call) -> str:
    squares = [of(call, "square", name) for name in call.inputs]
    if len(squares) != 2:
        raise call.config.error("one of its operands is not a tensor.", PLAIN)
    return of(call, "sqrt", two(call, "add", *squares))


def like(call: Call) -> str:
    value = next((v for v in (*call.arguments, *call.named.values()) if isinstance(v, (int, float))), None)
    if value is None or isinstance(value, bool):
        raise call.config.error("its fill value is not a number.", PLAIN)
    return filled(call, float(value))


def triangle(call: Call, upper: bool) -> str:
    """The numbers on one side of a diagonal, and zeros elsewhere."""
    if len(call.shape) < 2:
        raise call.config.error("its input is not a matrix.", BATCH)
    rows, columns = call.shape[-2:]
    (offset,) = options(call).integers("k", (0,))
    if rows * columns > 1 << 21 or abs(offset) > 1 << 21:
        raise call.config.error("its matrix is too large.")
    ones = np.ones((rows, columns), np.float32)
    kept: Array = np.triu(ones, offset) if upper else np.tril(ones, offset)
    return call.one(Binary("multiply"), call.input, right=call.constant(f"triangle {offset} {upper}", lambda: kept))


def side_by_side(call: Call) -> str:
    """Concatenates along the first axis after the batch."""
    return concatenated(call, 1)


def differences(call: Call) -> str:
    found, axis = options(call), one_axis(call, default=-1)
    (times,) = found.integers("n", (1,), 1)
    x = call.input
    for _ in range(min(times, call.shape[axis])):
        shape = call.builder.shape(x)
        if shape[axis] < 2:
            raise call.config.error(f"its axis of {call.shape[axis]} is too short.")
        later, earlier = (_part(call, x, axis, begin, shape[axis] - 1) for begin in (1, 0))
        x = two(call, "subtract", later, earlier)
    return x


def _part(call: Call, x: str, axis: int, begin: int, count: int) -> str:
    shape = call.builder.shape(x)
    begins = tuple(begin if i == axis else 0 for i in range(len(shape)))
    sizes = tuple(count if i == axis else n for i, n in enumerate(shape))
    return call.one(Slice(begins, (1,) * len(shape), sizes), x)


def ordered(call: Call, places: bool) -> str:
    """Sorts along an axis: ascending as top-k of the negated numbers."""
    axis, falling = one_axis(call, default=-1), options(call).get("direction") == "DESCENDING"
    x = call.input if falling else of(call, "negative", call.input)
    last = len(call.shape) - 1
    order = (*(i for i in range(last + 1) if i != axis), axis)
    back = tuple(int(i) for i in np.argsort(order))
    turned = call.one(Transpose(order), x) if axis != last else x
    values, where = call.builder.add(TopK(call.shape[axis]), [turned])
    made = where if places else values if falling else of(call, "negative", values)
    return call.one(Transpose(back), made) if axis != last else made


def numbers_alone(call: Call) -> str:
    """Numbers in the place of infinity and of what is no number."""
    found, largest = options(call), float(np.finfo(np.float32).max)
    nan, high, low = (
        found.number(key) if found.get(key) is not None else otherwise
        for key, otherwise in (("nan", 0.0), ("posinf", largest), ("neginf", -largest))
    )
    is_number = call.one(Compare("equal"), call.input, call.input)
    made = call.one(Select(), is_number, call.input, other=held(call, nan))
    above = call.one(Compare("greater"), made, right=held(call, largest))
    below = call.one(Compare("less"), made, right=held(call, -largest))
    made = call.one(Select(), above, made, chosen=held(call, high))
    return call.one(Select(), below, made, chosen=held(call, low))


def diagonal_part(call: Call) -> str:
    """The diagonal of a matrix in the first two axes after the batch."""
    first, second = one_axis(call, "axis1"), one_axis(call, "axis2")
    (offset,) = options(call).integers("offset", (0,))
    if sorted((first, second)) != [0, 1] or len(call.shape) != 2 or offset:
        raise call.config.error("it takes a diagonal of other axes than the last two.", BATCH)
    rows, columns = call.shape
    count = min(rows, columns)
    row = call.one(Reshape((rows * columns,)), call.input)
    return call.one(Slice((0,), (columns + 1,), (count,)), row)


def traced(call: Call) -> str:
    part = diagonal_part(call)
    return call.one(Reduce("sum", 0, 1), part)


def image_resized(call: Call) -> str:
    """Like the layer Resizing, without its crops and borders."""
    found = options(call)
    if len(call.shape) != 3:
        raise call.config.error("its images are not [height, width, channels].", PLAIN)
    for key in ("antialias", "crop_to_aspect_ratio", "pad_to_aspect_ratio", "preserve_aspect_ratio"):
        found.refuse(key, PLAIN)
    size = found.integers("size", minimum=1)
    if len(size) != 2:
        raise call.config.error(f"it resizes to {size}.", PLAIN)
    kind = found.choice("method" if "method" in found else "interpolation", "bilinear", INTERPOLATIONS)
    return resized(call, call.input, (size[0], size[1]), kind)


def gray(call: Call) -> str:
    """One channel from three, weighted by perceived brightness."""
    if len(call.shape) != 3 or call.shape[2] != 3:
        raise call.config.error(f"its images {call.shape} do not have three channels at the end.", PLAIN)
    weighed = call.one(Binary("multiply"), call.input, right=held(call, *GRAY))
    return call.one(Reduce("sum", 2, 1, True), weighed)


def sliced(call: Call) -> str:
    """A part with a given start and size; the batch stays whole."""
    found, shape = options(call), call.shape
    given = (found.get("begin"), *call.arguments)
    begins = next((v for v in given if isinstance(v, (list, tuple))), None)
    sizes = sizes_of(found, "size" if "size" in found else "shape")
    whole = begins is not None and all(isinstance(v, int) for v in begins)
    if begins is None or not whole or len(begins) != len(shape) + 1 or len(sizes) != len(begins) or begins[0]:
        raise call.config.error("its start is not constant, or includes the batch.", BATCH)
    counts = tuple(m - b if n == -1 else n for b, n, m in zip(begins[1:], sizes[1:], shape, strict=True))
    if not all(b >= 0 and n > 0 and b + n <= m for b, n, m in zip(begins[1:], counts, shape, strict=True)):
        raise call.config.error(f"it takes {sizes} from {shape}.")
    return call.one(Slice(tuple(begins[1:]), (1,) * len(shape), counts), call.input)


def selected(call: Call) -> str:
    """The first choice whose condition holds, or a default."""
    if len(call.arguments) < 2 or not all(isinstance(part, (list, tuple)) for part in call.arguments[:2]):
        raise call.config.error("its conditions and choices are not lists.", PLAIN)
    conditions, choices = call.arguments[:2]
    rest = call.arguments[2] if len(call.arguments) > 2 else call.named.get("default", 0)
    tensors = all(isinstance(part, Wire) for part in (*conditions, *choices, rest))
    if not tensors or len(conditions) != len(choices):
        raise call.config.error("one of its choices is not a tensor.", "Use where.")
    made: str = rest.name
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        made = call.one(Select(), condition.name, choice.name, made)
    return made
