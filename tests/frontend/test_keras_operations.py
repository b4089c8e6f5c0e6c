"""Single operations of Keras' in a graph: those that are put together from others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.ops import interpret
from tests.frontend.keras_files import called, functional, h5_bytes, input_layer, layer
from tests.support.running import ROOT

X = np.linspace(-2.1, 2.3, 30, dtype=np.float32).reshape(2, 5, 3)
WRITTEN = {
    "arctan": "K.arctan(x * 3)",
    "arctan2": "K.arctan2(x, K.roll(x, 1, -1))",
    "attention": "K.dot_product_attention(heads(x), heads(x), heads(x), bias=np.tri(5, dtype='float32')[None, None])",
    "attention_masked": "K.dot_product_attention(heads(x), heads(x), heads(x), mask=np.tri(5)[None, None] > 0)",
    "conv": "K.conv(heads(x), rising(3, 2, 3, 4), padding='same', strides=2)",
    "count_nonzero": "K.count_nonzero(K.relu(x), axis=(1, 2))",
    "depthwise_conv": "K.depthwise_conv(x, rising(3, 6, 1))",
    "einsum_of_one": "K.einsum('bij->bj', x)",
    "layer_norm": "K.nn.layer_normalization(x, rising(5), axis=1)",
    "layer_norm_rms": "K.nn.layer_normalization(x, rms_scaling=True)",
    "rms_of_one_axis": "K.nn.rms_normalization(x, rising(6), axis=1)",
    "separable_conv": "K.separable_conv(heads(x), rising(3, 2, 3, 2), rising(1, 1, 6, 3))",
    "sparse_plus": "K.nn.sparse_plus(x * 2)",
    "sparsemax": "K.nn.sparsemax(x * 3, axis=1)",
    "tensordot": "K.tensordot(x, rising(6, 5, 2), [[1, 2], [1, 0]])",
    "diff": "K.diff(x, axis=1)",
    "dot": "K.dot(x, np.ones((6, 2), 'float32').cumsum(0))",
    "exp2": "K.exp2(x)",
    "floor_divide": "K.floor_divide(x, .3)",
    "floor_divide_of": "K.floor_divide(3., x)",
    "full_like": "x + K.full_like(x, 2.)",
    "hstack": "K.hstack([x, x])",
    "hypot": "K.hypot(x, x + 1)",
    "isfinite": "K.where(K.isfinite(x), x, 0.)",
    "where_known": "K.where(K.arange(5)[:, None] < 3, x, 0.)",
    "where_known_of_two": "K.where(np.tri(5, 6)[None] > 0, x * 2, x)",
    "log10": "K.log10(K.abs(x) + .1)",
    "log2": "K.log2(K.abs(x) + .1)",
    "mod": "K.mod(x, .7)",
    "mod_of_two": "K.mod(x, x * x + 1)",
    "mod_of": "K.mod(3., x * x + 1)",
    "prod_of_two": "K.prod(x, (1, -1), keepdims=True)",
    "prod_of_all": "K.prod(x, (1, 2))",
    "rms": "K.nn.rms_normalization(x)",
    "select": "K.select([x > 1, x > 0], [x, x * 2], -x)",
    "slice": "K.slice(x, (0, 1, 2), (1, 2, 3))",
    "sort": "K.sort(x, -1)",
    "sort_before": "K.sort(x, 1)",
    "argsort": "K.cast(K.argsort(x, 1), 'float32')",
    "trace": "K.expand_dims(K.trace(x, axis1=1, axis2=2), -1)",
    "diagonal": "K.diagonal(x, axis1=1, axis2=2)",
    "tril": "K.tril(x)",
    "triu": "K.triu(x, 1)",
    "trunc": "K.trunc(x * 3)",
    "round": "K.round(x * 3, 1)",
    "and_known": "K.cast(K.logical_and(x > 0, np.tri(5, 6)[None] > 0), 'float32')",
    "resize": "K.image.resize(K.reshape(x, (-1, 5, 3, 2)), (7, 4))",
    "resize_nearest": "K.image.resize(K.reshape(x, (-1, 5, 3, 2)), (3, 8), interpolation='nearest')",
    "gray": "K.image.rgb_to_grayscale(K.reshape(x, (-1, 5, 2, 3)))",
}
MADE = """
import sys, keras, numpy as np
from pathlib import Path
K, folder = keras.ops, Path(sys.argv[1])
heads = lambda x: K.reshape(x, (-1, 5, 2, 3))
rising = lambda *shape: np.linspace(-1, 1, int(np.prod(shape)), dtype="float32").reshape(shape)
for name, text in eval(sys.argv[2]).items():
    i = keras.Input((5, 6))
    x = keras.layers.Dense(6)(i)
    model = keras.Model(i, eval(text))
    given = np.random.default_rng(1).normal(size=(4, 5, 6)).astype("float32")
    model.save(folder / f"{name}.keras")
    np.savez(folder / f"{name}.npz", x=given, y=np.concatenate([model(row[None]).numpy() for row in given]))
"""


TIMES = np.floor(X / np.float32(0.7))


@pytest.mark.parametrize(("function", "wanted"), [("floormod", X - TIMES * np.float32(0.7)), ("floordiv", TIMES)])
def test_floored_quotients_of_floats_are_no_whole_numbers(function: str, wanted: np.ndarray, tmp_path: Path) -> None:
    made = layer("TFOpLambda", "op", function=f"math.{function}")
    op = {**made, "name": "op", "inbound_nodes": [["x", 0, 0, {"y": 0.7}]]}
    config = functional([called(input_layer("x", (5, 3))), op], ["x"], ["op"])
    path = tmp_path / "net.h5"
    path.write_bytes(h5_bytes(config, {}))
    graph = passes.run(load(path))
    np.testing.assert_allclose(interpret.run(graph, {graph.inputs[0]: X})[graph.outputs[0]], wanted, atol=1e-6)


@pytest.mark.oracle
@pytest.mark.full
def test_operations_answer_as_keras_does(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    command = [sys.executable, "-c", MADE, str(tmp_path), repr(WRITTEN)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    for name in WRITTEN:
        graph = passes.run(load(tmp_path / f"{name}.keras"))
        with np.load(tmp_path / f"{name}.npz") as arrays:
            x, y = arrays["x"], arrays["y"]
        found = interpret.run(graph, {graph.inputs[0]: x})[graph.outputs[0]]
        np.testing.assert_allclose(found.reshape(y.shape), y, atol=2e-5, rtol=2e-5, err_msg=name)
