"""The vendored functions as part of a model's own file: static, and under the model's prefix.

So two models never clash in one program, and a model is complete without any library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from nnbuild.paths import FIRMWARE

LIBM = FIRMWARE / "libm"
SKIPPED = re.compile(r"^#(include\b|ifndef NN_\w+_H$|define NN_\w+_H$)")
DEFINITION = re.compile(r"^(?=(?:float|int|void|u?int\d+_t) \**nn_\w+\()", re.MULTILINE)
USES = re.compile(r"^/\* uses: (.*) \*/$", re.MULTILINE)


@cache
def _source(name: str) -> str:
    return (LIBM / f"nn_{name}.c").read_text()


def _uses(name: str) -> list[str]:
    found = USES.search(_source(name))
    return [used.removeprefix("nn_") for used in re.split(r"[,\s]+", found[1]) if used != "none"] if found else []


def in_order(names: Iterable[str]) -> list[str]:
    """The functions and all that they use, each after what it uses."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in order:
            for used in _uses(name):
                visit(used)
            order.append(name)

    for name in sorted(names):
        visit(name)
    return order


def definitions(names: Iterable[str], prefix: str) -> str:
    """The C text of the functions named, complete in itself; empty when there are none."""
    order = in_order(names)
    if not order:
        return ""
    bits = _bare((LIBM / "nn_bits.h").read_text())
    bits = bits[: bits.rindex("#endif")]
    bodies = [DEFINITION.sub("static ", USES.sub("", _bare(_source(name)))) for name in order]
    text = "\n".join(part.strip() + "\n" for part in (bits, *bodies))
    return re.sub(r"\bnn_", f"{prefix}_", text)


def _bare(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not SKIPPED.match(line)) + "\n"


def library_files() -> list[Path]:
    return sorted(LIBM.glob("*.[ch]"))
