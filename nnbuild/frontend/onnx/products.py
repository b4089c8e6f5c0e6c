"""Matrix products. With a constant side they become dense layers, whose weights follow the input's stored order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np

from nnbuild.frontend.onnx.arithmetic import combined, times_plus
from nnbuild.frontend.onnx.call import FLOAT, Call
from nnbuild.frontend.onnx.data_movement import repeated
from nnbuild.frontend.onnx.quantized import Mode
from nnbuild.frontend.onnx.scope import Scaled
from nnbuild.frontend.onnx.weighted import mode_of
from nnbuild.model.graph import Array
from nnbuild.model.views import View, transposed
from nnbuild.ops.dense import Dense
from nnbuild.ops.layout import Value, arranged, index_of, ordered
from nnbuild.ops.matmul import MatMul

Operand = tuple[list[str], Value]
"""The letters of its axes, and the values."""
HIDDEN = "\0"
"""In names that no file has."""
NEGATE = "Negate the weights instead of the product."


def dense(call: Call, mode: Mode, x: Value, kernel: Array) -> Value:
    """x times a constant [in, out] along x's last axis, whose atoms may be stored in any order."""
    last = len(x.shape) - 1
    call.expect(x.shape[last] == kernel.shape[0], f"{list(x.shape)} does not match weights of {list(kernel.shape)}.")
    value = arranged(call, x, [], [last], free=True)
    rows, (depth, out) = x.view.size // x.shape[last], kernel.shape
    name = call.seen(value.name, (rows, depth) if rows > 1 else (depth,))
    constants = mode.constants(np.ascontiguousarray(kernel[index_of(value.view, last)]), np.arange(out), 1)
    made = call.add(Dense(mode.clamp), [name], constants, mode.form)
    count = len(value.view.atoms) - len(value.view.axes[last])
    atoms = (*value.view.atoms[:count], *((out,) if out > 1 else ()))
    return replace(value, name=made, view=View(atoms, (*value.view.axes[:-1], (count,) if out > 1 else ())))


def weighted_sums(call: Call, x: Value, weights: Array, bias: Array | None) -> Value:
    """A sum of x [1, in] in floats for each row of weights [out, in]."""
    mode = Mode((x,), FLOAT, bias=None if bias is None else bias.astype(np.float32))
    return dense(call, mode, x, np.ascontiguousarray(weights.T, np.float32))


def matmul(call: Call) -> None:
    left, right = call.item(0), call.item(1)
    if isinstance(left, Value) and isinstance(right, np.ndarray) and right.ndim == 2:
        mode = mode_of(call, 1, 2, 1, shifted=True)
        mode.finish(call, dense(call, mode, mode.inputs[0], mode.weights))
        return
    if isinstance(right, Value) and isinstance(left, np.ndarray) and left.ndim == 2 and len(right.shape) >= 2:
        call.put(_from_the_left(call, call.weights(0), call.real(1)))
        return
    call.put(multiplied(call, call.real(0), call.real(1)))


def _from_the_left(call: Call, left: Array, right: Value) -> Value:
    """Constant times x, as transposed x times the transposed constant."""
    turned = _swapped(right)
    made = dense(call, Mode((turned,), FLOAT), turned, left.T)
    return _swapped(made)


def _swapped(x: Value) -> Value:
    rank = len(x.shape)
    return replace(x, view=transposed(x.view, (*range(rank - 2), rank - 1, rank - 2)))


def multiplied(call: Call, left: Value, right: Value) -> Value:
    """The product of two run-time values, with broadcast leading axes."""
    flat = len(left.shape) == 1, len(right.shape) == 1
    if flat[0]:
        left = replace(left, view=View(left.view.atoms, ((), *left.view.axes)))
    if flat[1]:
        right = replace(right, view=View(right.view.atoms, (*right.view.axes, ())))
    rank = max(len(left.shape), len(right.shape))
    (m, k), (depth, n) = left.shape[-2:], right.shape[-2:]
    call.expect(k == depth, f"{list(left.shape)} and {list(right.shape)} do not match.")
    try:
        lead = tuple(int(v) for v in np.broadcast_shapes(left.shape[:-2], right.shape[:-2]))
    except ValueError:
        raise call.error(f"{list(left.shape)} and {list(right.shape)} do not match.") from None
    if k == 1:
        made = combined(call, "multiply", left, right)
    elif prod(right.shape[:-2]) == 1 and prod(left.shape[:-2]) > 1:
        # One matrix for the whole batch: all rows form one product.
        rows = View(left.view.atoms, (tuple(a for axis in left.view.axes[:-1] for a in axis), left.view.axes[-1]))
        made = _product(
            call, replace(left, view=rows), replace(right, view=View(right.view.atoms, right.view.axes[-2:])), 0
        )
        made = replace(made, view=_unflat(made.view, (*lead, m, n)))
    else:
        left, right = (repeated(call, v, (*lead, *v.shape[-2:])) for v in (left, right))
        made = _product(call, left, right, rank - 2)
    axes = made.view.axes
    if flat[0]:
        axes = (*axes[:-2], axes[-1])
    if flat[1]:
        axes = axes[:-1]
    return replace(made, view=View(made.view.atoms, axes))


def _unflat(view: View, shape: Sequence[int]) -> View:
    from nnbuild.model.views import reshaped

    found = reshaped(view, tuple(shape))
    assert found is not None
    return found


def _product(call: Call, left: Value, right: Value, lead: int) -> Value:
    """[lead…, m, k] by [lead…, k, n]; the right side is read in whichever of its two orders it is stored."""
    (m, k), n = left.shape[-2:], right.shape[-1]
    before = list(range(lead))
    left = ordered(call, left, [a for i in (*before, lead, lead + 1) for a in left.view.axes[i]])
    orders = [
        [a for i in (*before, *pair) for a in right.view.axes[i]] for pair in ((lead, lead + 1), (lead + 1, lead))
    ]
    turned = orders[1] == list(range(len(orders[1]))) or orders[0] != list(range(len(orders[0])))
    right = ordered(call, right, orders[1] if turned else orders[0])
    count = prod(left.shape[:-2])
    several = (count,) if count > 1 else ()
    names = [
        call.seen(left.name, (*several, m, k)),
        call.seen(right.name, (*several, n, k) if turned else (*several, k, n)),
    ]
    made = call.add(MatMul(turned), names)
    return call.of(made, (*left.shape[:-2], m, n))


def gemm(call: Call) -> None:
    alpha, beta = call.number("alpha", 1.0), call.number("beta", 1.0)
    turns = [bool(call.integer(name, 0)) for name in ("transA", "transB")]
    left = call.value(0)
    call.expect(len(left.shape) == 2 and len(call.shape(1)) == 2, "its operands are not matrices.")
    added = call.item(2) if call.given(2) else None
    if not call.is_constant(1):
        right = call.real(1)
        left = call.as_real(left)
        made = multiplied(call, _swapped(left) if turns[0] else left, _swapped(right) if turns[1] else right)
        made = times_plus(call, made, alpha)
        call.put(made if added is None or not beta else combined(call, "add", made, _times(call, added, beta)))
        return
    axis = 0 if turns[1] else 1
    row = _as_row(added, call.shape(1)[axis])
    inner = _with_factors(call, alpha, beta, row)
    mode = mode_of(inner, 1, 2, axis, shifted=True)
    x = _swapped(mode.inputs[0]) if turns[0] else mode.inputs[0]
    made = dense(call, mode, x, mode.weights.T if turns[1] else mode.weights)
    if row is None and added is not None and beta:
        made = combined(call, "add", made, _times(call, added, beta))
    mode.finish(call, made)


def _as_row(added: Value | Array | None, out: int) -> Array | None:
    """A constant summand that is the same for all rows, with a number for each output: one column has its numbers for
    the rows, although it may have as many."""
    if not isinstance(added, np.ndarray) or (added.size != 1 and (added.size, added.shape[-1]) != (out, out)):
        return None
    return np.broadcast_to(added.reshape(-1), (out,))


def _with_factors(call: Call, alpha: float, beta: float, row: Array | None) -> Call:
    """The product whose factors are part of its weights and its row of summands. Any other summand is left out, and
    so is what follows: the product is not the node's result."""
    rest = call.given(2) and row is None and beta != 0
    if alpha == beta == 1.0 and not rest and (row is None or row.size == call.constant(2).size):
        return call
    held = call.scaled(1)
    if held is not None and alpha <= 0:
        call.assembly.in_floats(call.layer, f"its alpha is {alpha:g}. {NEGATE}")
    held = replace(held, scales=held.scales * np.float32(alpha)) if held is not None and alpha > 0 else None
    inputs = [call.node.inputs[0], _hidden(call, "weights", np.float32(alpha) * call.weights(1), held)]
    if row is not None and beta:
        held = call.scaled(2) if alpha == beta else None
        if held is not None:
            held = replace(held, integers=np.broadcast_to(held.integers.reshape(-1), row.shape))
            held = replace(held, scales=held.scales * np.float32(beta))
        inputs.append(_hidden(call, "summands", np.float32(beta) * call.as_floats(row, call.name_of(2)), held))
    options = {name: option for name, option in call.node.attributes.items() if name not in ("alpha", "beta")}
    outputs = (f"{call.node.outputs[0]}{HIDDEN}product",) if rest else call.node.outputs
    made = replace(call.node, inputs=tuple(inputs), outputs=outputs, attributes=options)
    inner = Call(call.importer, call.scope, made, call)
    inner.layer = call.layer
    return inner


def _hidden(call: Call, role: str, values: Array, held: Scaled | None) -> str:
    """The name of a constant that the file does not have."""
    name = f"{call.node.outputs[0]}{HIDDEN}{role}"
    call.scope.items[name] = values
    if held is not None:
        call.scope.scaled[name] = held
    return name


def _times(call: Call, item: Value | Array, factor: float) -> Value | Array:
    if isinstance(item, Value):
        return times_plus(call, call.as_real(item), factor)
    return np.asarray(call.as_floats(item, "C") * np.float32(factor))


def einsum(call: Call) -> None:
    """Letters that one operand alone has are summed over; then, two operands at a time, those that no other has."""
    *letters, out = _equation(call)
    operands = [_diagonal(call, own, call.real(index)) for index, own in enumerate(letters)]
    for index, operand in enumerate(operands):
        others = set(out).union(*(own for at, own in enumerate(letters) if at != index))
        operands[index] = _summed(call, operand, others)
    while len(operands) > 1:
        pair = min(combinations(operands, 2), key=_work)
        rest = [each for each in operands if all(each is not one for one in pair)]
        wanted = set(out).union(*(own for own, _ in rest))
        operands = [_contracted(call, *pair, wanted), *rest]
    ((held, made),) = operands
    call.expect(
        sorted(held) == sorted(out), f"its equation {call.text('equation')!r} is not one that nnbuild computes."
    )
    call.put(replace(made, view=transposed(made.view, [held.index(c) for c in out])))


def _summed(call: Call, operand: Operand, others: set[str]) -> Operand:
    from nnbuild.frontend.onnx.reducing import reduced

    own, x = operand
    alone = [i for i, c in enumerate(own) if c not in others]
    return ([c for c in own if c in others], reduced(call, x, "sum", alone, False)) if alone else operand


def _work(pair: tuple[Operand, Operand]) -> int:
    """The multiplications that join two operands."""
    return prod({c: n for own, x in pair for c, n in zip(own, x.shape, strict=True)}.values())


def _diagonal(call: Call, own: list[str], x: Value) -> Operand:
    for letter in [c for i, c in enumerate(own) if c in own[:i]]:
        raise call.unsupported(f"its equation takes a diagonal (the letter {letter!r} twice)")
    return own, x


def _equation(call: Call) -> list[list[str]]:
    """The letters of each operand and of the result; an ellipsis becomes one letter per axis."""
    text = "".join(call.text("equation").split())
    left, arrow, right = text.partition("->")
    operands = left.split(",")
    call.expect(len(operands) == call.count and len(text) < 100, f"its equation {text!r} does not match its operands.")
    ranks = [len(call.shape(i)) for i in range(call.count)]
    most = max(
        (rank - len(o.replace("...", "")) for o, rank in zip(operands, ranks, strict=True) if "..." in o), default=0
    )
    rest = [f"_{i}" for i in range(max(most, 0))]
    parts = []
    for operand, rank in zip(operands, ranks, strict=True):
        before, dots, after = operand.partition("...")
        count = rank - len(before) - len(after)
        call.expect(count == 0 or (bool(dots) and count > 0), f"its equation {text!r} does not match its operands.")
        parts.append([*before, *rest[len(rest) - count :], *after])
    if arrow:
        before, dots, after = right.partition("...")
        out = [*before, *(rest if dots else []), *after]
    else:
        every = [c for p in parts for c in p]
        out = [*rest, *sorted(c for c in set(every) if every.count(c) == 1 and c not in rest)]
    known = {c for p in parts for c in p}
    call.expect(set(out) <= known and len(set(out)) == len(out), f"its equation {text!r} is malformed.")
    return [*parts, out]


def _contracted(call: Call, left: Operand, right: Operand, wanted: set[str]) -> Operand:
    (a, _), (b, _) = left, right
    shared = [c for c in a if c in b and c in wanted]
    summed = [c for c in a if c in b and c not in wanted]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    found = []
    for (own, x), order in ((left, [shared, rows, summed]), (right, [shared, summed, columns])):
        axes = [tuple(t for c in group for t in x.view.axes[own.index(c)]) for group in order]
        found.append(replace(x, view=View(x.view.atoms, tuple(axes))))
    sizes: dict[str, int] = {}
    for own, x in (left, right):
        for c, n in zip(own, x.shape, strict=True):
            call.expect(sizes.setdefault(c, n) == n, f"the letter {c!r} stands for {sizes[c]} and for {n} elements.")
    held = [*shared, *rows, *columns]
    made = multiplied(call, found[0], found[1])
    return held, replace(made, view=_unflat(made.view, [sizes[c] for c in held]))


OPERATORS: dict[str, Callable[[Call], None]] = {"MatMul": matmul, "Gemm": gemm, "Einsum": einsum}
