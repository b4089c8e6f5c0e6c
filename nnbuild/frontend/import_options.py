"""User options for what a model file leaves open."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from nnbuild.base.errors import UsageError
from nnbuild.model.graph import Shape

LAYOUTS = ("model", "nhwc")


@dataclass(frozen=True)
class ImportOptions:
    """`shapes` are complete input shapes by name; `layout` is the order of image axes at inputs and outputs."""

    shapes: Mapping[str, Shape] = field(default_factory=dict)
    layout: str = "model"


DEFAULTS = ImportOptions()


def expect_inputs(shapes: Mapping[str, Shape], inputs: Collection[str], file: str) -> None:
    """Refuses sizes of an input that the model does not have."""
    for asked in shapes:
        if asked not in inputs:
            cause = f"the inputs of {file} are {', '.join(sorted(inputs))}."
            raise UsageError(f"--shape {asked}", cause, "Name one.")
