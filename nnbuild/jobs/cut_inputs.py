"""Notes on samples that reach far beyond those a model was calibrated with."""

from __future__ import annotations

from collections.abc import Iterator

from nnbuild.model.graph import Graph, Tensor
from nnbuild.model.samples import SampleSet
from nnbuild.numeric.reach import cut_off, ends
from nnbuild.ops.convert import Convert


def cut_inputs(graph: Graph, samples: SampleSet) -> tuple[str, ...]:
    return tuple(_notes(graph, samples))


def _notes(graph: Graph, samples: SampleSet) -> Iterator[str]:
    for name in graph.inputs:
        tensor, values = _entered(graph, name), samples.inputs[name]
        if tensor.quant is None or tensor.is_whole or tensor.quant.whole:
            continue
        low, high = ends(tensor.dtype, tensor.quant.scale, tensor.quant.zero_point)
        count = cut_off(values, low, high)
        if count:
            least, most = float(values.min()), float(values.max())
            yield (
                f"input {name!r}: {count} of {len(values)} samples reach beyond {low:.3g} to {high:.3g}, which its "
                f"integers hold, up to {most if most - high > low - least else least:.3g}, and are cut off there. Give "
                "samples in the units of those that the model was calibrated with, or calibrate it with samples that "
                "reach as far"
            )


def _entered(graph: Graph, name: str) -> Tensor:
    """The input itself, or what it is quantized to at once."""
    made = [op.outputs[0] for op in graph.ops if name in op.inputs and isinstance(op.attributes, Convert)]
    return graph.tensors[made[0] if made and graph.tensors[name].quant is None else name]
