"""Folder names of weights in a .keras file: derived from class names, never from layer names."""

from __future__ import annotations

import re
from collections.abc import Sequence

OWN_NAMES = {"Model": "Functional", "GroupQueryAttention": "GroupedQueryAttention"}
"""Classes that Keras exports under a different name."""


def snake_case(class_name: str) -> str:
    """Keras's spelling: TFOpLambda is tf_op_lambda."""
    name = re.sub(r"\W+", "", class_name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def folders(layers: Sequence[tuple[str, bool]]) -> list[str]:
    """One folder for each (class name, is a bare operation) of a model; operations have none."""
    used: dict[str, int] = {}
    found = []
    for class_name, operation in layers:
        if operation:
            found.append("")
            continue
        name = snake_case(OWN_NAMES.get(class_name, class_name))
        number = used.get(name, -1) + 1
        used[name] = number
        found.append(f"layers/{name}_{number}" if number else f"layers/{name}")
    return found
