"""Kernels are printed once for the same work, and again for any other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnbuild.kernels.contract import Kernel
from nnbuild.kernels.registry import kernels_of
from nnbuild.model.graph import Constant
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site, site_of
from nnbuild.plan import printed as room
from nnbuild.plan.printed import printed_or_refused, remembering
from tests.kernels.cases import normal
from tests.support.graphs import single


def dense(inputs: int = 8) -> Site:
    graph = single(Dense(), [(inputs,)], {"kernel": normal(inputs, 4), "bias": normal(4)})
    return site_of(graph, graph.ops[0])


def scalar(site: Site) -> Kernel:
    return kernels_of(site)[0]


def test_the_same_work_is_printed_once() -> None:
    site = dense()
    kernel = scalar(site)
    with remembering():
        first = printed_or_refused(kernel, site)
        weights = site.constants["kernel"]
        again = replace(site, constants={**site.constants, "kernel": Constant(weights.name, weights.data.copy())})
        assert printed_or_refused(kernel, again) is first, "weights are compared by content"
    with remembering():
        assert printed_or_refused(kernel, site) is not first
    assert printed_or_refused(kernel, site) is not printed_or_refused(kernel, site)


def test_other_work_is_printed_again() -> None:
    site = dense()
    kernel, weights = scalar(site), site.constants["kernel"]
    other = weights.data.copy()
    other[3, 1] = np.nextafter(other[3, 1], np.float32(9))
    quantized = tuple(replace(tensor, name=f"{tensor.name}_other") for tensor in site.outputs)
    with remembering():
        found = [
            printed_or_refused(kernel, each)
            for each in (
                site,
                replace(site, constants={**site.constants, "kernel": Constant(weights.name, other)}),
                replace(site, outputs=quantized),
                replace(site, shared=True),
                replace(site, op=replace(site.op, attributes=replace(site.op.attributes))),
                dense(9),
            )
        ]
    assert len({id(each) for each in found}) == len(found)


def test_what_takes_too_much_room_is_forgotten_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    sites = [dense(inputs) for inputs in (100, 101, 102)]
    kernel = scalar(sites[0])
    with remembering():
        results = [printed_or_refused(kernel, site) for site in sites]
        monkeypatch.setattr(room, "ROOM", sum(r.nbytes for r in results if isinstance(r, room.Printed)))
        assert printed_or_refused(kernel, sites[0]) is results[0], "it is the youngest now"
        printed_or_refused(kernel, dense(8))
        assert printed_or_refused(kernel, sites[0]) is results[0]
        assert printed_or_refused(kernel, sites[2]) is results[2]
        assert printed_or_refused(kernel, sites[1]) is not results[1]
