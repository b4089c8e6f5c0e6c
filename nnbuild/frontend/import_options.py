"""User options for what a model file leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nnbuild.model.graph import Shape

LAYOUTS = ("model", "nhwc")


@dataclass(frozen=True)
class ImportOptions:
    """`shapes` are complete input shapes by name; `layout` is the order of image axes at inputs and outputs."""

    shapes: Mapping[str, Shape] = field(default_factory=dict)
    layout: str = "model"


DEFAULTS = ImportOptions()
