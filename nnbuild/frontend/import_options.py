"""What a user may say of a model that its file leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nnbuild.model.graph import Shape

LAYOUTS = ("model", "nhwc")


@dataclass(frozen=True)
class ImportOptions:
    """`shapes` are those of inputs, whole, by name; `layout` is in which order images enter and leave."""

    shapes: Mapping[str, Shape] = field(default_factory=dict)
    layout: str = "model"


DEFAULTS = ImportOptions()
