"""Operators that move elements: reshapes, slices, padding, repetition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from nnbuild.frontend.other_arithmetic import OTHER_SCALES
from nnbuild.frontend.tflite.call import BATCH_ONE, Call
from nnbuild.frontend.tflite.linear import image
from nnbuild.frontend.tflite.records import CONVERT_AGAIN
from nnbuild.frontend.tflite.static_indexing import number
from nnbuild.frontend.tflite.unsigned import in_output_steps
from nnbuild.model.graph import Shape, Tensor
from nnbuild.numeric.resize import CENTRES, CORNERS, EDGES
from nnbuild.numeric.resize import nearest as nearest_places
from nnbuild.ops.base import Pair
from nnbuild.ops.concatenate import Concatenate
from nnbuild.ops.convert import Convert
from nnbuild.ops.pad import Pad
from nnbuild.ops.pick import Pick
from nnbuild.ops.repeat import Repeat
from nnbuild.ops.resize_bilinear import LARGEST, ResizeBilinear
from nnbuild.ops.slice import Slice
from nnbuild.ops.transpose import Transpose

Range = tuple[int, int, int]
"""(begin, step, count) along one axis."""

MOST_COPIES = 256


def moved(call: Call, index: int, first: bool) -> tuple[str, int]:
    """Like `Call.view`, for an operator whose output has its input's scale."""
    name, missing = call.view(index, first)
    call.same_quant(name)
    return name, missing


def reshape(call: Call) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS."""
    (name,) = call.data_inputs(0)
    call.same_quant(name)
    call.reshaped(name, whole=call.target_shape())


def transpose(call: Call) -> None:
    order = call.integers(1)
    rank = len(call.whole(0))
    call.expect(sorted(order) == list(range(rank)), f"{list(order)} is not an order of {rank} axes.")
    name, missing = moved(call, 0, rank > 0 and order[0] != 0)
    kept = [axis - missing for axis in order if axis >= missing]
    call.done(call.add(Transpose(tuple(kept)), [name]))


def part(call: Call, name: str, missing: int, ranges: Sequence[Range], like: Tensor | None = None) -> str:
    """Slices; `ranges` refer to the file's axes; those of a batch are complete."""
    own = ranges[missing:] or [(0, 1, 1)]
    begins, steps, counts = (tuple(r[i] for r in own) for i in range(3))
    return call.add(Slice(begins, steps, counts), [name], like=like)


def along(whole: Shape, axis: int, taken: Range) -> list[Range]:
    """A range of one axis, and all of the others."""
    return [taken if i == axis else (0, 1, n) for i, n in enumerate(whole)]


def first_is_cut(whole: Shape, ranges: Sequence[Range]) -> bool:
    return bool(whole) and ranges[0] != (0, 1, whole[0])


def cut(call: Call, index: int, ranges: Sequence[Range]) -> str:
    call.expect(all(count > 0 for _, _, count in ranges), "its output is empty.")
    name, missing = moved(call, index, first_is_cut(call.whole(index), ranges))
    return part(call, name, missing, ranges)


def strided_slice(call: Call) -> None:
    whole = call.whole(0)
    bounds = [call.integers(i) for i in (1, 2, 3)]
    call.expect(len({len(values) for values in bounds}) == 1, "its ranges do not match each other.")
    expect_no_offsets(call)
    ranges: list[Range] = []
    made: list[int] = []
    for item in _items(call, len(bounds[0]), len(whole)):
        if item is None:
            made.append(1)
            continue
        call.expect(len(ranges) < len(whole), f"its ranges are for more than {len(whole)} axes.")
        size = whole[len(ranges)]
        one = _range(call, size, item, [b[item] for b in bounds]) if item >= 0 else (0, 1, size)
        ranges.append(one)
        if not (item >= 0 and _mask(call, "ShrinkAxisMask") >> item & 1):
            made.append(one[2])
    call.expect(len(ranges) == len(whole), f"its ranges do not name the {len(whole)} axes once each.")
    call.reshaped(cut(call, 0, ranges), whole=tuple(made))


def expect_no_offsets(call: Call) -> None:
    options = call.options(_SLICE)
    offsets = "Offset" in vars(type(options)) and options.Offset()  # added later than the operator
    call.expect(not offsets, "its ends are offsets.", CONVERT_AGAIN)


_SLICE = "StridedSliceOptions"


def _mask(call: Call, name: str) -> int:
    return int(call.option(_SLICE, name, 0))


def _items(call: Call, count: int, rank: int) -> list[int | None]:
    """The index of each axis' range, in order: -1 for all of it, None for a new axis."""
    new, rest = _mask(call, "NewAxisMask"), _mask(call, "EllipsisMask")
    items: list[int | None] = [None if new >> i & 1 and not rest >> i & 1 else i for i in range(count)]
    missing = [-1] * (rank - sum(i is not None and not rest >> i & 1 for i in items))
    places = [i for i in range(count) if rest >> i & 1]
    call.expect(len(places) <= 1, "it has two ellipses.")
    place = places[0] if places else count
    return [*items[:place], *missing, *items[place + len(places) :]]


def _range(call: Call, size: int, axis: int, bounds: list[int]) -> Range:
    begin, end, step = bounds
    open_begin, open_end, single = (_mask(call, f"{n}Mask") >> axis & 1 for n in ("Begin", "End", "ShrinkAxis"))
    if single:
        begin = begin + size if begin < 0 else begin
        call.expect(0 <= begin < size, f"its index {bounds[0]} lies outside an axis of {size}.")
        return begin, 1, 1
    call.expect(step != 0, "its step is 0.")
    taken = range(size)[slice(None if open_begin else begin, None if open_end else end, step)]
    return taken.start, taken.step if len(taken) > 1 else 1, len(taken)


def slice_(call: Call) -> None:
    whole, begins, sizes = call.whole(0), call.integers(1), call.integers(2)
    call.expect(len(begins) == len(sizes) == len(whole), "its ranges do not name each axis once.")
    ranges = [(b, 1, n - b if s == -1 else s) for n, b, s in zip(whole, begins, sizes, strict=True)]
    call.done(cut(call, 0, ranges))


def reverse(call: Call) -> None:
    whole = call.whole(0)
    axes = {call.axis(a, len(whole)) for a in call.integers(1)}
    ranges = [(n - 1, -1, n) if i in axes and n > 1 else (0, 1, n) for i, n in enumerate(whole)]
    name, missing = call.view(0, first_is_cut(whole, ranges))
    if call.tensor(name).quant == call.like().quant:
        call.done(part(call, name, missing, ranges))
        return
    call.assembly.unlike = OTHER_SCALES
    call.done(call.add(Convert(), [part(call, name, missing, ranges, like=call.tensor(name))]))


def divide(call: Call, index: int, axis: int, sizes: Sequence[int]) -> None:
    """Splits into one output per size."""
    whole = call.whole(index)
    axis = call.axis(axis, len(whole))
    call.expect(sum(sizes) == whole[axis], f"its parts {list(sizes)} do not add up to {whole[axis]}.")
    call.expect(len(sizes) == len(call.operator.outputs), f"it has {len(call.operator.outputs)} outputs.")
    name, missing = moved(call, index, axis == 0 and (call.batch > 1 or whole[0] != 1))
    begin = 0
    for output, size in enumerate(sizes):
        if size == 0:  # as Keras divides the sums of a GRU that resets before its product
            continue
        call.expect(size > 0, f"its parts are {list(sizes)}.")
        like = call.like(output)
        call.expect((like.dtype, like.quant) == (call.like().dtype, call.like().quant), "its outputs differ in type.")
        left = (*whole[:axis], *(() if call.operator.kind == "UNPACK" else (size,)), *whole[axis + 1 :])
        call.reshaped(part(call, name, missing, along(whole, axis, (begin, 1, size))), output, left)
        begin += size


def split(call: Call) -> None:
    axis = call.integer(0)
    whole, count = call.whole(1), len(call.operator.outputs)
    divide(call, 1, axis, [whole[call.axis(axis, len(whole))] // count] * count)


def split_v(call: Call) -> None:
    sizes, axes, whole = list(call.integers(1)), call.integers(2) or (0,), call.whole(0)
    call.expect(len(axes) == 1, f"it divides {len(axes)} axes.")
    (axis,) = axes
    if sizes.count(-1) == 1:
        rest = whole[call.axis(axis, len(whole))] - sum(sizes) - 1
        sizes[sizes.index(-1)] = rest
    divide(call, 0, axis, sizes)


def unpack(call: Call) -> None:
    axis = int(call.option("UnpackOptions", "Axis", 0))
    whole = call.whole(0)
    divide(call, 0, axis, [1] * whole[call.axis(axis, len(whole))])


def joined(call: Call, names: Sequence[str], axis: int) -> str:
    """Concatenates along a graph axis."""
    call.expect(len(names) <= MOST_COPIES, f"it joins {len(names)} tensors, more than {MOST_COPIES}.", CONVERT_AGAIN)
    return names[0] if len(names) == 1 else call.add(Concatenate(axis), names)


def concatenation(call: Call) -> None:
    kind = "ConcatenationOptions"
    rank = len(call.output().shape)
    axis = call.axis(int(call.option(kind, "Axis", 0)), rank)
    call.expect(int(call.option(kind, "FusedActivationFunction", 0)) == 0, "it has a fused activation.", CONVERT_AGAIN)
    pieces = range(len(call.operator.inputs))
    call.expect(all(len(call.whole(i)) == rank for i in pieces), "its inputs differ in their number of axes.")
    names, missing = [], 0
    for index in pieces:
        name, missing = call.view(index, axis == 0 or call.whole(index)[0] != 1)
        if call.operator.unsigned:
            name = in_output_steps(call, name)
        call.same_quant(name)
        names.append(name)
    call.expect(bool(names), "it has no inputs.")
    call.done(joined(call, names, axis - missing))


def pack(call: Call) -> None:
    rank = len(call.output().shape)
    axis = call.axis(int(call.option("PackOptions", "Axis", 0)), rank)
    whole = call.batch == 1
    call.expect(whole or axis > 0, "it works along the batch axis, so it mixes samples.", BATCH_ONE)
    names = []
    for index, name in enumerate(call.data_inputs(*range(len(call.operator.inputs)))):
        call.same_quant(name)
        own = call.whole(index)
        call.expect(len(own) == rank - 1, "its inputs and its output do not match.")
        shape = (*own[:axis], 1, *own[axis:])
        names.append(call.seen(name, shape if whole else shape[1:]))
    call.done(joined(call, names, axis if whole else axis - 1))


def tile(call: Call) -> None:
    """BROADCAST_TO and TILE; an axis of 1 is repeated in one step, longer ones are concatenated with themselves."""
    whole, counts = call.whole(0), call.integers(1)
    if call.operator.kind == "BROADCAST_TO":
        whole = (1,) * (len(counts) - len(whole)) + whole
        call.expect(len(counts) == len(whole) and all(n in (1, c) for n, c in zip(whole, counts, strict=True)), _ODD)
        counts = tuple(1 if n == c else c for n, c in zip(whole, counts, strict=True))
    call.expect(len(counts) == len(whole) > 0 and min(counts) > 0, _ODD)
    name, missing = moved(call, 0, counts[0] != 1)
    name = call.seen(name, whole[missing:] or (1,))
    whole, counts = whole[missing:] or (1,), counts[missing:] or (1,)
    if not call.output().open:
        call.expect(prod(whole) * prod(counts) == prod(call.like().shape), _ODD)
    repeated = tuple(c if n == 1 else 1 for n, c in zip(whole, counts, strict=True))
    if max(repeated) > 1:
        name = call.add(Repeat(repeated), [name])
    for axis, (size, count) in enumerate(zip(whole, counts, strict=True)):
        if size > 1 and count > 1:
            name = joined(call, [name] * count, axis)
    call.done(name)


_ODD = "its multiples do not match its input."


def amounts(call: Call) -> tuple[Pair, ...]:
    flat = call.integers(1)
    call.expect(len(flat) == 2 * len(call.whole(0)), "its amounts do not name each axis once.")
    call.expect(all(0 <= n < 2**20 for n in flat), f"its amounts are {list(flat)}.")
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def pad(call: Call) -> None:
    """PADV2 gives the padding value; in integers it has the tensors' scale."""
    around = amounts(call)
    name, missing = moved(call, 0, any(around[0]) if around else False)
    call.done(call.add(Pad(around[missing:] or ((0, 0),), number(call, 2) if call.given(2) else 0.0), [name]))


def mirror_pad(call: Call) -> None:
    """Each border is a reversed slice of the tensor."""
    around = amounts(call)
    call.expect(not around or not any(around[0]), "it works along the batch axis.", BATCH_ONE)
    name, missing = moved(call, 0, False)
    skipped = 1 - int(call.option("MirrorPadOptions", "Mode", 0))  # REFLECT omits the edge itself
    for axis, (before, after) in enumerate(around[missing:]):
        shape = call.shape(name)
        size = shape[axis]
        call.expect(max(before, after) <= size - skipped, f"its padding is wider than the axis of {size}.")
        pieces = [name]
        if before:
            taken = (before - 1 + skipped, -1, before)
            pieces.insert(0, part(call, name, 0, along(shape, axis, taken)))
        if after:
            pieces.append(part(call, name, 0, along(shape, axis, (size - 1 - skipped, -1, after))))
        name = joined(call, pieces, axis)
    call.done(name)


def resize(call: Call) -> None:
    """Nearest: repeats for integer factors, otherwise picks."""
    nearest = call.operator.kind == "RESIZE_NEAREST_NEIGHBOR"
    kind = "ResizeNearestNeighborOptions" if nearest else "ResizeBilinearOptions"
    x, shape, outer = image(call, 0)
    call.same_quant(x)
    size = call.integers(1)
    call.expect(len(size) == 2 and min(size) > 0 and max(size) <= LARGEST, f"it resizes {list(shape[:2])} to {size}.")
    corners = bool(call.option(kind, "AlignCorners", False))
    centred = bool(call.option(kind, "HalfPixelCenters", False))
    mode = CORNERS if corners else CENTRES if centred else EDGES
    if not nearest:
        call.expect(not (corners and centred), "it sets both align_corners and half_pixel_centers.", CONVERT_AGAIN)
        call.done(call.add(ResizeBilinear((size[0], size[1]), mode), [x], outer=outer))
        return
    places = [tuple(nearest_places(n, m, mode, centred).tolist()) for n, m in zip(shape, size, strict=False)]
    call.done(call.add(nearest_of(places, shape), [x], outer=outer))


def nearest_of(places: Sequence[tuple[int, ...]], shape: Shape) -> Repeat | Pick:
    """The operation that takes these rows and columns of an image."""
    factors = [len(p) // n for p, n in zip(places, shape, strict=False)]
    plain = [tuple(i // max(1, f) for i in range(n * f)) for n, f in zip(shape, factors, strict=False)]
    return Repeat((*factors, 1)) if plain == list(places) else Pick((*places, None))


OPERATORS: dict[str, Callable[[Call], None]] = {
    "RESHAPE": reshape,
    "SQUEEZE": reshape,
    "EXPAND_DIMS": reshape,
    "TRANSPOSE": transpose,
    "STRIDED_SLICE": strided_slice,
    "SLICE": slice_,
    "REVERSE_V2": reverse,
    "SPLIT": split,
    "SPLIT_V": split_v,
    "UNPACK": unpack,
    "PACK": pack,
    "CONCATENATION": concatenation,
    "TILE": tile,
    "BROADCAST_TO": tile,
    "PAD": pad,
    "PADV2": pad,
    "MIRROR_PAD": mirror_pad,
    "RESIZE_NEAREST_NEIGHBOR": resize,
    "RESIZE_BILINEAR": resize,
}
