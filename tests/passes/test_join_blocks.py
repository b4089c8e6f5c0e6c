"""Dilated convolutions over the blocks of an image, as TensorFlow's converter writes those of Keras 2, against TFLite's
reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Shape
from nnbuild.ops import interpret
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.transpose import Transpose
from tests.frontend.test_tflite_zoo import reference, wrong

pytestmark = pytest.mark.oracle

Pads = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Case:
    """Blocks of an image that is padded before and cropped afterwards, `through` so many convolutions by 3."""

    shape: Shape
    blocks: tuple[int, ...]
    pads: Pads
    crops: Pads
    through: int = 1
    depthwise: bool = False
    back: tuple[int, ...] | None = None
    """Other blocks, into which the results are put."""

    def compute(self, tf: Any, x: Any) -> Any:
        chance, channels = np.random.default_rng(7), self.shape[-1]
        x = tf.space_to_batch(x, self.blocks, self.pads)
        if row := len(self.blocks) == 1:
            x = tf.expand_dims(x, 1)
        for _ in range(self.through):
            kernel = chance.normal(size=(1 if row else 3, 3, channels, 1 if self.depthwise else channels)) / 4
            convolution = tf.nn.depthwise_conv2d if self.depthwise else tf.nn.conv2d
            x = tf.nn.relu(convolution(x, kernel.astype(np.float32), [1, 1, 1, 1], "VALID") + 0.1)
        return tf.batch_to_space(tf.squeeze(x, [1]) if row else x, self.back or self.blocks, self.crops)


CASES = {
    "same": Case((12, 10, 3), (2, 2), ((2, 2), (2, 2)), ((0, 0), (0, 0))),
    "filled": Case((13, 9, 3), (3, 2), ((3, 5), (2, 3)), ((0, 2), (0, 1))),
    "only columns": Case((5, 9, 4), (1, 4), ((1, 1), (4, 7)), ((0, 0), (0, 3))),
    "depthwise": Case((12, 10, 5), (2, 2), ((2, 2), (2, 2)), ((0, 0), (0, 0)), depthwise=True),
    "valid": Case((12, 10, 3), (2, 2), ((0, 0), (0, 0)), ((0, 0), (0, 0))),
    "several": Case((12, 16, 4), (2, 2), ((0, 0), (0, 0)), ((0, 0), (0, 0)), through=2, depthwise=True),
    "causal": Case((21, 6), (4,), ((8, 3),), ((0, 3),)),
    "cut in front": Case((21, 6), (4,), ((8, 3),), ((2, 1),)),
    "elsewhere": Case((12, 16, 3), (2, 4), ((0, 0), (0, 0)), ((0, 0), (0, 0)), back=(4, 2)),
}


def convert(tf: Any, case: Case, integers: bool, given: Array) -> bytes:
    signature = [tf.TensorSpec((1, *case.shape), tf.float32)]
    traced = tf.function(lambda x: case.compute(tf, x), input_signature=signature).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([traced], tf.Module())

    def samples() -> Iterator[list[Array]]:
        yield from ([row[None]] for row in given)

    if integers:
        converter.optimizations, converter.representative_dataset = [tf.lite.Optimize.DEFAULT], samples
    return bytes(converter.convert())


@pytest.mark.parametrize("integers", [False, True], ids=["float", "int8"])
@pytest.mark.parametrize("name", CASES)
def test_blocks_of_an_image(name: str, integers: bool, tmp_path: Path) -> None:
    tf, case, path = pytest.importorskip("tensorflow"), CASES[name], tmp_path / "model.tflite"
    given = np.random.default_rng(2).normal(size=(4, *case.shape)).astype(np.float32)
    path.write_bytes(convert(tf, case, integers, given))
    graph = passes.run(load(path))
    found = interpret.run(graph, {graph.inputs[0]: given})[graph.outputs[0]]
    (wanted,) = reference(path, [[row] for row in given])
    assert wrong(found, wanted) == 0
    if integers:
        np.testing.assert_array_equal(found, wanted.reshape(found.shape))
    convolutions = [op for op in graph.ops if isinstance(op.attributes, Conv2D | DepthwiseConv2D)]
    assert len(convolutions) == case.through
    assert any(isinstance(op.attributes, Transpose) or op.outer for op in graph.ops) == (case.back is not None)
