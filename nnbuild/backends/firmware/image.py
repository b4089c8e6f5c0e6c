"""Makes images for flash tools from a linked ELF: plain bytes, and Intel HEX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from nnbuild.base.errors import NnbuildError
from nnbuild.board.board import Memory

ERASED = b"\xff"
HEX_BYTES = 16
"""Data bytes per line of a .hex file."""


@dataclass(frozen=True)
class Image:
    """The content of the flash: bytes from an address on, gaps filled with the value of erased flash."""

    address: int
    data: bytes
    entry: int


def read_image(elf: Path) -> Image:
    """The loaded bytes of a program, by load address."""
    with elf.open("rb") as file:
        program = ELFFile(file)
        pieces = sorted(
            (int(segment["p_paddr"]), segment.data()[: int(segment["p_filesz"])])
            for segment in program.iter_segments("PT_LOAD")
            if segment["p_filesz"]
        )
        entry = int(program["e_entry"])
    if not pieces:
        raise NnbuildError(str(elf), "it has nothing to load.", "Link it again.")
    start = pieces[0][0]
    data = bytearray()
    for address, piece in pieces:
        data += ERASED * (address - start - len(data))
        data[address - start :] = piece
    return Image(start, bytes(data), entry)


def marks(elf: Path, beginning: str) -> list[str]:
    """The names of its symbols with this prefix."""
    with elf.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        symbols = table.iter_symbols() if isinstance(table, SymbolTableSection) else ()
        return [symbol.name for symbol in symbols if symbol.name.startswith(beginning)]


def addresses(elf: Path, names: Iterable[str]) -> dict[str, int]:
    """Addresses of these symbols; code addresses are even, also for Thumb code."""
    wanted = set(names)
    with elf.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        symbols = table.iter_symbols() if isinstance(table, SymbolTableSection) else ()
        found = {symbol.name: int(symbol["st_value"]) & ~1 for symbol in symbols if symbol.name in wanted}
    missing = sorted(wanted - found.keys())
    if missing:
        raise NnbuildError(str(elf), f"it has no symbol {missing[0]}.", "Build it again with this version.")
    return found


def used_bytes(elf: Path, memories: Sequence[Memory]) -> dict[str, int]:
    """Bytes of each memory that the program uses; initial values of variables occupy flash as well as RAM."""
    used = {memory.name: 0 for memory in memories}
    with elf.open("rb") as file:
        for section in ELFFile(file).iter_sections():
            home = next((memory for memory in memories if section["sh_addr"] in memory), None)
            if home is None or not section["sh_flags"] & SH_FLAGS.SHF_ALLOC:
                continue
            used[home.name] += int(section["sh_size"])
            if home.name != "flash" and section["sh_type"] != "SHT_NOBITS":
                used["flash"] += int(section["sh_size"])
    return used


def hex_lines(image: Image) -> Iterator[str]:
    """Intel HEX with 32-bit addresses."""
    upper = -1
    for at in range(0, len(image.data), HEX_BYTES):
        address = image.address + at
        if address >> 16 != upper:
            upper = address >> 16
            yield _record(0, 4, upper.to_bytes(2, "big"))
        yield _record(address & 0xFFFF, 0, image.data[at : at + HEX_BYTES])
    yield _record(0, 5, image.entry.to_bytes(4, "big"))
    yield _record(0, 1, b"")


def _record(address: int, kind: int, data: bytes) -> str:
    body = bytes([len(data)]) + address.to_bytes(2, "big") + bytes([kind]) + data
    return f":{(body + bytes([-sum(body) & 0xFF])).hex().upper()}"


def write_images(elf: Path) -> list[Path]:
    """The .bin and .hex beside an ELF."""
    image = read_image(elf)
    binary, text = elf.with_suffix(".bin"), elf.with_suffix(".hex")
    binary.write_bytes(image.data)
    text.write_text("".join(f"{line}\n" for line in hex_lines(image)), "utf-8")
    return [binary, text]
