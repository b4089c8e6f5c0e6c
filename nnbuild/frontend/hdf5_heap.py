"""Links and attributes that HDF5 stores densely: the objects of a fractal heap, listed by a B-tree of version 2.

The library stores them so where there are many of them, and where the name of a link is not ASCII.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nnbuild.frontend.hdf5_bytes import NOWHERE, Bytes, Malformed, Unsupported

HUGE_OBJECTS, LINKS, ATTRIBUTES = 1, 5, 8
"""Types of B-trees: of huge objects, and of links and attributes by name."""
MANAGED, HUGE = 0, 1
"""Types of heap objects."""
NODE_OVERHEAD = 10
"""Bytes of a node before and after its records: signature, version, type and checksum."""
HEAD = 13
"""Bytes of a block of a heap before its offset: signature, version and the heap's address."""
MOST_DEPTH = 16

Place = tuple[int, int]
"""(address, size) of an object."""


def objects(file: Bytes, heap: int, tree: int, kind: int) -> Iterator[Place]:
    """Where the links or attributes in a heap are."""
    found = _read_heap(file, heap)
    for at, size in _records(file, tree, kind):
        first = 4 if kind == LINKS else 0
        if size < first + found.id_size + (1 if kind == ATTRIBUTES else 0):
            raise Malformed("a record is too short")
        if kind == ATTRIBUTES and file.integer(at + found.id_size, 1) & 2:
            raise Unsupported("an attribute shared by several objects")
        address, length = found.place(file, at + first)
        file.take(length)
        yield address, length


@dataclass(frozen=True)
class _Heap:
    """A fractal heap: blocks of which each row of `width` has twice the size of the row before; only the second row
    has that of the first. Blocks beyond the largest direct one have rows of their own."""

    address: int
    id_size: int
    head: int
    """Bytes of a direct block before its objects; offsets count them."""
    offset_size: int
    length_size: int
    width: int
    smallest: int
    largest: int
    root: int
    rows: int
    """Of the root; 0 if it is a direct block."""
    huge: dict[int, Place]

    def place(self, file: Bytes, at: int) -> Place:
        """Where the object is whose identifier is at `at`."""
        (first,) = file.numbers("B", at)
        if first >> 6:
            raise Malformed("an identifier of an unsupported version")
        if first >> 4 & 3 == HUGE:
            found = self.huge.get(file.integer(at + 1, min(self.id_size - 1, 8)))
            if found is None:
                raise Malformed("its heap does not have an object")
            return found
        if first >> 4 & 3 != MANAGED:
            raise Unsupported("an object inside its identifier")
        offset = file.integer(at + 1, self.offset_size)
        length = file.integer(at + 1 + self.offset_size, self.length_size)
        block, before, size = self._direct(file, offset)
        if not self.head <= before <= before + length <= size:
            raise Malformed("an object lies outside its block")
        file.bytes_at(block + before, length)
        return block + before, length

    def _direct(self, file: Bytes, offset: int) -> tuple[int, int, int]:
        """(the address of the direct block with an offset, the offset in it, its size)."""
        address, rows, size = self.root, self.rows, self.smallest
        while rows:
            self._expect(file, address, b"FHIB")
            row, column, size, offset = self._cell(rows, offset)
            address = file.integer(address + HEAD + self.offset_size + 8 * (row * self.width + column), 8)
            rows = self._rows_in(size) if size > self.largest else 0
        self._expect(file, address, b"FHDB")
        return address, offset, size

    def _cell(self, rows: int, offset: int) -> tuple[int, int, int, int]:
        """(row, column, size of the block there, offset in it)."""
        for row in range(rows):
            size = self.smallest << max(row - 1, 0)
            if offset < size * self.width:
                return row, offset // size, size, offset % size
            offset -= size * self.width
        raise Malformed("an offset lies outside its heap")

    def _rows_in(self, size: int) -> int:
        """How many rows an indirect block has that stands for `size` bytes."""
        return max((size // (self.smallest * self.width)).bit_length(), 1)

    def _expect(self, file: Bytes, address: int, signature: bytes) -> None:
        file.expect(address, signature)
        if file.integer(address + 5, 8) != self.address:
            raise Malformed("a block of another heap")


def _read_heap(file: Bytes, address: int) -> _Heap:
    file.expect(address, b"FRHP")
    id_size, filters, flags, largest_object = file.numbers("HHBI", address + 5)
    width, smallest, largest, bits, _, root, rows = file.numbers("HQQHHQH", address + 110)
    if filters:
        raise Unsupported("a compressed heap")
    sound = width > 0 and smallest > 0 and smallest <= largest < 1 << 48 and bits <= 64 and rows <= 64
    if not sound or any(size & (size - 1) for size in (width, smallest, largest)):
        raise Malformed("a heap of impossible sizes")
    offset_size, length_size = -(-bits // 8), min(_bytes_for(largest), _bytes_for(largest_object))
    if id_size < 1 + offset_size + length_size:
        raise Malformed("identifiers are too short")
    (tree,) = file.numbers("Q", address + 22)
    huge = dict(_huge_objects(file, tree)) if tree != NOWHERE else {}
    head = HEAD + offset_size + (4 if flags & 2 else 0)
    return _Heap(
        address, id_size, head, offset_size, length_size, width, smallest, largest, root,
        rows, huge,
    )  # fmt: skip


def _huge_objects(file: Bytes, tree: int) -> Iterator[tuple[int, Place]]:
    """Objects outside the blocks, by number."""
    for at, size in _records(file, tree, HUGE_OBJECTS):
        if size != 24:
            raise Malformed("a record is too short")
        address, length, number = file.numbers("QQQ", at)
        file.bytes_at(address, length)
        yield number, (address, length)


def _records(file: Bytes, tree: int, kind: int) -> Iterator[Place]:
    """The records of a B-tree of version 2, in no particular order."""
    file.expect(tree, b"BTHD")
    _, found, node, size, depth = file.numbers("BBIHH", tree + 4)
    root, count = file.numbers("QH", tree + 16)
    if found != kind:
        raise Unsupported("another kind of index") if found > 11 else Malformed("a tree of another kind")
    if not size or node < NODE_OVERHEAD + size or depth > MOST_DEPTH:
        raise Malformed("a tree of impossible sizes")
    counts = _count_sizes(node, size, depth)
    waiting = [(root, count, depth)] if root != NOWHERE else []
    while waiting:
        at, count, level = waiting.pop()
        file.step()
        file.expect(at, b"BTIN" if level else b"BTLF")
        file.bytes_at(at + 6, count * size)
        for number in range(count):
            file.step()
            yield at + 6 + number * size, size
        child, step = at + 6 + count * size, 8 + counts[0] + counts[level - 1] * (level > 1)
        for below in range(child, child + (count + 1) * step if level else child, step):
            file.step()
            waiting.append((file.integer(below, 8), file.integer(below + 8, counts[0]), level - 1))


def _count_sizes(node: int, size: int, depth: int) -> list[int]:
    """Bytes of a count of records: of a leaf, then of whole trees of each depth from 1."""
    most = (node - NODE_OVERHEAD) // size
    total, sizes = most, [_bytes_for(most)]
    for level in range(1, depth + 1):
        pointer = 8 + sizes[0] + (sizes[-1] if level > 1 else 0)
        here = max((node - NODE_OVERHEAD - pointer) // (size + pointer), 0)
        total = (here + 1) * total + here
        sizes.append(_bytes_for(total))
    return sizes


def _bytes_for(most: int) -> int:
    """Bytes of numbers up to `most`, as the library counts them."""
    return (max(most, 1).bit_length() - 1) // 8 + 1
