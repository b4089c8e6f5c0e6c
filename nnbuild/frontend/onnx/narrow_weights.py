"""onnxruntime's operators on floats whose weights are stored in 2 to 8 bits: they are expanded to float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnbuild.frontend.onnx.call import FLOAT, Call, Item
from nnbuild.frontend.onnx.indexing import gather
from nnbuild.frontend.onnx.products import dense
from nnbuild.frontend.onnx.quantized import Mode
from nnbuild.frontend.onnx.records import HALVES
from nnbuild.frontend.onnx.recurrent import recurrent
from nnbuild.frontend.other_arithmetic import EXPANDED, RUN_TIME_ROUNDING
from nnbuild.model.graph import Array

WIDTHS = (2, 4, 8)
ROUNDED_TO_BYTES = 4
"""The accuracy level with which inputs are rounded, too."""


class _Expanded(Call):
    """The node as that of floats: some of its inputs are replaced, and those from `count` on are not there."""

    def __init__(
        self, call: Call, replaced: dict[int, Array], count: int, options: dict[str, int] | None = None
    ) -> None:
        super().__init__(call.importer, call.scope, call.node, call)
        self._replaced, self._count, self._options = replaced, count, options or {}
        call.assembly.note(EXPANDED)

    @property
    def count(self) -> int:
        return min(super().count, self._count)

    def integer(self, name: str, default: int = 0) -> int:
        return self._options[name] if name in self._options else super().integer(name, default)

    def any(self, index: int) -> Item:
        return self._replaced[index] if index in self._replaced else super().any(index)


def matmul_n_bits(call: Call) -> None:
    """Weights [out, blocks, packed], each block of a row with a scale and a zero point."""
    depth, out = call.integer("K"), call.integer("N")
    bits, block = _stored(call, 4)
    blocks = -(-depth // block)
    packed, scales = call.constant(1), call.weights(2)
    fits = depth > 0 and out > 0 and packed.dtype == np.uint8 and packed.size == out * blocks * (block * bits // 8)
    call.expect(fits and scales.size == out * blocks, f"its weights {list(packed.shape)} are not {out} times {depth}.")
    numbers = _unpacked(packed.reshape(out, -1), bits)[:, :depth]
    scales = scales.reshape(out, blocks)
    zeros = _zero_points(call, 3, bits, scales) if call.given(3) else np.full(scales.shape, 1 << (bits - 1))
    groups = np.arange(depth) // block
    if call.given(4):
        groups = call.indices(4).reshape(-1)[:depth]
        within = groups.size == depth and bool(((groups >= 0) & (groups < blocks)).all())
        call.expect(within, "its g_idx does not give a block for each input.")
    kernel = _scaled(numbers - zeros[:, groups], scales[:, groups])
    if call.integer("accuracy_level", 0) == ROUNDED_TO_BYTES:
        call.assembly.unlike = RUN_TIME_ROUNDING
    call.assembly.note(EXPANDED)
    x = call.real(0)
    bias = call.weights(5).reshape(-1) if call.given(5) else None
    mode = Mode((x,), FLOAT, bias=bias)
    call.put(dense(call, mode, x, call.as_floats(kernel.T, call.name_of(1))))


def gather_block_quantized(call: Call) -> None:
    """Rows of a table, whose numbers share scales by blocks along one axis; bytes may hold several of the last."""
    table, scales = call.constant(0), call.weights(2)
    bits, block = _stored(call, 4, 128)
    rank = table.ndim
    axis, along = call.axis(call.integer("gather_axis", 0), rank), call.axis(call.integer("quantize_axis", 1), rank)
    middle = 0
    if _is_packed(table):
        call.expect(along == rank - 1, f"its quantize_axis is {along}, but its bytes hold numbers of the last axis.")
        table, middle = _unpacked(table, bits), 1 << (bits - 1)
    blocks = -(-table.shape[along] // block)
    wanted = tuple(blocks if i == along else n for i, n in enumerate(table.shape))
    call.expect(scales.shape == wanted, f"its scales are {list(scales.shape)}, not {list(wanted)}.")
    zeros = np.full(scales.shape, middle, np.float32)
    if call.given(3):
        zeros = _zero_points(call, 3, bits, scales)
    spread = np.arange(table.shape[along]) // block
    numbers = table.astype(np.float32) - np.take(zeros, spread, along)
    floats = call.as_floats(_scaled(numbers, np.take(scales, spread, along)), call.name_of(0))
    gather(_Expanded(call, {0: floats}, 2, {"axis": axis}))


def dynamic_quantize_lstm(call: Call) -> None:
    """An LSTM; its weights are transposed. onnxruntime rounds the inputs of its products."""
    call.assembly.unlike = RUN_TIME_ROUNDING
    recurrent("LSTM", _Expanded(call, {1: _gates(call, 1, 8), 2: _gates(call, 2, 10)}, 8))


def _gates(call: Call, index: int, scale: int) -> Array:
    """[directions, gates, in] in floats; a direction has one scale, or one for each row."""
    numbers, scales, zeros = call.constant(index), call.weights(scale), call.constant(scale + 1)
    call.expect(numbers.ndim == 3, f"its weights have the shape {list(numbers.shape)}.")
    ways, _, rows = numbers.shape
    call.expect(
        all(v.size in (ways, ways * rows) for v in (scales, zeros)), f"its scales have the shape {list(scales.shape)}."
    )
    scales, zeros = (v.astype(np.float32).reshape(ways, 1, -1) for v in (scales, zeros))
    floats = call.as_floats(_scaled(numbers.astype(np.float32) - zeros, scales), call.name_of(index))
    return np.ascontiguousarray(floats.swapaxes(1, 2))


def _scaled(numbers: Array, scales: Array) -> Array:
    with np.errstate(over="ignore"):  # what is not finite is refused
        return np.asarray(numbers * scales)


def _stored(call: Call, bits: int, block: int = 0) -> tuple[int, int]:
    """The bits of a number, and how many share a scale."""
    bits, block = call.integer("bits", bits), call.integer("block_size", block)
    if bits not in WIDTHS:
        raise call.unsupported(f"its weights have {bits} bits")
    call.expect(block > 0 and block * bits % 8 == 0, f"its block_size is {block}.")
    return bits, block


def _unpacked(packed: Array, bits: int) -> Array:
    """The numbers of bytes along the last axis, the lowest bits first."""
    parts = packed[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    return np.asarray(parts.reshape(*packed.shape[:-1], -1), np.int32)


def _is_packed(values: Array) -> bool:
    """Bytes, not the numbers of a type of 4 bits."""
    return values.dtype == np.uint8 and values.dtype.metadata != HALVES


def _zero_points(call: Call, index: int, bits: int, scales: Array) -> Array:
    """For each scale one; bytes hold several of the last axis."""
    found = call.constant(index)
    if _is_packed(found):
        *lead, count = scales.shape
        per_row = -(-count * bits // 8)
        call.expect(found.size == int(np.prod(lead)) * per_row, f"its zero points are {list(found.shape)}.")
        return _unpacked(found.reshape(*lead, per_row), bits)[..., :count].astype(np.float32)
    call.expect(found.size == scales.size, f"its zero points are {list(found.shape)}.")
    return found.astype(np.float32).reshape(scales.shape)


FOREIGN: dict[str, Callable[[Call], None]] = {
    "MatMulNBits": matmul_n_bits,
    "GatherBlockQuantized": gather_block_quantized,
    "DynamicQuantizeLSTM": dynamic_quantize_lstm,
}
