"""Reads and writes of the executed instructions. Known memory is a table of whole words by address."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nnbuild.bound.image import Image

Words = dict[int, int]


class WildStore(Exception):
    """A store outside the program's variables, or to an unknown address; with the instruction's address."""

    def __init__(self, address: int, place: int | None) -> None:
        super().__init__(address, place)
        self.address, self.place = address, place


class Memory:
    """Functions that blocks call: L4, L2 and L1 to load, S4, S2 and S1 to store. Constants come from the program."""

    def __init__(self, image: Image) -> None:
        self._constant = [(region.start, region.end, region.data) for region in image.constant]
        self._writable = list(image.writable)
        self._lowest = 0
        self.functions: Mapping[str, Callable[..., Any]] = {
            "L4": self._load4(),
            "L2": self._load2,
            "L1": self._load1,
            "S4": self._store4,
            "S2": self._narrow(2),
            "S1": self._narrow(1),
        }

    @contextmanager
    def only_below(self, stack: int) -> Iterator[Callable[[], int]]:
        """Allows stores only on the stack below this address; yields the lowest address written."""
        writable, lowest = self._writable, self._lowest
        self._writable = [(start, min(end, stack)) for start, end in writable if start < stack <= end]
        self._lowest = stack
        try:
            yield lambda: self._lowest
            # Counts as a write of the surrounding function, too.
            lowest = min(lowest, self._lowest)
        finally:
            self._writable, self._lowest = writable, lowest

    def written(self, lowest: int) -> None:
        """Records that stores known from elsewhere reached down to this address."""
        self._lowest = min(self._lowest, lowest)

    def _load4(self) -> Callable[[Words, int], int | None]:
        constant, from_bytes = self._constant, int.from_bytes

        def load(words: Words, place: int) -> int | None:
            for start, end, data in constant:
                if start <= place and place + 4 <= end:
                    return from_bytes(data[place - start : place - start + 4], "little")
            return None if place & 3 else words.get(place)

        return load

    def _fixed(self, place: int, size: int) -> int | None:
        for start, end, data in self._constant:
            if start <= place and place + size <= end:
                return int.from_bytes(data[place - start : place - start + size], "little")
        return None

    def _load2(self, words: Words, place: int) -> int | None:
        word = words.get(place & ~3)
        if word is None:
            return self._fixed(place, 2)
        return word >> 8 * (place & 3) & 0xFFFF if place & 3 != 3 else None

    def _load1(self, words: Words, place: int) -> int | None:
        word = words.get(place & ~3)
        return self._fixed(place, 1) if word is None else word >> 8 * (place & 3) & 0xFF

    def _check(self, place: int | None, size: int, address: int) -> int:
        if place is not None:
            for start, end in self._writable:
                if start <= place and place + size <= end:
                    if place < self._lowest:
                        self._lowest = place
                    return place
        raise WildStore(address, place)

    def _store4(self, words: Words, place: int | None, value: int | None, address: int) -> None:
        place = self._check(place, 4, address)
        if value is not None and not place & 3:
            words[place] = value
        else:
            words.pop(place & ~3, None)
            words.pop((place + 3) & ~3, None)

    def _narrow(self, size: int) -> Callable[[Words, int | None, int | None, int], None]:
        mask = (1 << 8 * size) - 1

        def store(words: Words, place: int | None, value: int | None, address: int) -> None:
            place = self._check(place, size, address)
            base, shift = place & ~3, 8 * (place & 3)
            old = words.get(base)
            if old is not None and value is not None and shift + 8 * size <= 32:
                words[base] = old & ~(mask << shift) | (value & mask) << shift
            else:
                words.pop(base, None)
                words.pop((place + size - 1) & ~3, None)

        return store
