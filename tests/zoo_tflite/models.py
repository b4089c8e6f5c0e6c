"""Random little TensorFlow functions, one builder per kind of operator.

A builder takes a random generator and returns the function and the shapes of its inputs. Everything
a converter can vary (shapes, strides, paddings, dilations, groups, activations, constants) is drawn
from the generator, so a seed names a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Random = np.random.Generator


@dataclass(frozen=True)
class Function:
    """A TensorFlow function and the shapes of its inputs, batch of one included."""

    call: Callable[..., Any]
    shapes: Sequence[Shape]


Builder = Callable[[Any, Random], Function]


def _int(rng: Random, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def _image(rng: Random, channels: int | None = None, low: int = 3, high: int = 9) -> Shape:
    return (1, _int(rng, low, high), _int(rng, low, high), channels or _int(rng, 1, 7))


def _weights(tf: Any, rng: Random, *shape: int) -> Any:
    """Normal weights whose channels differ in size, so that their scales differ too."""
    spread = np.exp(rng.uniform(-1.5, 1.5, shape[-1]))
    return tf.constant((rng.normal(size=shape) * spread).astype(np.float32))


def _activation(tf: Any, rng: Random) -> Callable[[Any], Any]:
    choices = [lambda v: v, tf.nn.relu, tf.nn.relu6, lambda v: tf.minimum(tf.maximum(v, -1.0), 1.0)]
    return choices[_int(rng, 0, len(choices) - 1)]


def _padding(rng: Random) -> str:
    return str(rng.choice(["SAME", "VALID"]))


def conv2d(tf: Any, rng: Random) -> Function:
    groups = int(rng.choice([1, 1, 1, 2, 3]))
    inputs, outputs = groups * _int(rng, 1, 4), groups * _int(rng, 1, 5)
    dilation = int(rng.choice([1, 1, 2]))
    strides = [1, 1] if dilation > 1 else [_int(rng, 1, 3), _int(rng, 1, 3)]
    weights = _weights(tf, rng, _int(rng, 1, 4), _int(rng, 1, 4), inputs // groups, outputs)
    bias, act, pad = tf.constant(rng.normal(size=outputs).astype(np.float32)), _activation(tf, rng), _padding(rng)
    use_bias = rng.random() < 0.8
    shape = _image(rng, inputs, 8, 11) if dilation > 1 else _image(rng, inputs, 4, 9)

    def call(x: Any) -> Any:
        y = tf.nn.conv2d(x, weights, strides, pad, dilations=dilation)
        return act(y + bias if use_bias else y)

    return Function(call, [shape])


def conv1d(tf: Any, rng: Random) -> Function:
    inputs, outputs = _int(rng, 1, 6), _int(rng, 1, 6)
    weights = _weights(tf, rng, _int(rng, 1, 5), inputs, outputs)
    stride, pad, act = _int(rng, 1, 2), _padding(rng), _activation(tf, rng)
    return Function(lambda x: act(tf.nn.conv1d(x, weights, stride, pad)), [(1, _int(rng, 6, 20), inputs)])


def depthwise(tf: Any, rng: Random) -> Function:
    inputs, multiplier = _int(rng, 1, 6), int(rng.choice([1, 1, 2, 3]))
    dilation = int(rng.choice([1, 1, 2]))
    stride = 1 if dilation > 1 else _int(rng, 1, 2)
    spread = np.exp(rng.uniform(-1, 1, (inputs, multiplier)))
    kernel = (rng.normal(size=(_int(rng, 1, 4), _int(rng, 1, 4), inputs, multiplier)) * spread).astype(np.float32)
    weights, pad, act = tf.constant(kernel), _padding(rng), _activation(tf, rng)
    bias = tf.constant(rng.normal(size=inputs * multiplier).astype(np.float32))

    def call(x: Any) -> Any:
        return act(tf.nn.depthwise_conv2d(x, weights, [1, stride, stride, 1], pad, dilations=[dilation] * 2) + bias)

    return Function(call, [_image(rng, inputs, 8, 10)])


def transpose_conv(tf: Any, rng: Random) -> Function:
    inputs, outputs, stride = _int(rng, 1, 5), _int(rng, 1, 5), _int(rng, 1, 3)
    rows, columns = _int(rng, 1, 4), _int(rng, 1, 4)
    spread = np.exp(rng.uniform(-1, 1, (outputs, 1)))
    weights = tf.constant((rng.normal(size=(rows, columns, outputs, inputs)) * spread).astype(np.float32))
    shape, pad = _image(rng, inputs, 2, 5), _padding(rng)
    extra = [0, 0] if pad == "SAME" else [max(rows - stride, 0), max(columns - stride, 0)]
    out_shape = [1, shape[1] * stride + extra[0], shape[2] * stride + extra[1], outputs]
    bias = tf.constant(rng.normal(size=outputs).astype(np.float32))
    use_bias = rng.random() < 0.6

    def call(x: Any) -> Any:
        y = tf.nn.conv2d_transpose(x, weights, out_shape, stride, pad)
        return y + bias if use_bias else y

    return Function(call, [shape])


def dense(tf: Any, rng: Random) -> Function:
    inputs, outputs = _int(rng, 1, 80), _int(rng, 1, 12)
    weights, act = _weights(tf, rng, inputs, outputs), _activation(tf, rng)
    bias = tf.constant(rng.normal(size=outputs).astype(np.float32))
    rows = int(rng.choice([1, 1, 3]))
    use_bias = rng.random() < 0.8
    return Function(
        lambda x: act(tf.matmul(x, weights) + bias if use_bias else tf.matmul(x, weights)), [(rows, inputs)]
    )


def dense_rows(tf: Any, rng: Random) -> Function:
    """Many rows of few inputs: small accumulators, so that halves are common among the results."""
    weights = _weights(tf, rng, _int(rng, 2, 5), 8)
    return Function(lambda x: tf.matmul(x, weights), [(64, int(weights.shape[0]))])


def _pool(tf: Any, rng: Random, op: Any) -> Function:
    size, strides, act = [_int(rng, 1, 4), _int(rng, 1, 4)], [_int(rng, 1, 3), _int(rng, 1, 3)], _activation(tf, rng)
    pad = _padding(rng)
    return Function(lambda x: act(op(x, size, strides, pad)), [_image(rng, None, 4, 9)])


def average_pool(tf: Any, rng: Random) -> Function:
    return _pool(tf, rng, tf.nn.avg_pool2d)


def max_pool(tf: Any, rng: Random) -> Function:
    return _pool(tf, rng, tf.nn.max_pool2d)


def _binary(tf: Any, rng: Random, op: Callable[[Any, Any], Any], act: Callable[[Any], Any]) -> Function:
    shape = _image(rng, None, 1, 6)
    kind = _int(rng, 0, 4)
    if kind == 0:
        constant = tf.constant(rng.normal(size=shape[-1:]).astype(np.float32))
        return Function(lambda x: act(op(x, constant)), [shape])
    if kind == 1:
        return Function(lambda x, y: act(op(x, y)), [shape, (1, 1, 1, shape[3])])
    if kind == 2:
        return Function(lambda x, y: act(op(x, y)), [(1, shape[1], 1, 1), shape])
    return Function(lambda x, y: act(op(x, y)), [shape, shape])


def add(tf: Any, rng: Random) -> Function:
    return _binary(tf, rng, tf.add, _activation(tf, rng))


def subtract(tf: Any, rng: Random) -> Function:
    return _binary(tf, rng, tf.subtract, _activation(tf, rng))


def multiply(tf: Any, rng: Random) -> Function:
    return _binary(tf, rng, tf.multiply, _activation(tf, rng))


def maximum(tf: Any, rng: Random) -> Function:
    return _binary(tf, rng, tf.maximum, lambda v: v)


def minimum(tf: Any, rng: Random) -> Function:
    return _binary(tf, rng, tf.minimum, lambda v: v)


def squared_difference(tf: Any, rng: Random) -> Function:
    return _binary(tf, rng, tf.math.squared_difference, lambda v: v)


def concatenate(tf: Any, rng: Random) -> Function:
    axis, shape = _int(rng, 1, 3), _image(rng, None, 2, 5)
    count = _int(rng, 2, 3)
    shapes = [tuple(_int(rng, 1, 4) if i == axis else d for i, d in enumerate(shape)) for _ in range(count)]
    return Function(lambda *x: tf.concat(x, axis), shapes)


def fixed_scales(tf: Any, rng: Random) -> Function:
    """Joined tensors of which some have a scale the operator fixes: the others are rescaled."""
    axis, act = _int(rng, 1, 3), [tf.sigmoid, tf.tanh, tf.nn.softmax][_int(rng, 0, 2)]
    return Function(lambda x: tf.concat([act(x), x], axis), [_image(rng, None, 2, 5)])


def mean(tf: Any, rng: Random) -> Function:
    axes = [[1, 2], [1], [2], [3], [1, 2, 3]][_int(rng, 0, 4)]
    keep = bool(rng.random() < 0.5)
    return Function(lambda x: tf.reduce_mean(x, axes, keepdims=keep), [_image(rng, None, 2, 12)])


def reduce_max(tf: Any, rng: Random) -> Function:
    return Function(lambda x: tf.reduce_max(x, [1, 2]), [_image(rng)])


def softmax(tf: Any, rng: Random) -> Function:
    shape = (1, _int(rng, 2, 40)) if rng.random() < 0.6 else (1, _int(rng, 2, 5), _int(rng, 2, 12))
    return Function(tf.nn.softmax, [shape])


def _elementwise(op: Callable[[Any], Any], rng: Random) -> Function:
    return Function(op, [_image(rng, _int(rng, 2, 16), 3, 9)])


def logistic(tf: Any, rng: Random) -> Function:
    return _elementwise(tf.sigmoid, rng)


def tanh(tf: Any, rng: Random) -> Function:
    return _elementwise(tf.tanh, rng)


def relu(tf: Any, rng: Random) -> Function:
    return _elementwise(tf.nn.relu, rng)


def relu6(tf: Any, rng: Random) -> Function:
    return _elementwise(tf.nn.relu6, rng)


def relu_n1_to_1(tf: Any, rng: Random) -> Function:
    return _elementwise(lambda x: tf.minimum(tf.maximum(x, -1.0), 1.0), rng)


def leaky_relu(tf: Any, rng: Random) -> Function:
    alpha = float(rng.choice([0.01, 0.1, 0.2, 0.3, 1.5, -0.5]))
    return _elementwise(lambda x: tf.nn.leaky_relu(x, alpha), rng)


def hard_swish(tf: Any, rng: Random) -> Function:
    return _elementwise(lambda x: x * tf.nn.relu6(x + 3.0) * np.float32(1.0 / 6.0), rng)


def prelu(tf: Any, rng: Random) -> Function:
    shape = _image(rng, _int(rng, 2, 6))
    alpha = tf.constant(rng.uniform(-0.2, 0.6, (1, 1, shape[3])).astype(np.float32))
    # The converter knows PReLU by this form.
    return Function(lambda x: tf.nn.relu(x) + (-alpha) * tf.nn.relu(-x), [shape])


def pad(tf: Any, rng: Random) -> Function:
    amounts = [[0, 0], [_int(rng, 0, 3), _int(rng, 0, 3)], [_int(rng, 0, 3), _int(rng, 0, 3)], [0, 0]]
    return Function(lambda x: tf.pad(x, amounts), [_image(rng)])


def mirror_pad(tf: Any, rng: Random) -> Function:
    return Function(lambda x: tf.pad(x, [[0, 0], [1, 2], [2, 1], [0, 0]], "REFLECT"), [_image(rng, None, 4, 6)])


def crop(tf: Any, rng: Random) -> Function:
    top, left = _int(rng, 0, 1), _int(rng, 0, 1)
    return Function(lambda x: x[:, top:-1, left:-1, :], [_image(rng, None, 4, 7)])


def nearest(tf: Any, rng: Random) -> Function:
    shape, factor = _image(rng, None, 2, 5), _int(rng, 2, 3)
    size = [shape[1] * factor, shape[2] * factor]
    return Function(lambda x: tf.compat.v1.image.resize_nearest_neighbor(x, size), [shape])


def bilinear(tf: Any, rng: Random) -> Function:
    shape, factor = _image(rng, None, 2, 5), _int(rng, 2, 3)
    size, centers = [shape[1] * factor, shape[2] * factor], bool(rng.random() < 0.5)
    return Function(lambda x: tf.compat.v1.image.resize_bilinear(x, size, half_pixel_centers=centers), [shape])


def reshape(tf: Any, rng: Random) -> Function:
    shape = _image(rng)
    return Function(lambda x: tf.reshape(x, [1, shape[1] * shape[2], shape[3]]), [shape])


def transpose(tf: Any, rng: Random) -> Function:
    order = [[0, 2, 1, 3], [0, 3, 1, 2], [0, 3, 2, 1]][_int(rng, 0, 2)]
    return Function(lambda x: tf.transpose(x, order), [_image(rng)])


def split(tf: Any, rng: Random) -> Function:
    return Function(lambda x: tf.split(x, 2, axis=3), [_image(rng, 2 * _int(rng, 1, 4))])


def rsqrt(tf: Any, rng: Random) -> Function:
    return _elementwise(lambda x: tf.math.rsqrt(tf.nn.relu(x) + 0.5), rng)


def layer_norm(tf: Any, rng: Random) -> Function:
    channels = _int(rng, 4, 12)
    gamma = tf.constant(rng.uniform(0.5, 1.5, channels).astype(np.float32))
    beta = tf.constant(rng.normal(size=channels).astype(np.float32))

    def call(x: Any) -> Any:
        average, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, average, variance, beta, gamma, 1e-3)

    return Function(call, [(1, _int(rng, 2, 5), channels)])


def small_cnn(tf: Any, rng: Random) -> Function:
    inputs, width, classes = _int(rng, 1, 3), _int(rng, 3, 6), _int(rng, 2, 6)
    first, spatial = _weights(tf, rng, 3, 3, inputs, width), _weights(tf, rng, 3, 3, width, 1)
    point, last = _weights(tf, rng, 1, 1, width, width), _weights(tf, rng, width, classes)
    bias = tf.constant(rng.normal(size=width).astype(np.float32))

    def call(x: Any) -> Any:
        y = tf.nn.relu(tf.nn.conv2d(x, first, 2, "SAME") + bias)
        z = tf.nn.relu6(tf.nn.depthwise_conv2d(y, spatial, [1, 1, 1, 1], "SAME"))
        z = tf.nn.conv2d(z, point, 1, "SAME") + y
        return tf.nn.softmax(tf.matmul(tf.reduce_mean(z, [1, 2]), last))

    return Function(call, [_image(rng, inputs, 8, 12)])


def small_mix(tf: Any, rng: Random) -> Function:
    width = _int(rng, 2, 5)
    first, second = _weights(tf, rng, 3, 3, 2, width), _weights(tf, rng, 1, 1, 2, width)

    def call(x: Any) -> Any:
        left = tf.nn.leaky_relu(tf.nn.conv2d(x, first, 1, "SAME"), 0.1)
        right = tf.sigmoid(tf.nn.conv2d(x, second, 1, "SAME"))
        joined = tf.concat([left * right, tf.tanh(left) - right], 3)
        return tf.nn.avg_pool2d(tf.nn.max_pool2d(joined, 2, 2, "SAME"), 2, 1, "VALID")

    return Function(call, [_image(rng, 2, 6, 9)])


def gru_like(tf: Any, rng: Random) -> Function:
    units, inputs = _int(rng, 2, 6), _int(rng, 2, 6)
    wz, wh = _weights(tf, rng, inputs + units, units), _weights(tf, rng, inputs + units, units)

    def call(x: Any, h: Any) -> Any:
        gate = tf.sigmoid(tf.matmul(tf.concat([x, h], 1), wz))
        fresh = tf.tanh(tf.matmul(tf.concat([x, gate * h], 1), wh))
        return gate * h + (1.0 - gate) * fresh

    return Function(call, [(1, inputs), (1, units)])
