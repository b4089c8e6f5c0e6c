"""Keras models at random, of nearly every layer, with values as training leaves them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ACTIVATIONS = (None, None, "relu", "relu", "relu6", "tanh", "sigmoid", "elu", "selu", "softplus", "softsign", "silu")
ACTIVATIONS = (*ACTIVATIONS, "gelu", "hard_sigmoid", "leaky_relu", "exponential", "linear", "hard_silu", "mish")
LARGEST = 6_000
MOST_WEIGHTS = 40_000


@dataclass
class Draft:
    """A functional model that grows from its inputs."""

    keras: Any
    chance: np.random.Generator
    made: list[Any] = field(default_factory=list)
    """Every tensor so far."""

    @property
    def layers(self) -> Any:
        return self.keras.layers

    def pick(self, *values: Any) -> Any:
        return values[int(self.chance.integers(len(values)))]

    def maybe(self, share: float) -> bool:
        return bool(self.chance.random() < share)

    def activation(self) -> Any:
        return self.pick(*ACTIVATIONS)

    def same_shape(self, x: Any) -> list[Any]:
        return [other for other in self.made if tuple(other.shape) == tuple(x.shape)]


Maker = Callable[[Draft, Any], Any]


def size(x: Any) -> int:
    return int(np.prod([n or 1 for n in x.shape]))


def convolution(d: Draft, x: Any) -> Any:
    dilated = d.maybe(0.2)
    kernel = d.pick(1, 2, 3, 3, 5, (1, 3), (3, 1), (2, 3))
    channels = int(x.shape[-1])
    groups = d.pick(*(g for g in (1, 1, 1, 2, 3, 4) if channels % g == 0))
    return d.layers.Conv2D(
        d.pick(1, 2, 3, 4, 8) * groups,
        kernel,
        strides=1 if dilated else d.pick(1, 1, 2, (1, 2), 3),
        padding=d.pick("same", "valid"),
        dilation_rate=d.pick(2, (1, 2), 3) if dilated else 1,
        groups=groups,
        activation=d.activation(),
        use_bias=d.maybe(0.7),
    )(x)


def depthwise(d: Draft, x: Any) -> Any:
    return d.layers.DepthwiseConv2D(
        d.pick(1, 2, 3, 3, 5),
        strides=d.pick(1, 1, 2),
        padding=d.pick("same", "valid"),
        depth_multiplier=d.pick(1, 1, 2),
        activation=d.activation(),
        use_bias=d.maybe(0.7),
    )(x)


def separable(d: Draft, x: Any) -> Any:
    kind = d.layers.SeparableConv2D if len(x.shape) == 4 else d.layers.SeparableConv1D
    return kind(d.pick(2, 3, 8), d.pick(2, 3), padding=d.pick("same", "valid"), depth_multiplier=d.pick(1, 2))(x)


def transposed(d: Draft, x: Any) -> Any:
    kind = d.layers.Conv2DTranspose if len(x.shape) == 4 else d.layers.Conv1DTranspose
    return kind(
        d.pick(1, 2, 3, 4),
        d.pick(1, 2, 3, 4),
        strides=d.pick(1, 2, 2, 3),
        padding=d.pick("same", "valid"),
        activation=d.activation(),
        use_bias=d.maybe(0.7),
    )(x)


def along_time(d: Draft, x: Any) -> Any:
    dilated = d.maybe(0.3)
    return d.layers.Conv1D(
        d.pick(1, 3, 4, 8),
        d.pick(1, 2, 3, 5),
        strides=1 if dilated else d.pick(1, 1, 2, 3),
        padding=d.pick("same", "valid", "causal"),
        dilation_rate=d.pick(2, 3) if dilated else 1,
        activation=d.activation(),
        use_bias=d.maybe(0.7),
    )(x)


def dense(d: Draft, x: Any) -> Any:
    return d.layers.Dense(d.pick(1, 2, 3, 5, 8, 9, 16), activation=d.activation(), use_bias=d.maybe(0.7))(x)


def normalization(d: Draft, x: Any) -> Any:
    kind = d.pick("batch", "batch", "batch", "layer", "unit", "group", "rms")
    if kind == "batch":
        axis = d.pick(-1, -1, -1, *range(1, len(x.shape)))
        return d.layers.BatchNormalization(axis=axis, scale=d.maybe(0.7), center=d.maybe(0.7))(x)
    if kind == "layer":
        return d.layers.LayerNormalization(axis=d.pick(-1, -1, 1), scale=d.maybe(0.7), center=d.maybe(0.7))(x)
    if kind == "unit":
        return d.layers.UnitNormalization()(x)
    if kind == "rms" and hasattr(d.layers, "RMSNormalization"):
        return d.layers.RMSNormalization()(x)
    channels = int(x.shape[-1])
    return d.layers.GroupNormalization(groups=d.pick(*(g for g in (1, 2, 3, 4) if channels % g == 0)))(x)


def pool(d: Draft, x: Any) -> Any:
    name = d.pick("MaxPooling", "AveragePooling")
    rank = len(x.shape) - 2
    window = d.pick(1, 2, 2, 3) if rank == 1 or d.maybe(0.7) else d.pick((1, 2), (3, 2), (2, 1))
    layer = getattr(d.layers, f"{name}{rank}D")
    return layer(window, strides=d.pick(None, 1, 2), padding=d.pick("same", "valid"))(x)


def whole_pool(d: Draft, x: Any) -> Any:
    kind = d.pick("GlobalMaxPooling", "GlobalAveragePooling")
    return getattr(d.layers, f"{kind}{len(x.shape) - 2}D")(keepdims=d.maybe(0.3))(x)


def activation(d: Draft, x: Any) -> Any:
    m = d.layers
    shared = d.pick(None, [1], list(range(1, len(x.shape) - 1)) or None)
    return d.pick(
        lambda: m.Activation(d.activation() or "relu"),
        lambda: m.ReLU(d.pick(None, 6.0, 2.5), d.pick(0.0, 0.1), d.pick(0.0, 0.2)),
        lambda: m.LeakyReLU(negative_slope=d.pick(0.01, 0.3)),
        lambda: m.PReLU(shared_axes=shared, alpha_initializer="random_normal"),
        lambda: m.ELU(alpha=d.pick(1.0, 0.4)),
        lambda: m.Softmax(axis=d.pick(-1, -1, 1)),
    )()(x)


def arithmetic(d: Draft, x: Any) -> Any:
    others = d.same_shape(x)
    chosen = [x, *(d.pick(*others) for _ in range(d.pick(1, 1, 1, 2)))]
    name = d.pick("Add", "Add", "Multiply", "Average", "Maximum", "Minimum", "Concatenate", "Concatenate", "Subtract")
    if name == "Subtract":
        return d.layers.Subtract()(chosen[:2])
    if name == "Concatenate":
        return d.layers.Concatenate(axis=d.pick(-1, -1, 1))(chosen)
    return getattr(d.layers, name)()(chosen)


def operators(d: Draft, x: Any) -> Any:
    """What users write without layers."""
    ops = d.keras.ops
    other = d.pick(*d.same_shape(x))
    return d.pick(
        lambda: x * 0.5 + 1.0,
        lambda: 1.0 - x,
        lambda: x - other,
        lambda: x / 3.0,
        lambda: -x,
        lambda: ops.maximum(x, 0.1),
        lambda: ops.clip(x, -1.0, 1.5),
        lambda: ops.square(x),
        lambda: ops.abs(x),
        lambda: ops.tanh(x) * ops.sigmoid(other),
        lambda: ops.mean(x, axis=-1, keepdims=True),
        lambda: ops.max(x, axis=1),
        lambda: x[:, : max(1, int(x.shape[1]) // 2)],
        lambda: x[..., ::2],
        lambda: ops.sum(x, axis=d.pick(1, -1), keepdims=True),
        lambda: ops.where(x > 0.0, x, other * 0.1),
        lambda: ops.sqrt(ops.abs(x) + 0.01),
        lambda: ops.expand_dims(x, 1) if len(x.shape) < 4 else x + other,
        lambda: ops.concatenate([x, other], axis=-1),
        lambda: ops.flip(x, axis=1),
    )()


def moved(d: Draft, x: Any) -> Any:
    m, rank = d.layers, len(x.shape)
    total = size(x)
    first = d.pick(*(n for n in range(1, 17) if total % n == 0))
    choices = [lambda: m.Reshape((first, total // first)), lambda: m.Reshape((-1, first)), lambda: m.Flatten()]
    if rank > 2:
        choices.append(lambda: m.Permute(tuple(int(a) + 1 for a in d.chance.permutation(rank - 1))))
    if rank == 2 and total <= 64:
        choices.append(lambda: m.RepeatVector(d.pick(2, 3)))
    if rank == 3:
        steps = int(x.shape[1])
        choices += [lambda: m.ZeroPadding1D(d.pick(1, (0, 2))), lambda: m.UpSampling1D(2)]
        choices += [lambda: m.Cropping1D((0, 1))] if steps > 2 else []
        choices += [lambda: m.Reshape((d.pick(1, steps), -1, int(x.shape[2])))]
    if rank == 4:
        choices += [
            lambda: m.ZeroPadding2D(d.pick(1, ((0, 1), (0, 1)), ((1, 0), (2, 1)))),
            lambda: m.UpSampling2D(d.pick(2, (1, 2)), interpolation=d.pick("nearest", "bilinear")),
            lambda: m.Reshape((-1, int(x.shape[3]))),
            lambda: m.Resizing(d.pick(3, 5, 8), d.pick(4, 6), interpolation=d.pick("nearest", "bilinear")),
        ]
        choices += [lambda: m.Cropping2D(((1, 0), (0, 1)))] if min(x.shape[1:3]) > 2 else []
    return d.pick(*choices)()(x)


def constant(d: Draft, x: Any) -> Any:
    """Layers that only training needs, or that scale."""
    m = d.layers
    return d.pick(
        lambda: m.Dropout(0.3),
        lambda: m.GaussianNoise(0.1),
        lambda: m.Rescaling(1 / 2.0, offset=-0.5),
        lambda: m.Identity(),
    )()(x)


def recurrent(d: Draft, x: Any) -> Any:
    m = d.layers
    units, last = d.pick(1, 3, 4, 8), d.maybe(0.5)
    kind = d.pick("LSTM", "GRU", "GRU", "SimpleRNN")
    how: dict[str, Any] = {"return_sequences": not last, "use_bias": d.maybe(0.8)}
    if kind == "GRU":
        how["reset_after"] = d.maybe(0.6)
    if d.maybe(0.2):
        how["activation"] = d.pick("relu", "softsign", "tanh")
    if d.maybe(0.15):
        how["recurrent_activation" if kind != "SimpleRNN" else "activation"] = "hard_sigmoid"
    masked = {"mask": x[..., 0] > 0} if d.maybe(0.25) else {}
    if d.maybe(0.25):
        inner = getattr(m, kind)(units, **how)
        return m.Bidirectional(inner, merge_mode=d.pick("concat", "sum", "mul", "ave"))(x, **masked)
    return getattr(m, kind)(units, go_backwards=d.maybe(0.15), **how)(x, **masked)


def distributed(d: Draft, x: Any) -> Any:
    m = d.layers
    inner = (
        m.Dense(d.pick(2, 5), activation=d.activation())
        if len(x.shape) == 3 or d.maybe(0.3)
        else d.pick(m.Conv1D(3, 2, padding="same"), m.LSTM(3), m.GlobalAveragePooling1D(), m.Flatten())
    )
    return m.TimeDistributed(inner)(x)


def attention(d: Draft, x: Any) -> Any:
    m = d.layers
    if d.maybe(0.6):
        heads = d.pick(1, 2, 3)
        return m.MultiHeadAttention(heads, d.pick(2, 4), value_dim=d.pick(None, 3), use_bias=d.maybe(0.7))(x, x)
    return m.Attention(use_scale=d.maybe(0.5))([x, x])


def nested(d: Draft, x: Any) -> Any:
    """A model within the model, sometimes used twice."""
    inner = d.keras.Sequential(
        [
            d.layers.Dense(int(x.shape[-1]), activation=d.activation()),
            d.layers.Activation(d.activation() or "tanh"),
        ]
    )
    y = inner(x)
    return inner(y) if d.maybe(0.4) else y


ANY: tuple[Maker, ...] = (dense, normalization, normalization, activation, arithmetic, arithmetic, operators, operators)
ANY = (*ANY, moved, moved, constant, nested)
OF_RANK: dict[int, tuple[Maker, ...]] = {
    2: (dense, dense),
    3: (along_time, along_time, separable, transposed, pool, whole_pool, recurrent, recurrent, distributed, attention),
    4: (
        convolution,
        convolution,
        convolution,
        depthwise,
        depthwise,
        separable,
        transposed,
        pool,
        pool,
        whole_pool,
        distributed,
    ),
}


def random_model(keras: Any, seed: int) -> Any:
    """Of two to ten layers; what a shape does not allow is left out."""
    keras.utils.set_random_seed(seed)
    d = Draft(keras, np.random.default_rng([seed, 19]))
    inputs = [keras.Input(_shape(d))]
    x = inputs[0]
    if d.maybe(0.1):
        x = d.layers.Embedding(d.pick(5, 40), d.pick(3, 8))(keras.Input((d.pick(1, 4, 9),), dtype="int32"))
        inputs = [x._keras_history.operation.input]
    elif d.maybe(0.15):
        inputs.append(keras.Input(tuple(x.shape[1:])))
    d.made += [x, *inputs[1:]]
    for _ in range(int(d.chance.integers(2, 11))):
        makers = (*ANY, *OF_RANK.get(len(x.shape), ()) * 2)
        try:
            y = d.pick(*makers)(d, x)
        except Exception:  # a shape that the layer does not take; Keras raises anything
            continue
        if len(y.shape) in (2, 3, 4) and None not in y.shape[1:] and 0 < size(y) <= LARGEST and y.dtype == "float32":
            x = y
            d.made.append(x)
    if x is d.made[0]:
        x = d.layers.Activation("tanh")(x)
    outputs = [x]
    if d.maybe(0.2) and len(d.made) > 3:
        outputs.append(d.pick(*d.made[2:]))
    used = keras.Model(inputs, outputs if len(outputs) > 1 else x)
    _train(used, d.chance)
    return used


def _shape(d: Draft) -> Sequence[int]:
    kind = d.pick(2, 2, 2, 1, 1, 0)
    sizes = [d.pick(1, 4, 5, 7, 8, 10), d.pick(1, 3, 6, 8, 9), d.pick(1, 2, 3, 4, 6, 8)]
    return tuple(sizes[2 - kind :])


def _train(model: Any, chance: np.random.Generator) -> None:
    """Statistics and factors of normalizations as training leaves them, with channels that are dead or nearly so."""
    for weight in model.weights:
        name, shape = weight.path.split("/")[-1], tuple(weight.shape)
        if name in ("moving_mean", "beta", "bias"):
            weight.assign(chance.normal(0, 0.4, shape))
        elif name in ("gamma", "moving_variance"):
            values = 10.0 ** chance.uniform(-1.5, 1, shape)
            weight.assign(np.where(chance.random(shape) < 0.05, 1e-7, values))
