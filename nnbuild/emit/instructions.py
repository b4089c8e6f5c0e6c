"""The instructions that kernels use, as static functions under the model's prefix."""

from __future__ import annotations

from collections.abc import Iterable

from nnbuild.base.writer import INDENT, Instruction


def instructions(used: Iterable[Instruction], prefix: str, attribute: str) -> str:
    """Their definitions, in the order in which they were first used; empty when there are none."""
    return "\n".join(_definition(instruction, prefix, attribute) for instruction in used)


def _definition(instruction: Instruction, prefix: str, attribute: str) -> str:
    name = f"{prefix}_{instruction.name}"
    storage = "static __attribute__((noinline))" if instruction.outlined else "static inline"
    head = f"{attribute}{storage} {instruction.head.replace('{name}', name)}"
    meaning = _function(head, instruction.meaning, prefix)
    if not instruction.native:
        return meaning
    native = _function(head, instruction.native, prefix)
    return f"#if {instruction.guard}\n{native}#else\n{meaning}#endif\n"


def _function(head: str, body: str, prefix: str) -> str:
    lines = [INDENT + line if line else "" for line in body.replace("{prefix}", prefix).splitlines()]
    return "\n".join([head, "{", *lines, "}"]) + "\n"
