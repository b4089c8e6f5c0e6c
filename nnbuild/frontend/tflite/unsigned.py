"""Files that compute in uint8, as TensorFlow 1 writes them: the same numbers are int8, 128 less.

Their rules are those of int8, but for the halves of averages, the scales of what is joined, and weights, which have a
zero point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nnbuild.frontend.tflite.call import CONVERSIONS, Call
from nnbuild.frontend.tflite.records import Model, Operator, Quantization, Tensor
from nnbuild.numeric.multiplier import round_half_away
from nnbuild.numeric.rounding import INT8, saturate
from nnbuild.ops.lookup import SIZE, Lookup

MIDDLE = 128
MOVES = (
    "DEPTH_TO_SPACE EXPAND_DIMS GATHER PACK RESHAPE RESIZE_NEAREST_NEIGHBOR REVERSE_V2 SLICE SPACE_TO_DEPTH SPLIT "
    "SPLIT_V SQUEEZE STRIDED_SLICE TILE TRANSPOSE UNPACK"
).split()
"""Operators that move numbers, of which files of int8 have some on their uint8 ends, too."""
CONVOLUTIONS = "CONV_2D DEPTHWISE_CONV_2D TRANSPOSE_CONV".split()
COMPUTED = (
    *CONVOLUTIONS,
    *"ADD AVERAGE_POOL_2D BATCH_TO_SPACE_ND CONCATENATION FULLY_CONNECTED LEAKY_RELU LOGISTIC LOG_SOFTMAX".split(),
    *"MAXIMUM MAX_POOL_2D MEAN MINIMUM MUL PAD PADV2 RELU RELU6 RELU_N1_TO_1 SOFTMAX SPACE_TO_BATCH_ND SUB".split(),
    "TANH",
)
"""Operators whose rules are those of int8."""
AGAIN = "Convert the model again with int8 (TensorFlow 2), or give the float model and --quantize int8."


def signed(model: Model) -> Model:
    """The model in int8, with conversions at its ends; other models as they are."""
    computing = [operator for operator in model.operators if _computes(operator)]
    if not computing or model.once:
        return model
    for operator in computing:
        if operator.kind not in COMPUTED:
            raise operator.error("it computes in uint8, for which nnbuild has no rule.", AGAIN)
    found = {tensor.index: _signed(tensor) for tensor in model.tensors if _is_unsigned(tensor)}
    given, made = ({t.index: t for t in ends if t.index in found} for ends in (model.inputs, model.outputs))
    for place, (index, tensor) in enumerate((given | made).items(), len(model.tensors)):
        found[index] = replace(found[index], index=place, name=f"{tensor.name}/signed")
    before = [_conversion(tensor, found[index]) for index, tensor in given.items()]
    behind = [_conversion(found[index], tensor) for index, tensor in made.items()]
    inside = [_changed(operator, found) for operator in model.operators]
    kept = [tensor for tensor in model.tensors if tensor.index not in found or tensor.index in given | made]
    return replace(model, operators=(*before, *inside, *behind), tensors=(*kept, *found.values()))


def _is_unsigned(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype == "uint8" and tensor.quantization is not None


def _computes(operator: Operator) -> bool:
    return any(map(_is_unsigned, operator.outputs)) and operator.kind not in (*MOVES, *CONVERSIONS)


def _signed(tensor: Tensor) -> Tensor:
    known = tensor.quantization
    assert known is not None
    data = None if tensor.data is None else tensor.data ^ np.uint8(MIDDLE)
    zeros = tuple(zero - MIDDLE for zero in known.zero_points)
    return replace(tensor, dtype="int8", data=data, quantization=Quantization(known.scales, zeros, known.axis))


def _conversion(given: Tensor, made: Tensor) -> Operator:
    return Operator(0, "QUANTIZE", (given,), (made,))


def _changed(operator: Operator, found: Mapping[int, Tensor]) -> Operator:
    inputs = [_input(tensor, found, operator.kind) for tensor in operator.inputs]
    if operator.kind in CONVOLUTIONS and len(inputs) > 2:
        inputs[1] = _by_single_product(inputs[2 if operator.kind == "TRANSPOSE_CONV" else 0], inputs[1])
    outputs = tuple(found.get(tensor.index, tensor) for tensor in operator.outputs)
    return replace(operator, inputs=tuple(inputs), outputs=outputs, unsigned=True)


def _input(tensor: Tensor | None, found: Mapping[int, Tensor], kind: str) -> Tensor | None:
    """Operators of others read their constants as the numbers these mean."""
    if tensor is None or (kind.startswith("CUSTOM") and tensor.data is not None):
        return tensor
    return found.get(tensor.index, tensor)


def _by_single_product(x: Tensor | None, weights: Tensor | None) -> Tensor | None:
    """Weights whose scale times the input's is the product in single precision, as TFLite takes it of uint8."""
    if x is None or weights is None or x.quantization is None or weights.quantization is None:
        return weights
    scales, known = x.quantization.scales, weights.quantization
    if len(scales) != 1 or len(known.scales) != 1 or not scales[0] > 0:
        return weights
    with np.errstate(over="ignore"):
        product = float(np.float32(scales[0]) * np.float32(known.scales[0]))
    return replace(weights, quantization=replace(known, scales=(product / scales[0],)))


def in_output_steps(call: Call, name: str) -> str:
    """A tensor that is joined with others, in steps of the output: TFLite scales uint8 then, in single precision."""
    own, out = call.tensor(name).quant, call.like().quant
    if own is None or out is None or own == out or call.tensor(name).dtype != "int8":
        return name
    scale = np.float32(own.scale) * (np.float32(1) / np.float32(out.scale))
    shift = np.float32(-(own.zero_point + MIDDLE)) * scale
    steps = round_half_away(np.arange(SIZE, dtype=np.float32) * scale + shift) + out.zero_point
    like = replace(call.like(), shape=call.shape(name))
    return call.add(Lookup(tuple(saturate(steps, *INT8).tolist())), [name], like=like)
