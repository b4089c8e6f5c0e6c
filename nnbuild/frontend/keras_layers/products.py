"""Products along named axes: EinsumDense, Dot, and helpers of attention layers."""

from __future__ import annotations

from math import prod

import numpy as np

from nnbuild.frontend import keras_quantized
from nnbuild.frontend.checked_config import Config, shown
from nnbuild.frontend.keras_layers.activation import activate, inverse, sample_axes
from nnbuild.frontend.keras_layers.base import Call, LayerKind, Layers, single
from nnbuild.frontend.keras_weights import WeightTree
from nnbuild.model.graph import Array, Shape
from nnbuild.ops.binary import Binary
from nnbuild.ops.dense import Dense
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.transpose import Transpose

Parts = tuple[str, str, str]
"""The letters of the axes of a tensor, of a constant, and of their product."""
TINY = 1e-12
"""Added by Keras to a sum of squares before its root."""
OTHERWISE = "Express it with Dense, Dot or MultiHeadAttention layers."


def ordered(call: Call, x: str, order: tuple[int, ...]) -> str:
    return x if order == tuple(range(len(order))) else call.one(Transpose(order), x)


def seen(call: Call, x: str, shape: Shape) -> str:
    return x if call.builder.shape(x) == shape else call.one(Reshape(shape), x)


def unit_length(call: Call, x: str, axes: tuple[int, ...]) -> str:
    """Divides by the root of the sum of squares over these axes."""
    shape = call.builder.shape(x)
    size = tuple(shape[axis] for axis in axes)
    root = np.full(size, 1 / np.sqrt(prod(size)), np.float32)
    scale = call.constant(f"length {size}", lambda: root)
    return normalized(call, x, LayerNorm(len(axes), TINY / prod(size), centred=False), axes, {"scale": scale})


def normalized(call: Call, x: str, op: LayerNorm, axes: tuple[int, ...], constants: dict[str, str]) -> str:
    """Applies the operation over any axes, which are moved to the end and back."""
    rank = len(call.builder.shape(x))
    order = (*(axis for axis in range(rank) if axis not in axes), *axes)
    made = call.builder.one(op, (ordered(call, x, order),), constants)
    return ordered(call, made, inverse(order))


def _implied(operands: str) -> str:
    """The result that an equation leaves out: what an ellipsis stands for, and the letters that occur once."""
    once = sorted(c for c in set(operands) if c.isalpha() and operands.count(c) == 1)
    return ("..." if "..." in operands else "") + "".join(once)


def equation_of(config: Config, equation: object, ranks: tuple[int, ...]) -> tuple[str, ...]:
    """The letters of each operand and of the result, without the batch; an ellipsis is expanded."""
    text = equation.replace(" ", "") if isinstance(equation, str) else ""
    left, arrow, out = (text if "->" in text else f"{text}->{_implied(text)}").partition("->")
    operands = left.split(",")
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in text]
    fits = arrow == "->" and len(operands) == len(ranks)
    if fits:
        for operand, rank in zip(operands, ranks, strict=True):
            missing = rank - len(operand.replace("...", ""))
            fits &= missing == 0 or ("..." in operand and 0 <= missing <= len(spare))
            spelt = "".join(spare[:missing])
            operands = [o.replace("...", spelt) if o is operand else o for o in operands]
            out = out.replace("...", spelt) if "..." in operand else out
    parts = (*operands, out)
    letters = {c for o in operands for c in o}
    fits = fits and all(len(set(p)) == len(p) and p.isalpha() for p in parts if p) and set(out) <= letters
    if not fits:
        raise config.error(f"its equation {shown(equation)} is not one that nnbuild computes.", OTHERWISE)
    return parts


def refuse_ambiguous(call: Call, shape: Shape, added: Shape) -> None:
    """Keras 3 with TensorFlow adds a constant with a single axis along the last axis of its size, or the first, even
    where broadcasting puts it elsewhere; with its other backends it does not."""
    long = [place for place, size in enumerate(added) if size > 1]
    if not call.dialect.keras3 or len(long) != 1:
        return
    size, behind = added[long[0]], len(added) - 1 - long[0]
    chosen = 0 if shape[-1:] == (size,) else len(shape) - 1 if shape[:1] == (size,) else behind
    if chosen != behind:
        cause = f"it adds a constant {added} to {shape}, along an axis on which Keras' backends differ."
        raise call.config.error(cause, "Repeat the constant along all axes, as keras.ops.broadcast_to does.")


def by_kernel(call: Call, x: str, parts: Parts, kernel: str, sizes: Shape, bias: str | None) -> str:
    """x times a constant whose axes are named by letters; `kernel` is stored as [contracted…, free…]."""
    own, held, out = parts
    summed = [c for c in held if c in own]
    free = [c for c in held if c not in own]
    kept = [c for c in own if c not in held]
    if sorted(out) != sorted(kept + free):
        raise call.config.error(f"its equation sums over {shown(''.join(own))} in an unsupported way.", OTHERWISE)
    shape, rank = call.builder.shape(x), dict(zip(own, range(len(own)), strict=True))
    x = ordered(call, x, tuple(rank[c] for c in (*kept, *summed)))
    rows = tuple(shape[rank[c]] for c in kept)
    x = seen(call, x, (*rows, prod(sizes[held.index(c)] for c in summed)))
    constants = {"kernel": kernel, **({"bias": bias} if bias else {})}
    y = call.builder.one(Dense(), (x,), constants)
    y = seen(call, y, (*rows, *(sizes[held.index(c)] for c in free)))
    made = kept + free
    return ordered(call, y, tuple(made.index(c) for c in out))


def matrix(values: Array, parts: Parts) -> Array:
    """A kernel as a matrix [contracted, free]."""
    own, held, _ = parts
    summed = [i for i, c in enumerate(held) if c in own]
    free = [i for i, c in enumerate(held) if c not in own]
    return values.transpose(*summed, *free).reshape(prod(values.shape[i] for i in summed), -1)


def einsum_dense(call: Call) -> str:
    own, held, out = equation_of(
        call.config, call.config.get("equation"), (len(call.shape) + 1, _held_rank(call), 0)[:2]
    )
    if own[0] in held or own[0] != out[0]:
        raise call.config.error("its equation works along the batch axis.", OTHERWISE)
    parts = (own[1:], held, out[1:])
    known = dict(zip(own[1:], call.shape, strict=True)) | dict(zip(out, _output_sizes(call, out), strict=True))
    sizes = tuple(call.shape[own.index(c) - 1] if c in own else known[c] or 0 for c in held)
    if not keras_quantized.is_scaled(call.stored, "kernel"):  # output_shape may be another where "..." stands for axes
        kernel_values = call.stored.get("kernel")
        stored_sizes = sizes if kernel_values is None else kernel_values.shape
        sizes = tuple(n if c in own else m for c, n, m in zip(held, sizes, stored_sizes, strict=True))
    if not all(sizes):
        raise call.config.error("its output_shape leaves an axis open that its equation names.", OTHERWISE)

    def held_values() -> Array:
        if keras_quantized.is_scaled(call.stored, "kernel"):
            if len(held) > 2 and _has_4_bits(call):
                rows = prod(n for c, n in zip(held, sizes, strict=True) if c in own)
                flat = (rows, prod(sizes) // rows)
                return keras_quantized.values(call.config, call.stored, "kernel", flat).reshape(sizes)
            return keras_quantized.values(call.config, call.stored, "kernel", sizes, (held, out))
        return call.values("kernel", sizes)

    kernel = call.constant("matrix", lambda: np.ascontiguousarray(matrix(held_values(), parts)))
    y = by_kernel(call, call.input, parts, kernel, sizes, None)
    axes = call.config.get("bias_axes")
    if axes:
        if not isinstance(axes, str) or not set(axes) <= set(out[1:]):
            raise call.config.wrong("bias_axes", f"letters of its output {out[1:]!r}")
        shape = dict(zip(out[1:], call.builder.shape(y), strict=True))
        first = min(i for i, c in enumerate(out[1:]) if c in axes)
        size = tuple(shape[c] if c in axes else 1 for c in out[1 + first :])
        refuse_ambiguous(call, call.builder.shape(y), size)
        y = call.one(Binary("add"), y, right=call.weight("bias", size))
    return activate(call, y)


def _held_rank(call: Call) -> int:
    """That of the kernel, which Keras stores as a matrix if it has 4 bits."""
    if _has_4_bits(call):
        operand = str(call.config.get("equation")).partition("->")[0].partition(",")[2]
        return sum(map(str.isalpha, operand))
    stored = call.stored.get("kernel")
    return len(stored.shape) if stored is not None else 0


def _has_4_bits(call: Call) -> bool:
    return keras_quantized.bits_of(call.config, "EinsumDense") == 4


def _output_sizes(call: Call, out: str) -> tuple[int | None, ...]:
    """The output's sizes by letter as far as `output_shape` gives them; it counts from the end."""
    value = call.config.get("output_shape")
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    known = [item if isinstance(item, int) and 0 < item < 2**31 else None for item in items]
    return (*(None,) * (len(out) - len(known)), *known[-len(out) :])


def _einsum_weights(config: Config, layers: Layers) -> WeightTree:
    return WeightTree(("kernel", "bias") if config.get("bias_axes") else ("kernel",))


def multiplied(call: Call, parts: tuple[str, ...], left: str, right: str) -> str:
    """Multiplies two tensors along named axes without the batch: shared letters lead, contracted ones are summed
    over."""
    a, b, out = parts
    shared = [c for c in a if c in b and c in out]
    summed = [c for c in a if c in b and c not in out]
    rows, columns = ([c for c in own if c not in other] for own, other in ((a, b), (b, a)))
    if sorted(out) != sorted(shared + rows + columns):
        raise call.config.error(f"its equation {a},{b}->{out} sums over only one operand.", OTHERWISE)
    sizes: dict[str, int] = {}
    for letters, name in ((a, left), (b, right)):
        sizes |= dict(zip(letters, call.builder.shape(name), strict=True))
    lead = tuple(sizes[c] for c in shared)
    depth = prod(sizes[c] for c in summed)
    names = []
    for letters, name, free in ((a, left, rows), (b, right, columns)):
        x = ordered(call, name, tuple(letters.index(c) for c in (*shared, *free, *summed)))
        names.append(seen(call, x, (*lead, prod(sizes[c] for c in free), depth)))
    y = call.one(MatMul(turned=True), *names)
    made = shared + rows + columns
    y = seen(call, y, tuple(sizes[c] for c in made) or (1,))
    return ordered(call, y, tuple(made.index(c) for c in out)) if out else y


def _dot(call: Call) -> str:
    if len(call.inputs) != 2:
        raise call.config.error(f"it is called with {len(call.inputs)} tensors instead of two.")
    axes = call.config.integers("axes")
    if not 1 <= len(axes) <= 2:
        raise call.config.error(f"its axes are {list(axes)}, and must be one or two.")
    names, places = list(call.inputs), []
    for index, axis in enumerate((axes[0], axes[-1])):
        shape = call.builder.shape(names[index])
        (place,) = sample_axes(call.config, (axis,), shape)
        if call.config.flag("normalize", False):
            names[index] = unit_length(call, names[index], (place,))
        places.append(place)
    left, right = (len(call.builder.shape(name)) for name in names)
    a = "abcdefgh"[:left]
    b = "stuvwxyz"[:right]
    a, b = a[: places[0]] + "k" + a[places[0] + 1 :], b[: places[1]] + "k" + b[places[1] + 1 :]
    return multiplied(call, (a, b, a.replace("k", "") + b.replace("k", "")), *names)


def repeated(call: Call, x: str, axis: int, times: int) -> str:
    if times == 1:
        return x
    return call.one(Repeat(tuple(times if i == axis else 1 for i in range(len(call.builder.shape(x))))), x)


LAYERS = {
    "EinsumDense": LayerKind(single(einsum_dense), _einsum_weights),
    "Dot": LayerKind(single(_dot)),
}
