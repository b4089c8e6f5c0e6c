#!/usr/bin/env python3
"""Writes docs/layers.md from the importers' own tables: script/layers_table.py"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nnbuild.frontend.keras_layers import (
    activation,
    attention,
    audio,
    categories,
    conv_recurrent,
    convolution,
    dense,
    embedding,
    known_sizes,
    locally_connected,
    merging,
    normalization,
    operations,
    pooling,
    preprocessing,
    products,
    qkeras,
    quantize_wrappers,
    recurrent,
    shaping,
    volumes,
    wrappers,
)
from nnbuild.frontend.tflite.importer import OPERATORS
from nnbuild.kernels.registry import variants
from nnbuild.ops.base import Attributes

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "layers.md"
FAMILIES: dict[str, ModuleType] = {
    "convolution": convolution,
    "dense": dense,
    "pooling": pooling,
    "normalization": normalization,
    "activation": activation,
    "merging": merging,
    "shaping": shaping,
    "recurrent": recurrent,
    "3D": volumes,
    "locally connected": locally_connected,
    "convolutional recurrent": conv_recurrent,
    "embeddings and masks": embedding,
    "attention": attention,
    "products": products,
    "image preprocessing and augmentation": preprocessing,
    "preprocessing of categories": categories,
    "sound": audio,
    "quantization-aware training": quantize_wrappers,
    "QKeras": qkeras,
    "wrappers": wrappers,
}


def keras() -> list[str]:
    rows = [f"| {family} | {', '.join(sorted(module.LAYERS))} |" for family, module in FAMILIES.items()]
    return ["| family | layers |", "|---|---|", *rows]


def attributes(kind: str) -> type[Attributes]:
    """The class that defines an operation of this kind."""
    module = importlib.import_module(f"nnbuild.ops.{kind}")
    classes = [cls for _, cls in inspect.getmembers(module, inspect.isclass) if issubclass(cls, Attributes)]
    return next(cls for cls in classes if getattr(cls, "kind", None) == kind)


def kinds() -> list[str]:
    """Every operation that has a kernel."""
    return sorted(path.stem for path in (ROOT / "nnbuild" / "ops").glob("*.py") if variants(path.stem))


def summary(kind: str) -> str:
    """The first sentence of the operation's own file."""
    text = (sys.modules[attributes(kind).__module__].__doc__ or "").split("\n\n")[0]
    return " ".join(text.split())


def own_operations() -> list[str]:
    rows = [f"| `{kind}` | {summary(kind)} |" for kind in kinds()]
    return ["| operation | |", "|---|---|", *rows]


def without_integers() -> list[str]:
    return [kind for kind in kinds() if attributes(kind).integer is Attributes.integer]


def integers() -> str:
    without = ", ".join(f"`{kind}`" for kind in without_integers())
    every = "All of them have a float and an integer form"
    return f"{every}, except {without}, which stay in floats." if without else f"{every}."


def page() -> str:
    lines = [
        "# Supported layers",
        "",
        "<!-- Written by script/layers_table.py from the tables of the code. -->",
        "",
        "Everything that nnbuild can read, under the names that the frameworks use; for ONNX see",
        "[onnx-coverage.md](onnx-coverage.md). [import.md](import.md) lists the supported options and what is refused.",
        "All of it works on every board.",
        "",
        "## Keras layers",
        "",
        *keras(),
        "",
        "## Single operations in a Keras graph",
        "",
        ", ".join(f"`{name}`" for name in sorted({*operations.OPERATIONS, *known_sizes.OF_A_TENSOR})),
        "",
        "## TensorFlow Lite operators",
        "",
        ", ".join(sorted(OPERATORS)),
        "",
        "## Operations of nnbuild",
        "",
        f"Each layer becomes one or several of these operations. {integers()}",
        "",
        *own_operations(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
