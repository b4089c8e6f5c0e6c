"""The registry finds kernels for a site's operation: the only step that the type checker cannot see."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TypeVar, get_args, get_type_hints

import pytest

from nnbuild.kernels.registry import variants
from nnbuild.ops.base import Attributes
from nnbuild.ops.conv2d import Conv2D
from nnbuild.ops.dense import Dense
from nnbuild.ops.site import Site, site_of
from tests.kernels.cases import cases
from tests.kernels.test_variants import graph_of


def operations(below: type[Attributes] = Attributes) -> Iterator[type[Attributes]]:
    """The operations that have kernels."""
    for cls in below.__subclasses__():
        if "kind" in vars(cls) and cls.__module__.startswith("nnbuild.ops.") and cls.kind != "reshape":
            yield cls
        yield from operations(cls)


@pytest.mark.parametrize("operation", list(operations()), ids=lambda operation: operation.kind)
def test_kernels_take_sites_of_their_operation(operation: type[Attributes]) -> None:
    for kernel in variants(operation.kind):
        for function in (kernel.accepts, kernel.demand, kernel.emit):
            hints = get_type_hints(function.func if isinstance(function, partial) else function)
            (taken,) = get_args(hints.get("site")) or (Attributes,)
            if isinstance(taken, TypeVar):
                taken = taken.__bound__ or Attributes
            assert issubclass(operation, taken), kernel.name


def test_a_site_is_of_its_operation_alone() -> None:
    name, maker = next((name, maker) for name, maker in cases() if name.startswith("conv2d"))
    graph = graph_of(name, maker, "float")
    assert graph is not None
    site: Site = site_of(graph, graph.ops[0])
    assert site.of(Conv2D).attributes is site.op.attributes
    with pytest.raises(TypeError, match="is a conv2d, not a Dense"):
        site.of(Dense)
