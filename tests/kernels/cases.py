"""Operations in many shapes and options, on which every kernel is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from nnbuild.model.graph import Graph
from nnbuild.numeric.resize import MODES
from nnbuild.numeric.whole_multiples import rounded_to_bytes
from nnbuild.ops.activation import Activation
from nnbuild.ops.affine import Affine
from nnbuild.ops.base import Clamp
from nnbuild.ops.binary import FUNCTIONS as BINARY
from nnbuild.ops.binary import Binary
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.conv2d_transpose import Conv2DTranspose
from nnbuild.ops.dense import Dense
from nnbuild.ops.depthwise_conv2d import DepthwiseConv2D
from nnbuild.ops.functions import FUNCTIONS
from nnbuild.ops.gru import GRU
from nnbuild.ops.layer_norm import LayerNorm
from nnbuild.ops.lrn import LRN
from nnbuild.ops.lstm import LSTM
from nnbuild.ops.matmul import MatMul
from nnbuild.ops.pad import Pad
from nnbuild.ops.pick import Pick
from nnbuild.ops.pool2d import Pool2D
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.reduce import Reduce
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.resize_bilinear import ResizeBilinear
from nnbuild.ops.shift import Shift
from nnbuild.ops.simple_rnn import SimpleRNN
from nnbuild.ops.slice import Slice
from nnbuild.ops.softmax import Softmax
from nnbuild.ops.transpose import Transpose
from tests.support.graphs import single

Maker = Callable[[], Graph]
PARAMETERS: dict[str, tuple[float, ...]] = {
    "clamp": (-0.5, 0.75),
    "relu": (1.5, 0.1, 0.25),
    "leaky_relu": (0.2,),
    "elu": (0.7,),
    "steps": (-0.5, 0.75, 2.0**-16),
    "even_steps": (-0.5, 0.75, 2.0**-16),
}
POSITIVE = {"sqrt", "rsqrt", "log"}


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def cases() -> Iterator[tuple[str, Maker]]:
    yield from _convolutions()
    yield from _pools()
    yield from _elementwise()
    yield from _moves()
    yield from _vectors()
    yield from _recurrent()
    yield from _products()
    yield from narrow_weights()


def _convolutions() -> Iterator[tuple[str, Maker]]:
    shapes = [
        # height, width, in, kernel, filters, strides, dilation, padding, groups
        (6, 7, 3, (3, 3), 8, (1, 1), (1, 1), ((1, 1), (1, 1)), 1),
        (6, 7, 3, (3, 3), 5, (2, 2), (1, 1), ((0, 1), (0, 1)), 1),
        (9, 9, 2, (3, 2), 4, (1, 2), (2, 3), ((2, 2), (1, 2)), 1),
        (5, 5, 4, (1, 1), 6, (1, 1), (1, 1), ((0, 0), (0, 0)), 1),
        (5, 5, 4, (1, 1), 3, (2, 2), (1, 1), ((0, 0), (0, 0)), 1),
        (5, 4, 6, (3, 3), 9, (1, 1), (1, 1), ((1, 1), (1, 1)), 3),
        (2, 3, 2, (5, 7), 3, (1, 1), (1, 1), ((2, 2), (3, 3)), 1),
        (1, 12, 3, (1, 4), 7, (1, 1), (1, 2), ((0, 0), (6, 0)), 1),
        (3, 3, 1, (3, 3), 1, (1, 1), (1, 1), ((0, 0), (0, 0)), 1),
        (4, 4, 2, (2, 2), 2, (1, 1), (1, 1), ((3, 4), (2, 5)), 1),
        (7, 9, 16, (3, 3), 12, (1, 1), (1, 1), ((1, 1), (1, 1)), 1),
        (12, 8, 4, (3, 3), 8, (1, 1), (1, 1), ((1, 1), (1, 1)), 1),
        (5, 6, 8, (3, 3), 16, (2, 2), (1, 1), ((0, 1), (0, 1)), 1),
        (3, 5, 92, (1, 1), 7, (1, 1), (1, 1), ((0, 0), (0, 0)), 1),
        (12, 7, 1, (10, 4), 9, (2, 2), (1, 1), ((4, 5), (1, 1)), 1),
        (4, 3, 12, (2, 2), 6, (1, 1), (2, 1), ((1, 1), (0, 0)), 1),
        (4, 5, 6, (3, 3), 10, (1, 1), (1, 1), ((1, 1), (1, 1)), 1),
        (1, 9, 8, (1, 3), 5, (1, 1), (1, 1), ((0, 0), (2, 0)), 1),
        (3, 2, 20, (3, 3), 70, (1, 1), (1, 1), ((1, 1), (1, 1)), 1),
        (8, 12, 16, (3, 3), 8, (1, 1), (1, 1), ((1, 1), (1, 1)), 1),
        (6, 10, 8, (3, 3), 20, (1, 1), (1, 1), ((0, 0), (0, 0)), 1),
        # windows whose taps miss the only column, or the only row
        (6, 1, 2, (3, 3), 6, (1, 2), (2, 2), ((1, 3), (1, 4)), 1),
        (1, 6, 2, (3, 3), 6, (2, 1), (2, 2), ((1, 4), (1, 3)), 1),
        (16, 16, 16, (3, 3), 16, (2, 2), (1, 1), ((0, 1), (0, 1)), 1),
        # columns, which are computed as rows
        (14, 1, 6, (5, 1), 9, (1, 1), (1, 1), ((2, 2), (0, 0)), 1),
        (19, 1, 8, (3, 1), 20, (2, 1), (2, 1), ((1, 3), (0, 0)), 1),
        (12, 1, 16, (4, 1), 24, (1, 1), (1, 1), ((0, 0), (0, 0)), 2),
    ]
    for index, (h, w, c, kernel, filters, strides, dilation, padding, groups) in enumerate(shapes):
        attributes = Conv2D(strides, dilation, padding, groups, clamp=Clamp(0.0, 2.0) if index % 2 else Clamp())
        constants = {"kernel": normal(*kernel, c // groups, filters)} | ({"bias": normal(filters)} if index % 3 else {})
        yield f"conv2d-{index}", lambda a=attributes, s=(h, w, c), k=constants: single(a, [s], k)
        for multiplier in (1, 3):
            depthwise = DepthwiseConv2D(strides, dilation, padding, clamp=Clamp(low=0.0) if index % 2 else Clamp())
            constants = {"kernel": normal(*kernel, c, multiplier)}
            constants |= {"bias": normal(c * multiplier)} if index % 3 else {}
            yield (
                f"depthwise-{index}-{multiplier}",
                lambda a=depthwise, s=(h, w, c), k=constants: single(a, [s], k),
            )
    yield from _whole_inputs()
    yield from few_channels()
    yield from _depthwise()
    yield from _repeated()
    yield (
        "conv2d-outer",
        lambda: single(Conv2D(padding=((1, 1), (1, 1))), [(5, 4, 3)], {"kernel": normal(3, 3, 3, 4)}, outer=()),
    )
    yield from _transposed()
    yield from _dense()


def few_channels() -> Iterator[tuple[str, Maker]]:
    """Fewer output channels than a vector has lanes: short and long runs, rows shorter and longer than a vector. As in
    trained layers, outputs are about as large as inputs, so that small ones are not lost in the rounding of large sums.
    """
    shapes = [
        # height, width, channels, kernel, filters, stride, dilation, padding
        (3, 7, 3, (1, 1), 1, 1, 1, 0),
        (3, 33, 16, (1, 1), 2, 1, 1, 0),
        (5, 16, 8, (3, 3), 1, 1, 1, 1),
        (4, 19, 70, (3, 3), 3, 2, 1, 1),
        (6, 9, 5, (3, 2), 2, 1, 2, 1),
        (3, 3, 100, (1, 1), 1, 1, 1, 0),
        (7, 22, 6, (3, 3), 4, 1, 1, 0),
        (2, 2, 20, (2, 2), 6, 1, 1, 1),
    ]
    for index, (h, w, c, kernel, filters, stride, dilation, pad) in enumerate(shapes):
        conv = Conv2D((stride,) * 2, (dilation,) * 2, ((pad, pad),) * 2, clamp=Clamp(low=0.0) if index % 2 else Clamp())
        weights = normal(*kernel, c, filters) / np.float32(np.sqrt(c * kernel[0] * kernel[1]))
        constants = {"kernel": weights} | ({"bias": normal(filters)} if index % 3 else {})
        yield f"conv2d-few-{index}", lambda a=conv, s=(h, w, c), k=constants: single(a, [s], k)
    for shape, filters in (((100,), 1), ((33,), 2), ((9, 20), 1)):
        weights = {"kernel": normal(shape[-1], filters), "bias": normal(filters)}
        yield f"dense-few-{shape}", lambda s=shape, k=weights: single(Dense(), [s], k)


def _whole_inputs() -> Iterator[tuple[str, Maker]]:
    for h, w, c, filters in ((5, 1, 6, 7), (1, 1, 13, 9), (1, 1, 32, 4), (2, 3, 4, 5)):
        weights = {"kernel": normal(h, w, c, filters), "bias": normal(filters)}
        whole = Conv2D(clamp=Clamp(low=0.0) if filters % 2 else Clamp())
        yield f"conv2d-whole-{h}{w}{c}", lambda a=whole, s=(h, w, c), k=weights: single(a, [s], k)


def _transposed() -> Iterator[tuple[str, Maker]]:
    """Windows that are whole strides and that are not, taps farther apart, outputs that no tap reaches."""
    shapes = [
        # output, kernel, filters, strides, dilation, crop
        ((9, 9), (3, 3), 5, (2, 2), (1, 1), (0, 0)),
        ((8, 10), (3, 3), 5, (2, 3), (1, 1), (1, 0)),
        ((7, 8), (3, 3), 5, (1, 1), (2, 2), (0, 1)),
        ((8, 8), (2, 2), 3, (2, 2), (1, 1), (0, 0)),
        ((8, 8), (4, 4), 4, (2, 2), (1, 1), (1, 1)),
        ((7, 9), (1, 3), 6, (2, 2), (1, 3), (0, 1)),
        ((8, 4), (5, 1), 17, (2, 1), (1, 1), (2, 0)),
    ]
    for index, (size, kernel, filters, strides, dilation, crop) in enumerate(shapes):
        attributes = Conv2DTranspose(size, strides, dilation, crop, clamp=Clamp(high=1.0) if index else Clamp())
        constants = {"kernel": normal(*kernel, filters, 2)} | ({"bias": normal(filters)} if index else {})
        yield f"conv2d_transpose-{index}", lambda a=attributes, k=constants: single(a, [(4, 4, 2)], k)


def _dense() -> Iterator[tuple[str, Maker]]:
    shapes = [((7,), 10), ((64,), 16), ((3, 5), 6), ((2, 3, 4), 9), ((1,), 1), ((5,), 3), ((92,), 70), ((300,), 9)]
    for index, (shape, out) in enumerate([*shapes, ((3, 92), 7)]):
        constants = {"kernel": normal(shape[-1], out)} | ({"bias": normal(out)} if index % 2 else {})
        dense = Dense(Clamp(0.0, 1.0) if index % 3 else Clamp())
        yield f"dense-{index}", lambda a=dense, s=shape, k=constants: single(a, [s], k)


def _depthwise() -> Iterator[tuple[str, Maker]]:
    """Shapes whose tiles share lines, with several bands, odd numbers and few columns."""
    shapes = [
        # height, width, channels, kernel, strides, dilation, padding, bounded
        (7, 9, 5, (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), True),
        (8, 6, 12, (3, 3), (2, 2), (1, 1), ((0, 1), (0, 1)), True),
        (9, 70, 4, (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), True),
        (11, 61, 3, (3, 3), (2, 2), (1, 1), ((1, 1), (1, 1)), False),
        (6, 5, 8, (5, 5), (1, 1), (1, 1), ((2, 2), (2, 2)), False),
        (10, 3, 6, (5, 3), (3, 1), (1, 1), ((2, 1), (1, 1)), True),
        (1, 23, 9, (1, 5), (1, 2), (1, 1), ((0, 0), (2, 2)), True),
        (14, 1, 4, (4, 1), (1, 1), (3, 1), ((3, 6), (0, 0)), False),
        (3, 3, 70, (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), True),
        (5, 5, 4, (2, 2), (1, 1), (1, 1), ((0, 0), (0, 0)), False),
        (1, 9, 8, (2, 3), (1, 1), (3, 1), ((1, 2), (1, 1)), False),
        (9, 1, 4, (2, 2), (1, 1), (1, 3), ((0, 1), (1, 2)), True),
        (5, 1, 8, (5, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), True),  # a single window
        (12, 1, 40, (12, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), False),
        (2, 3, 4, (2, 3), (1, 1), (1, 1), ((0, 0), (0, 0)), False),
        (3, 9, 13, (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), True),  # channels that never fill vectors
        (2, 8, 65, (3, 2), (1, 1), (1, 1), ((1, 1), (1, 1)), False),
        (3, 11, 31, (3, 3), (2, 2), (1, 1), ((1, 1), (1, 1)), True),
    ]
    for index, (h, w, c, kernel, strides, dilation, padding, bounded) in enumerate(shapes):
        depthwise = DepthwiseConv2D(strides, dilation, padding, clamp=Clamp(low=0.0) if bounded else Clamp())
        constants = {"kernel": normal(*kernel, c, 1), "bias": normal(c)}
        yield f"depthwise-lines-{index}", lambda a=depthwise, s=(h, w, c), k=constants: single(a, [s], k)


def _repeated() -> Iterator[tuple[str, Maker]]:
    """Several output channels of an input channel: fewer than the lanes of a vector, and more."""
    for h, w, c, times, stride in (
        (4, 9, 5, 2, 1),
        (5, 9, 33, 2, 2),
        (3, 4, 7, 4, 1),
        (3, 5, 3, 13, 2),
        (4, 6, 1, 35, 1),
    ):
        constants = {"kernel": normal(3, 3, c, times), "bias": normal(c * times)}
        depthwise = DepthwiseConv2D((stride, stride), padding=((1, 1), (1, 1)), clamp=Clamp(low=0.0))
        yield f"depthwise-{c}-by-{times}", lambda a=depthwise, s=(h, w, c), k=constants: single(a, [s], k)


def _pools() -> Iterator[tuple[str, Maker]]:
    for function in ("max", "average"):
        for index, pool in enumerate(
            [
                Pool2D(function),
                Pool2D(function, (3, 3), (1, 1), ((1, 1), (1, 1))),
                Pool2D(function, (3, 2), (2, 2), ((0, 1), (1, 0)), Clamp(0.0)),
                Pool2D(function, (1, 3), (1, 3)),
            ]
        ):
            yield f"pool-{function}-{index}", lambda p=pool: single(p, [(7, 8, 3)])
            yield f"pool-{function}-{index}-9", lambda p=pool: single(p, [(7, 8, 9)])
    for function in ("mean", "sum", "max", "min"):
        for axis, count in ((0, 2), (1, 1), (2, 1), (0, 3)):
            yield (
                f"reduce-{function}-{axis}-{count}",
                lambda f=function, a=axis, c=count: single(Reduce(f, a, c, c == 2), [(3, 4, 5)]),
            )

    for shape, axis, count in (
        ((9, 30, 6), 0, 2),
        ((4, 37), 1, 1),
        ((2, 1100), 1, 1),
        ((3, 2, 270, 5), 2, 1),
        ((6, 70), 0, 1),
    ):
        for function in ("mean", "max", "min"):
            reduce = Reduce(function, axis, count)
            yield f"reduce-long-{function}-{shape}", lambda r=reduce, s=shape: single(r, [s])


def _elementwise() -> Iterator[tuple[str, Maker]]:
    for function in ("sigmoid", "tanh", "gelu"):
        yield f"activation-{function}-long", lambda f=function: single(Activation(f), [(45,)])
    for function in FUNCTIONS:
        name = f"activation-{function}" + ("-positive" if function in POSITIVE else "")
        yield name, lambda f=function: single(Activation(f, PARAMETERS.get(f, ())), [(5, 3)])
    for slope in ((4, 3, 2), (1, 1, 2), (1, 3, 1), (1, 1, 1)):
        yield f"prelu-{slope}", lambda s=slope: single(PReLU(), [(4, 3, 2)], {"slope": normal(*s)})
    for axis in (0, 1, 2):
        yield (
            f"affine-{axis}",
            lambda a=axis: single(
                Affine(a, Clamp(low=-1.0)), [(4, 3, 2)], {r: normal((4, 3, 2)[a]) for r in ("scale", "shift")}
            ),
        )
    for index, (shape, clamp) in enumerate([((5, 4, 12), Clamp()), ((37, 7), Clamp(0.0)), ((3, 3, 70), Clamp())]):
        constants = {role: normal(shape[-1]) for role in ("scale", "shift")}
        affine = Affine(len(shape) - 1, clamp)
        yield f"affine-wide-{index}", lambda a=affine, s=shape, k=constants: single(a, [s], k)
    for index, shapes in enumerate([((5, 4, 12), (1, 1, 12)), ((1, 8), (9, 8)), ((5, 41), (5, 41)), ((3, 21), (3, 1))]):
        for clamp in (Clamp(), Clamp(0.0)):
            product = Binary("multiply", clamp)
            yield f"binary-wide-{index}-{clamp.low}", lambda b=product, s=shapes: single(b, list(s))
    yield "binary-channels", lambda: single(Binary("multiply"), [(6, 5, 8)], {"right": normal(8)})
    for function in BINARY:
        for index, shapes in enumerate([((3, 4), (3, 4)), ((3, 4), (1, 4)), ((3, 1), (3, 4)), ((2, 3, 4), (1, 3, 1))]):
            positive = "-positive" if function == "divide" else ""
            yield (
                f"binary-{function}-{index}{positive}",
                lambda f=function, s=shapes: single(Binary(f, Clamp(high=3.0)), list(s)),
            )
        if function in ("add", "subtract"):
            for size in (8, 21):
                yield f"binary-{function}-{size}", lambda f=function, n=size: single(Binary(f), [(n,), (n,)])
        yield (
            f"binary-{function}-right",
            lambda f=function: single(Binary(f), [(3, 4)], {"right": np.float32(2.5)}),
        )
        yield (
            f"binary-{function}-left-positive",
            lambda f=function: single(Binary(f), [(3, 4)], {"left": normal(4)}),
        )


def _moves() -> Iterator[tuple[str, Maker]]:
    for axis in (0, 1, 2):
        shapes = [tuple(n + i if a == axis else n for a, n in enumerate((2, 3, 4))) for i in range(3)]
        yield (
            f"concatenate-{axis}",
            lambda a=axis, s=shapes: single(Concatenate(a, Clamp(low=0.0) if a else Clamp()), s),
        )
    for order in ((1, 0, 2), (2, 1, 0), (0, 2, 1), (0, 1, 2)):
        yield f"transpose-{order}", lambda o=order: single(Transpose(o), [(2, 3, 4)])
    for amounts in (((1, 2), (0, 0), (0, 0)), ((0, 0), (2, 1), (0, 0)), ((1, 0), (0, 3), (2, 1)), ((0, 0),) * 3):
        yield f"pad-{amounts}", lambda a=amounts: single(Pad(a, 0.5), [(2, 3, 4)])
    for amounts, shape in (
        (((1, 2), (0, 1), (0, 0)), (2, 5, 3)),
        (((1, 1), (2, 2), (0, 0)), (4, 60, 5)),
        (((0, 0), (4, 0), (0, 0)), (1, 9, 1)),
    ):
        border = np.linspace(-0.9, 0.7, shape[-1])
        yield f"pad-border-{shape}", lambda a=amounts, s=shape, b=border: single(Pad(a), [s], {"border": b})
    for begins, steps, counts in (
        ((1, 0, 2), (1, 1, 1), (1, 3, 2)),
        ((0, 2, 0), (1, -1, 2), (2, 3, 2)),
        ((1, 2, 3), (-1, -1, -1), (2, 3, 4)),
    ):
        yield f"slice-{begins}-{steps}", lambda b=begins, s=steps, c=counts: single(Slice(b, s, c), [(2, 3, 4)])
    for axis, new in ((0, 1), (0, 5), (1, 2), (1, 3)):
        part = (new, 3, 4) if axis == 0 else (5, new, 4)
        yield f"shift-{axis}-{new}", lambda a=axis, p=part: single(Shift(a), [(5, 3, 4), p])
    for times in ((1, 1, 1), (2, 3, 1), (1, 1, 4), (3, 1, 2)):
        yield f"repeat-{times}", lambda t=times: single(Repeat(t), [(2, 3, 4)])
    for run in (8, 13, 29, 64, 75, 167):  # runs that end in every piece of a vector
        yield f"slice-runs-of-{run}", lambda n=run: single(Slice((1, 2), (1, 1), (3, n)), [(5, n + 3)])
        yield f"repeat-runs-of-{run}", lambda n=run: single(Repeat((2, 1)), [(3, n)])
        yield f"transpose-runs-of-{run}", lambda n=run: single(Transpose((1, 0, 2)), [(2, 3, n)])
        yield f"pad-runs-of-{run}", lambda n=run: single(Pad(((0, 1), (2, 9)), 0.5), [(3, n)])
        yield f"pick-runs-of-{run}", lambda n=run: single(Pick(((1, 0, 1), (2, 0), None)), [(2, 3, n)])
    for shape, turned in (
        ((9, 20), (1, 0)),
        ((3, 9, 11), (1, 2, 0)),
        ((17, 10, 3), (2, 0, 1)),
        ((4, 16, 25), (0, 2, 1)),
        ((8, 5, 13), (2, 1, 0)),
        ((40, 2, 9), (2, 1, 0)),
        ((5, 3, 32), (1, 0, 2)),
    ):
        yield f"transpose-{shape}-{turned}", lambda s=shape, o=turned: single(Transpose(o), [s])
    for places in (((1, 0), None, (3, 3, 0)), (None, (2, 1, 0, 0), None), ((0,), (1,), (2,)), (None, None, (1, 2))):
        yield f"pick-{places}", lambda p=places: single(Pick(p), [(2, 3, 4)])
    for size in ((6, 8), (3, 12), (9, 16), (2, 3), (7, 5), (1, 1), (5, 9)):
        for mode in MODES:
            resize = ResizeBilinear(size, mode)
            yield f"resize_bilinear-{size}-{mode}", lambda r=resize: single(r, [(3, 4, 2)])


def _products() -> Iterator[tuple[str, Maker]]:
    shapes = [
        # leading axes, rows, depth, columns
        ((), 3, 4, 5),
        ((2,), 1, 7, 3),
        ((2, 3), 5, 1, 4),
        ((4,), 9, 16, 9),
        ((1,), 8, 33, 2),
        ((), 6, 19, 21),
        ((2,), 20, 18, 70),
        ((), 3, 100, 6),
        ((), 2, 150, 5),
        ((), 1, 33, 1),
        ((3,), 1, 16, 70),
    ]
    for index, (before, rows, depth, columns) in enumerate(shapes):
        for turned in (False, True):
            right = (columns, depth) if turned else (depth, columns)
            yield (
                f"matmul-{index}-{turned}",
                lambda t=turned, s=((*before, rows, depth), (*before, *right)): single(MatMul(t), list(s)),
            )


def _vectors() -> Iterator[tuple[str, Maker]]:
    yield "softmax-long", lambda: single(Softmax(0), [(37,)])
    yield "softmax-of-131", lambda: single(Softmax(1), [(2, 131)])
    yield "softmax-of-160", lambda: single(Softmax(1), [(3, 160)])
    for size in (2, 3, 7):
        yield f"softmax-of-few-{size}", lambda n=size: single(Softmax(1), [(9, n)])
    for axis, count in ((0, 1), (1, 1), (2, 1), (1, 2), (0, 3)):
        yield f"softmax-{axis}-{count}", lambda a=axis, c=count: single(Softmax(a, c), [(3, 4, 5)])
    for count in (1, 2, 3):
        shape = (3, 4, 5)[-count:]
        yield (
            f"layer_norm-{count}",
            lambda c=count, s=shape: single(
                LayerNorm(c, 1e-3), [(3, 4, 5)], {"scale": normal(*s), "shift": normal(*s)}
            ),
        )
    for size in (16, 37, 96, 147, 301):
        wide = {"scale": (size,), "shift": (size,)} if size % 2 else {"shift": (size,)}
        yield (
            f"layer_norm-of-{size}",
            lambda w=wide, n=size: single(LayerNorm(1, 1e-3), [(3, n)], {role: normal(*s) for role, s in w.items()}),
        )
    yield "layer_norm-epsilon-40", lambda: single(LayerNorm(1, 40.0), [(3, 50)], {"scale": normal(50)})
    yield "layer_norm-rms-of-70", lambda: single(LayerNorm(1, 1e-2, centred=False), [(4, 70)], {"scale": normal(70)})
    rms = LayerNorm(1, 1e-2, centred=False)
    yield "layer_norm-rms", lambda: single(rms, [(4, 6)], {"scale": normal(6)})
    yield "layer_norm-rms-bare", lambda: single(LayerNorm(2, 1e-2, centred=False), [(2, 3, 5)])
    yield "layer_norm-bare", lambda: single(LayerNorm(1, 1e-2), [(4, 6)])
    for beta in (0.5, 0.75, 1.0, 0.6):
        yield f"lrn-{beta}", lambda b=beta: single(LRN(2, 1.5, 0.3, b), [(2, 3, 8)])
    for radius, channels in ((2, 37), (9, 20), (20, 19), (0, 16)):
        yield f"lrn-{radius}-of-{channels}", lambda r=radius, c=channels: single(LRN(r, 1.5, 0.3, 0.75), [(2, c)])


def _recurrent() -> Iterator[tuple[str, Maker]]:
    for kind in (LSTM, GRU, SimpleRNN):
        for index, options in enumerate(
            [
                {"sequences": True},
                {"backwards": True},
                {"sequences": True, "backwards": True, "activation": ("clamp", (0.0, 6.0))},
                {"gate_activation": ("hard_sigmoid", ())},
                {"reset_after": False, "sequences": True},
            ]
        ):
            if "reset_after" in options and kind is not GRU:
                continue
            attributes = kind(units=5, **options)
            constants = {"kernel": normal(3, 5 * kind.gates), "recurrent": normal(5, 5 * kind.gates) * 0.5}
            if index != 1:
                constants["bias"] = normal(*attributes.bias_shape())
            name = f"{kind.kind}-{index}"
            yield name, lambda a=attributes, c=constants: single(a, [(6, 3)], c)
            states = [(5,)] * kind.states
            yield f"{name}-initial", lambda a=attributes, c=constants, s=states: single(a, [(6, 3), *s], c)
            yield (
                f"{name}-stateful",
                lambda a=attributes, c=constants, s=states: single(a, [(6, 3), *s], c, stateful=len(s)),
            )


def in_bytes(*shape: int) -> np.ndarray:
    """Weights of 8 bits: a dead channel, one far smaller than the others, and one that uses few steps."""
    weights = normal(*shape) / np.float32(np.sqrt(np.prod(shape[:-1])))
    if shape[-1] > 2:
        weights[..., 0] *= np.float32(1e-9)
        weights[..., -1] = 0
    weights = rounded_to_bytes(weights)
    if shape[-1] > 2:
        weights[..., 1] = np.sign(weights[..., 1]) * np.float32(0.3)
    return weights


def narrow_weights() -> Iterator[tuple[str, Maker]]:
    """Layers of floats whose weights have 8 bits."""
    for index, (h, w, c, kernel, filters, strides, groups) in enumerate(
        [
            (6, 7, 3, 3, 8, 1, 1),
            (9, 9, 2, 3, 4, 2, 1),
            (5, 5, 14, 1, 6, 1, 1),
            (4, 5, 6, 3, 9, 1, 3),
            (3, 9, 20, 3, 70, 1, 1),
            (16, 16, 16, 3, 16, 2, 1),
        ]
    ):
        conv = Conv2D(
            (strides,) * 2, (1, 1), ((kernel // 2,) * 2,) * 2, groups, clamp=Clamp(low=0.0) if index % 2 else Clamp()
        )
        constants = {"kernel": in_bytes(kernel, kernel, c // groups, filters)} | (
            {"bias": normal(filters)} if index % 3 else {}
        )
        yield f"conv2d-narrow-{index}", lambda a=conv, s=(h, w, c), k=constants: single(a, [s], k)
    for index, (size, channels, multiplier) in enumerate(((7, 5, 1), (9, 34, 1), (6, 7, 2))):
        depthwise, many = DepthwiseConv2D((1 + index % 2,) * 2, (1, 1), ((1, 1), (1, 1))), channels * multiplier
        constants = {"kernel": in_bytes(9, many).reshape(3, 3, channels, multiplier), "bias": normal(many)}
        yield f"depthwise-narrow-{index}", lambda a=depthwise, s=(size, size, channels), k=constants: single(a, [s], k)
    for index, (shape, filters) in enumerate((((100,), 1), ((33,), 21), ((260,), 70), ((9, 20), 13))):
        dense, constants = Dense(Clamp(low=0.0) if index % 2 else Clamp()), {"kernel": in_bytes(shape[-1], filters)}
        constants |= {"bias": normal(filters)} if index % 3 else {}
        yield f"dense-narrow-{index}", lambda a=dense, s=shape, k=constants: single(a, [s], k)
    for kind, options in ((LSTM, {}), (GRU, {}), (GRU, {"reset_after": False}), (SimpleRNN, {})):
        for units, features in ((9, 9), (33, 9), (17, 2)):
            cell = kind(units=units, sequences=True, **options)
            constants = {
                "kernel": in_bytes(features, units * kind.gates),
                "recurrent": normal(units, units * kind.gates),
            }
            constants["recurrent"] = rounded_to_bytes(constants["recurrent"] / np.float32(units))
            if units > 9:
                constants["bias"] = normal(*cell.bias_shape())
            name = f"{kind.kind}-narrow-{len(options)}-{units}"
            yield name, lambda a=cell, f=features, c=constants: single(a, [(6, f)], c)
