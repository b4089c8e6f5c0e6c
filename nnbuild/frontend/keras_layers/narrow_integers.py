"""Integers of 8 and 16 bits: the graph holds them as 32 bits or as floats, and wraps where Keras' arithmetic does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

import numpy as np

from nnbuild.frontend.builder import INT32
from nnbuild.frontend.checked_config import is_integer
from nnbuild.frontend.keras_layers.base import Call, Wire, wires
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.whole import Whole

LIMITS = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767)}
WIDE = "int32"
WIDER = {
    frozenset({"uint8", "int8"}): "int16",
    frozenset({"uint8", "int16"}): "int16",
    frozenset({"int8", "int16"}): "int16",
    frozenset({"uint8", "uint16"}): "uint16",
}
"""Two types and that of their result; all others together are 32 bits wide."""
MOVING = frozenset(
    "Flatten Reshape Permute RepeatVector Cropping1D Cropping2D ZeroPadding1D ZeroPadding2D UpSampling1D Dropout "
    "SpatialDropout1D SpatialDropout2D AlphaDropout GaussianDropout GaussianNoise ActivityRegularization Identity "
    "Masking Activation ReLU MaxPooling1D MaxPooling2D GlobalMaxPooling1D GlobalMaxPooling2D Concatenate Maximum "
    "Minimum reshape transpose expand_dims squeeze get_item getitem concatenate concat stack split unstack tile repeat "
    "flip reverse roll take take_along_axis slice pad identity copy stop_gradient broadcast_to swapaxes moveaxis "
    "hstack max min amax amin reduce_max reduce_min maximum minimum sort where clip clip_by_value mod floormod "
    "floor_divide floordiv tril triu diagonal relu sign round".split()
)
"""Layers and operations whose result has the type of their operands, and cannot leave its range."""
WRAPPING = frozenset("add subtract multiply negative absolute abs diff Add Subtract bias_add".split())
"""Those whose result can, and is exact in 32 bits or in a float."""
WRAPPING_BYTES = frozenset("square cumsum Multiply".split())
"""Those that are exact for bytes alone."""
WRAPPING_IN_2 = frozenset({"sum", "reduce_sum"})
"""Those that give integers of 32 bits in Keras 3."""
NORMS = frozenset("LayerNormalization GroupNormalization RMSNormalization rmsnorm moments".split())
NOT_OF_BOOLEANS = frozenset("diff dot full_like matmul".split())
KINDS = ("int", "bool")
TYPED = frozenset({"cumsum", "prod", "full_like"})
"""Those that compute in a type of their own, if they are given one."""
COMPUTING = frozenset(
    "add subtract multiply maximum minimum where clip clip_by_value mod floormod floor_divide floordiv".split()
)
"""Those that take numbers as operands."""
ROUNDED = frozenset({"Resizing", "UpSampling2D", "resize"})
"""Those whose results Keras 3 rounds to the integers that they were given."""
KEPT_IN_3 = frozenset(
    "MixUp RandomBrightness RandomColorDegeneration RandomColorJitter RandomContrast RandomCrop RandomGrayscale "
    "RandomHue RandomInvert RandomSaturation".split()
)
"""Layers without effect at inference that leave integers alone in Keras 3; others make floats of them."""
CASTS = frozenset({"cast", "convert_to_tensor"})
MEANS = frozenset("mean reduce_mean GlobalAveragePooling1D GlobalAveragePooling2D".split())
"""Those that are whole numbers, too, in Keras 2."""
REFUSED = frozenset(
    "power pow prod reduce_prod matmul dot einsum squared_difference trace dot_product_attention Dot Average "
    "logaddexp average".split()
)
NEXT = "Cast its input to float32 first, as keras.ops.cast(x, 'float32'), and save the model again."


def wrapped(call: Call, x: str, kind: str) -> str:
    """Keeps the lowest bits of whole numbers, as a cast does."""
    low, high = LIMITS[kind]

    def held(value: int) -> str:
        return call.constant(f"bits {value}", lambda: np.full((1,), value, np.int32))

    x = call.convert(x, INT32)
    x = call.one(Whole("subtract"), x, right=held(low)) if low else x
    x = call.one(Whole("and"), x, right=held(high - low))
    made = call.one(Whole("add"), x, right=held(low)) if low else x
    call.builder.integers[made] = kind
    return made


def fits(found: str | None, wanted: str) -> bool:
    """Whether all numbers of one type are numbers of the other."""
    return found in LIMITS and LIMITS[wanted][0] <= LIMITS[found][0] and LIMITS[found][1] <= LIMITS[wanted][1]


Operands = tuple[tuple[Any, ...], Mapping[str, Any]]


def settled(call: Call, name: str, operands: Operands, made: tuple[str, ...]) -> tuple[str, ...]:
    """The results of a layer or an operation, wrapped or rounded where Keras' would be."""
    kind, keras3 = _result(call, operands), call.dialect.keras3
    _refuse_rounded(call, name, operands)
    if kind is None:
        return made
    if keras3 and name in ROUNDED and call.config.get("interpolation") != "nearest":
        return tuple(_rounded(call, each, kind) for each in made)
    if not keras3 and name in MEANS and kind == WIDE:
        return tuple(call.convert(towards_zero(call, each), INT32) for each in made)
    wraps = name in WRAPPING or name in WRAPPING_BYTES or (not keras3 and name in WRAPPING_IN_2)
    if kind != WIDE:
        _expect_exact(call, name, kind, operands, wraps and operands[0])
    if name in MOVING or (keras3 and name in (*ROUNDED, *KEPT_IN_3)):
        call.builder.integers |= dict.fromkeys(made, kind)
        return made
    if kind != WIDE and wraps:
        return tuple(wrapped(call, each, kind) for each in made)
    return made if name in CASTS else tuple(widened(call, each) for each in made)


def _refuse_rounded(call: Call, name: str, operands: Operands) -> None:
    names = [*wires(operands)]
    if call.dialect.keras3 and name in NORMS and any(_is_whole(call, x) for x in names):
        raise call.config.error("it normalizes integers, which Keras does with rounded means.", NEXT)
    if name in NOT_OF_BOOLEANS and names and all(call.builder.tensor(x).dtype == "int8" for x in names):
        raise call.config.error("it computes with booleans, and gives booleans.", NEXT)
    if name in TYPED and any(kind in str(call.named.get("dtype", call.config.get("dtype"))) for kind in KINDS):
        raise call.config.error("its dtype is an integer.", "Cast its input and its output instead.")


def _is_whole(call: Call, x: str) -> bool:
    return x in call.builder.integers or call.builder.tensor(x).is_whole


def _expect_exact(call: Call, name: str, kind: str, operands: Operands, numbers: Any) -> None:
    bytes_alone = name in WRAPPING_BYTES and kind.endswith("16")
    if name in REFUSED or bytes_alone or (not call.dialect.keras3 and name in MEANS):
        raise call.config.error(f"it computes in integers of the type {kind}, which are too narrow for it.", NEXT)
    low, high = LIMITS[kind]
    beyond = next((item for item in _leaves(operands) if is_integer(item) and not low <= item <= high), None)
    if beyond is not None and name in COMPUTING:
        raise call.config.error(f"it computes with {beyond}, which is no number of the type {kind}.", NEXT)
    if numbers and any(isinstance(item, (list, tuple)) and not any(wires(item)) for item in numbers):
        raise call.config.error(f"it computes with integers of the type {kind} and numbers of an unknown type.", NEXT)


def widened(call: Call, x: str) -> str:
    """The same numbers, of another type in Keras."""
    if x not in call.builder.integers:
        return x
    made = call.builder.copied(x)
    del call.builder.integers[made]
    return made


def towards_zero(call: Call, x: str) -> str:
    """The whole part of floats."""
    above = call.one(Activation("floor"), call.one(Activation("clamp", (0.0, inf)), x))
    below = call.one(Activation("ceil"), call.one(Activation("clamp", (-inf, 0.0)), x))
    return call.one(Binary("add"), above, below)


def _rounded(call: Call, x: str, kind: str) -> str:
    """To the nearest whole number, the even one of two, within the type."""
    made = call.one(Activation("round"), x)
    if kind == WIDE:
        return call.convert(made, INT32)
    made = call.convert(call.one(Activation("clamp", tuple(map(float, LIMITS[kind]))), made), INT32)
    call.builder.integers[made] = kind
    return made


def _result(call: Call, operands: Any) -> str | None:
    """The integer type of what comes of operands; None if it is a float."""
    found: set[str] = set()
    for operand in _leaves(operands):
        if isinstance(operand, Wire):
            tensor = call.builder.tensor(operand.name)
            kind = call.builder.integers.get(operand.name, WIDE if tensor.is_whole else None)
            if kind is None:
                return None
            if tensor.dtype != "int8":  # booleans take the type of the other operand
                found.add(kind)
        elif isinstance(operand, float):
            return None
    return WIDER.get(frozenset(found), WIDE) if len(found) > 1 else next(iter(found), None)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, Wire | float) or is_integer(value):
        yield value
