"""A kernel as a C function of its own, for kernels that are made of others and call them for some of their rows."""

from __future__ import annotations

from typing import Any

from nnbuild.base.literals import C_TYPES
from nnbuild.base.writer import Instruction, Writer
from nnbuild.kernels.contract import Demand, Kernel, Names
from nnbuild.ops.site import Site


def kernel_function(
    w: Writer, name: str, kernel: Kernel[Any], site: Site[Any], names: Names, demand: Demand, share: float, apart: bool
) -> Instruction:
    """Its parameters are inputs, output, scratch, the block of constants and the work items from `begin` to `end`.

    share: the part of the whole kernel that a call computes, for its cost. apart: whether the tensors do not overlap.
    """
    inner, mark = Writer(w.prefix), "restrict " if apart else ""
    kernel.emit(inner, site, names)
    w.helpers |= inner.helpers
    parameters = [
        *(f"const {C_TYPES[t.dtype]} *{mark}{each}" for t, each in zip(site.reads, names.inputs, strict=True)),
        f"{C_TYPES[site.writes[0].dtype]} *{mark}{names.outputs[0]}",
        *([f"{C_TYPES[demand.scratch_type]} *{mark}scratch"] if demand.scratch else []),
        *(f"const uint8_t *{each}" for each in block_of(names, demand)),
    ]
    head = f"void {{name}}({', '.join(parameters)}, int32_t begin, int32_t end)"
    counts, uses = inner.counts.times(share), tuple(inner.instructions.values())
    return Instruction(name, head, str(inner), counts.instructions, uses=uses, outlined=True, words=counts.words)


def block_of(names: Names, demand: Demand) -> list[str]:
    """The argument for the block of constants, where the kernel has some and they lie in one."""
    return [names.block] if names.block is not None and demand.packed else []
