"""An Arduino library: the C under src/, what the library manager reads, and a sketch that runs the model."""

from __future__ import annotations

import re
from pathlib import Path

from nnbuild import __version__
from nnbuild.base.template import fill
from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact
from nnbuild.emit.text import comment_safe
from nnbuild.outputs.example import example
from nnbuild.plan.plan import Plan

ISA = "c99"
WEIGHTS = "array"
"""The Arduino build gives the assembler no search path for a .bin."""
EXAMPLE = "examples/{prefix}_sketch"


def files(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    p = plan.prefix
    sketch = {"PREFIX": p, "UPPER": p.upper(), **example(plan, artifact)}
    texts = {
        "library.properties": _properties(plan),
        "keywords.txt": _keywords(p),
        f"examples/{p}_sketch/{p}_sketch.ino": fill("arduino/sketch.ino", sketch),
    }
    sources = {f"src/{name}": content for name, content in artifact.files.items()}
    return {**sources, **{name: text.encode() for name, text in texts.items()}}


def _properties(plan: Plan) -> str:
    title = re.sub(r"[^A-Za-z0-9 _.-]", " ", comment_safe(plan.graph.name)).strip() or plan.prefix
    return f"""\
name={plan.prefix}
version={__version__}
author=nnbuild
maintainer=nnbuild
sentence=The network {title} as plain C.
paragraph=Printed by nnbuild {__version__}. No runtime and no heap.
category=Data Processing
url=https://www.arduino.cc
architectures=*
includes={plan.prefix}.h
"""


def _keywords(prefix: str) -> str:
    words = ("init", "input", "quantize_input", "run", "step", "output", "dequantize_output", "class")
    functions = "".join(f"{prefix}_{word}\tKEYWORD2\n" for word in words)
    return f"{prefix}_context\tKEYWORD1\n{functions}"


def finish(board: Board, plan: Plan, folder: Path) -> list[str]:
    return []
