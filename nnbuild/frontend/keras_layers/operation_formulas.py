"""Operations composed of others, and those that split, repeat and flip."""

from __future__ import annotations

from functools import partial, reduce
from math import inf, prod, sqrt

import numpy as np

from nnbuild.frontend.checked_config import is_integer, shown
from nnbuild.frontend.keras_layers.activation import sample_axes
from nnbuild.frontend.keras_layers.base import Call, options
from nnbuild.frontend.keras_layers.merging import of_one_kind
from nnbuild.frontend.keras_layers.operation_selection import as_kind
from nnbuild.frontend.keras_layers.operation_shapes import BATCH, reduced, sizes_of
from nnbuild.frontend.keras_layers.products import by_kernel
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import Compare
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.known import Known
from nnbuild.ops.pick import Pick
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.slice import Slice
from nnbuild.ops.top_k import TopK
from nnbuild.ops.transpose import Transpose

MOST_PIECES = 256
PLAIN = "Leave it at its default, or compute this outside the model."


def held(call: Call, *numbers: float) -> str:
    return call.constant(f"numbers {numbers}", lambda: np.array(numbers, np.float32))


def by(call: Call, function: str, x: str, number: float) -> str:
    return call.one(Binary(function), x, right=held(call, number))


def of(call: Call, function: str, x: str, *parameters: float) -> str:
    return call.one(Activation(function, parameters), x)


def two(call: Call, function: str, left: str, right: str) -> str:
    return call.one(Binary(function), left, right)


def one_axis(call: Call, key: str = "axis", default: int | None = None) -> int:
    (axis,) = sample_axes(call.config, (options(call).one(key, default),), call.shape)
    return axis


def axes_of(call: Call, key: str = "axis") -> tuple[int, ...]:
    found = options(call)
    if key not in found:
        raise call.config.error("it works over all axes, including the batch.", BATCH)
    return sample_axes(call.config, found.integers(key), call.shape)


def _over(call: Call, function: str, x: str, axes: tuple[int, ...], keep: bool = True) -> str:
    for axis in reversed(axes):
        x = call.one(Reduce(function, axis, 1, keep), x)
    return x


def _kept(call: Call, x: str, axes: tuple[int, ...]) -> str:
    """Removes the axes of size 1 that a reduction left, unless keepdims is set."""
    found = options(call)
    if "keepdims" in found and found.flag("keepdims"):
        return x
    shape = tuple(n for i, n in enumerate(call.builder.shape(x)) if i not in axes)
    return call.one(Reshape(shape or (1,)), x)


# Statistics.


def _spread(call: Call, x: str, axes: tuple[int, ...]) -> tuple[str, str]:
    """The mean and the variance, with axes of size 1."""
    mean = _over(call, "mean", x, axes)
    return mean, _over(call, "mean", of(call, "square", two(call, "subtract", x, mean)), axes)


def variance(call: Call) -> str:
    axes = axes_of(call)
    return _kept(call, _spread(call, call.input, axes)[1], axes)


def deviation(call: Call) -> str:
    axes = axes_of(call)
    return _kept(call, of(call, "sqrt", _spread(call, call.input, axes)[1]), axes)


def moments(call: Call) -> tuple[str, ...]:
    axes = axes_of(call, "axes")
    return tuple(_kept(call, x, axes) for x in _spread(call, call.input, axes))


def average(call: Call) -> str:
    if options(call).get("weights") is not None or len(call.inputs) > 1:
        raise call.config.error("it computes a weighted average.", "Multiply by the weights and sum.")
    return reduced(call, "mean")


def _logarithm_of_sum(call: Call, axes: tuple[int, ...]) -> str:
    most = _over(call, "max", call.input, axes)
    total = _over(call, "sum", of(call, "exponential", two(call, "subtract", call.input, most)), axes)
    return two(call, "add", of(call, "log", total), most)


def logsumexp(call: Call) -> str:
    axes = axes_of(call)
    return _kept(call, _logarithm_of_sum(call, axes), axes)


def log_softmax(call: Call) -> str:
    axes = sample_axes(call.config, options(call).integers("axis", (-1,)), call.shape)
    return two(call, "subtract", call.input, _logarithm_of_sum(call, axes))


def norm(call: Call) -> str:
    axes, order = axes_of(call), options(call).get("ord")
    matrix = len(axes) == 2
    if order not in (None, "euclidean", *(("fro",) if matrix else (1, 2, inf, -inf))):
        also = "'fro'" if matrix else "1, 2 or infinity"
        raise call.config.error(f"its ord is {shown(order)}, over {len(axes)} axes.", f"Use {also}, or none.")
    if len(axes) > 2 and order is not None:
        raise call.config.error(f"it takes the norm over {len(axes)} axes.", "Leave ord out.")
    return _kept(call, _length(call, axes, 2 if order in (None, "euclidean", "fro") else float(order)), axes)


def _length(call: Call, axes: tuple[int, ...], order: float) -> str:
    if order == 2:
        return of(call, "sqrt", _over(call, "sum", of(call, "square", call.input), axes))
    function = {1: "sum", inf: "max", -inf: "min"}[order]
    return _over(call, function, of(call, "absolute", call.input), axes)


def normalize(call: Call) -> str:
    found, tensorflow = options(call), bool(call.config.get("function"))
    order = found.get("order")
    if order not in (None, 1, 2):
        raise call.config.error(f"its order is {shown(order)}.", "Use 1 or 2.")
    if tensorflow and found.get("axis") is None:
        call.builder.note("a normalization over all axes, the batch too, is computed for a batch of one sample")
        axes = tuple(range(len(call.shape)))
    else:
        axes = sample_axes(call.config, found.integers("axis", (-1,)), call.shape)
    given = found.number("epsilon") if "epsilon" in found else 1e-12 if tensorflow else 1e-7
    least = sqrt(given) if tensorflow else given  # TensorFlow bounds the sum of squares
    return two(call, "divide", call.input, by(call, "maximum", _length(call, axes, order or 2), least))


# Splitting and repeating.


def pieces(call: Call, axis: int, sizes: list[int], of: str | None = None) -> tuple[str, ...]:
    x = of or call.input
    shape, at, made = call.builder.shape(x), 0, []
    if not 0 < len(sizes) <= MOST_PIECES or min(sizes) < 1 or sum(sizes) != shape[axis]:
        raise call.config.error(f"it splits an axis of {shape[axis]} into {sizes[:8]}.", "Split it into equal parts.")
    for size in sizes:
        begins = tuple(at if i == axis else 0 for i in range(len(shape)))
        counts = tuple(size if i == axis else n for i, n in enumerate(shape))
        made.append(call.one(Slice(begins, (1,) * len(shape), counts), x))
        at += size
    return tuple(made)


def split(call: Call) -> tuple[str, ...]:
    return split_along(call)


def split_along(call: Call, axis: int | None = None, *, even: bool = True) -> tuple[str, ...]:
    """Keras lists the split points, TensorFlow the sizes. The first parts are larger where they need not be `even`."""
    found = options(call)
    tensorflow = "num_or_size_splits" in found
    key = "num_or_size_splits" if tensorflow else "indices_or_sections"
    axis = one_axis(call, default=0) if axis is None else sample_axes(call.config, (axis,), call.shape)[0]
    wanted, size = found.get(key), call.shape[axis]
    if is_integer(wanted):
        if wanted < 1 or (size % wanted and even) or wanted > size:
            raise call.config.error(f"it splits an axis of {size} into {wanted} equal parts.")
        return pieces(call, axis, [size // wanted + (i < size % wanted) for i in range(wanted)])
    places = list(found.integers(key))
    if tensorflow:
        rest = size - sum(n for n in places if n >= 0)
        return pieces(call, axis, [rest if n < 0 else n for n in places])
    return pieces(call, axis, [b - a for a, b in zip([0, *places], [*places, size], strict=True)])


def unstack(call: Call) -> tuple[str, ...]:
    axis = one_axis(call, default=0)
    shape = (*call.shape[:axis], *call.shape[axis + 1 :]) or (1,)
    return tuple(call.one(Reshape(shape), piece) for piece in pieces(call, axis, [1] * call.shape[axis]))


def stack(call: Call) -> str:
    shapes = {call.builder.shape(x) for x in call.inputs}
    if len(shapes) != 1:
        raise call.config.error("it stacks tensors of different shapes.")
    shape = shapes.pop()
    (axis,) = sample_axes(call.config, (options(call).one("axis", 0),), (*shape, 1))
    parts = [call.one(Reshape((*shape[:axis], 1, *shape[axis:])), x) for x in of_one_kind(call)]
    return call.one(Concatenate(axis), *parts) if len(parts) > 1 else parts[0]


def glu(call: Call) -> str:
    axis = one_axis(call, default=-1)
    if call.shape[axis] % 2:
        raise call.config.error(f"it halves an axis of {call.shape[axis]}.")
    left, right = pieces(call, axis, [call.shape[axis] // 2] * 2)
    return two(call, "multiply", left, of(call, "sigmoid", right))


def _picked(call: Call, places: dict[int, tuple[int, ...]]) -> str:
    if prod(len(places.get(i, ())) or n for i, n in enumerate(call.shape)) > 2**24:
        raise call.config.error("its output is too large.")
    return call.one(Pick(tuple(places.get(i) for i in range(len(call.shape)))), call.input)


def tile(call: Call) -> str:
    found = options(call)
    times = found.integers("multiples" if "multiples" in found else "repeats", minimum=1)
    if len(times) != len(call.shape) + 1 or times[0] != 1:
        raise call.config.error(f"it repeats {call.shape} {times} times, including the batch.", BATCH)
    return _picked(
        call, {i: tuple(range(n)) * t for i, (n, t) in enumerate(zip(call.shape, times[1:], strict=True)) if t > 1}
    )


def repeat(call: Call) -> str:
    found, axis = options(call), one_axis(call)
    times = found.integers("repeats", minimum=0)
    size = call.shape[axis]
    if len(times) not in (1, size) or max(times) > 2**16 or not any(times):
        raise call.config.error(f"it repeats an axis of {size} {times[:8]} times.")
    counts = times * size if len(times) == 1 else times
    return _picked(call, {axis: tuple(i for i, count in enumerate(counts) for _ in range(count))})


def flip(call: Call, given: tuple[int, ...] = ()) -> str:
    axes = sample_axes(call.config, given, call.shape) if given else axes_of(call)
    return _picked(call, {axis: tuple(reversed(range(call.shape[axis]))) for axis in axes})


def roll(call: Call) -> str:
    found = options(call)
    shifts, axes = found.integers("shift"), found.integers("axis") if "axis" in found else ()
    if len(shifts) != len(axes):
        raise call.config.error("it has a different number of shifts and axes.", BATCH)
    places = {}
    for shift, axis in zip(shifts, axes, strict=True):
        (at,) = sample_axes(call.config, (axis,), call.shape)
        size = call.shape[at]
        places[at] = tuple((i - shift) % size for i in range(size))
    return _picked(call, places)


def broadcast_to(call: Call) -> str:
    wanted, shape = sizes_of(options(call), "shape")[1:], call.shape
    fits = len(wanted) == len(shape) and all(n in (1, w) for n, w in zip(shape, wanted, strict=True))
    if not fits:
        raise call.config.error(f"it broadcasts {shape} to {wanted}.", BATCH)
    return _picked(call, {i: (0,) * w for i, (n, w) in enumerate(zip(shape, wanted, strict=True)) if n != w})


def _turned(call: Call, order: list[int]) -> str:
    return call.one(Transpose(tuple(order)), call.input)


def swapaxes(call: Call) -> str:
    one, other = one_axis(call, "axis1"), one_axis(call, "axis2")
    order = list(range(len(call.shape)))
    order[one], order[other] = other, one
    return _turned(call, order)


def moveaxis(call: Call) -> str:
    found = options(call)
    if len(found.integers("source")) != 1 or len(found.integers("destination")) != 1:
        raise call.config.error("it moves several axes.", "Use transpose.")
    source, destination = one_axis(call, "source"), one_axis(call, "destination")
    order = [i for i in range(len(call.shape)) if i != source]
    order.insert(destination, source)
    return _turned(call, order)


def cumsum(call: Call) -> str:
    """A product with a matrix of ones, with the axis moved to the end and back."""
    found = options(call)
    later, backwards = int(found.get("exclusive") is True), found.get("reverse") is True
    axis, size = one_axis(call), call.shape[one_axis(call)]
    if size > 2**11:
        raise call.config.error(f"it sums over an axis of {size}.", PLAIN)
    before: Array = np.triu(np.ones((size, size), np.float32), later)
    kept = before.T.copy() if backwards else before
    ones = call.constant(f"ones before {size} {later} {backwards}", lambda: kept)
    letters = "abcdefgh"[: len(call.shape)]
    along = letters[axis]
    return by_kernel(call, call.input, (letters, f"{along}z", letters.replace(along, "z")), ones, (size, size), None)


def product(call: Call) -> str:
    axes, found = axes_of(call), call.input
    for axis in axes:
        found, *others = pieces(call, axis, [1] * call.shape[axis], found)
        for other in others:
            found = two(call, "multiply", found, other)
    return _kept(call, found, axes)


def top_k(call: Call) -> tuple[str, ...]:
    """The largest values along the last axis, and their indices."""
    (count,) = options(call).integers("k", (1,), 1)
    if options(call).get("sorted") is False:
        call.builder.note("top_k with sorted=False gives its values in descending order; Keras gives them in any")
    return call.builder.add(TopK(count), [call.input])


def filled(call: Call, number: float) -> str:
    values = call.constant(f"{number} everywhere", lambda: np.full(call.shape, number, np.float32))
    return call.one(Known(), call.input, values=values)


def one_hot(call: Call) -> str:
    found = options(call)
    (count,) = found.integers("depth" if "depth" in found else "num_classes", minimum=1)
    shape = call.shape
    wide: Shape = (*shape, 1)
    if found.integers("axis", (-1,)) not in ((-1,), (len(wide),)):
        raise call.config.error("its classes are not the last axis.", "Leave axis at -1.")
    x = call.one(Reshape(wide), as_kind(call, call.input, "int32"))
    classes = call.constant(f"classes {count}", lambda: np.arange(count, dtype=np.int32))
    return call.builder.as_float(call.one(Compare("equal"), x, right=classes))


# Elementwise.


def _choice(call: Call, function: str, x: str, bound: float, other: float) -> str:
    """x where it compares as requested with `bound`, otherwise `other`."""
    side = call.one(Compare(function), x, right=held(call, bound))
    return call.one(Select(), side, call.input, other=held(call, other))


def sign(call: Call) -> str:
    return signs(call, call.input, ("greater", 0.0), ("less", 0.0))


def signs(call: Call, x: str, above: tuple[str, float], *below: tuple[str, float]) -> str:
    """1 where the first comparison holds, and -1 where the second does, if there is one."""
    sides = [call.one(Compare(function), x, right=held(call, bound)) for function, bound in (above, *below)]
    return reduce(partial(two, call, "subtract"), map(call.builder.as_float, sides))


def number(call: Call, key: str, default: float) -> float:
    return options(call).number(key, default)


def soft_shrink(call: Call) -> str:
    size = number(call, "threshold", 0.5)
    return two(call, "subtract", call.input, of(call, "clamp", call.input, -size, size))


def hard_shrink(call: Call) -> str:
    return _choice(call, "greater", of(call, "absolute", call.input), number(call, "threshold", 0.5), 0.0)


def threshold(call: Call) -> str:
    return _choice(call, "greater", call.input, number(call, "threshold", 0.0), number(call, "default_value", 0.0))


def squareplus(call: Call) -> str:
    root = of(call, "sqrt", by(call, "add", of(call, "square", call.input), number(call, "b", 4.0)))
    return by(call, "multiply", two(call, "add", call.input, root), 0.5)


def celu(call: Call) -> str:
    alpha = number(call, "alpha", 1.0)
    return by(call, "multiply", of(call, "elu", by(call, "divide", call.input, alpha), 1.0), alpha)


def reciprocal(call: Call) -> str:
    return call.one(Binary("divide"), call.input, left=held(call, 1.0))


def log_sigmoid(call: Call) -> str:
    return of(call, "negative", of(call, "softplus", of(call, "negative", call.input)))


def raised(call: Call, x: str, exponent: int) -> str:
    """A power with exponent 1 to 64, by multiplications."""
    made, square = "", x
    while exponent:
        if exponent % 2:
            made = two(call, "multiply", made, square) if made else square
        exponent //= 2
        square = of(call, "square", square) if exponent else square
    return made
