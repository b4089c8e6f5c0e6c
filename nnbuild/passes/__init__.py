"""The passes that every graph goes through after it is read: each turns a graph into an equivalent one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nnbuild.model.graph import Graph
from nnbuild.model.verify import verify
from nnbuild.passes.centre_weights import centre_weights
from nnbuild.passes.constant_bounds import constant_bounds
from nnbuild.passes.differences_once import differences_once
from nnbuild.passes.drop_noops import drop_noops
from nnbuild.passes.factor_out import factor_out
from nnbuild.passes.fold_affine import MOST_SPREAD, fold_affine
from nnbuild.passes.fold_known import fold_known
from nnbuild.passes.fold_pads import fold_pads
from nnbuild.passes.fold_scores import fold_scores
from nnbuild.passes.fuse_norms import fuse_exact_norms
from nnbuild.passes.join_blocks import join_blocks
from nnbuild.passes.last_rows import last_rows
from nnbuild.passes.lay_out import lay_out
from nnbuild.passes.merge_branches import merge_branches
from nnbuild.passes.merge_clamps import merge_clamps
from nnbuild.passes.merge_split_depthwise import merge_split_depthwise
from nnbuild.passes.name_functions import name_functions
from nnbuild.passes.name_means import name_means
from nnbuild.passes.name_prelus import name_prelus
from nnbuild.passes.remove_dead import remove_dead
from nnbuild.passes.reshapes import collapse_reshapes, sink_reshapes
from nnbuild.passes.ring_buffers import find_ring_buffers
from nnbuild.passes.single_channel_groups import single_channel_groups
from nnbuild.passes.split_joined import split_joined
from nnbuild.passes.split_pools import split_pools
from nnbuild.passes.states_in_place import states_in_place

Pass = Callable[[Graph], Graph]

PASSES: tuple[Pass, ...] = (
    remove_dead,  # first, so that unused operations prevent no fold
    fold_known,
    constant_bounds,
    split_joined,
    drop_noops,
    join_blocks,
    lay_out,
    single_channel_groups,
    centre_weights,
    sink_reshapes,  # brings normalizations and activations next to one-dimensional convolutions
    collapse_reshapes,
    last_rows,
    name_means,
    name_prelus,
    factor_out,
    differences_once,
    remove_dead,  # so that nothing else reads what a normalization is computed from
    fuse_exact_norms,
    name_functions,  # before constants of theirs are folded into what follows
    fold_affine,
    fold_scores,
    lay_out,  # transposes on either side of a normalization that is one operation now
    fold_pads,
    merge_branches,  # behind the folds, which leave convolutions alone in their branches
    fold_affine,  # what follows sums that are one convolution now
    merge_clamps,
    merge_split_depthwise,
    split_pools,  # behind what is merged into them
    find_ring_buffers,
    drop_noops,
    remove_dead,
)


FLOAT_ONLY: tuple[Pass, ...] = (
    fold_known,
    constant_bounds,
    sink_reshapes,
    last_rows,
    name_means,
    name_prelus,
    factor_out,
    differences_once,
    fuse_exact_norms,
    name_functions,
    fold_affine,
    fold_scores,
    merge_branches,
)
"""These compute new constants or move operations past each other, which would change a quantized graph's bits."""


def run(graph: Graph, *, form: str = "float") -> Graph:
    """`form` says what the graph will be quantized to."""
    quantized = is_quantized(graph)
    for each in PASSES:
        if quantized and each in FLOAT_ONLY:
            continue
        if each is fold_affine and form != "float":
            each = partial(fold_affine, most_spread=MOST_SPREAD)
        if each is merge_branches:
            each = partial(merge_branches, form=form)
        graph = verify(each(graph))
    return finalize(graph)


def finalize(graph: Graph) -> Graph:
    """To be called on every graph changed after `run`: makes its states updatable in place."""
    return verify(states_in_place(graph)) if graph.states else graph


def is_quantized(graph: Graph) -> bool:
    return any(tensor.quant is not None and not tensor.is_whole for tensor in graph.tensors.values())
