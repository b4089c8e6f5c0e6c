"""Operations on integers and booleans, and selection by them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nnbuild.frontend.builder import INT32, TRUTH
from nnbuild.frontend.checked_config import is_integer, shown
from nnbuild.frontend.keras_layers.activation import sample_axes
from nnbuild.frontend.keras_layers.base import Call, Wire, options
from nnbuild.frontend.keras_layers.narrow_integers import LIMITS, fits, towards_zero, widened, wrapped
from nnbuild.frontend.keras_layers.normalization import as_array
from nnbuild.frontend.keras_layers.operation_shapes import reduced
from nnbuild.frontend.other_arithmetic import HALF_PRECISION
from nnbuild.ops.arg import Arg
from nnbuild.ops.base import Attributes
from nnbuild.ops.compare import Compare
from nnbuild.ops.gather import Gather
from nnbuild.ops.known import Known
from nnbuild.ops.pick import Pick
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.select import Select
from nnbuild.ops.whole import Whole

OTHERWISE = "Express it with a Keras layer, or compute it outside the model."


def is_whole(call: Call, side: Any) -> bool:
    """Whether it is an integer tensor, or an integer or several."""
    if isinstance(side, Wire):
        return call.builder.tensor(side.name).is_whole
    if isinstance(side, (list, tuple)):
        return bool(side) and all(is_whole(call, part) for part in side)
    return isinstance(side, bool) or is_integer(side)


def two_sided(call: Call, attributes: Attributes, left: Any, right: Any) -> str:
    """Two operands of one type, of which one may be a number."""
    sides = [left, right]
    tensors = [side for side in sides if isinstance(side, Wire)]
    if not tensors:
        raise call.config.error("it has no tensor among its operands.", OTHERWISE)
    rank = _common_rank(call, tensors)
    types = {call.builder.tensor(side.name).dtype for side in tensors}
    if not all(is_whole(call, side) for side in sides):
        sides = [Wire(call.builder.as_float(side.name)) if isinstance(side, Wire) else side for side in sides]
        types = {"float32"}
    elif len(types) > 1 or types == {"uint8"}:
        sides = [Wire(call.convert(side.name, INT32)) if isinstance(side, Wire) else side for side in sides]
        types = {"int32"}
    (kind,) = types
    names, constants = [], {}
    for role, side in zip(("left", "right"), sides, strict=True):
        if isinstance(side, Wire):
            names.append(side.name)
        else:
            constants[role] = number(call, side, kind, rank)
    return call.builder.one(attributes, names, constants)


def _common_rank(call: Call, tensors: list[Wire]) -> int:
    ranks = {len(call.builder.shape(tensor.name)) for tensor in tensors}
    if len(ranks) > 1:  # TensorFlow would then align the batch of one with an axis of the other
        raise call.config.error("its tensors have a different number of axes.", OTHERWISE)
    return ranks.pop()


def number(call: Call, value: Any, dtype: str, rank: int, role: str = "operand") -> str:
    """A constant beside tensors of `rank` axes, without a batch axis that it may have."""
    found = as_array(call.config, value, role, bounds=True)
    found = found[0] if found.ndim == rank + 1 and found.shape[0] == 1 else found
    if found.ndim > rank:
        raise call.config.error(f"its {role} has the shape {found.shape}, which differs between samples.", OTHERWISE)
    found = found.reshape(found.shape or (1,))
    if dtype != "float32" and not (np.abs(found) < 2**31).all():
        raise call.config.error(f"its operand {shown(value)} does not fit 32 bits.", OTHERWISE)
    return call.constant(f"{role} of {call.builder.layer}", lambda: found.astype(dtype))


def operands(call: Call, count: int, *names: str) -> list[Any]:
    given = [*call.arguments, *(call.named[name] for name in names if name in call.named)]
    if len(given) != count:
        raise call.config.error(f"it is called with {len(given)} operands instead of {count}.", OTHERWISE)
    return given


def compared(call: Call, function: str) -> str:
    left, right = operands(call, 2, "x", "x1", "x2", "y")
    return two_sided(call, Compare(function), left, right)


def logical(call: Call, function: str) -> str:
    return two_sided(call, Whole(function), *(truth(call, x) for x in operands(call, 2, "x", "x1", "x2", "y")))


def truth(call: Call, x: Any) -> Any:
    """Whether each element differs from 0."""
    if isinstance(x, (list, tuple)):
        return tuple(truth(call, part) for part in x)
    if not isinstance(x, Wire):
        return bool(x)
    tensor = call.builder.tensor(x.name)
    if (tensor.dtype, tensor.quant) == TRUTH:
        return x
    kind = np.dtype(tensor.dtype)
    zero = call.constant(f"no {kind}", lambda: np.zeros((1,), kind))
    return Wire(call.one(Compare("not_equal"), x.name, right=zero))


def logical_not(call: Call) -> str:
    zero = call.constant("false", lambda: np.zeros((1,), np.int8))
    return call.one(Compare("equal"), truth(call, Wire(call.input)).name, right=zero)


def _condition(call: Call, given: Any, sides: dict[str, Any]) -> str:
    """A boolean per element; a constant condition stands for itself."""
    if isinstance(given, Wire):
        return str(truth(call, given).name)
    values = (as_array(call.config, given, "condition") != 0).astype(np.int8)
    beside = next((side.name for side in sides.values() if isinstance(side, Wire)), None)
    if beside is None:
        raise call.config.error("neither of its choices is a tensor.", OTHERWISE)
    if values.ndim > len(call.builder.shape(beside)) and values.shape[0] == 1:
        values = values[0]
    held = call.constant(f"condition of {call.builder.layer}", lambda: values.reshape(values.shape or (1,)))
    return call.one(Known(), beside, values=held)


def where(call: Call) -> str:
    condition, chosen, other = operands(call, 3, "condition", "x1", "x2", "x", "y")
    sides = {"chosen": chosen, "other": other}
    whole = all(is_whole(call, side) for side in sides.values())
    names, constants = [_condition(call, condition, sides)], {}
    rank = _common_rank(call, [side for side in (condition, *sides.values()) if isinstance(side, Wire)])
    for role, side in sides.items():
        if isinstance(side, Wire):
            names.append(call.convert(side.name, INT32) if whole else call.builder.as_float(side.name))
        else:
            constants[role] = number(call, side, "int32" if whole else "float32", rank, role)
    return call.builder.one(Select(), names, constants)


def reduced_truth(call: Call, function: str) -> str:
    """any is the maximum of booleans, all the minimum."""
    found = options(call)
    if "axis" not in found:
        raise call.config.error("it reduces over all axes, including the batch.", OTHERWISE)
    x = str(truth(call, Wire(call.input)).name)
    keep = found.flag("keepdims") if "keepdims" in found else False
    for axis in reversed(sample_axes(call.config, found.integers("axis"), call.shape)):
        x = call.one(Reduce(function, axis, 1, keep), x)
    return x


def counted(call: Call) -> str:
    """How many elements differ from 0."""
    kinds = call.builder.as_float(str(truth(call, Wire(call.input)).name))
    inner = replace(call, inputs=(kinds,), arguments=(Wire(kinds),))
    return as_kind(call, reduced(inner, "sum"), "int32")


def arg(call: Call, function: str) -> str:
    found = options(call)
    if "axis" not in found:
        raise call.config.error("it works over all axes, including the batch.", OTHERWISE)
    (axis,) = sample_axes(call.config, (found.one("axis"),), call.shape)
    y = call.one(Arg(function, axis), call.input)
    if "keepdims" in found and found.flag("keepdims"):
        return call.one(Reshape(tuple(1 if i == axis else n for i, n in enumerate(call.shape))), y)
    wanted = (*call.shape[:axis], *call.shape[axis + 1 :])
    return y if call.builder.shape(y) == wanted else call.one(Reshape(wanted), y)


def take(call: Call) -> str:
    """Indexes an axis of the sample; the indices are a tensor that is the same for each sample, or numbers."""
    found = options(call)
    x, indices = operands(call, 2, "x", "indices", "params")
    if not isinstance(x, Wire) or "axis" not in found:
        raise call.config.error("it indexes a constant, or works along all axes.", OTHERWISE)
    shape = call.builder.shape(x.name)
    (axis,) = sample_axes(call.config, (found.one("axis"),), shape)
    if isinstance(indices, Wire):
        raise call.config.error("its indices are computed, across samples.", "Look them up in an Embedding layer.")
    places = as_array(call.config, indices, "indices").astype(np.int64)
    if not ((places >= -shape[axis]) & (places < shape[axis])).all():
        raise call.config.error(f"it takes indices beyond an axis of {shape[axis]}.", OTHERWISE)
    chosen = tuple(int(i) % shape[axis] for i in places.reshape(-1))
    y = call.one(Pick(tuple(chosen if i == axis else None for i in range(len(shape)))), x.name)
    return call.one(Reshape((*shape[:axis], *places.shape, *shape[axis + 1 :])), y)


def gathered(call: Call) -> str:
    """Keras 2's form of the same, and rows of a constant table."""
    table, indices = operands(call, 2, "params", "indices")
    found = options(call)
    if found.get("batch_dims") not in (None, 0):
        raise call.config.error("its indices differ between samples.", "Use keras.layers.Embedding, or Keras 3.")
    if isinstance(table, Wire) or not isinstance(indices, Wire):
        return take(call)
    if found.get("axis") not in (None, 0):
        raise call.config.error("it selects columns of a constant.", OTHERWISE)
    rows = np.asarray(as_array(call.config, table, "table"), np.float32)
    held = call.constant(f"table of {call.builder.layer}", lambda: rows)
    return call.one(Gather(), as_kind(call, indices.name, "int32"), table=held)


def cast(call: Call) -> str:
    """Converts to floats, to booleans, or by truncation to integers."""
    return as_kind(call, call.input, str(call.named.get("dtype", call.config.get("dtype"))))


def as_asked(call: Call, x: str) -> str:
    """Converts only if a type is given."""
    own = None if "function" in call.config else call.config.get("dtype")  # of TensorFlow's it is the layer's
    kind = call.named.get("dtype", own)
    return x if kind is None else as_kind(call, x, str(kind))


def as_kind(call: Call, x: str, kind: str) -> str:
    if kind == "bool":
        return str(truth(call, Wire(x)).name)
    if "int" not in kind:
        if kind.endswith("float16") or kind == "half":
            call.builder.unlike = HALF_PRECISION
            call.builder.note(f"a cast to {kind} is left out: all is computed in float32")
        return widened(call, call.builder.as_float(x))
    if not call.builder.tensor(x).is_whole:
        x = towards_zero(call, x)
    if kind in LIMITS and not fits(call.builder.integers.get(x), kind):
        return wrapped(call, x, kind)
    made = widened(call, call.convert(x, INT32))
    if kind in LIMITS:
        made = call.builder.copied(made) if made == x else made
        call.builder.integers[made] = kind
    return made
