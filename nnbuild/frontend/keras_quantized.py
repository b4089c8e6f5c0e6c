"""Layers after Keras 3's model.quantize("int8") or "int4": integer weights with scales."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nnbuild.base.errors import ModelError
from nnbuild.frontend.checked_config import Config, shown
from nnbuild.frontend.keras_weights import DAMAGED, Stored, StoredArray, WeightTree, finite
from nnbuild.model.graph import Array, Shape

POLICIES = (
    "QuantizedDTypePolicy",
    "Int4DTypePolicy",
    "QuantizedFloat8DTypePolicy",
    "GPTQDTypePolicy",
    "AWQDTypePolicy",
)
WEIGHTS = {"Dense": "kernel", "EinsumDense": "kernel", "Embedding": "embeddings"}
"""Layers with integer weights, and the weight's role."""
BITS = {"int8": 8, "int4": 4}
UNQUANTIZED = "Save the model before quantizing it; nnbuild can quantize it."


def bits_of(config: Config, class_name: str) -> int:
    """8 or 4 for a layer quantized by Keras, otherwise 0; its weights of low rank (LoRA) are merged in files."""
    mode = _mode(config)
    bits = BITS.get(mode)
    if not mode:
        return 0
    if bits is None:
        raise config.error(f"Keras has quantized it as {shown(mode)}, which nnbuild does not read.", UNQUANTIZED)
    if class_name not in WEIGHTS:
        raise config.error("it is already quantized by Keras.", UNQUANTIZED)
    return bits


def _mode(config: Config) -> str:
    """What model.quantize() was given; nothing for other layers."""
    policy = config.get("dtype")
    if not isinstance(policy, dict) or policy.get("class_name") not in POLICIES:
        return ""
    inner = policy.get("config")
    named = inner if isinstance(inner, dict) else {}
    mode = named.get("mode", str(named.get("name")).partition("_from_")[0])  # the second form is from Keras 3.3
    return str(mode).partition("/")[0]


def with_scales(tree: WeightTree, bits: int, class_name: str) -> WeightTree:
    """Adds the additional arrays that follow the layer's own weights in the file."""
    role = WEIGHTS[class_name]
    more = (f"{role}_scale", f"{role}_zero", "g_idx") if bits == 4 else (f"{role}_scale",)
    return replace(tree, fixed=(*tree.fixed, *more))


def is_scaled(stored: Stored, role: str) -> bool:
    return stored.get(f"{role}_scale") is not None


def values(config: Config, stored: Stored, role: str, shape: Shape, letters: tuple[str, str] | None = None) -> Array:
    """The weights as floats. `letters` are those of an einsum's kernel and output, along which its scales lie."""
    where = config.where
    held, scale = _array(where, stored, role), finite(where, role, _array(where, stored, f"{role}_scale").read())
    if held.read_whole is None:
        raise ModelError(where, f"its {role} has a scale, but is not in integers of 8 bits.", DAMAGED)
    numbers, rows = held.read_whole(), role == "embeddings"
    if BITS.get(_mode(config)) == 4 or numbers.shape != shape:
        numbers = _unpacked(where, role, numbers, shape)
    zero = stored.get(f"{role}_zero")
    try:
        if zero is not None:
            return _in_groups(where, stored, numbers, zero, scale, rows)
        if letters is not None and scale.ndim == len(letters[1]):
            scale = _along(scale, *letters)
        elif rows:
            scale = scale.reshape(-1, 1)
        with np.errstate(all="ignore"):
            return finite(where, role, np.asarray(np.broadcast_to(numbers / scale, shape), np.float32))
    except (ValueError, IndexError):
        raise ModelError(where, f"its {role} does not match its scales.", DAMAGED) from None


def _along(scale: Array, held: str, out: str) -> Array:
    """Reorders scales along an einsum's output to its kernel; raises ValueError where they do not match."""
    used = [out.index(c) for c in held if c in out]
    rest = [axis for axis in range(scale.ndim) if axis not in used]
    return scale.transpose(used + rest).reshape([scale.shape[out.index(c)] if c in out else 1 for c in held])


def _array(where: str, stored: Stored, role: str) -> StoredArray:
    found = stored.get(role)
    if found is None:
        raise ModelError(where, f"the file has no {role} for it.", DAMAGED)
    return found


def _unpacked(where: str, role: str, packed: Array, shape: Shape) -> Array:
    """Unpacks two 4-bit numbers per byte, the first in the lower half, along one of two axes, which may have one."""
    for axis in (0, 1):
        halved = tuple((n + 1) // 2 if i == axis else n for i, n in enumerate(shape))
        if len(shape) == 2 and packed.shape == halved:
            both = np.stack([packed & 15, (packed >> 4) & 15], axis=axis + 1)
            whole = both.reshape([2 * n if i == axis else n for i, n in enumerate(packed.shape)])
            whole = whole[tuple(slice(n) for n in shape)].astype(np.int8)
            return np.where(whole > 7, whole - 16, whole).astype(np.int8)
    raise ModelError(where, f"its {role} has the shape {packed.shape} in the file, but needs {shape}.", DAMAGED)


def _in_groups(where: str, stored: Stored, numbers: Array, zero: StoredArray, scale: Array, rows: bool) -> Array:
    """Applies a scale and a zero point per output and group of inputs, or of an embedding's features."""
    if zero.read_whole is None:
        raise ValueError
    groups = _array(where, stored, "g_idx").read().astype(np.int64)
    axis = 1 if rows else 0
    if groups.shape != (numbers.shape[axis],) or not ((groups >= 0) & (groups < scale.shape[axis])).all():
        raise ValueError
    shift = zero.read_whole().take(groups, axis).astype(np.float32)
    found: Any = (numbers - shift) * scale.take(groups, axis)
    return finite(where, "weights", np.asarray(found, np.float32))
