"""Single operations in a model: Keras 3's operation layers and Keras 2's TFOpLambda, through one table.

Keras 3 stores an operation's options in its config, TensorFlow in the call's arguments; in both, operands may be
tensors or numbers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from math import inf, prod
from typing import Any

from nnbuild.frontend.checked_config import Config, shown
from nnbuild.frontend.keras_layers import operation_formulas as formulas
from nnbuild.frontend.keras_layers import operation_functions as functions
from nnbuild.frontend.keras_layers import operation_images as images
from nnbuild.frontend.keras_layers import operation_misc as misc
from nnbuild.frontend.keras_layers import operation_normalizing as normalizing
from nnbuild.frontend.keras_layers import operation_parts as parts
from nnbuild.frontend.keras_layers import operation_products as products
from nnbuild.frontend.keras_layers import operation_selection as selection
from nnbuild.frontend.keras_layers import operation_shapes as shapes
from nnbuild.frontend.keras_layers import operation_signals as signals
from nnbuild.frontend.keras_layers import operation_windows as windows
from nnbuild.frontend.keras_layers.activation import apply, sample_axes, softmax_over
from nnbuild.frontend.keras_layers.argument_constants import with_known
from nnbuild.frontend.keras_layers.base import Call, LayerKind, Wire, as_floats, options, wires
from nnbuild.frontend.keras_layers.channels_first import is_first, of_images
from nnbuild.frontend.keras_layers.known_sizes import OF_A_TENSOR
from nnbuild.frontend.keras_layers.merging import chain, concatenated
from nnbuild.frontend.keras_layers.narrow_integers import settled
from nnbuild.frontend.keras_layers.normalization import as_array, lrn
from nnbuild.frontend.keras_layers.operation_kind import OTHERWISE, REDUCED, Operation
from nnbuild.frontend.keras_layers.operation_powers import power
from nnbuild.frontend.keras_layers.operation_selection import is_whole, two_sided
from nnbuild.frontend.keras_layers.products import refuse_ambiguous
from nnbuild.frontend.keras_version import NO_BOUND
from nnbuild.ops.activation import Activation
from nnbuild.ops.binary import Binary
from nnbuild.ops.compare import FUNCTIONS as COMPARISONS
from nnbuild.ops.reshape import Reshape
from nnbuild.ops.whole import FUNCTIONS as WHOLE_NUMBERS
from nnbuild.ops.whole import Whole

OPERANDS = (
    "x",
    "x1",
    "x2",
    "y",
    "input",
    "inputs",
    "input_tensor",
    "features",
    "logits",
    "values",
    "value",
    "indices",
    "xs",
    "a",
    "tensor",
)
"""Names of operand arguments in TensorFlow and Keras."""
SAME = ("cast", "convert_to_tensor")
"""Operations that return their input itself, with its mask, where nothing is to be done."""
IGNORED = ("name", "dtype", "training", "data_format", "trainable", "flash_attention", "sparse")
MODULES = ("", "math", "nn", "__operators__", "keras.activations", "keras.backend", "compat.v1", "compat.v1.nn")
OF_OTHER_MODULES = ("linalg.matmul", "linalg.norm", "linalg.l2_normalize", "linalg.matrix_transpose")
OF_IMAGES = ("image.resize", "image.flip_left_right", "image.flip_up_down", "image.rgb_to_grayscale")
"""Others of these modules' names mean something else here."""


def _operands(call: Call) -> tuple[Any, Any]:
    given = [*call.arguments, *(call.named[key] for key in OPERANDS if key in call.named)]
    if len(given) != 2:
        raise call.config.error(f"it is called with {len(given)} operands instead of two.", OTHERWISE)
    return given[0], given[1]


def _binary(function: str) -> Operation:
    def build(call: Call) -> str:
        left, right = _operands(call)
        if function == "add" and isinstance(left, Wire) and isinstance(right, (list, tuple)):
            refuse_ambiguous(call, call.builder.shape(left.name), as_array(call.config, right, "operand", True).shape)
        if function in WHOLE_NUMBERS and function != "divide" and is_whole(call, left) and is_whole(call, right):
            return two_sided(call, Whole(function), left, right)
        left, right = (as_floats(call.builder, side) for side in (left, right))
        return two_sided(call, Binary(function), left, right)

    return Operation(build, whole=True, numbers=True)


def _biased(call: Call) -> str:
    values = as_array(call.config, call.named.get("bias"), "bias")
    if is_first(options(call)):
        values = values.reshape(-1, *(1,) * (len(call.shape) - 1))
    return two_sided(call, Binary("add"), Wire(call.input), values)


def _power(call: Call) -> str:
    return power(call, *_operands(call))


def _function(name: str, *parameters: float) -> Operation:
    return Operation(lambda call: apply(call, call.input, (name, parameters)))


def _with_slope(name: str, default: float, *keys: str) -> Operation:
    def build(call: Call) -> str:
        found = options(call)
        slopes = [key for key in keys if key in found]
        return apply(call, call.input, (name, (found.number(slopes[0]) if slopes else default,)))

    return Operation(build, keys)


def _relu(call: Call) -> str:
    """Only keras.activations.relu has options."""
    found = options(call)
    highest = found.number("max_value") if "max_value" in found else NO_BOUND
    slope = found.number("alpha", 0.0) if "alpha" in found else found.number("negative_slope", 0.0)
    threshold = found.number("threshold", 0.0)
    if slope == 0 and threshold == 0:
        return apply(call, call.input, ("clamp", (0.0, highest)))
    return apply(call, call.input, ("relu", (highest, slope, threshold)))


def _gelu(call: Call) -> str:
    approximate = options(call).flag("approximate", call.dialect.keras3)
    return apply(call, call.input, ("gelu_tanh" if approximate else "gelu", ()))


def _hard_sigmoid(call: Call) -> str:
    return apply(call, call.input, call.dialect.hard_sigmoid)


def _clip(call: Call) -> str:
    """A bound may be infinite."""
    found = options(call)
    low, high = (
        _bound(found, next((key for key in keys if key in found), keys[0]))
        for keys in (("x_min", "clip_value_min", "min_value"), ("x_max", "clip_value_max", "max_value"))
    )
    if low > high:
        raise call.config.error(f"it clips to at least {low} and at most {high}.", OTHERWISE)
    return apply(call, call.input, ("clamp", (low, high)))


def _bound(found: Config, key: str) -> float:
    value = found.get(key)
    return value if value in (inf, -inf) else found.number(key)


def _softmax(call: Call) -> str:
    axes = options(call).integers("axis", (-1,))
    return softmax_over(call, call.input, sample_axes(call.config, axes, call.shape))


def _concatenate(call: Call) -> str:
    return concatenated(call, options(call).one("axis", -1))


def _lrn(call: Call) -> str:
    return lrn(call, call.input, options(call))


def _floored(function: str) -> Operation:
    """The floored quotient or the remainder of two operands: integers or floats."""

    def build(call: Call) -> str:
        left, right = _operands(call)
        if is_whole(call, left) and is_whole(call, right):
            return two_sided(call, Whole(function), left, right)
        left, right = (as_floats(call.builder, side) for side in (left, right))
        quotient = apply(call, str(_binary("divide").build(call)), ("floor", ()))
        return quotient if function == "floor_divide" else misc.rest(call, quotient, left, right)

    return Operation(build, whole=True, numbers=True)


def _square(call: Call) -> str:
    if is_whole(call, Wire(call.input)):
        return two_sided(call, Whole("multiply"), Wire(call.input), Wire(call.input))
    return apply(call, call.input, ("square", ()))


def _squared_difference(call: Call) -> str:
    difference = _binary("subtract").build(call)
    return apply(call, str(difference), ("square", ()))


def _minus_tanh(call: Call) -> str:
    return call.one(Binary("subtract"), call.input, apply(call, call.input, ("tanh", ())))


_NORMS = ("axis", "keepdims", "ord")

OPERATIONS: dict[str, Operation] = {
    "add": _binary("add"),
    "bias_add": Operation(_biased, ("bias",), numbers=True),
    "subtract": _binary("subtract"),
    "multiply": _binary("multiply"),
    "divide": _binary("divide"),
    "true_divide": _binary("divide"),
    "truediv": _binary("divide"),
    "maximum": _binary("maximum"),
    "minimum": _binary("minimum"),
    "power": Operation(_power, numbers=True),
    "pow": Operation(_power, numbers=True),
    "negative": _function("negative"),
    "absolute": _function("absolute"),
    "abs": _function("absolute"),
    "square": Operation(_square, whole=True),
    "sqrt": _function("sqrt"),
    "rsqrt": _function("rsqrt"),
    "exp": _function("exponential"),
    "exponential": _function("exponential"),
    "log": _function("log"),
    "sin": _function("sin"),
    "cos": _function("cos"),
    "floor": _function("floor"),
    "ceil": _function("ceil"),
    "tanh": _function("tanh"),
    "sigmoid": _function("sigmoid"),
    "hard_sigmoid": Operation(_hard_sigmoid),
    "softplus": _function("softplus"),
    "softsign": _function("softsign"),
    "selu": _function("selu"),
    "elu": _with_slope("elu", 1.0, "alpha"),
    "silu": _function("swish"),
    "swish": _function("swish"),
    "hard_silu": _function("hard_swish"),
    "hard_swish": _function("hard_swish"),
    "hard_tanh": _function("clamp", -1.0, 1.0),
    "mish": _function("mish"),
    "gelu": Operation(_gelu, ("approximate",)),
    "relu": Operation(_relu, ("alpha", "max_value", "threshold", "negative_slope")),
    "relu6": _function("clamp", 0.0, 6.0),
    "leaky_relu": _with_slope("leaky_relu", 0.2, "negative_slope", "alpha"),
    "clip": Operation(_clip, ("x_min", "x_max", "min_value", "max_value")),
    "clip_by_value": Operation(_clip, ("clip_value_min", "clip_value_max")),
    "softmax": Operation(_softmax, ("axis",)),
    "mean": Operation(lambda call: shapes.reduced(call, "mean"), REDUCED),
    "sum": Operation(lambda call: shapes.reduced(call, "sum"), REDUCED),
    "max": Operation(lambda call: shapes.reduced(call, "max"), (*REDUCED, "initial")),
    "min": Operation(lambda call: shapes.reduced(call, "min"), (*REDUCED, "initial")),
    "reduce_mean": Operation(lambda call: shapes.reduced(call, "mean"), REDUCED),
    "reduce_sum": Operation(lambda call: shapes.reduced(call, "sum"), REDUCED),
    "reduce_max": Operation(lambda call: shapes.reduced(call, "max"), REDUCED),
    "reduce_min": Operation(lambda call: shapes.reduced(call, "min"), REDUCED),
    "concatenate": Operation(_concatenate, ("axis",), whole=True),
    "concat": Operation(_concatenate, ("axis",), whole=True),
    "batch_flatten": Operation(lambda call: call.one(Reshape((prod(call.shape),)), call.input), whole=True),
    "reshape": Operation(shapes.reshaped, ("shape", "newshape"), whole=True),
    "transpose": Operation(shapes.transposed, ("perm", "axes"), whole=True),
    "expand_dims": Operation(shapes.expanded, ("axis",), whole=True),
    "squeeze": Operation(shapes.squeezed, ("axis",), whole=True),
    "pad": Operation(shapes.padded, ("pad_width", "paddings", "mode", "constant_values")),
    "depth_to_space": Operation(of_images(partial(shapes.blocks, deep=True), 2), ("block_size",), whole=True),
    "space_to_depth": Operation(of_images(partial(shapes.blocks, deep=False), 2), ("block_size",), whole=True),
    "get_item": Operation(shapes.picked, ("key", "slice_spec"), whole=True, numbers=True),
    "getitem": Operation(shapes.picked, ("key", "slice_spec"), whole=True, numbers=True),
    "local_response_normalization": Operation(_lrn, ("depth_radius", "bias", "alpha", "beta")),
    "lrn": Operation(_lrn, ("depth_radius", "bias", "alpha", "beta")),
    "identity": Operation(lambda call: call.input, whole=True),
    **dict.fromkeys(("conjugate", "real"), Operation(lambda call: call.input, whole=True)),  # nothing is complex here
    "copy": Operation(lambda call: call.input, whole=True),
    "ensure_shape": Operation(lambda call: call.input, ("shape",), whole=True),
    **dict.fromkeys(("add_n", "accumulate_n"), Operation(partial(chain, function="add"))),
    "flip_left_right": Operation(partial(shapes.mirrored, axis=1), whole=True),
    "flip_up_down": Operation(partial(shapes.mirrored, axis=0), whole=True),
    "matrix_transpose": Operation(shapes.matrix_transposed, whole=True),
    "stop_gradient": Operation(lambda call: call.input, ("variable",), whole=True),
    "cast": Operation(selection.cast, ("dtype",), whole=True),
    "convert_to_tensor": Operation(
        lambda call: selection.as_asked(call, call.input), ("dtype", "sparse", "ragged"), whole=True
    ),
    **{name: Operation(partial(selection.compared, function=name), whole=True, numbers=True) for name in COMPARISONS},
    "logical_and": Operation(partial(selection.logical, function="and"), whole=True, numbers=True),
    "logical_or": Operation(partial(selection.logical, function="or"), whole=True, numbers=True),
    "logical_xor": Operation(partial(selection.logical, function="xor"), whole=True, numbers=True),
    "logical_not": Operation(selection.logical_not, whole=True),
    "floor_divide": _floored("floor_divide"),
    "floor_div": _floored("floor_divide"),
    "floordiv": _floored("floor_divide"),
    "mod": _floored("floor_mod"),
    "floormod": _floored("floor_mod"),
    "where": Operation(selection.where, ("condition",), whole=True, numbers=True),
    "reduce_any": Operation(partial(selection.reduced_truth, function="max"), REDUCED, whole=True),
    "reduce_all": Operation(partial(selection.reduced_truth, function="min"), REDUCED, whole=True),
    "any": Operation(partial(selection.reduced_truth, function="max"), REDUCED, whole=True),
    "all": Operation(partial(selection.reduced_truth, function="min"), REDUCED, whole=True),
    "count_nonzero": Operation(selection.counted, REDUCED, whole=True),
    "argmax": Operation(partial(selection.arg, function="max"), (*REDUCED, "output_type"), whole=True),
    "argmin": Operation(partial(selection.arg, function="min"), (*REDUCED, "output_type"), whole=True),
    "gather": Operation(
        selection.gathered, ("params", "indices", "axis", "batch_dims", "validate_indices"), whole=True, numbers=True
    ),
    "take": Operation(selection.take, ("axis", "indices"), whole=True, numbers=True),
    "matmul": Operation(
        products.matmul, ("x1", "x2", "a", "b", "transpose_a", "transpose_b"), whole=True, numbers=True
    ),
    "tensordot": Operation(products.tensordot, ("axes", "x1", "x2", "a", "b"), whole=True, numbers=True),
    "inner": Operation(products.inner, ("x1", "x2"), whole=True, numbers=True),
    "dot": Operation(products.dot, ("x1", "x2"), whole=True, numbers=True),
    "einsum": Operation(products.einsum, ("subscripts",), whole=True, numbers=True),
    "dot_product_attention": Operation(products.attention, (*products.ATTENDED, "scale", "is_causal"), whole=True),
    "take_along_axis": Operation(products.take_along_axis, ("axis", "indices"), whole=True),
    "append": Operation(_concatenate, ("axis",), whole=True),
    "amax": Operation(lambda call: shapes.reduced(call, "max"), REDUCED),
    "amin": Operation(lambda call: shapes.reduced(call, "min"), REDUCED),
    "average": Operation(formulas.average, ("axis", "weights")),
    "broadcast_to": Operation(formulas.broadcast_to, ("shape",), whole=True),
    "celu": Operation(formulas.celu, ("alpha",)),
    "cumsum": Operation(
        lambda call: selection.as_asked(call, formulas.cumsum(call)), ("dtype", "axis", "exclusive", "reverse")
    ),
    "erf": _function("erf"),
    "expm1": Operation(lambda call: formulas.by(call, "subtract", formulas.of(call, "exponential", call.input), 1.0)),
    "flip": Operation(formulas.flip, ("axis",), whole=True),
    "reverse": Operation(formulas.flip, ("axis",), whole=True),
    "ones_like": Operation(lambda call: selection.as_asked(call, formulas.filled(call, 1.0)), ("dtype",)),
    "zeros_like": Operation(lambda call: selection.as_asked(call, formulas.filled(call, 0.0)), ("dtype",)),
    "top_k": Operation(formulas.top_k, ("k", "sorted")),
    "glu": Operation(formulas.glu, ("axis",)),
    "hard_shrink": Operation(formulas.hard_shrink, ("threshold",)),
    "l2_normalize": Operation(formulas.normalize, ("axis", "epsilon")),
    "log1p": Operation(lambda call: formulas.of(call, "log", formulas.by(call, "add", call.input, 1.0))),
    "log_sigmoid": Operation(formulas.log_sigmoid),
    "log_softmax": Operation(formulas.log_softmax, ("axis",)),
    "logsumexp": Operation(formulas.logsumexp, REDUCED),
    "reduce_logsumexp": Operation(formulas.logsumexp, REDUCED),
    "nan_to_num": Operation(misc.numbers_alone, ("nan", "posinf", "neginf")),
    "moments": Operation(formulas.moments, ("axes", "keepdims")),
    "moveaxis": Operation(formulas.moveaxis, ("source", "destination"), whole=True),
    "norm": Operation(formulas.norm, _NORMS),
    "normalize": Operation(formulas.normalize, ("axis", "order", "epsilon")),
    "one_hot": Operation(
        lambda call: selection.as_asked(call, formulas.one_hot(call)),
        ("dtype", "num_classes", "depth", "axis"),
        whole=True,
    ),
    "prod": Operation(formulas.product, REDUCED),
    "reduce_prod": Operation(formulas.product, REDUCED),
    "reciprocal": Operation(formulas.reciprocal),
    "repeat": Operation(formulas.repeat, ("repeats", "axis"), whole=True),
    "roll": Operation(formulas.roll, ("shift", "axis"), whole=True),
    "round": Operation(misc.rounded, ("decimals",)),
    "sign": Operation(formulas.sign),
    "soft_shrink": Operation(formulas.soft_shrink, ("threshold",)),
    "split": Operation(formulas.split, ("indices_or_sections", "num_or_size_splits", "axis", "num"), whole=True),
    "squared_difference": Operation(_squared_difference, numbers=True),
    "squareplus": Operation(formulas.squareplus, ("b",)),
    "stack": Operation(formulas.stack, ("axis",), whole=True),
    "std": Operation(formulas.deviation, REDUCED),
    "reduce_std": Operation(formulas.deviation, REDUCED),
    "swapaxes": Operation(formulas.swapaxes, ("axis1", "axis2"), whole=True),
    "tanh_shrink": Operation(_minus_tanh),
    "threshold": Operation(formulas.threshold, ("threshold", "default_value")),
    "tile": Operation(formulas.tile, ("repeats", "multiples"), whole=True),
    "unstack": Operation(formulas.unstack, ("num", "axis"), whole=True),
    "var": Operation(formulas.variance, REDUCED),
    "reduce_variance": Operation(formulas.variance, REDUCED),
    "argsort": Operation(partial(misc.ordered, places=True), ("axis", "direction")),
    "diagonal": Operation(misc.diagonal_part, ("offset", "axis1", "axis2")),
    "diff": Operation(misc.differences, ("n", "axis")),
    "exp2": Operation(misc.power_of_two),
    "full_like": Operation(misc.like, ("fill_value",)),
    "hstack": Operation(misc.side_by_side, whole=True),
    "hypot": Operation(misc.hypotenuse),
    "log10": Operation(partial(misc.logarithm, base=10)),
    "log2": Operation(partial(misc.logarithm, base=2)),
    "resize": Operation(
        of_images(misc.image_resized, 2),
        (
            "size",
            "interpolation",
            "method",
            "preserve_aspect_ratio",
            "antialias",
            "crop_to_aspect_ratio",
            "pad_to_aspect_ratio",
            "fill_mode",
            "fill_value",
        ),
    ),
    "select": Operation(misc.selected, ("default",), whole=True),
    "slice": Operation(misc.sliced, ("shape", "start_indices", "begin", "size"), whole=True, numbers=True),
    "sort": Operation(partial(misc.ordered, places=False), ("axis", "direction")),
    "trace": Operation(misc.traced, ("offset", "axis1", "axis2")),
    "tril": Operation(partial(misc.triangle, upper=False), ("k",)),
    "triu": Operation(partial(misc.triangle, upper=True), ("k",)),
    "trunc": Operation(misc.truncated),
    **functions.OPERATIONS,
    **normalizing.OPERATIONS,
    **parts.OPERATIONS,
    **images.OPERATIONS,
    **signals.OPERATIONS,
    **windows.OPERATIONS,
}


def _checked(call: Call, name: str) -> tuple[str, ...]:
    operation = OPERATIONS.get(name)
    if operation is None:
        raise call.config.error(f"the operation {shown(name)} is not supported.", OTHERWISE)
    given = call.named if "function" in call.config else {**call.config.values, **call.named}
    for key, value in given.items():
        default = value is None or value is False or (name in ("silu", "swish") and key == "beta" and value == 1.0)
        if key not in (*operation.options, *OPERANDS, *IGNORED) and not default:
            raise call.config.error(f"the argument {shown(key)} of {name!r} is not supported.", OTHERWISE)
    if not operation.numbers:
        call = _with_constants(call)
    operands = (call.arguments, {key: value for key, value in call.named.items() if key in OPERANDS})
    if not operation.whole:
        arguments, named = as_floats(call.builder, call.arguments), as_floats(call.builder, call.named)
        call = replace(call, arguments=arguments, named=named, inputs=tuple(wires((arguments, named))))
    made = operation.build(call)
    if isinstance(made, str) and made in call.inputs and made in call.builder.masks and name not in SAME:
        made = call.one(Activation("linear"), made)  # an operation's result has no mask
    return settled(call, name, operands, (made,) if isinstance(made, str) else made)


def _with_constants(call: Call) -> Call:
    """Arrays of numbers in the place of tensors become tensors."""
    given = {key: value for key, value in call.named.items() if key in (*OPERANDS, *products.ATTENDED)}
    arguments, given = with_known(call.builder, call.config, (call.builder.layer,), call.arguments, given)
    named = {**call.named, **given}
    return replace(call, arguments=arguments, named=named, inputs=tuple(wires((arguments, named))))


def _lambda(call: Call) -> tuple[str, ...]:
    module, _, name = call.config.text("function").rpartition(".")
    if call.config.text("function") in (*OF_OTHER_MODULES, *OF_IMAGES):
        return _checked(call, name)
    if module not in MODULES:
        raise call.config.error(f"the operation {shown(call.config.text('function'))} is not supported.", OTHERWISE)
    return _checked(call, name)


def keras3_operation(class_name: str) -> LayerKind | None:
    """The builder of an operation layer such as `TrueDivide`, or None if unknown."""
    name = re.sub("([a-z0-9])([A-Z])", r"\1_\2", class_name).lower()
    if name not in OPERATIONS and name not in OF_A_TENSOR:
        return None
    return LayerKind(lambda call: _checked(call, name), takes_whole=True, literal=True)


LAYERS = dict.fromkeys(("TFOpLambda", "SlicingOpLambda"), LayerKind(_lambda, takes_whole=True, literal=True))
