"""The instructions that kernels use, as static functions under the model's prefix."""

from __future__ import annotations

from collections.abc import Iterable

from nnbuild.base.writer import INDENT, Instruction

PRODUCT = "{prefix}_product("


def instructions(used: Iterable[Instruction], prefix: str, attribute: str) -> str:
    """Their definitions, in the order in which they were first used; empty when there are none."""
    return "\n".join(_definition(instruction, prefix, attribute) for instruction in used)


def called(used: Iterable[Instruction]) -> set[str]:
    """The vendored functions that they call."""
    return {"product"} if any(PRODUCT in body for i in used for body in (i.meaning, i.native)) else set()


def _definition(instruction: Instruction, prefix: str, attribute: str) -> str:
    meaning = _text(instruction, instruction.meaning, prefix, attribute)
    if not instruction.native:
        return meaning
    native = _text(instruction, instruction.native, prefix, attribute)
    return f"#if {instruction.guard}\n{native}#else\n{meaning}#endif\n"


def _text(instruction: Instruction, body: str, prefix: str, attribute: str) -> str:
    """A function, or the declaration of a type."""

    def named(text: str) -> str:
        return text.replace("{name}", f"{prefix}_{instruction.name}").replace("{prefix}", prefix)

    if not instruction.head:
        return named(body) + "\n"
    storage = "static __attribute__((noinline))" if instruction.outlined else "static inline"
    return _function(f"{attribute}{storage} {named(instruction.head)}", body, prefix)


def _function(head: str, body: str, prefix: str) -> str:
    lines = [INDENT + line if line else "" for line in body.replace("{prefix}", prefix).splitlines()]
    return "\n".join([head, "{", *lines, "}"]) + "\n"
