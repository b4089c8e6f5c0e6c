"""Copies vendored functions into a model's own file: static, and under the model's prefix.

So two models never clash in one program, and a model needs no library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from nnbuild.base.paths import FIRMWARE

LIBM, NUMERIC = FIRMWARE / "libm", FIRMWARE / "numeric"
BITS, FLOATS = "nn_bits.h", "nn_floats.h"
SKIPPED = re.compile(r"^#(include\b|ifndef NN_\w+_H$|define NN_\w+_H$)")
DEFINITION = re.compile(r"^(?=(?:float|int|void|u?int\d+_t) \**nn_\w+\()", re.MULTILINE)
INLINE = re.compile(
    r"((?:/\*(?:(?!\*/).)*\*/\n)?(?:#if [^\n]*\n__attribute__[^\n]*\n#endif\n)?static inline \w+ nn_(\w+)\(.*?\n}\n)",
    re.DOTALL,
)
USES = re.compile(r"^/\* uses: (.*) \*/$", re.MULTILINE)


def sources() -> dict[str, Path]:
    """Source file of every vendored symbol: under nnbuild's names, and under the C library's."""
    ours = {path.stem: path for folder in (LIBM, NUMERIC) for path in folder.glob("nn_*.c")}
    plain = {path.stem: path for path in (LIBM / "plain").glob("*.c")}
    return ours | plain


@cache
def _source(name: str, features: frozenset[str] = frozenset()) -> str:
    """For an instruction set, its own spelling of the same function where there is one."""
    own = [NUMERIC / feature for feature in sorted(features)]
    paths = [folder / f"nn_{name}.c" for folder in (*own, LIBM, NUMERIC)]
    return next(path for path in paths if path.is_file()).read_text("utf-8")


def _uses(name: str, features: frozenset[str]) -> list[str]:
    found = USES.search(_source(name, features))
    return [used.removeprefix("nn_") for used in re.split(r"[,\s]+", found[1]) if used != "none"] if found else []


def in_order(names: Iterable[str], features: frozenset[str] = frozenset()) -> list[str]:
    """The functions and all that they use, in dependency order."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in order:
            for used in _uses(name, features):
                visit(used)
            order.append(name)

    for name in sorted(names):
        visit(name)
    return order


def definitions(names: Iterable[str], prefix: str, features: frozenset[str] = frozenset()) -> str:
    """The C text of the functions and all that they use, for a set with these features; empty if there are none."""
    inline = _inline()
    order = in_order(set(names) - inline.keys(), features)
    bodies = [DEFINITION.sub("static ", USES.sub("", _bare(_source(name, features)))) for name in order]
    called = {*names, *re.findall(r"\bnn_(\w+)\(", "\n".join(bodies))}
    bodies = [text for name, text in inline.items() if name in called] + bodies
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(body.strip() + "\n" for body in bodies))
    return re.sub(r"\bnn_", f"{prefix}_", text)


@cache
def _inline() -> dict[str, str]:
    """The functions of nn_bits.h, each with its comment."""
    return {found[2]: found[1] for found in INLINE.finditer(_bare((LIBM / BITS).read_text("utf-8")))}


def float_rules() -> str:
    """The directives that make a file compute floats as written; they come before everything else, headers included."""
    text = _bare((LIBM / FLOATS).read_text("utf-8"))
    return text[: text.rindex("#endif")].strip() + "\n"


def _bare(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not SKIPPED.match(line)) + "\n"
