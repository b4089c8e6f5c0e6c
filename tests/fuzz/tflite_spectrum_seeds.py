"""Sound `.tflite` files with spectra: complex tensors between a transform and what is taken of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tests.frontend.tflite_files import File, O, T
from tests.fuzz.tflite_selection_seeds import plain


def spectrum(name: str, shape: Sequence[int], data: np.ndarray | None = None) -> T:
    return T(name, shape, "complex64", (), (), data=data)


def transformed(shape: Sequence[int], lengths: Sequence[int], kind: str = "COMPLEX_ABS") -> File:
    """A transform, and what is taken of its result."""
    bins = (*shape[:-2], lengths[0], lengths[1] // 2 + 1)
    tensors = [plain("x", shape, "float32"), plain("n", (2,), "int32", list(lengths))]
    tensors += [spectrum("s", bins), plain("out", bins, "float32")]
    return File(tensors, [O("RFFT2D", [0, 1], [2], "Rfft2dOptions"), O(kind, [2], [3])], [0], [3])


def framed() -> File:
    """Frames, as tf.signal.stft has them: rows gathered by constant indices, and axes that come and go."""
    places = np.arange(7)[:, None] * 2 + np.arange(5)
    tensors = [
        plain("x", (1, 17, 16), "float32"), plain("places", (7, 5), "int32", places),
        plain("rows", (1, 7, 5, 16), "float32"), plain("to", (4,), "int32", [1, 7, 1, 80]),
        plain("frames", (1, 7, 1, 80), "float32"), plain("n", (2,), "int32", [1, 128]),
        spectrum("s", (1, 7, 1, 65)), spectrum("flat", (1, 7, 65)), plain("real", (1, 7, 65), "float32"),
        plain("imaginary", (1, 7, 65), "float32"), plain("out", (1, 7, 65), "float32"),
    ]  # fmt: skip
    operators = [
        O("GATHER", [0, 1], [2], "GatherOptions", {"Axis": 1}), O("RESHAPE", [2, 3], [4]), O("RFFT2D", [4, 5], [6]),
        O("SQUEEZE", [6], [7], "SqueezeOptions", {"SqueezeDims": np.array([2], np.int32)}), O("REAL", [7], [8]),
        O("IMAG", [7], [9]), O("SUB", [8, 9], [10], "SubOptions"),
    ]  # fmt: skip
    return File(tensors, operators, [0], [10])


def multiplied() -> File:
    """A spectrum times itself and times constants."""
    file = transformed((1, 4, 8), (4, 8))
    factors = np.random.default_rng(6).normal(size=(5, 2)).astype(np.float32).view(np.complex64).reshape(5)
    bins = (1, 4, 5)
    tensors = [*file.tensors[:3], spectrum("k", (5,), factors), spectrum("squares", bins), spectrum("turned", bins)]
    tensors.append(plain("out", bins, "float32"))
    operators = [file.operators[0], O("MUL", [2, 2], [4], "MulOptions"), O("MUL", [4, 3], [5], "MulOptions")]
    return File(tensors, [*operators, O("REAL", [5], [6])], [0], [6])


def _seeds() -> Iterator[tuple[str, File]]:
    yield "COMPLEX_ABS-float32", transformed((1, 3, 1, 32), (1, 32))
    yield "REAL-float32", transformed((1, 1, 256), (1, 256), "REAL")
    yield "IMAG-float32", transformed((1, 1, 300), (1, 512), "IMAG")
    yield "CAST-float32", transformed((1, 2, 1, 60), (1, 64), "CAST")
    yield "RFFT2D-float32", transformed((1, 2, 8, 16), (8, 16))
    yield "RFFT2D-other-size-float32", transformed((2, 9, 12), (4, 16))
    yield "RFFT2D-long-columns-float32", transformed((1, 256, 4), (256, 4))
    yield "RFFT2D-frames-float32", framed()
    yield "RFFT2D-products-float32", multiplied()


SPECTRA = dict(_seeds())
