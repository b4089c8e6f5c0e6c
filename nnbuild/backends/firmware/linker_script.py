"""Makes a firmware's linker script from the board's memory table."""

from __future__ import annotations

from nnbuild.backends.firmware.layout import HANDLER_STACK, Layout, core_stack
from nnbuild.board.board import Board, Memory

BOARD_MARK = "nn_board_"
MARKED = "*(.bss.nn_context)"
"""The section in which a user's program places the model's memory."""

FLASH = """\
    .text : ALIGN(16)
    {
        nn_code_begin = .;
        KEEP(*(.boot))
        . = ALIGN(256);
        KEEP(*(.vectors))
        nn_waiting_begin = .;
        *(.text.nn_waiting)
        nn_waiting_end = .;
        nn_copying_begin = .;
        *(.text.nn_copying)
        nn_copying_end = .;
        *({most}.text {most}.text.*)
        . = ALIGN(16);
        nn_code_end = .;
    } > flash
"""

CONSTANTS = """\
    .rodata {where}: ALIGN(16)
    {{
        nn_rodata_begin = .;
        *(.rodata .rodata.* .srodata .srodata.*)
        . = ALIGN(4);
        nn_rodata_end = .;
    }} > {region}
"""
WEIGHTS = """\
    .weights : ALIGN(64)
    {
        *_weights.o(.rodata .rodata.* .srodata .srodata.*)
    } > flash
"""
"""Weights precede the other constants, where cores may read only the weights."""
READ_ELSEWHERE = "flash_data"
"""The flash at its data address, on parts that have a different one."""

DATA = """\
    .data : ALIGN(8)
    {
        nn_data_begin = .;
        *(.data .data.* .sdata .sdata.*)
        . = ALIGN(4);
        nn_data_end = .;
    } > ram AT > flash
    nn_data_load = LOADADDR(.data){moved};
"""

KERNELS = "*_kernels.o"
FAST = """\
    /* The model's code. */
    .fast : ALIGN(16)
    {{
        nn_fast_begin = .;
        {kernels}(.text .text.*)
        . = ALIGN(4);
        nn_fast_end = .;
    }} > {memory} AT > flash
    nn_fast_load = LOADADDR(.fast);
"""

DISCARDED = """\
    /DISCARD/ :
    {
        *(.ARM.exidx* .ARM.extab* .eh_frame* .note.*)
    }
"""


def board_mark(board: Board) -> str:
    """The symbol that marks a program as built for this board."""
    return f"{BOARD_MARK}{board.name.replace('-', '_')}"


def linker_script(board: Board, layout: Layout) -> str:
    """Code and constants lie in flash. The stack is lowest in RAM, so that an overflow leaves the RAM and faults."""
    ram, flash = board.memory("ram"), board.memory("flash")
    apart, fast = flash.data is not None, board.code_memory
    twice = [Memory(READ_ELSEWHERE, flash.data, flash.length)] if flash.data is not None else []
    regions = [
        f"    {memory.name} : ORIGIN = {memory.origin:#010x}, LENGTH = {memory.length}"
        for memory in [*board.memories, *twice]
    ]
    sections = [
        FLASH.replace("{most}", f"EXCLUDE_FILE({KERNELS}) " if fast else ""),
        *([WEIGHTS] if board.cores.computes_locally else []),
        _constants(apart),
        _stack("stack", "nn_stack", layout.stack),
        _stack("handler_stack", "nn_handler_stack", HANDLER_STACK),
        *([_stack("core_stacks", "nn_core_stacks", layout.others * core_stack(board))] if board.cores.runtime else []),
        DATA.replace("{moved}", f" - ORIGIN(flash) + ORIGIN({READ_ELSEWHERE})" if apart else ""),
        *([FAST.format(kernels=KERNELS, memory=fast)] if fast else []),
        "    /* The model's memory. */\n" + _zeroed("context", "nn_context", "*nn_target.o", layout.context, MARKED),
        _zeroed("bss", "nn_bss", "*", "ram"),
        DISCARDED,
    ]
    return "\n".join(
        [
            f"/* The memory of {board.name}, made by nnbuild from its board.toml. */",
            f"{board_mark(board)} = 0;\n",
            "MEMORY\n{",
            *regions,
            "}\n",
            f"nn_ram_begin = {ram.origin:#010x};",
            f"nn_ram_end = {ram.origin + ram.length:#010x};",
            *([f"nn_core_stack_bytes = {core_stack(board)};"] if board.cores.runtime else []),
            "",
            "SECTIONS\n{",
            "\n".join(sections) + "}\n",
        ]
    )


def _constants(apart: bool) -> str:
    """Constants follow the code in flash, whatever address they are read at."""
    if not apart:
        return CONSTANTS.format(where="", region="flash")
    where = f"ORIGIN({READ_ELSEWHERE}) + ADDR(.text) + SIZEOF(.text) - ORIGIN(flash) "
    text = CONSTANTS.format(where=where, region=f"{READ_ELSEWHERE} AT > flash")
    at = f"ADDR(.rodata) - ORIGIN({READ_ELSEWHERE}) == LOADADDR(.rodata) - ORIGIN(flash)"
    return f'{text}    ASSERT({at}, "constants lie where they are read")\n'


def _stack(section: str, name: str, size: int) -> str:
    return f"""\
    .{section} (NOLOAD) : ALIGN(8)
    {{
        {name}_low = .;
        . += {size};
        . = ALIGN(8);
        {name}_high = .;
    }} > ram
"""


def _zeroed(section: str, name: str, files: str, memory: str, more: str = "") -> str:
    """A section of zero-initialized variables: those of `files` not yet placed, and more."""
    named = f"\n        {more}" if more else ""
    return f"""\
    .{section} (NOLOAD) : ALIGN(16)
    {{
        {name}_begin = .;
        {files}(.bss .bss.* .sbss .sbss.* COMMON){named}
        . = ALIGN(4);
        {name}_end = .;
    }} > {memory}
"""
