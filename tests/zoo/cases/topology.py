"""How layers are joined: Sequential, nested and shared models, several inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.zoo.case import KERAS3, TFKERAS, Case, Keras, Model, layer

_IMAGE = (6, 5, 2)


def cases() -> Iterator[Case]:
    for build in (
        sequential_with_input,
        sequential_built,
        sequential_input_shape,
        sequential_one_layer,
        sequential_in_sequential,
        sequential_in_functional,
        functional_in_sequential,
        nested_twice,
        nested_of_nested,
        nested_inputs_outputs,
        nested_called_alone,
        nested_uses_own_output,
        shared_dense,
        shared_conv_in_row,
        shared_model,
        shared_rnn,
        two_inputs,
        inputs_out_of_order,
        named_inputs,
        unused_layer_order,
        two_outputs,
        same_output_twice,
        output_used_inside,
        input_to_output,
        input_and_result,
        only_an_input,
        diamond,
        names_with_symbols,
        names_collide,
        name_is_c_keyword,
        auto_named,
        long_chain,
        names_in_chunks,
        dictionaries,
        trained,
    ):
        yield Case("topology", build.__name__, build)
    for build in (names_with_spaces, names_hostile):
        yield Case("topology", build.__name__, build, writers=(KERAS3,))  # Keras 2 refuses such names
    yield Case("topology", names_with_slashes.__name__, names_with_slashes, writers=(TFKERAS,))  # Keras 3 refuses "/"


def dense(keras: Keras, units: int, activation: str = "relu", name: str | None = None) -> Any:
    return layer(keras, "Dense", units=units, activation=activation, name=name)


def sequential_with_input(keras: Keras) -> Model:
    return keras.Sequential([keras.Input((7,)), dense(keras, 5), dense(keras, 3, "softmax")])


def sequential_built(keras: Keras) -> Model:
    conv = layer(keras, "Conv2D", filters=3, kernel_size=3)
    model = keras.Sequential([conv, layer(keras, "Flatten"), dense(keras, 3)])
    model.build((None, *_IMAGE))
    return model


def sequential_input_shape(keras: Keras) -> Model:
    first = keras.layers.Dense(5, activation="tanh", input_shape=(7,))
    return keras.Sequential([first, dense(keras, 3)])


def sequential_one_layer(keras: Keras) -> Model:
    return keras.Sequential([keras.Input((7,)), dense(keras, 4)])


def sequential_in_sequential(keras: Keras) -> Model:
    inner = keras.Sequential([keras.Input((7,)), dense(keras, 6), dense(keras, 5, "tanh")])
    return keras.Sequential([keras.Input((7,)), inner, dense(keras, 3)])


def sequential_in_functional(keras: Keras) -> Model:
    inner = keras.Sequential([keras.Input((7,)), dense(keras, 6), layer(keras, "BatchNormalization")])
    x = keras.Input((7,))
    return keras.Model(x, dense(keras, 3)(inner(x)))


def functional_in_sequential(keras: Keras) -> Model:
    x = keras.Input((7,))
    inner = keras.Model(x, layer(keras, "Concatenate")([dense(keras, 3)(x), x]))
    return keras.Sequential([keras.Input((7,)), inner, dense(keras, 2)])


def _block(keras: Keras, shape: tuple[int, ...], filters: int) -> Model:
    x = keras.Input(shape)
    y = layer(keras, "Conv2D", filters=filters, kernel_size=3, padding="same", use_bias=False)(x)
    y = layer(keras, "BatchNormalization")(y)
    return keras.Model(x, layer(keras, "ReLU")(y))


def nested_twice(keras: Keras) -> Model:
    x = keras.Input(_IMAGE)
    y = _block(keras, _IMAGE, 3)(x)
    return keras.Model(x, _block(keras, (6, 5, 3), 4)(y))


def nested_of_nested(keras: Keras) -> Model:
    inner = _block(keras, _IMAGE, 3)
    middle_x = keras.Input(_IMAGE)
    middle = keras.Model(middle_x, layer(keras, "MaxPooling2D")(inner(middle_x)))
    x = keras.Input(_IMAGE)
    return keras.Model(x, layer(keras, "Flatten")(middle(x)))


def nested_inputs_outputs(keras: Keras) -> Model:
    a, b = keras.Input((4,)), keras.Input((3,))
    joined = layer(keras, "Concatenate")([a, b])
    inner = keras.Model([a, b], [dense(keras, 5)(joined), dense(keras, 2, "tanh")(b)])
    x, y = keras.Input((3,)), keras.Input((4,))
    first, second = inner([y, x])
    return keras.Model([x, y], [second, layer(keras, "Concatenate")([first, second, x])])


def nested_called_alone(keras: Keras) -> Model:
    inner = _block(keras, _IMAGE, 3)
    x = keras.Input(_IMAGE)
    return keras.Model(x, inner(x))


def nested_uses_own_output(keras: Keras) -> Model:
    x = keras.Input((5,))
    hidden = dense(keras, 4)(x)
    inner = keras.Model(x, [hidden, dense(keras, 3)(hidden)])
    y = keras.Input((5,))
    first, second = inner(y)
    return keras.Model(y, layer(keras, "Concatenate")([second, first]))


def shared_dense(keras: Keras) -> Model:
    left, right = keras.Input((5,)), keras.Input((5,))
    shared = dense(keras, 4, "tanh")
    return keras.Model([left, right], layer(keras, "Subtract")([shared(left), shared(right)]))


def shared_conv_in_row(keras: Keras) -> Model:
    x = first = keras.Input((6, 5, 3))
    shared = layer(keras, "Conv2D", filters=3, kernel_size=3, padding="same", activation="tanh")
    for _ in range(3):
        x = shared(x)
    return keras.Model(first, x)


def shared_model(keras: Keras) -> Model:
    shared = _block(keras, _IMAGE, 3)
    left, right = keras.Input(_IMAGE), keras.Input(_IMAGE)
    return keras.Model([left, right], layer(keras, "Maximum")([shared(left), shared(right)]))


def shared_rnn(keras: Keras) -> Model:
    left, right = keras.Input((4, 3)), keras.Input((4, 3))
    shared = layer(keras, "GRU", units=4)
    return keras.Model([left, right], layer(keras, "Concatenate")([shared(left), shared(right)]))


def two_inputs(keras: Keras) -> Model:
    image, vector = keras.Input(_IMAGE), keras.Input((4,))
    features = layer(keras, "GlobalAveragePooling2D")(layer(keras, "Conv2D", filters=3, kernel_size=3)(image))
    joined = layer(keras, "Concatenate")([features, vector])
    return keras.Model([image, vector], dense(keras, 3, "softmax")(joined))


def inputs_out_of_order(keras: Keras) -> Model:
    first, second, third = (keras.Input((n,)) for n in (2, 3, 4))
    joined = layer(keras, "Concatenate")([first, second, third])
    return keras.Model([third, first, second], dense(keras, 3)(joined))


def named_inputs(keras: Keras) -> Model:
    speed, heading = keras.Input((3,), name="speed"), keras.Input((2,), name="heading")
    joined = layer(keras, "Concatenate", name="joined")([speed, heading])
    left, right = dense(keras, 2, name="left")(joined), dense(keras, 1, "sigmoid", name="right")(joined)
    return keras.Model([speed, heading], [left, right], name="steering")


def unused_layer_order(keras: Keras) -> Model:
    """Layers made in another order than they are used in: weights must follow the graph, not the clock."""
    last, middle, first = dense(keras, 3, "softmax"), dense(keras, 4, "tanh"), dense(keras, 5)
    x = keras.Input((6,))
    return keras.Model(x, last(middle(first(x))))


def two_outputs(keras: Keras) -> Model:
    x = keras.Input(_IMAGE)
    features = layer(keras, "Flatten")(layer(keras, "Conv2D", filters=3, kernel_size=3, activation="relu")(x))
    return keras.Model(x, [dense(keras, 3, "softmax")(features), dense(keras, 1, "linear")(features)])


def same_output_twice(keras: Keras) -> Model:
    x = keras.Input((5,))
    y = dense(keras, 3)(x)
    return keras.Model(x, [y, dense(keras, 2)(y), y])


def output_used_inside(keras: Keras) -> Model:
    x = keras.Input((5,))
    hidden = dense(keras, 4)(x)
    return keras.Model(x, [hidden, dense(keras, 2)(hidden)])


def input_to_output(keras: Keras) -> Model:
    x, y = keras.Input((5,)), keras.Input((3,))
    return keras.Model([x, y], [dense(keras, 4)(x), y])


def input_and_result(keras: Keras) -> Model:
    x = keras.Input((5,))
    return keras.Model(x, [x, dense(keras, 4)(x)])


def only_an_input(keras: Keras) -> Model:
    x = keras.Input((5,))
    return keras.Model(x, layer(keras, "Dropout", rate=0.5)(x))


def diamond(keras: Keras) -> Model:
    x = keras.Input((5,))
    top = dense(keras, 4)(x)
    left, right = dense(keras, 4, "tanh")(top), dense(keras, 4, "sigmoid")(top)
    bottom = layer(keras, "Multiply")([left, right])
    return keras.Model(x, layer(keras, "Add")([bottom, top]))


def names_with_symbols(keras: Keras) -> Model:
    x = keras.Input((5,), name="in-put.1")
    y = dense(keras, 4, name="block_1-dense.a")(x)
    return keras.Model(x, dense(keras, 3, name="2nd-dense")(y), name="my-model.v2")


def names_with_spaces(keras: Keras) -> Model:
    x = keras.Input((5,), name="first input")
    return keras.Model(x, dense(keras, 3, name="Größe & weight")(x), name='my "model" %s')


def names_hostile(keras: Keras) -> Model:
    """Names that end a comment, a string or a line of C if they are printed as they are."""
    x = keras.Input((5,), name="first\nint evil;")
    y = dense(keras, 4, name='"quoted" \\')(x)
    return keras.Model(x, dense(keras, 3, name="ends in \\")(y))


def names_with_slashes(keras: Keras) -> Model:
    """As the DenseNets of Keras 2 have them: the slash makes groups within groups in the file."""
    x = keras.Input((6, 5, 2))
    y = layer(keras, "Conv2D", filters=3, kernel_size=3, use_bias=False, name="conv1/conv")(x)
    y = layer(keras, "BatchNormalization", name="conv1/bn")(y)
    return keras.Model(x, layer(keras, "Conv2D", filters=2, kernel_size=1, name="conv1")(y))


def names_collide(keras: Keras) -> Model:
    """Three names that are the same C identifier."""
    x = keras.Input((5,))
    y = x
    for name in ("fc-1", "fc_1", "fc.1"):
        y = dense(keras, 4, name=name)(y)
    return keras.Model(x, y)


def name_is_c_keyword(keras: Keras) -> Model:
    x = keras.Input((5,), name="int")
    y = dense(keras, 4, name="float")(x)
    return keras.Model(x, dense(keras, 3, name="main")(y), name="static")


def auto_named(keras: Keras) -> Model:
    x = first = keras.Input((5,))
    for _ in range(12):
        x = dense(keras, 5, "tanh")(x)
    return keras.Model(first, x)


def names_in_chunks(keras: Keras) -> Model:
    """More than 64 KB of weight names in one group: HDF5 takes no attribute of that size, so Keras splits the list."""
    x = keras.Input((2,))
    names = [f"{index:03}_{'a_long_name_' * 42}" for index in range(130)]
    branches = [layer(keras, "Dense", units=2, name=name)(x) for name in names]
    inner = keras.Model(x, layer(keras, "Add")(branches))
    y = keras.Input((2,))
    return keras.Model(y, dense(keras, 3)(inner(y)))


def dictionaries(keras: Keras) -> Model:
    """Inputs and outputs by name: Keras orders them by the alphabet."""
    left, right = keras.Input((3,), name="left"), keras.Input((2,), name="right")
    joined = layer(keras, "Concatenate")([left, right])
    outputs = {"yaw": dense(keras, 1)(joined), "pitch": dense(keras, 2)(left)}
    return keras.Model({"right": right, "left": left}, outputs)


def trained(keras: Keras) -> Model:
    """Compiled and trained for a step, so that the file holds the optimizer's state too."""
    x = keras.Input((6, 5, 2))
    y = layer(keras, "BatchNormalization")(layer(keras, "Conv2D", filters=3, kernel_size=3)(x))
    y = layer(keras, "Dropout", rate=0.5)(layer(keras, "Flatten")(y))
    model = keras.Model(x, dense(keras, 3, "softmax")(y))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.train_on_batch(np.ones((4, 6, 5, 2), np.float32), np.array([0, 1, 2, 0]))
    return model


def long_chain(keras: Keras) -> Model:
    """Deep enough to find recursion, and with more layer names than one look takes in."""
    x = first = keras.Input((3,))
    for index in range(150):
        x = layer(keras, "Activation", activation="tanh" if index % 3 else "linear")(x)
    return keras.Model(first, x)
