"""Features of the domain ai.onnx.ml: scaled, normalized, completed, encoded, joined."""

from __future__ import annotations

import numpy as np

from nnbuild.frontend.onnx.arithmetic import chosen, combined, compared
from nnbuild.frontend.onnx.call import FLOAT, INT32, Call
from nnbuild.frontend.onnx.data_movement import as_shape, joined, picked
from nnbuild.frontend.onnx.ml_common import sample
from nnbuild.frontend.onnx.reducing import reduced
from nnbuild.model.graph import Array
from nnbuild.model.views import stored
from nnbuild.ops.gather import Gather
from nnbuild.ops.layout import Value


def scaler(call: Call) -> None:
    x = sample(call)
    offset, scale = (np.array(call.floats(name), np.float32) for name in ("offset", "scale"))
    fits = {offset.size, scale.size} <= {1, x.shape[1]}
    call.expect(fits, "its offsets and scales do not match its input.")
    call.put(combined(call, "multiply", combined(call, "subtract", x, offset), scale))


def normalizer(call: Call) -> None:
    x, norm = sample(call), call.text("norm", "MAX")
    call.expect(norm in ("MAX", "L1", "L2"), f"its norm is {norm!r}.")
    sizes = call.activated(x, "square" if norm == "L2" else "absolute")
    length = reduced(call, sizes, "max" if norm == "MAX" else "sum", [1], True)
    length = call.activated(length, "sqrt") if norm == "L2" else length
    call.put(combined(call, "divide", x, combined(call, "maximum", length, np.float32(1e-30))))


def imputer(call: Call) -> None:
    """Replaces what is missing: NaN, or a number that stands for it."""
    x = call.value(0)
    kind, word = (np.float32, "float") if x.is_number else (np.int32, "int64")
    read = call.floats if x.is_number else call.integers
    filled = np.array(read(f"imputed_value_{word}s"), kind)
    call.expect(filled.size in (1, x.shape[-1]), f"it has {filled.size} values for {x.shape[-1]} features.")
    given = call.attribute(f"replaced_value_{word}")
    missing = 0 if given is None else given.number if x.is_number else given.integer
    other = x if missing != missing else np.array(missing, kind)
    found = compared(call, "not_equal" if other is x else "equal", x, other)
    call.put(chosen(call, found, filled, x))


def binarizer(call: Call) -> None:
    above = compared(call, "greater", call.real(0), np.float32(call.number("threshold")))
    call.put(_as_numbers(call, above))


def _as_numbers(call: Call, truth: Value) -> Value:
    return call.converted(truth, FLOAT, "float32")


def _of_keys(call: Call, x: Value, keys: Array) -> Value:
    """Whether each element equals each key, which are a new last axis: 0 or 1."""
    spread = as_shape(call, x, (*x.shape, 1))
    return _as_numbers(call, compared(call, "equal", spread, keys))


def _keys(call: Call, x: Value, floats: str, whole: str, texts: str) -> Array:
    """The keys of the input's own type."""
    if call.has(texts):
        raise call.unsupported("its keys are strings")
    keys = np.array(call.floats(floats), np.float32) if x.is_number else np.array(call.integers(whole), np.int32)
    call.expect(keys.size > 0, "it has no keys for an input of this type.")
    if np.isnan(keys).any():
        raise call.unsupported("one of its keys is not a number")
    return keys


def one_hot_encoder(call: Call) -> None:
    x = call.value(0)
    if not call.integer("zeros", 1):
        call.assembly.note(f"layer {call.layer!r} gives zeros for an unknown category, at which the model's file fails")
    if call.has("cats_strings"):
        raise call.unsupported("its categories are strings")
    keys = np.array(call.integers("cats_int64s"), np.float32 if x.is_number else np.int32)
    call.put(_of_keys(call, x, keys))


def label_encoder(call: Call) -> None:
    """A table from keys to values."""
    x = call.value(0)
    keys = _keys(call, x, "keys_floats", "keys_int64s", "keys_strings")
    if call.has("values_strings"):
        raise call.unsupported("its values are strings")
    floats = call.has("values_floats")
    values = np.array(call.floats("values_floats") if floats else call.integers("values_int64s"), np.float64)
    call.expect(values.size == keys.size, f"it has {keys.size} keys and {values.size} values.")
    rest = call.number("default_float") if floats else call.integer("default_int64", -1)
    steps = values - rest
    exact = floats or max(abs(values).max(), abs(rest), abs(steps).max()) < 1 << 24
    if not exact or not np.isfinite(steps).all():
        raise call.unsupported("its values are too large")
    hits = combined(call, "multiply", _of_keys(call, x, keys), steps.astype(np.float32))
    found = reduced(call, hits, "sum", [len(x.shape)], False)
    found = combined(call, "add", found, np.float32(rest)) if rest else found
    call.put(found if floats else call.converted(found, INT32, "int64"))


def feature_vectorizer(call: Call) -> None:
    """Concatenates the features of all inputs."""
    call.integers("inputdimensions")
    call.expect(call.count > 0, "it has no inputs.")
    call.put(joined(call, [sample(call, i) for i in range(call.count)], 1))


def extract(call: Call) -> None:
    """ArrayFeatureExtractor: elements of the last axis."""
    if call.is_constant(1):
        x = call.value(0)
        call.put(picked(call, x, len(x.shape) - 1, call.whole_numbers(1)))
        return
    values, rows = call.constant(0), call.plain(call.value(1))
    whole = values.dtype.kind in "iub"
    table = values.reshape(-1, values.shape[-1]).T.astype(np.int32 if whole else np.float32)
    count, several = rows.view.size, table.shape[1]
    index = call.seen(call.converted(rows, INT32, "int64").name, (count,))
    made = call.add(Gather(0), [index], {"table": table if several > 1 else table[:, 0]}, INT32 if whole else FLOAT)
    shape = (*(values.shape[:-1] or (1,)), count)
    order = (len(shape) - 1, *range(len(shape) - 1))
    call.done(made, stored(shape, order), "int64" if whole else "float32")
