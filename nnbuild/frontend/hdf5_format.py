"""The subset of the HDF5 file format that Keras uses, with every bound checked.

The HDF5 library is not used: a damaged file can make it run for minutes, take gigabytes or crash. Here a file is bytes,
nothing is read twice, and any inconsistency raises `Malformed`. The names below follow the "HDF5 File Format
Specification"; offsets and lengths are always 8 bytes here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from nnbuild.frontend.hdf5_bytes import NOWHERE, Bytes, Malformed, Unsupported
from nnbuild.frontend.hdf5_heap import ATTRIBUTES, LINKS, objects

SIGNATURE = b"\x89HDF\r\n\x1a\n"

DATASPACE, LINK_INFO, DATATYPE, LINK, EXTERNAL_FILES, LAYOUT = 0x01, 0x02, 0x03, 0x06, 0x07, 0x08
FILTERS, ATTRIBUTE, CONTINUATION, SYMBOL_TABLE, ATTRIBUTE_INFO = 0x0B, 0x0C, 0x10, 0x11, 0x15

INTEGER, FLOAT, STRING, OPAQUE, VARIABLE = 0, 1, 3, 5, 9
"""Classes of data types."""


@dataclass(frozen=True)
class DataType:
    """`number` is the numpy name of a floating-point type; `is_text` strings have `size` bytes or are variable."""

    kind: int
    size: int
    number: str = ""
    is_text: bool = False
    is_byte: bool = False
    """A signed 8-bit integer."""


@dataclass(frozen=True)
class Message:
    kind: int
    at: int
    size: int
    shared: bool


@dataclass(frozen=True)
class Member:
    """A member of a group: an object's address, or None for a link to elsewhere."""

    address: int | None


@dataclass(frozen=True)
class Values:
    """Location of the values of an attribute or array."""

    shape: tuple[int, ...] | None
    type: DataType
    at: int
    size: int
    plain: bool = True


class Hdf5(Bytes):
    def __init__(self, data: memoryview) -> None:
        super().__init__(data)
        self._headers: dict[int, list[Message]] = {}
        self._groups: dict[int, dict[str, Member]] = {}
        self._heaps: dict[int, dict[int, tuple[int, int]]] = {}
        self._attributes: dict[int, dict[bytes, Message]] = {}
        self.root = self._superblock()

    def _superblock(self) -> int:
        """The address of the root group."""
        self.expect(0, SIGNATURE)
        (version,) = self.numbers("B", 8)
        if version in (0, 1):
            sizes, at = self.numbers("BB", 13), 24 + 4 * version
            base, _, end, _, _, root = self.numbers("QQQQQQ", at)
        elif version in (2, 3):
            sizes = self.numbers("BB", 9)
            base, _, end, root = self.numbers("QQQQ", 12)
        else:
            raise Malformed(f"there is no version {version}")
        if sizes != (8, 8) or base != 0:
            raise Unsupported("addresses of an unsupported size")
        if end > len(self.data):
            raise Malformed("its end is missing")
        return root

    def messages(self, address: int) -> list[Message]:
        """The header messages of an object."""
        if address not in self._headers:
            self._headers[address] = list(self._messages(address))
        return self._headers[address]

    def _messages(self, address: int) -> Iterator[Message]:
        second = self.begins(address, b"OHDR")
        if second:
            version, flags = self.numbers("BB", address + 4)
            at = address + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
            width = 1 << (flags & 3)
            blocks = [(at + width, self.integer(at, width))]
        else:
            version, _, _, _, size = self.numbers("BBHII", address)
            flags, blocks = 0, [(address + 16, size)]
        if version != 1 + second:
            raise Malformed("an object has no header")
        while blocks:
            at, size = blocks.pop()
            for message in self._block(at, size, second, bool(flags & 4)):
                if message.kind == CONTINUATION:
                    more, length = self.numbers("QQ", message.at)
                    if second:
                        self.expect(more, b"OCHK")
                        more, length = more + 4, length - 8
                    blocks.append((more, length))
                yield message

    def _block(self, at: int, size: int, second: bool, ordered: bool) -> Iterator[Message]:
        """The messages of one block; the rest is too small for another."""
        end, head = at + size, (4 + 2 * ordered if second else 8)
        self.bytes_at(at, size)
        while at + head <= end:
            self.step()
            kind, length, flags = self.numbers("BHB" if second else "HHB", at)
            if at + head + length > end:
                raise Malformed("a message is longer than its header")
            yield Message(kind, at + head, length, bool(flags & 2))
            at += head + length

    def members(self, address: int) -> dict[str, Member]:
        """A group's members by name."""
        if address not in self._groups:
            self._groups[address] = dict(self._members(address))
        return self._groups[address]

    def is_group(self, address: int) -> bool:
        return any(message.kind in (SYMBOL_TABLE, LINK_INFO, LINK) for message in self.messages(address))

    def _members(self, address: int) -> Iterator[tuple[str, Member]]:
        for message in self.messages(address):
            if message.kind == SYMBOL_TABLE:
                yield from self._symbols(*self.numbers("QQ", message.at))
            elif message.kind == LINK:
                yield self._link(message.at, message.size)
            elif message.kind == LINK_INFO:
                _, flags = self.numbers("BB", message.at)
                heap, tree = self.numbers("QQ", message.at + 2 + (8 if flags & 1 else 0))
                if heap != NOWHERE:
                    yield from (self._link(*place) for place in objects(self, heap, tree, LINKS))

    def _link(self, at: int, most: int) -> tuple[str, Member]:
        version, flags = self.numbers("BB", at)
        end = at + most
        if version != 1:
            raise Malformed("a link of an unsupported version")
        at += 2
        kind = self.integer(at, 1) if flags & 8 else 0
        at += (1 if flags & 8 else 0) + (8 if flags & 4 else 0) + (1 if flags & 0x10 else 0)
        width = 1 << (flags & 3)
        size = self.integer(at, width)
        if at + width + size > end:
            raise Malformed("a link is longer than its message")
        name = self.text(self.bytes_at(at + width, size))
        return name, Member(self.integer(at + width + size, 8) if kind == 0 else None)

    def _symbols(self, tree: int, heap: int) -> Iterator[tuple[str, Member]]:
        """Members of an old-style group: a B-tree of symbol tables, and a heap of names."""
        self.expect(heap, b"HEAP")
        size, _, names = self.numbers("QQQ", heap + 8)
        self.bytes_at(names, size)
        waiting = [tree]
        while waiting:
            at = waiting.pop()
            self.step()
            if self.begins(at, b"TREE"):
                (count,) = self.numbers("H", at + 6)
                children = self.numbers(f"{2 * count}Q", at + 24)[1::2]
                waiting.extend(reversed(children))
                continue
            self.expect(at, b"SNOD")
            (count,) = self.numbers("H", at + 6)
            for entry in range(at + 8, at + 8 + 40 * count, 40):
                self.step()
                name, address, cached = self.numbers("QQI", entry)
                yield self._name(names, size, name), Member(None if cached == 2 else address)

    def _name(self, names: int, size: int, offset: int) -> str:
        if offset >= size:
            raise Malformed("a name lies outside its heap")
        whole = bytes(self.bytes_at(names + offset, min(size - offset, 4096)))
        return self.text(whole.partition(b"\0")[0])

    def text(self, data: bytes | memoryview) -> str:
        return bytes(data).decode("utf-8", "replace")

    def shape(self, at: int) -> tuple[int, ...] | None:
        """The sizes in a dataspace message; None for a null dataspace."""
        version, rank, _, kind = self.numbers("BBBB", at)
        if version not in (1, 2) or rank > 32:
            raise Malformed("a dataspace of an unsupported version")
        if version == 2 and kind == 2:
            return None
        return self.numbers(f"{rank}Q", at + (8 if version == 1 else 4))

    def type(self, at: int) -> DataType:
        kind, bits, _, _, size = self.numbers("BBBBI", at)
        kind &= 0x0F
        if kind == FLOAT:
            _, _, _, exponent, _, mantissa = self.numbers("HHBBBB", at + 8)
            known = {(2, 5, 10): "f2", (4, 8, 23): "f4", (8, 11, 52): "f8"}.get((size, exponent, mantissa), "")
            return DataType(kind, size, (">" if bits & 1 else "<") + known if known and not bits & 0x40 else "")
        if kind == VARIABLE:
            return DataType(kind, size, is_text=bits & 0x0F == 1 and size == 16)
        return DataType(kind, size, is_text=kind == STRING, is_byte=kind == INTEGER and size == 1 and bits & 8 == 8)

    def attribute(self, address: int, name: str) -> Values | None:
        """An object's attribute; None if missing."""
        if address not in self._attributes:
            named = ((self._attribute_name(message)[0], message) for message in self._each_attribute(address))
            self._attributes[address] = dict(named)
        found = self._attributes[address].get(name.encode())
        return self._attribute(found) if found is not None else None

    def _each_attribute(self, address: int) -> Iterator[Message]:
        """The attributes in an object's header, and those in its heap."""
        for message in self.messages(address):
            if message.kind == ATTRIBUTE:
                yield message
            if message.kind == ATTRIBUTE_INFO:
                _, flags = self.numbers("BB", message.at)
                heap, tree = self.numbers("QQ", message.at + 2 + (2 if flags & 1 else 0))
                if heap != NOWHERE:
                    for at, size in objects(self, heap, tree, ATTRIBUTES):
                        yield Message(ATTRIBUTE, at, size, False)

    def _attribute_name(self, message: Message) -> tuple[bytes, int]:
        """(an attribute's name, its position)."""
        version, _, size = self.numbers("BBH", message.at)
        at = message.at + (9 if version == 3 else 8)
        if at + size > message.at + message.size:
            raise Malformed("an attribute is longer than its message")
        return bytes(self.bytes_at(at, size)).rstrip(b"\0"), at

    def _attribute(self, message: Message) -> Values:
        version, flags, name, kind, space = self.numbers("BBHHH", message.at)
        if version not in (1, 2, 3) or (flags & 3 and version > 1) or message.shared:
            raise Unsupported("an attribute with a shared description")
        _, at = self._attribute_name(message)
        unit = 8 if version == 1 else 1
        name, kind, space = (-(-size // unit) * unit for size in (name, kind, space))
        shape, found = self.shape(at + name + kind), self.type(at + name)
        data = at + name + kind + space
        size = prod(shape or ()) * found.size if shape is not None else 0
        if data + size > message.at + message.size:
            raise Malformed("an attribute is longer than its message")
        return Values(shape, found, data, size)

    def strings(self, values: Values) -> Iterator[memoryview]:
        """Yields the strings of an attribute."""
        if not values.type.is_text:
            raise Malformed("an attribute is not a string")
        for number in range(prod(values.shape) if values.shape is not None else 0):
            at = values.at + number * values.type.size
            if values.type.kind == STRING:
                yield self.bytes_at(at, values.type.size)
            else:
                length, heap, index = self.numbers("IQI", at)
                yield self._heap_object(heap, index, length)

    def _heap_object(self, address: int, index: int, length: int) -> memoryview:
        """An object of a global heap, which stores variable-length strings."""
        if length == 0:
            return self.bytes_at(0, 0)
        if address not in self._heaps:
            self._heaps[address] = dict(self._heap(address))
        at, size = self._heaps[address].get(index, (0, 0))
        if length > size:
            raise Malformed("a string is longer than its heap")
        return self.bytes_at(at, length)

    def _heap(self, address: int) -> Iterator[tuple[int, tuple[int, int]]]:
        self.expect(address, b"GCOL")
        (whole,) = self.numbers("Q", address + 8)
        self.bytes_at(address, whole)
        at = address + 16
        while at + 16 <= address + whole:
            self.step()
            index, _, _, size = self.numbers("HHIQ", at)
            if index == 0:  # the free space at the heap's end
                return
            self.bytes_at(at + 16, size)
            yield index, (at + 16, size)
            at += 16 + -(-size // 8) * 8

    def array(self, address: int) -> Values | None:
        """The values of a dataset; None for any other object."""
        found = {message.kind: message for message in self.messages(address)}
        if not {DATASPACE, DATATYPE, LAYOUT} <= found.keys():
            return None
        plain = not found.keys() & {FILTERS, EXTERNAL_FILES} and not found[DATATYPE].shared
        shape, kind = self.shape(found[DATASPACE].at), self.type(found[DATATYPE].at)
        layout = found[LAYOUT].at
        version, storage = self.numbers("BB", layout)
        if version not in (3, 4) or storage > 1:
            return Values(shape, kind, 0, 0, plain=False)
        if storage == 0:
            (size,) = self.numbers("H", layout + 2)
            return Values(shape, kind, layout + 4, size, plain)
        at, size = self.numbers("QQ", layout + 2)
        return Values(shape, kind, at, 0 if at == NOWHERE else size, plain)
