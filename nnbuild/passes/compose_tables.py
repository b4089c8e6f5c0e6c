"""Functions of one byte that a graph computes in several steps become one look-up, equal in every bit.

Quantized files hold SiLU as a sigmoid and a product, each with its own scale. What an exporter left in floats between
two conversions is looked up, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from nnbuild.model.graph import Array, Graph, Op, Tensor
from nnbuild.numeric.rounding import INT8
from nnbuild.ops.activation import Activation
from nnbuild.ops.activation_rules import Entries
from nnbuild.ops.binary import Binary
from nnbuild.ops.convert import Convert
from nnbuild.ops.interpret import compute
from nnbuild.ops.lookup import Lookup
from nnbuild.ops.offset import Offset
from nnbuild.ops.prelu import PReLU
from nnbuild.ops.site import Site, site_of
from nnbuild.passes.chains import chains, in_order, on_elements, replace_chain
from nnbuild.passes.graph_editor import GraphEditor

ALL = np.arange(INT8[0], INT8[1] + 1, dtype=np.int8)[:, None]
"""Samples of one element each."""
STRAIGHT = ("add", "subtract", "maximum", "minimum")
MANY = 3
"""Steps that vectors compute no faster than a look-up."""


def compose_tables(graph: Graph) -> Graph:
    draft = GraphEditor(graph)
    for name in [op.name for op in graph.ops]:
        last = draft.ops.get(name)
        if last is None or not _joins(draft, last) or not _of_bytes(draft.tensors[last.outputs[0]]):
            continue
        found = [each for each in chains(draft, last, partial(_joins, draft)) if _of_bytes(draft.tensors[each[0]])]
        source, chain = found[-1] if found else ("", [])
        sites = [_of_one_element(draft, op) for op in in_order(chain, source)]
        if len(chain) > 1 and _gains(sites):
            function = _joined(source, sites)
            replace_chain(draft, chain, replace(last, attributes=function, inputs=(source,), constants={}))
    return draft.finish()


def _of_bytes(tensor: Tensor) -> bool:
    return tensor.dtype == "int8" and tensor.quant is not None and not tensor.is_whole


def _joins(draft: GraphEditor, op: Op) -> bool:
    if not isinstance(op.attributes, Activation | Binary | Convert | Lookup | Offset | PReLU) or not on_elements(
        draft, op
    ):
        return False
    quants = [draft.constants[name].quant for name in op.constants.values()]
    return all(quant is None or len(quant.scales) == 1 for quant in quants)


def _of_one_element(draft: GraphEditor, op: Op) -> Site:
    tensors = {name: replace(draft.tensors[name], shape=(1,)) for name in (*op.inputs, *op.outputs)}
    constants = {name: draft.constants[name] for name in op.constants.values()}
    small = {name: replace(each, data=each.data.reshape(-1)[:1]) for name, each in constants.items()}
    return site_of(Graph("", tensors, small, (op,), (), ()), op)


def _gains(sites: Sequence[Site]) -> bool:
    """Whether a look-up is faster on every processor: vectors compute one or two straight lines sooner."""
    return len(sites) >= MANY or any(_is_curve(site) for site in sites)


def _is_curve(site: Site) -> bool:
    attributes = site.attributes
    if isinstance(attributes, Binary) and len(site.inputs) == 2:
        return attributes.function not in STRAIGHT
    if isinstance(attributes, Lookup) or "float32" in site.dtypes:
        return True
    return isinstance(attributes, Activation) and isinstance(attributes.rule(site), Entries)


def _joined(source: str, sites: Sequence[Site]) -> Lookup:
    values: dict[str, Array] = {source: ALL}
    with np.errstate(all="ignore"):
        for site in sites:
            (values[site.outputs[0].name],) = compute(site, [values[each.name] for each in site.inputs], "float32")
    return Lookup(entries=tuple(map(int, values[sites[-1].outputs[0].name].reshape(-1))))
