"""Layers that move values about, and layers that do nothing at inference."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tests.zoo.case import Case, Step, chain, one, tag

_IMAGE = (5, 6, 3)
_SEQUENCE = (7, 3)


def cases() -> Iterator[Case]:
    yield from _padding_and_cropping()
    yield from _upsampling()
    yield from _reshaping()
    yield from _inference_noops()


def _padding_and_cropping() -> Iterator[Case]:
    for amount in (1, (2, 1), (0, 3)):
        yield one("zeropadding1d", tag(amount), _SEQUENCE, "ZeroPadding1D", padding=amount)
        yield one("cropping1d", tag(amount), _SEQUENCE, "Cropping1D", cropping=amount)
    for variant, amount in (
        ("one", 1),
        ("pair", (2, 1)),
        ("sides", ((0, 1), (2, 0))),
        ("none", 0),
        ("bottom_right", ((0, 1), (0, 1))),
    ):
        yield one("zeropadding2d", variant, _IMAGE, "ZeroPadding2D", padding=amount)
        yield one("cropping2d", variant, _IMAGE, "Cropping2D", cropping=amount)
    padding: Step = ("ZeroPadding2D", {"padding": ((0, 1), (0, 1))})
    conv: Step = ("Conv2D", {"filters": 4, "kernel_size": 3, "strides": 2})
    same_conv: Step = ("Conv2D", {"filters": 4, "kernel_size": 3, "padding": "same"})
    depthwise: Step = ("DepthwiseConv2D", {"kernel_size": 3, "strides": 2})
    yield chain("zeropadding2d", "before_conv", _IMAGE, padding, conv)
    yield chain("zeropadding2d", "before_same_conv", _IMAGE, padding, same_conv)
    yield chain("zeropadding2d", "before_depthwise", _IMAGE, padding, depthwise)
    yield chain("zeropadding2d", "before_maxpool", _IMAGE, padding, ("MaxPooling2D", {"pool_size": 3, "strides": 2}))
    yield chain("zeropadding2d", "before_averagepool", _IMAGE, padding, ("AveragePooling2D", {"pool_size": 3}))
    yield chain("zeropadding2d", "twice_before_conv", _IMAGE, padding, ("ZeroPadding2D", {"padding": 2}), conv)
    yield chain("zeropadding2d", "bn_between", _IMAGE, padding, ("BatchNormalization", {}), conv)
    yield chain("zeropadding1d", "before_conv", _SEQUENCE, ("ZeroPadding1D", {"padding": (2, 0)}),
                ("Conv1D", {"filters": 4, "kernel_size": 3}))  # fmt: skip
    yield chain("cropping2d", "after_conv", _IMAGE, same_conv, ("Cropping2D", {"cropping": ((1, 0), (0, 2))}))


def _upsampling() -> Iterator[Case]:
    for size in (1, 2, 3):
        yield one("upsampling1d", tag(size), _SEQUENCE, "UpSampling1D", size=size)
    for size, interpolation in product((1, 2, 3, (2, 3), (1, 4)), ("nearest", "bilinear")):
        variant = f"{interpolation}_{tag(size)}"
        yield one("upsampling2d", variant, (3, 4, 3), "UpSampling2D", size=size, interpolation=interpolation)
    yield one("upsampling2d", "bilinear_one_pixel", (1, 1, 3), "UpSampling2D", size=4, interpolation="bilinear")
    yield chain("upsampling2d", "before_conv", (3, 4, 3), ("UpSampling2D", {}),
                ("Conv2D", {"filters": 2, "kernel_size": 3, "padding": "same"}))  # fmt: skip


def _reshaping() -> Iterator[Case]:
    for variant, shape in (("vector", (5,)), ("sequence", _SEQUENCE), ("image", _IMAGE), ("one_pixel", (1, 1, 4))):
        yield one("flatten", variant, shape, "Flatten")
    yield chain("flatten", "before_dense", _IMAGE, ("Flatten", {}), ("Dense", {"units": 4}))
    for target in ((6, 5, 3), (90,), (-1,), (15, -1), (-1, 5, 2), (3, 5, 6), (1, 90), (5, 18)):
        yield one("reshape", f"image_to_{tag(target)}", _IMAGE, "Reshape", target_shape=target)
    yield one("reshape", "vector_to_image", (12,), "Reshape", target_shape=(2, 2, 3))
    yield chain("reshape", "and_back", (12,), ("Reshape", {"target_shape": (4, 3)}), ("Flatten", {}),
                ("Dense", {"units": 2}))  # fmt: skip
    for dims in ((1, 2), (2, 1)):
        yield one("permute", f"sequence_{tag(dims)}", _SEQUENCE, "Permute", dims=dims)
    for dims in ((1, 2, 3), (2, 1, 3), (3, 1, 2), (1, 3, 2), (3, 2, 1), (2, 3, 1)):
        yield one("permute", f"image_{tag(dims)}", _IMAGE, "Permute", dims=dims)
    yield chain("permute", "before_flatten", _IMAGE, ("Permute", {"dims": (3, 1, 2)}), ("Flatten", {}),
                ("Dense", {"units": 3}))  # fmt: skip
    for count in (1, 4):
        yield one("repeatvector", str(count), (5,), "RepeatVector", n=count)


def _inference_noops() -> Iterator[Case]:
    yield one("noop", "dropout", (7,), "Dropout", rate=0.5)
    yield one("noop", "dropout_noise_shape", _SEQUENCE, "Dropout", rate=0.5, noise_shape=(None, 1, 3))
    yield one("noop", "spatial_dropout_1d", _SEQUENCE, "SpatialDropout1D", rate=0.3)
    yield one("noop", "spatial_dropout_2d", _IMAGE, "SpatialDropout2D", rate=0.3)
    yield one("noop", "alpha_dropout", (7,), "AlphaDropout", rate=0.2)
    yield one("noop", "gaussian_dropout", (7,), "GaussianDropout", rate=0.2)
    yield one("noop", "gaussian_noise", (7,), "GaussianNoise", stddev=0.1)
    yield one("noop", "activity_regularization", (7,), "ActivityRegularization", l2=0.01)
    yield one("noop", "linear_activation", (7,), "Activation", activation="linear")
    dense: Step = ("Dense", {"units": 5, "activation": "relu"})
    yield chain("noop", "dropout_between", (7,), dense, ("Dropout", {"rate": 0.4}), dense, ("Dropout", {"rate": 0.1}))
