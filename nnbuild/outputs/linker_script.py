"""The linker script of a firmware, made from the board's memory table."""

from __future__ import annotations

from nnbuild.board import Board
from nnbuild.outputs.layout import HANDLER_STACK, Layout

<<<<<<< HEAD

def linker_script(board: Board, layout: Layout) -> str:
    """Code and constants in flash. The stack lies lowest in RAM: what overflows it leaves the RAM and faults."""
    regions = "\n".join(
        f"    {memory.name} : ORIGIN = {memory.origin:#010x}, LENGTH = {memory.length}" for memory in board.memories
    )
    ram = board.memory("ram")
    return f"""\
/* The memory of {board.name}, made by nnbuild from its board.toml. */
MEMORY
{{
{regions}
}}

nn_ram_begin = {ram.origin:#010x};
nn_ram_end = {ram.origin + ram.length:#010x};

SECTIONS
{{
{CODE}
{_stacks(layout)}
{DATA}
{_model_memory(layout)}
{REST}
}}
"""


def _stacks(layout: Layout) -> str:
    return f"""\
    .stack (NOLOAD) : ALIGN(8)
    {{
        nn_stack_low = .;
        . += {layout.stack};
        . = ALIGN(8);
        nn_stack_high = .;
    }} > ram

    .handler_stack (NOLOAD) : ALIGN(8)
    {{
        . += {HANDLER_STACK};
        . = ALIGN(8);
        nn_handler_stack_high = .;
    }} > ram
"""


def _model_memory(layout: Layout) -> str:
    return f"""\
    /* The model's memory. */
    .context (NOLOAD) : ALIGN(16)
    {{
        nn_context_begin = .;
        *nn_target.o(.bss .bss.* .sbss .sbss.*)
        . = ALIGN(4);
        nn_context_end = .;
    }} > {layout.context}
"""


CODE = """\
    .text : ALIGN(16)
    {
        KEEP(*(.vectors))
        *(.text .text.*)
    } > flash

    .rodata : ALIGN(16)
    {
        *(.rodata .rodata.*)
        . = ALIGN(4);
    } > flash
"""

=======
FLASH = """\
    .text : ALIGN(16)
    {
        KEEP(*(.vectors))
        *(.text .text.*)
    } > flash

    .rodata : ALIGN(16)
    {
        *(.rodata .rodata.*)
        . = ALIGN(4);
    } > flash
"""

>>>>>>> stm32
DATA = """\
    .data : ALIGN(8)
    {
        nn_data_begin = .;
        *(.data .data.* .sdata .sdata.*)
        . = ALIGN(4);
        nn_data_end = .;
    } > ram AT > flash
    nn_data_load = LOADADDR(.data);
"""

<<<<<<< HEAD
REST = """\
    .bss (NOLOAD) : ALIGN(8)
    {
        nn_bss_begin = .;
        *(.bss .bss.* .sbss .sbss.* COMMON)
        . = ALIGN(4);
        nn_bss_end = .;
    } > ram

    /DISCARD/ :
    {
        *(.ARM.exidx* .ARM.extab* .eh_frame* .note.*)
    }"""
=======
DISCARDED = """\
    /DISCARD/ :
    {
        *(.ARM.exidx* .ARM.extab* .eh_frame* .note.*)
    }
"""


def linker_script(board: Board, layout: Layout) -> str:
    """Code and constants in flash. The stack lies lowest in RAM: what overflows it leaves the RAM and faults."""
    ram = board.memory("ram")
    regions = [
        f"    {memory.name} : ORIGIN = {memory.origin:#010x}, LENGTH = {memory.length}" for memory in board.memories
    ]
    sections = [
        FLASH,
        _stack("stack", "nn_stack", layout.stack),
        _stack("handler_stack", "nn_handler_stack", HANDLER_STACK),
        DATA,
        "    /* The model's memory. */\n" + _zeroed("context", "nn_context", "*nn_target.o", layout.context),
        _zeroed("bss", "nn_bss", "*", "ram"),
        DISCARDED,
    ]
    return "\n".join(
        [
            f"/* The memory of {board.name}, made by nnbuild from its board.toml. */",
            "MEMORY\n{",
            *regions,
            "}\n",
            f"nn_ram_begin = {ram.origin:#010x};",
            f"nn_ram_end = {ram.origin + ram.length:#010x};\n",
            "SECTIONS\n{",
            "\n".join(sections) + "}\n",
        ]
    )


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


def _zeroed(section: str, name: str, files: str, memory: str) -> str:
    """Variables that start as zero: those of these files that no section before has taken."""
    return f"""\
    .{section} (NOLOAD) : ALIGN(16)
    {{
        {name}_begin = .;
        {files}(.bss .bss.* .sbss .sbss.* COMMON)
        . = ALIGN(4);
        {name}_end = .;
    }} > {memory}
"""
>>>>>>> stm32
