"""Builds a graph from the records of a `.tflite` file, operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain

import numpy as np

from nnbuild.base.errors import ModelError, UsageError
from nnbuild.frontend.assembly import Assembly
from nnbuild.frontend.import_options import DEFAULTS, ImportOptions, Numbers, expect_inputs, fixed_values
from nnbuild.frontend.tflite import (
    composed,
    detections,
    elementwise,
    formulas,
    linear,
    loop_cells,
    mediapipe,
    products,
    recurrent,
    reductions,
    selection,
    shaping,
    signals,
    spectra,
    static_indexing,
    svdf,
    unsigned,
    variables,
    windows,
)
from nnbuild.frontend.tflite.call import BATCH_ONE, Call, form
from nnbuild.frontend.tflite.folding import folded
from nnbuild.frontend.tflite.records import DAMAGED, Model, Operator, Tensor
from nnbuild.model.graph import Graph, Shape

OPERATORS: dict[str, Callable[[Call], None]] = {
    **linear.OPERATORS,
    **elementwise.OPERATORS,
    **shaping.OPERATORS,
    **reductions.OPERATORS,
    **recurrent.OPERATORS,
    **svdf.OPERATORS,
    **selection.OPERATORS,
    **composed.OPERATORS,
    **products.OPERATORS,
    **static_indexing.OPERATORS,
    **windows.OPERATORS,
    **formulas.OPERATORS,
    **spectra.OPERATORS,
}
BROADCAST = frozenset(
    "ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE POW FLOOR_DIV FLOOR_MOD EQUAL NOT_EQUAL LESS LESS_EQUAL "
    "GREATER GREATER_EQUAL LOGICAL_AND LOGICAL_OR BITWISE_XOR RIGHT_SHIFT SELECT_V2 PRELU".split()
)
"""Operators of tensors that may differ in their number of axes."""
CUSTOM: dict[str, Callable[[Call], None]] = {
    loop_cells.KIND: loop_cells.loop_of_cell,
    detections.KIND: detections.detections,
    **mediapipe.OPERATORS,
}
"""What is read in the place of loops, and operators that others than TensorFlow define."""
LOOPS = ("CALL",)
LISTS = "CUSTOM FlexTensorList"
FLEX = "CUSTOM Flex"
"""Prefix of operators for a recurrent layer, written by a converter that may use TensorFlow's own operators."""


def import_model(name: str, file: str, model: Model, options: ImportOptions = DEFAULTS) -> Graph:
    expect_inputs(options, [tensor.name for tensor in model.inputs], file)
    model, assembly = unsigned.signed(model), Assembly(name)
    assembly.allow(tensor.data for tensor in model.tensors if tensor.data is not None)
    batch = _batch(model)
    if batch > 1:
        assembly.note(f"The saved batch size of {batch} is ignored: the compiled model computes one sample at a time.")
    known: dict[int, str] = {}
    found: dict[int, Tensor] = {}
    for tensor in model.inputs:
        if tensor.index in known or tensor.data is not None:
            raise ModelError(file, f"its input {tensor.name!r} is listed twice, or is a constant.", DAMAGED)
        sized = _sized(tensor, options.shapes.get(tensor.name))
        if tensor.name in options.fixed:
            found[tensor.index] = _fixed(sized, options.fixed[tensor.name])
            continue
        known[tensor.index], found[tensor.index] = assembly.input(form(sized, batch)), sized
    held, front = variables.Variables(assembly, model), signals.Signals()
    for operator in chain.from_iterable(map(spectra.in_floats, model.operators)):
        call = Call(assembly, signals.plain_cast(operator), known, found, batch)
        signals.refuse_unsigned(operator)
        if operator.kind in variables.KINDS:
            held.take(call)
        elif signals.is_signal(operator):
            front.take(call)
        elif not folded(call):
            reader = _reader(operator)
            _expect_samples_apart(call, known)
            reader(call)
    held.finish()
    for tensor in model.outputs:
        spectra.refuse_complex(tensor)
        if tensor.index not in known:
            raise ModelError(file, f"no operator computes its output {tensor.name!r}.", DAMAGED)
    return assembly.finish([known[tensor.index] for tensor in model.outputs])


def _expect_samples_apart(call: Call, known: Mapping[int, str]) -> None:
    """In a batch, tensors are broadcast along their last axes: of fewer axes, the first one is no batch any more."""
    if call.batch == 1 or call.operator.kind not in BROADCAST:
        return
    for tensor in call.operator.inputs:
        alike = tensor is None or tensor.index not in known or len(tensor.shape) == len(call.output().shape)
        call.expect(alike, "an input has fewer axes than its output, so it mixes samples.", BATCH_ONE)


def _sized(tensor: Tensor, asked: Shape | None) -> Tensor:
    """An input with the user's sizes of its open axes. Only the batch may be open without: it becomes one sample."""
    if asked is not None:
        fits = len(asked) == len(tensor.shape) and all(
            n == m or (i in tensor.open and (i > 0 or len(asked) == 1))
            for i, (n, m) in enumerate(zip(asked, tensor.shape, strict=True))
        )
        if not fits:
            cause = f"it does not fit the file's {_shown(tensor)}, of which only open axes take sizes."
            raise UsageError(f"--shape {tensor.name}", cause, f"Give it these: --shape {tensor.name}={_shown(tensor)}.")
        return replace(tensor, shape=asked, open=())
    inside = [axis for axis in tensor.open if axis > 0]
    if inside:
        axes = ", ".join(str(axis) for axis in inside)
        plural = "axes" if len(inside) > 1 else "axis"
        raise ModelError(
            f"input {tensor.name!r}",
            f"its {plural} {axes} of {len(tensor.shape)} are open, but memory is planned at compile time.",
            f"Give them sizes: --shape {tensor.name}={_shown(tensor)}.",
        )
    return tensor


def _fixed(tensor: Tensor, numbers: Numbers) -> Tensor:
    """An input as a constant."""
    if tensor.quantization is not None and tensor.quantization.scales:
        raise UsageError(f"--fix {tensor.name}", "the input is quantized.", "Fix inputs of the model in floats.")
    values = fixed_values(tensor.name, numbers, tensor.shape, tensor.dtype)
    return replace(tensor, data=np.frombuffer(values.tobytes(), np.uint8))


def _shown(tensor: Tensor) -> str:
    free = {axis for axis in tensor.open if axis > 0 or len(tensor.shape) == 1}
    return ",".join("N" if axis in free else str(n) for axis, n in enumerate(tensor.shape))


def _batch(model: Model) -> int:
    """The first axis of all inputs, if they share one; inputs of one axis are whole signals."""
    first = {tensor.shape[:1] if len(tensor.shape) > 1 else (1,) for tensor in model.inputs}
    (batch,) = next(iter(first)) or (1,)
    return batch if len(first) == 1 else 1


def _reader(operator: Operator) -> Callable[[Call], None]:
    found = OPERATORS.get(operator.kind) or CUSTOM.get(operator.kind)
    if found is not None:
        return found
    if operator.kind in LOOPS or operator.kind.startswith(LISTS):
        raise operator.error(
            f"nnbuild does not support {operator.kind}, which converters generate from recurrent layers with a state.",
            "Give the .h5 or .keras file instead, or build the recurrent layer with unroll=True and convert again.",
        )
    if operator.kind.removeprefix(signals.PREFIX) in signals.NOT_COMPUTED:
        raise operator.error(
            "nnbuild supports only the signal operators of one frame, from SignalWindow to SignalFilterBankLog.",
            signals.NOT_COMPUTED[operator.kind.removeprefix(signals.PREFIX)],
        )
    if operator.kind.startswith(FLEX):
        raise operator.error(
            f"{operator.kind.removeprefix('CUSTOM ')} is an operator of TensorFlow itself, which TFLite does not have.",
            "Give the .h5 or .keras file instead, or convert with TFLITE_BUILTINS alone.",
        )
    if operator.kind.startswith("CUSTOM"):
        raise operator.error(
            "it is not a standard TFLite operator, so its meaning is unknown.",
            "Convert the model without custom operators.",
        )
    raise operator.error(
        f"nnbuild does not support {operator.kind}.",
        "Replace the layer, or give the .h5 or .keras file if nnbuild can read it.",
    )
