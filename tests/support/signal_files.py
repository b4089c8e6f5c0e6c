"""`.tflite` files of front ends in fixed point, by custom operators, as a preprocessor of speech has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flatbuffers import flexbuffers  # type: ignore[import-untyped]

from nnbuild.features.micro_tables import MicroTables
from tests.frontend.tflite_files import File, O, T

Form = tuple[Sequence[int], str]


def flexible(**values: Any) -> bytes:
    builder = flexbuffers.Builder()
    builder.MapFromElements(values)
    return bytes(builder.Finish())


class Front:
    """A file under construction."""

    def __init__(self) -> None:
        self.tensors: list[T] = []
        self.operators: list[O] = []

    def tensor(self, name: str, shape: Sequence[int], dtype: str, data: Any = None) -> int:
        self.tensors.append(T(f"{name}{len(self.tensors)}", shape, dtype, scales=(), zeros=(), data=data))
        return len(self.tensors) - 1

    def table(self, values: Any, dtype: str = "int16") -> int:
        data = np.asarray(values).astype(dtype)
        return self.tensor("table", data.shape, dtype, data)

    def signal(
        self, kind: str, inputs: Sequence[int], outputs: Sequence[tuple[Sequence[int], str]], **options: Any
    ) -> Any:
        made = [self.tensor(kind, shape, dtype) for shape, dtype in outputs]
        content = flexible(**options) if options else b""
        self.operators.append(O("CUSTOM", inputs, made, custom=f"Signal{kind}", custom_options=content))
        return made if len(made) > 1 else made[0]

    def add(
        self, kind: str, inputs: Sequence[int], shape: Sequence[int], dtype: str, options: str, **values: Any
    ) -> int:
        out = self.tensor(kind, shape, dtype)
        self.operators.append(O(kind, inputs, [out], options, values))
        return out

    def file(self, inputs: Sequence[int], outputs: Sequence[int]) -> File:
        return File(self.tensors, self.operators, inputs, outputs)


def preprocessor(tables: MicroTables, whole: bool = True) -> File:
    """From a frame of samples to features; `whole` brings them to int8 as programs in the field do."""
    front, size, points = Front(), len(tables.window), tables.points
    x = front.tensor("samples", (1, size), "int16")
    weighed = front.signal("Window", [x, front.table(tables.window)], [((1, size), "int16")], shift=12)
    flat = front.add("RESHAPE", [weighed, front.table([size], "int32")], (size,), "int16", "NONE")
    large, shift = front.signal("FftAutoScale", [flat], [((size,), "int16"), ((), "int32")])
    bins = points // 2 + 1
    spectrum = front.signal("Rfft", [large], [((2 * bins,), "int16")], T=7, fft_length=points)
    filters = tables.filters
    first, last = filters.first, filters.first + len(filters.of)
    energy = front.signal("Energy", [spectrum], [((bins,), "uint32")], start_index=first, end_index=last)
    energy = front.add("CAST", [energy], (bins,), "int32", "CastOptions")
    bounds = [front.table([at], "int32") for at in (first, last, 1)]
    inner = front.add("STRIDED_SLICE", [energy, *bounds], (last - first,), "int32", "StridedSliceOptions")
    ends = [front.table(np.zeros(n), "int32") for n in (first, bins - last)]
    energy = front.add("CONCATENATION", [ends[0], inner, ends[1]], (bins,), "int32", "ConcatenationOptions", Axis=0)
    energy = front.add("CAST", [energy], (bins,), "uint32", "CastOptions")
    found = noise_free(front, tables, bank(front, tables, energy, shift))
    return front.file([x], [as_bytes(front, found, filters.channels) if whole else found])


def bank(front: Front, tables: MicroTables, energy: int, shift: int) -> int:
    filters, channels = tables.filters, tables.filters.channels
    widths = np.array([(filters.of == group).sum() for group in range(channels + 1)])
    starts = np.cumsum(widths) - widths
    given = [filters.weights, filters.rests, filters.first + starts, starts, widths]
    inputs = [energy, *map(front.table, given)]
    sums = front.signal("FilterBank", inputs, [((channels,), "uint64")], num_channels=channels)
    return int(front.signal("FilterBankSquareRoot", [sums, shift], [((channels,), "uint32")]))


def noise_free(front: Front, tables: MicroTables, x: int, clamping: bool = False) -> int:
    channels, (even, odd) = tables.filters.channels, tables.shares
    form = ((channels,), "uint32")
    x, noise = front.signal(
        "FilterBankSpectralSubtraction", [x], [form, form], smoothing=even, one_minus_smoothing=16384 - even,
        alternate_smoothing=odd, alternate_one_minus_smoothing=16384 - odd, min_signal_remaining=tables.least,
        smoothing_bits=tables.smoothing_bits, spectral_subtraction_bits=14, clamping=clamping, num_channels=channels,
    )  # fmt: skip
    if tables.gains is not None:
        x = front.signal("PCAN", [x, noise, front.table(tables.gains)], [form], snr_shift=tables.snr_shift)
    options = {"output_scale": 1 << tables.log_scale, "input_correction_bits": tables.log_shift}
    return int(front.signal("FilterBankLog", [x], [((channels,), "int16")], **options))


def as_bytes(front: Front, x: int, channels: int) -> int:
    """(256 x + 333) / 666 - 128, within bytes."""
    x = front.add("CAST", [x], (channels,), "int32", "CastOptions")
    for kind, number, options in (
        ("MUL", 256, "MulOptions"), ("ADD", 333, "AddOptions"), ("DIV", 666, "DivOptions"), ("ADD", -128, "AddOptions"),
        ("MINIMUM", 127, "MaximumMinimumOptions"), ("MAXIMUM", -128, "MaximumMinimumOptions"),
    ):  # fmt: skip
        x = front.add(kind, [x, front.tensor("number", (), "int32", np.int32(number))], (channels,), "int32", options)
    return front.add("CAST", [x], (channels,), "int8", "CastOptions")
