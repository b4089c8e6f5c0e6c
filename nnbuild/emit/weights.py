"""The constants: as C arrays, or as one binary file that the assembler includes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from nnbuild.base.literals import C_TYPES, array_lines, is_packed
from nnbuild.emit.text import comment_safe
from nnbuild.model.graph import Array
from nnbuild.plan.plan import WEIGHTS, Plan

ALIGNMENT = 64
PACKED = "; several per word, lowest bits first"


def weights_bytes(plan: Plan) -> int:
    return sum(data.nbytes for data in plan.constants.values())


def weight_files(plan: Plan, form: str) -> dict[str, bytes]:
    """`form` is "array" or "binary"."""
    stem = f"{plan.prefix}_weights"
    if plan.in_block and form == "array":
        return {f"{stem}.c": "\n".join(_block(plan)).encode()}
    if form == "array":
        return {f"{stem}.c": "\n".join(_arrays(plan)).encode()}
    return {f"{stem}.bin": blob(plan), f"{stem}.S": "\n".join(_labels(plan)).encode()}


def _arrays(plan: Plan) -> Iterator[str]:
    yield f'/* The constants, each in the order in which its kernel reads it. */\n#include "{plan.prefix}_private.h"\n'
    readers = _readers(plan)
    for name, data in plan.constants.items():
        yield f"/* {readers[name]}{PACKED if is_packed(data) else ''} */"
        yield f"const {C_TYPES[data.dtype.name]} {name}[{data.size}] = {{"
        yield from ("    " + line for line in array_lines(data))
        yield "};\n"


def _readers(plan: Plan) -> dict[str, str]:
    """A comment for each constant: its layer, its role, and the kernel it is packed for."""
    return {name: f"{comment_safe(state)}: initial value" for state, name in plan.initial.items()} | {
        name: f"{comment_safe(step.layer)}: {role} of {step.kind}, packed for {version.kernel_name}"
        for step in reversed(plan.steps)
        for version in step.versions
        for role, name in version.names.packed.items()
    }


def _block(plan: Plan) -> Iterator[str]:
    """All constants as one array of bytes."""
    p = plan.prefix
    yield f'/* The constants as one block, in the places that {p}_private.h gives. */\n#include "{p}_private.h"\n'
    yield _order_guard(plan)
    yield f"const uint8_t {p}_{WEIGHTS}[] __attribute__((aligned({ALIGNMENT}))) = {{"
    yield from ("    " + line for line in array_lines(np.frombuffer(blob(plan) or bytes(1), np.uint8)))
    yield "};\n"


def block_offsets(plan: Plan) -> Iterator[tuple[str, Array, int]]:
    at = 0
    for name, data in plan.constants.items():
        yield name, data, at
        at += -(-data.nbytes // ALIGNMENT) * ALIGNMENT


def blob_bytes(plan: Plan) -> int:
    return sum(-(-data.nbytes // ALIGNMENT) * ALIGNMENT for data in plan.constants.values())


def blob(plan: Plan) -> bytes:
    """In the board's order of bytes."""
    order: Literal["<", ">"] = ">" if plan.big_endian else "<"
    parts = []
    for _, data, _ in block_offsets(plan):
        raw = np.ascontiguousarray(data, data.dtype.newbyteorder(order)).tobytes()
        parts += [raw, bytes(-len(raw) % ALIGNMENT)]
    return b"".join(parts)


def _order_guard(plan: Plan) -> str:
    """Refuses processors of the other order of bytes, on which every number would be wrong."""
    given, other, board = ("big", "LITTLE", "little") if plan.big_endian else ("little", "BIG", "big")
    return f"""\
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_{other}_ENDIAN__
#error "these constants are {given}-endian: use --weights array, or a board table with byte_order = \\"{board}\\""
#endif
"""


def _labels(plan: Plan) -> Iterator[str]:
    stem = f"{plan.prefix}_weights"
    yield f"/* The constants of {stem}.bin by name; the assembler finds that file through -I. */"
    yield _order_guard(plan)
    yield '    .section .rodata, "a"'
    whole = [(stem, blob_bytes(plan), 0)]
    for name, size, at in (
        whole if plan.in_block else [(name, data.nbytes, at) for name, data, at in block_offsets(plan)]
    ):
        yield f"    .balign {ALIGNMENT}"
        yield f"    .globl {name}\n    .type {name}, %object\n    .size {name}, {size}"
        yield f'{name}:\n    .incbin "{stem}.bin", {at}, {size}'
    yield '    .section .note.GNU-stack, "", %progbits\n'
