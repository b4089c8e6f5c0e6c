"""The instructions that kernels use, as static functions under the model's prefix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from nnbuild.base.c_folding import folded
from nnbuild.base.c_scopes import unroll_single_trip
from nnbuild.base.writer import INDENT, Instruction

PRODUCT = "{prefix}_product("
ALWAYS = "static inline __attribute__((__always_inline__))"
SIZE = re.compile(r"\[([^\[\]]+)\]")


def instructions(used: Iterable[Instruction], prefix: str, attribute: str) -> str:
    """Definitions in dependency order; empty if there are none."""
    waiting = list(used)
    parts = [outlining(prefix)] if any(instruction.outlined for instruction in waiting) else []
    always = any(instruction.pins for instruction in waiting)
    parts += [_section(section, prefix, attribute, always) for section in _sections(waiting)]
    return "\n".join(parts)


def outlining(prefix: str) -> str:
    """The macro that prevents inlining where the compiler supports it. It is spelt with underscores since Linux defines
    a macro `noinline`."""
    name = _outlined(prefix)
    return f"#if defined(__GNUC__)\n#define {name} __attribute__((__noinline__))\n#else\n#define {name}\n#endif\n"


def _outlined(prefix: str) -> str:
    return f"{prefix.upper()}_OUTLINED"


def _sections(waiting: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """Groups instructions with the same guard, as far as dependencies permit."""
    done: set[str] = set()
    while waiting:
        section = []
        for instruction in waiting:
            if _guard(instruction) == _guard(waiting[0]) and done.issuperset(u.name for u in instruction.uses):
                section.append(instruction)
                done.add(instruction.name)
        yield section
        waiting = [instruction for instruction in waiting if instruction.name not in done]


def _guard(instruction: Instruction) -> str:
    return instruction.guard if instruction.native else ""


def called(used: Iterable[Instruction]) -> set[str]:
    """The vendored functions that they call."""
    return {"product"} if any(PRODUCT in body for i in used for body in (i.meaning, i.native)) else set()


def _section(section: Sequence[Instruction], prefix: str, attribute: str, always: bool) -> str:
    """The native spellings under the guard, otherwise the portable C. `always`: the former are inlined in any case."""
    meanings = "\n".join(_text(i, i.meaning, prefix, attribute) for i in section)
    guard = _guard(section[0])
    if not guard:
        return meanings
    inline = ALWAYS if always and "__GNUC__" in guard else "static inline"
    natives = "\n".join(_text(i, i.native, prefix, attribute, inline) for i in section)
    return f"#if {guard}\n\n{natives}\n#else /* the same in portable C */\n\n{meanings}\n#endif\n"


def _text(instruction: Instruction, body: str, prefix: str, attribute: str, inline: str = "static inline") -> str:
    """A function, or the declaration of a type."""

    def named(text: str) -> str:
        return text.replace("{name}", f"{prefix}_{instruction.name}").replace("{prefix}", prefix)

    if not instruction.head:
        return SIZE.sub(lambda found: f"[{folded(found[1], {})}]", named(body)) + "\n"
    storage = f"static {_outlined(prefix)}" if instruction.outlined else inline
    return _function(f"{attribute}{storage} {named(instruction.head)}", body, prefix)


def _function(head: str, body: str, prefix: str) -> str:
    lines = [
        INDENT + unroll_single_trip(line) if line else "" for line in body.replace("{prefix}", prefix).splitlines()
    ]
    return "\n".join([head, "{", *lines, "}"]) + "\n"
