"""Operations in the graph that are no layers: Keras 3's `keras.ops`, Keras 2's TFOpLambda, and LRN."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.zoo.case import KERAS3, TFKERAS, Builder, Case, Keras, Model, layer

Tensor = Any

_VECTOR = (6,)
_IMAGE = (4, 5, 3)


def cases() -> Iterator[Case]:
    yield from _operators()
    yield from _keras3_operations()
    yield from _tensorflow_operations()
    yield from _lrn()


def _operators() -> Iterator[Case]:
    """Python's own operators on symbolic tensors: both versions of Keras put an operation of their own in the graph."""
    one_tensor: dict[str, Callable[[Tensor], Tensor]] = {
        "add_scalar": lambda x: x + 1.0,
        "scalar_add": lambda x: 1.5 + x,
        "subtract_scalar": lambda x: x - 0.5,
        "scalar_subtract": lambda x: 3.0 - x,
        "multiply_scalar": lambda x: x * 2.5,
        "scalar_multiply": lambda x: -0.5 * x,
        "divide_scalar": lambda x: x / 4.0,
        "add_integer": lambda x: x + 2,
        "normalize": lambda x: (x - 127.5) / 127.5,
        "negative": lambda x: -x,
        "with_itself": lambda x: x * x,
    }
    for variant, operation in one_tensor.items():
        yield Case("operator", variant, _after_dense(operation))
        yield Case("operator", f"{variant}_image", _on_input(_IMAGE, operation))
    two_tensors: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "add": lambda x, y: x + y,
        "subtract": lambda x, y: x - y,
        "multiply": lambda x, y: x * y,
    }
    for variant, join in two_tensors.items():
        yield Case("operator", variant, _on_inputs(_IMAGE, _IMAGE, join))
        yield Case("operator", f"{variant}_broadcast", _on_inputs(_IMAGE, (1, 1, 3), join))


def _after_dense(operation: Callable[[Tensor], Tensor]) -> Builder:
    def build(keras: Keras) -> Model:
        x = keras.Input(_VECTOR)
        y = operation(layer(keras, "Dense", units=5)(x))
        return keras.Model(x, layer(keras, "Dense", units=3)(y))

    return build


def _on_input(shape: tuple[int, ...], operation: Callable[[Tensor], Tensor]) -> Builder:
    def build(keras: Keras) -> Model:
        x = keras.Input(shape)
        return keras.Model(x, operation(x))

    return build


def _on_inputs(left: tuple[int, ...], right: tuple[int, ...], join: Callable[[Tensor, Tensor], Tensor]) -> Builder:
    def build(keras: Keras) -> Model:
        x, y = keras.Input(left), keras.Input(right)
        return keras.Model([x, y], join(x, y))

    return build


def _with_ops(shape: tuple[int, ...], operation: Callable[[Any, Tensor], Tensor]) -> Builder:
    def build(keras: Keras) -> Model:
        x = keras.Input(shape)
        return keras.Model(x, operation(keras.ops, x))

    return build


def _keras3_operations() -> Iterator[Case]:
    by_name: dict[str, Callable[[Any, Tensor], Tensor]] = {
        "add_scalar": lambda ops, x: ops.add(x, 1.0),
        "scalar_add": lambda ops, x: ops.add(1.0, x),
        "subtract_scalar": lambda ops, x: ops.subtract(x, 0.5),
        "scalar_subtract": lambda ops, x: ops.subtract(0.5, x),
        "multiply_scalar": lambda ops, x: ops.multiply(x, 3.0),
        "divide_scalar": lambda ops, x: ops.divide(x, 3.0),
        "true_divide_scalar": lambda ops, x: ops.true_divide(x, 7.0),
        "maximum_scalar": lambda ops, x: ops.maximum(x, 0.25),
        "minimum_scalar": lambda ops, x: ops.minimum(x, 0.25),
        "clip": lambda ops, x: ops.clip(x, -0.5, 0.75),
        "square": lambda ops, x: ops.square(x),
        "abs": lambda ops, x: ops.abs(x),
        "negative": lambda ops, x: ops.negative(x),
        "exp": lambda ops, x: ops.exp(x),
        "tanh": lambda ops, x: ops.tanh(x),
        "relu": lambda ops, x: ops.relu(x),
        "relu6": lambda ops, x: ops.relu6(x),
        "leaky_relu": lambda ops, x: ops.leaky_relu(x, negative_slope=0.1),
        "elu": lambda ops, x: ops.elu(x),
        "selu": lambda ops, x: ops.selu(x),
        "sigmoid": lambda ops, x: ops.sigmoid(x),
        "hard_sigmoid": lambda ops, x: ops.hard_sigmoid(x),
        "hard_silu": lambda ops, x: ops.hard_silu(x),
        "silu": lambda ops, x: ops.silu(x),
        "gelu": lambda ops, x: ops.gelu(x),
        "gelu_exact": lambda ops, x: ops.gelu(x, approximate=False),
        "softplus": lambda ops, x: ops.softplus(x),
        "softsign": lambda ops, x: ops.softsign(x),
        "softmax": lambda ops, x: ops.softmax(x),
        "softmax_axis_1": lambda ops, x: ops.softmax(x, axis=1),
        "mean": lambda ops, x: ops.mean(x, axis=[1, 2]),
        "mean_keepdims": lambda ops, x: ops.mean(x, axis=-1, keepdims=True),
        "max": lambda ops, x: ops.max(x, axis=[1, 2]),
        "reshape": lambda ops, x: ops.reshape(x, (-1, 20, 3)),
        "transpose": lambda ops, x: ops.transpose(x, (0, 3, 1, 2)),
        "concatenate": lambda ops, x: ops.concatenate([x, x], axis=-1),
        "pad": lambda ops, x: ops.pad(x, ((0, 0), (1, 1), (2, 0), (0, 0))),
    }
    for variant, operation in by_name.items():
        case = Case("ops", variant, _with_ops(_IMAGE, operation), input_spread=2.0)
        yield replace(case, writers=(KERAS3,))
    yield Case("ops", "two_tensors", _keras3_two_tensors, writers=(KERAS3,))


def _keras3_two_tensors(keras: Keras) -> Model:
    x, y = keras.Input(_VECTOR), keras.Input(_VECTOR)
    ops = keras.ops
    joined = [ops.add(x, y), ops.subtract(x, y), ops.multiply(x, y), ops.maximum(x, y), ops.minimum(x, y)]
    return keras.Model([x, y], ops.concatenate(joined, axis=-1))


def _with_tensorflow(shape: tuple[int, ...], operation: Callable[[Any, Tensor], Tensor]) -> Builder:
    def build(keras: Keras) -> Model:
        import tensorflow as tf

        x = keras.Input(shape)
        return keras.Model(x, operation(tf, x))

    return build


def _tensorflow_operations() -> Iterator[Case]:
    by_name: dict[str, Callable[[Any, Tensor], Tensor]] = {
        "add": lambda tf, x: tf.math.add(x, 1.0),
        "add_tensors": lambda tf, x: tf.math.add(x, x),
        "scalar_add": lambda tf, x: tf.math.add(1.0, x),
        "subtract": lambda tf, x: tf.math.subtract(x, 0.5),
        "scalar_subtract": lambda tf, x: tf.math.subtract(0.5, x),
        "multiply": lambda tf, x: tf.math.multiply(x, 3.0),
        "multiply_keyword": lambda tf, x: tf.math.multiply(x=x, y=3.0),
        "divide": lambda tf, x: tf.math.divide(x, 3.0),
        "maximum": lambda tf, x: tf.math.maximum(x, 0.25),
        "minimum": lambda tf, x: tf.math.minimum(x, 0.25),
        "clip": lambda tf, x: tf.clip_by_value(x, -0.5, 0.75),
        "square": lambda tf, x: tf.math.square(x),
        "abs": lambda tf, x: tf.math.abs(x),
        "exp": lambda tf, x: tf.math.exp(x),
        "math_tanh": lambda tf, x: tf.math.tanh(x),
        "math_sigmoid": lambda tf, x: tf.math.sigmoid(x),
        "relu": lambda tf, x: tf.nn.relu(x),
        "relu6": lambda tf, x: tf.nn.relu6(x),
        "leaky_relu": lambda tf, x: tf.nn.leaky_relu(x, alpha=0.1),
        "leaky_relu_default": lambda tf, x: tf.nn.leaky_relu(x),
        "elu": lambda tf, x: tf.nn.elu(x),
        "selu": lambda tf, x: tf.nn.selu(x),
        "sigmoid": lambda tf, x: tf.nn.sigmoid(x),
        "tanh": lambda tf, x: tf.nn.tanh(x),
        "swish": lambda tf, x: tf.nn.silu(x),
        "gelu": lambda tf, x: tf.nn.gelu(x),
        "gelu_approximate": lambda tf, x: tf.nn.gelu(x, approximate=True),
        "softplus": lambda tf, x: tf.nn.softplus(x),
        "softsign": lambda tf, x: tf.nn.softsign(x),
        "softmax": lambda tf, x: tf.nn.softmax(x),
        "softmax_axis_1": lambda tf, x: tf.nn.softmax(x, axis=1),
        "reduce_mean": lambda tf, x: tf.reduce_mean(x, axis=[1, 2]),
        "reduce_mean_keepdims": lambda tf, x: tf.reduce_mean(x, axis=-1, keepdims=True),
        "reduce_max": lambda tf, x: tf.reduce_max(x, axis=[1, 2]),
        "reshape": lambda tf, x: tf.reshape(x, (-1, 20, 3)),
        "reshape_keyword": lambda tf, x: tf.reshape(x, shape=[-1, 60]),
        "transpose": lambda tf, x: tf.transpose(x, (0, 3, 1, 2)),
        "transpose_keyword": lambda tf, x: tf.transpose(x, perm=[0, 2, 1, 3]),
        "concat": lambda tf, x: tf.concat([x, x], -1),
        "concat_axis_1": lambda tf, x: tf.concat([x, x, x], axis=1),
        "pad": lambda tf, x: tf.pad(x, [[0, 0], [1, 1], [2, 0], [0, 0]]),
        "hard_swish": lambda tf, x: x * tf.nn.relu6(x + 3.0) * (1.0 / 6.0),
    }
    for variant, operation in by_name.items():
        case = Case("tfop", variant, _with_tensorflow(_IMAGE, operation), input_spread=2.0)
        yield replace(case, writers=(TFKERAS,))
    yield Case("tfop", "two_tensors", _tensorflow_two_tensors, writers=(TFKERAS,))


def _tensorflow_two_tensors(keras: Keras) -> Model:
    import tensorflow as tf

    x, y = keras.Input(_VECTOR), keras.Input(_VECTOR)
    joined = [tf.add(x, y), tf.subtract(x, y), tf.multiply(x, y), tf.maximum(x, y), tf.minimum(x, y)]
    return keras.Model([x, y], tf.concat(joined, axis=-1))


_LRN_OPTIONS: dict[str, dict[str, float]] = {
    "default": {},
    "narrow": {"depth_radius": 1, "bias": 2.0, "alpha": 0.3, "beta": 0.75},
    "wide": {"depth_radius": 9, "bias": 1.0, "alpha": 0.1, "beta": 0.5},
    "alexnet": {"depth_radius": 2, "bias": 1.0, "alpha": 2e-05, "beta": 0.75},
}


def _lrn() -> Iterator[Case]:
    for variant, options in _LRN_OPTIONS.items():
        yield Case("lrn", f"tfop_{variant}", _lrn_operation(options), writers=(TFKERAS,))
        yield Case(
            "lrn", f"layer_{variant}", _lrn_layer({"depth_radius": 5, "bias": 1.0, "alpha": 1.0, "beta": 0.5} | options)
        )
    yield Case("lrn", "layer_unregistered", _lrn_layer(_LRN_OPTIONS["narrow"], registered=False))


def _lrn_operation(options: dict[str, float]) -> Builder:
    def normalize(tf: Any, x: Tensor) -> Tensor:
        return tf.nn.local_response_normalization(x, **options)

    return _with_tensorflow((3, 4, 7), normalize)


def _lrn_layer(options: dict[str, float], *, registered: bool = True) -> Builder:
    """A layer class named LRN, as users write one; `registered` gives it a package in the file."""

    def build(keras: Keras) -> Model:
        import tensorflow as tf

        class LRN(keras.layers.Layer):  # type: ignore[misc]
            def __init__(self, depth_radius: float, bias: float, alpha: float, beta: float, **kwargs: Any) -> None:
                super().__init__(**kwargs)
                self.options = {"depth_radius": int(depth_radius), "bias": bias, "alpha": alpha, "beta": beta}

            def call(self, x: Tensor) -> Tensor:
                return tf.nn.local_response_normalization(x, **self.options)

            def get_config(self) -> dict[str, Any]:
                return super().get_config() | self.options

        if registered:
            keras.saving.register_keras_serializable(package="vision")(LRN)
        x = keras.Input((3, 4, 7))
        y = LRN(**options)(x)
        return keras.Model(x, layer(keras, "Conv2D", filters=2, kernel_size=2)(y))

    return build
