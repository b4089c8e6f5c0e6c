"""Attention, embeddings, masks, resizing, three axes and single operations, against Keras' own answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from tests.frontend.test_zoo import assert_close
from tests.support.many import run_many

pytestmark = pytest.mark.oracle

RISING = np.linspace(-1.2, 1.5, 30, dtype=np.float32).reshape(1, 5, 6)
POSITIONS = np.sin(np.arange(20, dtype=np.float32)).reshape(1, 5, 4)
HELD = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4) ** 3
LEFT = np.linspace(-2, 1, 15, dtype=np.float32).reshape(3, 5) ** 2
Build = Callable[[Any], Any]
COMPILED = 24
"""Models whose C is compiled together."""


def line(shape: tuple[int, ...], *layers: Callable[[Any], Any], dtype: str = "float32") -> Build:
    """Layers in a row; each is made from the module of layers."""

    def build(keras: Any) -> Any:
        x = first = keras.Input(shape, dtype=dtype)
        for layer in layers:
            x = layer(keras.layers)(x)
        return keras.Model(first, x)

    return build


def joined(left: tuple[int, ...], right: tuple[int, ...], join: Callable[[Any, Any, Any], Any]) -> Build:
    def build(keras: Any) -> Any:
        a, b = keras.Input(left), keras.Input(right)
        return keras.Model([a, b], join(keras, a, b))

    return build


def several(shape: tuple[int, ...], *groups: Callable[[Any, Any], list[Any]]) -> Build:
    """Many operations on one input, each an output."""

    def build(keras: Any) -> Any:
        x = keras.Input(shape)
        return keras.Model(x, [y for group in groups for y in group(keras.ops, x)])

    return build


def _tied(tied: bool) -> Build:
    def build(keras: Any) -> Any:
        x = keras.Input((5,), dtype="int32")
        table = keras.layers.ReversibleEmbedding(7, 4, tie_weights=tied, logit_soft_cap=3.0)
        return keras.Model(x, table(keras.layers.Dense(4)(table(x)), reverse=True))

    return build


def alone(shape: tuple[int, ...], function: Callable[[Any, Any], Any], dtype: str = "float32") -> Build:
    def build(keras: Any) -> Any:
        x = keras.Input(shape, dtype=dtype)
        return keras.Model(x, function(keras, x))

    return build


def steps(layer: Callable[[Any], Any]) -> Build:
    """A layer over steps of which a mask leaves out some."""
    return line((6,), lambda m: m.Embedding(5, 3, mask_zero=True), layer, dtype="int32")


def given_states(*, keep: bool) -> Build:
    """A decoder that begins with the states of an encoder, as in Keras' translation examples."""

    def build(keras: Any) -> Any:
        words, before = keras.Input((6,), dtype="int32"), keras.Input((4,))
        rows = keras.layers.Embedding(5, 3, mask_zero=True)(words)
        after = keras.layers.LSTM(4, return_sequences=keep)(rows, initial_state=[before, before])
        return keras.Model([words, before], after)

    return build


def given_mask(keras: Any, x: Any) -> Any:
    """A mask as an argument, for both directions."""
    return keras.layers.Bidirectional(keras.layers.GRU(3, return_sequences=True))(x, mask=x[..., 0] > 0)


def own_masks(layer: Callable[[Any, Any, Any], Any]) -> Build:
    """An attention layer that is given masks as arguments."""
    return alone((6, 8), lambda k, x: layer(k, x, x[..., 0] > -0.5))


def merged_under_masks(merge: str, masked: str, *after: Callable[[Any], Any]) -> Build:
    """A merging layer of which some operands have masks: Keras 3 replaces what is masked."""

    def build(keras: Any) -> Any:
        a, b = keras.Input((6,), dtype="int32"), keras.Input((6,), dtype="int32")
        first, second = (
            keras.layers.Embedding(5, 4, mask_zero=masked in (name, "both"))(x)
            for name, x in (("first", a), ("second", b))
        )
        y = getattr(keras.layers, merge)()([first, second])
        for layer in after:
            y = layer(keras.layers)(y)
        return keras.Model([a, b], y)

    return build


def inner_model(x: Any) -> Any:
    import keras

    return keras.Sequential([keras.layers.Dense(4), keras.layers.LSTM(3, return_sequences=True)])(x)


def masked_heads(keras: Any, x: Any) -> Any:
    rows = keras.layers.Embedding(4, 6, mask_zero=True)(x)
    return keras.layers.MultiHeadAttention(2, 3)(rows, rows)


def masked_beside_features(keras: Any, x: Any) -> Any:
    """Where masks meet, Keras saves the operations that join them."""
    layers = keras.layers
    rows = layers.Embedding(4, 6, mask_zero=True)(x)
    beside = layers.Concatenate()([rows, keras.ops.cast(x, "float32")[..., None]])
    return layers.LSTM(3)(layers.Concatenate(axis=1)([beside, beside]))


def encoder(keras: Any, x: Any) -> Any:
    layers = keras.layers
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(8)(layers.Dense(12, activation="gelu")(x)))
    return layers.Dense(3)(layers.GlobalAveragePooling1D()(x))


def share_of_a_block(keras: Any, a: Any, b: Any) -> Any:
    """The layer that keras.applications has for InceptionResNetV2 alone."""
    from keras.src.applications.inception_resnet_v2 import CustomScaleLayer

    return CustomScaleLayer(0.17)([a, b])


CASES: dict[str, Build] = {
    "encoder": alone((5, 8), encoder),
    "heads": joined((5, 6), (7, 6), lambda k, a, b: k.layers.MultiHeadAttention(3, 4)(a, b)),
    "heads of another depth": joined(
        (5, 6),
        (7, 6),
        lambda k, a, b: k.layers.MultiHeadAttention(2, 4, value_dim=5, use_bias=False, output_shape=9)(a, b),
    ),
    "heads over images": alone((3, 4, 8), lambda k, x: k.layers.MultiHeadAttention(2, 3)(x, x)),
    "heads over both axes": alone(
        (3, 4, 8), lambda k, x: k.layers.MultiHeadAttention(2, 3, attention_axes=(1, 2))(x, x)
    ),
    "heads with masks of their own": own_masks(
        lambda k, x, m: k.layers.MultiHeadAttention(2, 3)(x, x, value_mask=m, key_mask=k.ops.roll(m, 1, 1))
    ),
    "groups with masks of their own": own_masks(
        lambda k, x, m: k.layers.GroupQueryAttention(4, 4, 2)(x, x, value_mask=m)
    ),
    "attention with a mask of the value": own_masks(lambda k, x, m: k.layers.Attention()([x, x], mask=[None, m])),
    "attention with a mask of the query": own_masks(lambda k, x, m: k.layers.Attention()([x, x], mask=[m, None])),
    "attention with both masks": own_masks(
        lambda k, x, m: k.layers.GlobalAveragePooling1D()(k.layers.AdditiveAttention()([x, x], mask=[m, m]))
    ),
    "attention by concatenation": own_masks(
        lambda k, x, m: k.layers.Attention(score_mode="concat", use_scale=True)([x, x], mask=[None, m])
    ),
    "a constant added": alone((5, 4), lambda k, x: k.layers.Add()([x, k.ops.convert_to_tensor(POSITIONS)])),
    "constant states": alone(
        (5, 4),
        lambda k, x: k.layers.LSTM(4)(x, initial_state=[k.ops.convert_to_tensor(POSITIONS[:, i]) for i in (0, 1)]),
    ),
    "a constant mask": alone(
        (5, 4), lambda k, x: k.layers.GRU(4)(x, mask=k.ops.convert_to_tensor(POSITIONS[..., 0] > 0))
    ),
    "heads with a constant mask": alone(
        (5, 4),
        lambda k, x: k.layers.MultiHeadAttention(2, 2)(
            x, x, attention_mask=k.ops.convert_to_tensor(np.tril(np.ones((1, 5, 5), bool)))
        ),
    ),
    "a window of heads": alone((9, 8), lambda k, x: k.layers.MultiHeadAttention(2, 3, sliding_window=3)(x, x)),
    "a causal window of groups": alone(
        (9, 8), lambda k, x: k.layers.GroupQueryAttention(4, 4, 2, sliding_window=2)(x, x, use_causal_mask=True)
    ),
    **{
        f"{merge}, {of} masked": merged_under_masks(merge, of)
        for merge in ("Add", "Multiply", "Maximum", "Minimum")
        for of in ("first", "second", "both")
    },
    "attention behind a sum under masks": merged_under_masks(
        "Add", "both", lambda m: lambda x: m.MultiHeadAttention(2, 2)(x, x), lambda m: m.GlobalAveragePooling1D()
    ),
    "steps put together under masks": merged_under_masks(
        "Concatenate", "both", lambda m: lambda x: m.Attention()([x, x]), lambda m: m.LSTM(2)
    ),
    "an operation ends a mask": steps(lambda m: lambda x: m.GRU(2)(x * 1.0)),
    "an inner model under a mask": steps(lambda m: lambda x: m.LSTM(2)(inner_model(x))),
    **{
        f"{merge} of masked, LSTM": merged_under_masks(merge, "both", lambda m: m.LSTM(3))
        for merge in ("Add", "Multiply", "Minimum")
    },
    "causal heads": alone((6, 8), lambda k, x: k.layers.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True)),
    "scores": alone((6, 8), lambda k, x: k.layers.MultiHeadAttention(2, 3)(x, x, return_attention_scores=True)),
    "grouped heads": alone((6, 8), lambda k, x: k.layers.GroupQueryAttention(3, 4, 2)(x, x)),
    "masked beside features": alone((5,), masked_beside_features, "int32"),
    "numbers and indices": alone(
        (5,),
        lambda k, x: k.ops.concatenate(
            [k.ops.concatenate([k.ops.argmax(x, -1, keepdims=True), x, x > 0], 1), k.ops.hstack([k.ops.argsort(x), x])],
            1,
        ),
    ),
    "numbers and indices stacked": alone((5,), lambda k, x: k.ops.stack([x, k.ops.argsort(x, -1)], -1)),
    "masked heads": alone((5,), masked_heads, "int32"),
    "attention": joined((5, 6), (7, 6), lambda k, a, b: k.layers.Attention(use_scale=True)([a, b])),
    "additive attention": joined((5, 6), (7, 6), lambda k, a, b: k.layers.AdditiveAttention()([a, b])),
    "dot": joined((6,), (6,), lambda k, a, b: k.layers.Dot(1)([a, b])),
    "cosine": joined((6,), (6,), lambda k, a, b: k.layers.Dot(1, normalize=True)([a, b])),
    "dot of matrices": joined((4, 6), (6, 3), lambda k, a, b: k.layers.Dot((2, 1))([a, b])),
    "einsum, rows": line((5, 6), lambda m: m.EinsumDense("abc,cd->abd", (None, 7), bias_axes="d", activation="relu")),
    "einsum, ellipsis": line((5, 6), lambda m: m.EinsumDense("...x,xy->...y", 7, bias_axes="y")),
    "einsum, heads": line((5, 6), lambda m: m.EinsumDense("abc,cde->abde", (None, 2, 7), bias_axes="de")),
    "einsum, a shape of its own": line((5, 6), lambda m: m.EinsumDense("...x,xy->...y", (5, 7), bias_axes="y")),
    "einsum, columns": line((5, 6), lambda m: m.EinsumDense("abc,bd->acd", (6, 4), bias_axes="cd")),
    "embedding": line((7,), lambda m: m.Embedding(11, 4), lambda m: m.GRU(5), dtype="int32"),
    "masked mean": line(
        (7,), lambda m: m.Embedding(5, 4, mask_zero=True), lambda m: m.GlobalAveragePooling1D(), dtype="int32"
    ),
    "masked lstm": line((6,), lambda m: m.Embedding(5, 4, mask_zero=True), lambda m: m.LSTM(3), dtype="int32"),
    "masked sequence": line(
        (6,),
        lambda m: m.Embedding(5, 4, mask_zero=True),
        lambda m: m.GRU(3, return_sequences=True),
        lambda m: m.GlobalAveragePooling1D(),
        dtype="int32",
    ),
    "masked both ways": line(
        (6,), lambda m: m.Embedding(5, 4, mask_zero=True), lambda m: m.Bidirectional(m.LSTM(3)), dtype="int32"
    ),
    "masked, normalized": line((6, 2), lambda m: m.Masking(1.0), lambda m: m.BatchNormalization(), lambda m: m.GRU(3)),
    "masking": line((6, 2), lambda m: m.Masking(0.0), lambda m: m.SimpleRNN(3)),
    "masking ones": line((6, 2), lambda m: m.Masking(1.0), lambda m: m.Dense(3), lambda m: m.GlobalAveragePooling1D()),
    "groups": line((4, 5, 6), lambda m: m.GroupNormalization(2)),
    "groups of the first axis": line((4, 5, 6), lambda m: m.GroupNormalization(2, axis=1)),
    "spectral": line(
        (6, 5, 3),
        lambda m: m.SpectralNormalization(m.Conv2D(4, 3)),
        lambda m: m.Flatten(),
        lambda m: m.SpectralNormalization(m.Dense(3)),
    ),
    "instances": line((4, 5, 6), lambda m: m.GroupNormalization(-1, center=False)),
    "root mean square": line((4, 6), lambda m: m.RMSNormalization()),
    "unit": line((4, 6), lambda m: m.UnitNormalization()),
    "unit, first axis": line((4, 6), lambda m: m.UnitNormalization(axis=1)),
    "resized": line((5, 12, 3), lambda m: m.Resizing(7, 9)),
    "resized, nearest": line((5, 12, 3), lambda m: m.Resizing(7, 9, interpolation="nearest")),
    "resized, cubic": line((5, 12, 3), lambda m: m.Resizing(7, 9, interpolation="bicubic")),
    "resized and cropped": line((5, 12, 3), lambda m: m.Resizing(6, 6, crop_to_aspect_ratio=True)),
    "cropped": line((5, 12, 3), lambda m: m.CenterCrop(3, 6)),
    "prepared": line(
        (10, 12, 3),
        lambda m: m.Rescaling(1 / 127.5, -1),
        lambda m: m.Resizing(8, 8),
        lambda m: m.RandomFlip(),
        lambda m: m.RandomRotation(0.2),
        lambda m: m.Conv2D(3, 3),
        lambda m: m.Flatten(),
        lambda m: m.Dense(2),
    ),
    "bytes": line((6, 6, 3), lambda m: m.Rescaling(1 / 255.0), lambda m: m.Conv2D(3, 3), dtype="uint8"),
    "volume": line(
        (6, 5, 7, 2),
        lambda m: m.Conv3D(4, 3, padding="same", activation="relu"),
        lambda m: m.MaxPooling3D(),
        lambda m: m.AveragePooling3D(2, strides=1, padding="same"),
    ),
    "volume, strides": line((6, 5, 7, 2), lambda m: m.Conv3D(4, (2, 3, 1), strides=(2, 1, 2))),
    "volume, dilated": line((6, 5, 7, 2), lambda m: m.Conv3D(4, (2, 3, 2), dilation_rate=(2, 1, 2))),
    "volume, in groups": line((4, 5, 3, 4), lambda m: m.Conv3D(6, (3, 2, 2), groups=2, padding="same")),
    "volume, spread": line(
        (3, 4, 2, 2), lambda m: m.Conv3DTranspose(3, 3, strides=2, padding="same", activation="relu")
    ),
    "volume, spread by phases": line((3, 2, 4, 2), lambda m: m.Conv3DTranspose(2, (2, 3, 1), strides=(3, 1, 2))),
    "volume, spread further": line(
        (2, 3, 2, 1),
        lambda m: m.Conv3DTranspose(2, (5, 1, 3), strides=(2, 1, 2), padding="same", output_padding=(1, 0, 1)),
    ),
    "volume, adaptive": line((4, 6, 2, 2), lambda m: m.AdaptiveMaxPooling3D((2, 3, 1))),
    "volume, moved": line(
        (3, 4, 2, 2),
        lambda m: m.ZeroPadding3D(1),
        lambda m: m.Cropping3D(((1, 0), (0, 1), (1, 1))),
        lambda m: m.UpSampling3D(2),
        lambda m: m.GlobalAveragePooling3D(),
    ),
    "convlstm": line((3, 5, 6, 2), lambda m: m.ConvLSTM2D(3, 3, padding="same")),
    "convlstm, backwards": line(
        (3, 5, 6, 2), lambda m: m.ConvLSTM2D(2, (2, 3), strides=(2, 1), return_sequences=True, go_backwards=True)
    ),
    "convlstm of rows": line((3, 6, 2), lambda m: m.ConvLSTM1D(3, 3, padding="same", return_sequences=True)),
    "convlstm, both ways": line(
        (3, 5, 4, 2), lambda m: m.Bidirectional(m.ConvLSTM2D(2, 3, padding="same", return_sequences=True))
    ),
    "convlstm, both ways to one": line((3, 5, 4, 2), lambda m: m.Bidirectional(m.ConvLSTM2D(2, 3), merge_mode="sum")),
    "convlstm of rows, both ways": line((3, 6, 2), lambda m: m.Bidirectional(m.ConvLSTM1D(2, 3), merge_mode="ave")),
    "pipeline": line(
        (6, 6, 3),
        lambda m: m.Pipeline(
            [m.Rescaling(0.5), m.Conv2D(2, 2), m.RandomFlip(), m.Conv2D(3, 2), m.LayerNormalization()]
        ),
    ),
    "stretched contrast": line((5, 4, 3), lambda m: m.AutoContrast(value_range=(0, 1))),
    "tied embedding": _tied(True),
    "untied embedding": _tied(False),
    "gated attention": joined((5, 6), (4, 6), lambda k, a, b: k.layers.MultiHeadAttention(2, 3, use_gate=True)(a, b)),
    "gated attention in groups": joined(
        (5, 6), (4, 6), lambda k, a, b: k.layers.GroupQueryAttention(3, 4, 2, use_gate=True)(a, b)
    ),
    "deviation alone": line((5, 6), lambda m: m.LayerNormalization(rms_scaling=True)),
    "deviation alone, of another axis": line((5, 6), lambda m: m.LayerNormalization(axis=1, rms_scaling=True)),
    "root mean square of another axis": line((6, 6), lambda m: m.RMSNormalization(axis=1)),
    "sparse activations": line(
        (5, 6),
        lambda m: m.Dense(4, "sparse_plus"),
        lambda m: m.Dense(3, "sparsemax"),
        lambda m: m.Dense(3, "sparse_sigmoid"),
    ),
    "constants": several(
        (5, 6),
        lambda k, x: [k.arctan2(x, RISING + 2), k.hypot(x, RISING), k.logaddexp(x, RISING), k.inner(x, RISING[0])],
        lambda k, x: [k.tensordot(x, RISING[0].T, 1), k.conv(x, RISING.reshape(5, 6, 1)[:3])],
        lambda k, x: [k.nn.layer_normalization(x, RISING[0, 0], RISING[0, 1]), k.nn.rms_normalization(x, RISING[0, 0])],
        lambda k, x: [k.nn.batch_normalization(x, RISING[0, 0], RISING[0, 1] ** 2 + 0.1, -1)],
    ),
    "cell": line((5, 3), lambda m: m.RNN(m.LSTMCell(4), return_sequences=True)),
    "cell, gru": line((5, 3), lambda m: m.RNN(m.GRUCell(4))),
    "cells": line((5, 3), lambda m: m.RNN([m.LSTMCell(4), m.GRUCell(2)], return_sequences=True)),
    "cells of one class, backwards": line(
        (5, 3), lambda m: m.RNN([m.LSTMCell(4), m.LSTMCell(2), m.LSTMCell(3)], return_sequences=True, go_backwards=True)
    ),
    "cells, masked": steps(lambda m: m.RNN([m.SimpleRNNCell(4), m.GRUCell(2)])),
    "masked, both ways": steps(lambda m: m.Bidirectional(m.LSTM(4, return_sequences=True))),
    "masked, both ways, summed": steps(lambda m: m.Bidirectional(m.GRU(4, return_sequences=True), merge_mode="sum")),
    "masked, zeros": steps(lambda m: m.LSTM(4, return_sequences=True, zero_output_for_mask=True)),
    "masked, zero at the end": steps(lambda m: m.GRU(4, zero_output_for_mask=True)),
    "masked, several cells, backwards": steps(
        lambda m: m.RNN([m.SimpleRNNCell(4), m.GRUCell(2)], return_sequences=True, go_backwards=True)
    ),
    "masked by an argument, both ways": alone((6, 2), given_mask),
    "masked, from given states": given_states(keep=True),
    "masked, from given states, the last": given_states(keep=False),
    "masked cells, zeros": steps(
        lambda m: m.RNN([m.GRUCell(4), m.LSTMCell(2)], return_sequences=True, zero_output_for_mask=True)
    ),
    "cells, both ways": line((5, 3), lambda m: m.Bidirectional(m.RNN([m.LSTMCell(4), m.GRUCell(2)]))),
    "cells, states": alone(
        (5, 3),
        lambda k, x: k.tree.flatten(k.layers.RNN([k.layers.LSTMCell(4), k.layers.GRUCell(2)], return_state=True)(x)),
    ),
    **{
        f"activation {name}": line((6,), lambda m, n=name: m.Dense(4, activation=n))
        for name in ("celu", "glu", "hard_shrink", "log_sigmoid", "log_softmax", "soft_shrink", "squareplus")
    },
    "activation as a layer": line(
        (4, 3), lambda m: m.Conv1D(2, 2, activation="celu"), lambda m: m.Activation("tanh_shrink")
    ),
    "larger, cubic": line((3, 4, 2), lambda m: m.UpSampling2D((2, 3), interpolation="bicubic")),
    "bounds": alone((4,), lambda k, x: k.layers.Discretization([-1.0, 0.0, 0.5])(x)),
    "bounds, one hot": line((1,), lambda m: m.Discretization([-1.0, -0.4, 0.0, 0.5], output_mode="one_hot")),
    "bounds, counted": line((4,), lambda m: m.Discretization([-1.0, 0.0, 0.5], output_mode="count")),
    **{
        f"classes, {mode} of {size}": line(
            (size,),
            lambda m: m.Discretization([-1.0, 0.0, 0.5]),
            lambda m, o=mode: m.CategoryEncoding(4, output_mode=o),
        )
        for mode in ("one_hot", "multi_hot", "count")
        for size in (1, 3)
    },
    "where": alone((4, 5), lambda k, x: k.ops.where(k.ops.greater(x, 0.3), x * 2, -x)),
    "whole numbers": alone((4, 5), lambda k, x: k.ops.cast((x + 3) * 2 - k.ops.mod(x, 3), "float32"), "int32"),
    "argmax": alone((4, 5), lambda k, x: k.ops.argmax(x, axis=-1)),
    "einsum of two": joined((4, 5), (3, 5), lambda k, a, b: k.ops.einsum("bij,bkj->bki", a, b)),
    "matmul": joined((2, 4, 5), (2, 5, 3), lambda k, a, b: k.ops.matmul(a, b)),
    "products by constants": several(
        (5, 6),
        lambda o, x: [o.matmul(x, HELD), o.matmul(x, HELD[None]), o.matmul(x, HELD[:, 0]), x @ HELD],
        lambda o, x: [o.matmul(LEFT, x), o.matmul(LEFT[None], x), o.matmul(LEFT[0], x)],
        lambda o, x: [o.einsum("bij,jk->bik", x, HELD), o.einsum("ki,bij->bkj", LEFT, x)],
        lambda o, x: [o.einsum("...j,jk->...k", x, HELD), o.einsum("bij,j->bi", x, HELD[:, 1])],
    ),
    "attention as an operation": several(
        (6, 4, 8),
        lambda o, x: [o.dot_product_attention(x, x[:, ::-1] * 0.5, x + 1.0)],
        lambda o, x: [o.dot_product_attention(x, x[:, :, :2], x[:, :, 2:], is_causal=True)],
        lambda o, x: [o.dot_product_attention(x, x, x, mask=o.transpose(x[..., :6], (0, 2, 1, 3)) > -0.5, scale=0.7)],
        lambda o, x: [o.dot_product_attention(x, x, x, bias=o.transpose(x[..., :6], (0, 2, 1, 3)))],
    ),
    "a row by a constant": alone((6,), lambda k, x: k.ops.matmul(x, HELD)),
    "images by a constant": several((2, 5, 6), lambda o, x: [o.matmul(LEFT, x), o.matmul(x, HELD)]),
    "along an axis": several(
        (5, 6),
        lambda o, x: [o.take_along_axis(x, o.argsort(x, axis=2), axis=2)],
        lambda o, x: [o.take_along_axis(x, o.argsort(x, axis=1)[:, :3] - 5, axis=1)],
        lambda o, x: [o.take_along_axis(x, o.argsort(x, axis=1)[:, :1, :1] * np.ones((1, 1, 6), "int32"), axis=1)],
    ),
    "patches": several(
        (9, 10, 3),
        lambda o, x: [o.image.extract_patches(x, 3), o.image.extract_patches(x, (4, 3), padding="same")],
        lambda o, x: [o.image.extract_patches(x, (3, 2), strides=(2, 1), padding="same")],
        lambda o, x: [o.image.extract_patches(x, 3, strides=1, dilation_rate=2)],
    ),
    "take": alone((4, 5), lambda k, x: k.ops.take(x, [2, 0, 2], axis=1)),
    "logic": alone(
        (4, 5),
        lambda k, x: k.ops.cast(k.ops.any(k.ops.logical_and(x > 0, k.ops.logical_not(x > 1)), axis=-1), "float32"),
    ),
    "statistics": several(
        (4, 6),
        lambda o, x: [o.var(x, -1), o.std(x, 1, keepdims=True), *o.moments(x, axes=[2]), o.average(x, 1)],
        lambda o, x: [o.logsumexp(x, -1), o.log_softmax(x, -1), o.norm(x, axis=-1), o.normalize(x, -1), o.amax(x, 1)],
        lambda o, x: [o.prod(x, -1), o.cumsum(x, 1), o.cumsum(x, 2), o.logaddexp(x, -x), x**3],
    ),
    "pieces": several(
        (4, 6),
        lambda o, x: [*o.split(x, 2, -1), *o.split(x, [1, 4], 2), *o.unstack(x, axis=1), o.stack([x, -x], 1)],
        lambda o, x: [o.tile(x, (1, 2, 1)), o.repeat(x, 2, 1), o.flip(x, 1), o.roll(x, 2, 1), o.swapaxes(x, 1, 2)],
        lambda o, x: [o.moveaxis(x, 1, 2), o.glu(x), *o.top_k(x, 3)],
        lambda o, x: [o.max_pool(x, 2), o.average_pool(x, 2, 1), o.one_hot(o.argmax(x, -1), 6) + o.ones_like(x)],
    ),
    "functions": several(
        (4, 6),
        lambda o, x: [o.log1p(o.abs(x)), o.expm1(x), o.reciprocal(x + 9.0), o.sign(x), o.round(x), o.tan(x / 4)],
        lambda o, x: [o.sinh(x), o.cosh(x), o.erf(x), o.hard_shrink(x), o.soft_shrink(x), o.celu(x, 0.7)],
        lambda o, x: [o.log_sigmoid(x), o.squareplus(x), o.tanh_shrink(x), o.threshold(x, 0.1, 0.2), o.zeros_like(x)],
        lambda o, x: [o.where(o.isnan(x), 0.0, x)],
    ),
    "share of a block": joined((4, 6), (4, 6), share_of_a_block),
}


def inputs_of(model: Any, chance: np.random.Generator) -> list[Array]:
    """Small whole numbers, zeros among them, so that masks have what to leave out."""
    found = []
    for tensor in model.inputs:
        shape = (3, *tensor.shape[1:])
        if "int" in tensor.dtype:
            found.append(chance.integers(0, 255 if tensor.dtype == "uint8" else 4, shape).astype(tensor.dtype))
        else:
            found.append(chance.integers(-1, 2, shape).astype(np.float32) + (shape[-1] > 2) * _noise(chance, shape))
    return found


def _noise(chance: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return chance.normal(size=shape).astype(np.float32)


def graph_and_golden(name: str, folder: Path, suffix: str) -> tuple[Graph, dict[str, Array], list[Array]]:
    keras = pytest.importorskip("keras")
    chance = np.random.default_rng(len(name))
    model = CASES[name](keras)
    model.set_weights([_noise(chance, w.shape) * 0.5 + (w.ndim == 1) for w in model.get_weights()])
    given = inputs_of(model, chance)
    golden = model(given if len(given) > 1 else given[0], training=False)
    path = folder / f"model.{suffix}"
    model.save(path)
    graph = passes.run(load(path))
    values = {n: interpret.as_input(graph.tensors[n], x, "float32") for n, x in zip(graph.inputs, given, strict=True)}
    return graph, values, [np.asarray(y) for y in (golden if isinstance(golden, (list, tuple)) else [golden])]


def compare(graph: Graph, inputs: dict[str, Array], golden: list[Array], name: str) -> None:
    single, double = interpret.run(graph, inputs), interpret.run(graph, inputs, "float64")
    for output, wanted in zip(graph.outputs, golden, strict=True):
        assert_close(single[output].reshape(wanted.shape), double[output].reshape(wanted.shape), wanted, name)


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_keras(name: str, tmp_path: Path) -> None:
    suffix = ("keras", "h5")[list(CASES).index(name) % 2]
    compare(*graph_and_golden(name, tmp_path, suffix), name)


@pytest.mark.turns(4)
@pytest.mark.slow
@pytest.mark.parametrize("group", range(3))
def test_the_c_agrees_with_the_reference(group: int, tmp_path: Path) -> None:
    names = list(CASES)[group::3]
    runs = [graph_and_golden(name, tmp_path, "keras")[:2] for name in names]
    for name, (graph, inputs), found in zip(names, runs, run_many(runs, tmp_path), strict=True):
        wanted = interpret.run(graph, inputs, "float64")
        for output in graph.outputs:
            np.testing.assert_allclose(found[output], wanted[output], rtol=2e-5, atol=2e-5, err_msg=name)
