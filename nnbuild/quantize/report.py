"""Measures what quantization costs: range, saturation, signal-to-noise ratio and error of each layer, accuracy of the
outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnbuild.base.errors import UsageError
from nnbuild.model.graph import Array, Graph, Tensor
from nnbuild.numeric.edge import dequantize
from nnbuild.numeric.nearness import lost_values, values_of
from nnbuild.numeric.rounding import limits
from nnbuild.ops import interpret
from nnbuild.quantize.data import Source, batches, labels

MAX_SAMPLES = 256
"""Samples used for the report; more would give the same result."""


@dataclass(frozen=True)
class LayerLoss:
    """The loss of one tensor. Floats, which only rounded weights change, have no scale."""

    layer: str
    tensor: str
    format: str
    low: float
    high: float
    scale: float | None
    zero_point: int | None
    saturated: int
    values: int
    sqnr: float
    max_error: float


@dataclass(frozen=True)
class OutputLoss:
    """`agreement` is the share of samples with the same largest value, None where there is only one."""

    name: str
    agreement: float | None
    rmse: float
    mae: float
    cosine: float
    lost: tuple[int, ...] = ()
    """The values, by their place along the last axis, that quantization left nothing of."""
    values: int = 1


@dataclass(frozen=True)
class Accuracy:
    """The share of samples whose first output is the labelled class."""

    float_model: float
    quantized: float


@dataclass(frozen=True)
class Loss:
    """`unlabelled` says why existing labels are not used."""

    samples: int
    layers: tuple[LayerLoss, ...]
    outputs: tuple[OutputLoss, ...]
    accuracy: Accuracy | None = None
    unlabelled: str = ""


@dataclass
class _Sums:
    """Sums over batches for one tensor."""

    signal: float = 0.0
    noise: float = 0.0
    worst: float = 0.0
    saturated: int = 0
    values: int = 0
    low: float = np.inf
    high: float = -np.inf


def measure(original: Graph, quantized: Graph, source: Source, floats: bool = False) -> Loss:
    """Runs both graphs over the calibration samples; layers are sorted worst first. Without `floats`, layers of floats
    are left out."""
    sums: dict[str, _Sums] = {}
    outputs: dict[str, tuple[list[Array], list[Array]]] = {name: ([], []) for name in original.outputs}
    pairs = dict(zip(original.outputs, quantized.outputs, strict=True))
    seen = 0
    carried: tuple[Mapping[str, Array], Mapping[str, Array]] = ({}, {})
    for batch in _first(source, original):
        exact = interpret.run(original, batch, carried=carried[0])
        alike = {name: x.reshape(len(x), *quantized.tensors[name].shape) for name, x in batch.items()}
        found = interpret.run(quantized, alike, carried=carried[1])
        carried = last_states(original, exact), last_states(quantized, found)
        seen += len(next(iter(batch.values())))
        for name in (op.outputs[0] for op in original.ops):
            tensor = quantized.tensors.get(name)
            if tensor is None or (tensor.quant is None and not floats):
                continue
            if _means_the_same(tensor, original.tensors[name]):
                _add(sums.setdefault(name, _Sums()), exact[name], found[name], tensor)
        for name, other in pairs.items():
            outputs[name][0].append(exact[name])
            outputs[name][1].append(as_float(quantized.tensors[other], found[other]))
    layers = [_layer(quantized.tensors[name], _layer_name(original, name), total) for name, total in sums.items()]
    whole = {name: (np.concatenate(a), np.concatenate(b)) for name, (a, b) in outputs.items()}
    losses = [_output(name, a, b) for name, (a, b) in whole.items()]
    right, unlabelled = _accuracy(source, original, *whole[original.outputs[0]])
    return Loss(seen, tuple(sorted(layers, key=lambda layer: layer.sqnr)), tuple(losses), right, unlabelled)


def _means_the_same(tensor: Tensor, original: Tensor) -> bool:
    """Quantization may pad a tensor, or leave a factor to what follows; it then is no layer's output any more."""
    return (tensor.shape, tensor.layer) == (original.shape, original.layer)


def _accuracy(source: Source, graph: Graph, exact: Array, found: Array) -> tuple[Accuracy | None, str]:
    """Labels that do not fit are no error here: the report omits accuracy and says why."""
    try:
        known = labels(source, graph)
    except UsageError as error:
        return None, str(error)
    if known is None:
        return None, ""
    shares = [float((predicted(values) == known[: len(values)]).mean()) for values in (exact, found)]
    return Accuracy(*shares), ""


def predicted(values: Array) -> Array:
    """The predicted class of each sample."""
    return np.asarray(values.reshape(len(values), -1).argmax(axis=1))


def _first(source: Source, graph: Graph) -> list[Mapping[str, Array]]:
    """The first batches, up to MAX_SAMPLES samples."""
    taken: list[Mapping[str, Array]] = []
    left = MAX_SAMPLES
    for batch in batches(source, graph):
        count = len(next(iter(batch.values())))
        taken.append({name: value[:left] for name, value in batch.items()})
        left -= count
        if left <= 0:
            break
    return taken


def last_states(graph: Graph, values: Mapping[str, Array]) -> dict[str, Array]:
    return {state.before: values[state.after][-1:] for state in graph.states}


def as_float(tensor: Tensor, values: Array) -> Array:
    return values if tensor.quant is None else dequantize(values, tensor.quant.scale, tensor.quant.zero_point)


def _add(total: _Sums, exact: Array, found: Array, tensor: Tensor) -> None:
    error = as_float(tensor, found).astype(np.float64) - exact
    total.signal += float(np.square(exact, dtype=np.float64).sum())
    total.noise += float(np.square(error).sum())
    total.worst = max(total.worst, float(np.abs(error).max(initial=0.0)))
    total.values += exact.size
    if tensor.quant is not None:
        low, high = limits(tensor.dtype)
        bottom, top = ((limit - tensor.quant.zero_point) * tensor.quant.scale for limit in (low, high))
        half = tensor.quant.scale / 2
        total.saturated += int(((exact < bottom - half) | (exact > top + half)).sum())
    total.low, total.high = min(total.low, float(exact.min())), max(total.high, float(exact.max()))


def _layer_name(graph: Graph, tensor: str) -> str:
    return next((op.layer or op.name for op in graph.ops if tensor in op.outputs), tensor)


def _layer(tensor: Tensor, layer: str, total: _Sums) -> LayerLoss:
    ratio = total.signal / total.noise if total.noise else np.inf
    sqnr = float(10 * np.log10(ratio)) if ratio > 0 else 0.0
    return LayerLoss(
        layer,
        tensor.name,
        tensor.dtype.replace("float32", "float"),
        total.low,
        total.high,
        tensor.quant.scale if tensor.quant else None,
        tensor.quant.zero_point if tensor.quant else None,
        total.saturated,
        total.values,
        sqnr,
        total.worst,
    )


def _output(name: str, exact: Array, found: Array) -> OutputLoss:
    a, b = (values.reshape(len(values), -1).astype(np.float64) for values in (exact, found))
    error = b - a
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return OutputLoss(
        name,
        float((a.argmax(axis=1) == b.argmax(axis=1)).mean()) if a.shape[1] > 1 else None,
        float(np.sqrt(np.square(error).mean())),
        float(np.abs(error).mean()),
        float((a * b).sum()) / norms if norms else 1.0,
        lost_values(exact, found),
        values_of(exact),
    )
