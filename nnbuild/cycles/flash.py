"""Flash that is slower than the core, with its caches."""

from __future__ import annotations

from nnbuild.board.board import FlashSpeed


class Cache:
    """The most recently used lines, each with its cached reads."""

    def __init__(self, lines: int, reads: int) -> None:
        self._lines, self._reads = lines, reads
        self._held: dict[int, int] = {}

    def has(self, unit: int) -> bool:
        line, bit = unit // self._reads, 1 << unit % self._reads
        held = self._held.pop(line, None)
        if held is None:
            return False
        self._held[line] = held
        return bool(held & bit)

    def knows(self, unit: int) -> bool:
        """Looks up without counting as a use."""
        return bool(self._held.get(unit // self._reads, 0) & 1 << unit % self._reads)

    def take(self, unit: int) -> None:
        if not self._lines:
            return
        line, bit = unit // self._reads, 1 << unit % self._reads
        self._held[line] = self._held.pop(line, 0) | bit
        if len(self._held) > self._lines:
            del self._held[next(iter(self._held))]


class Port:
    """Access to the flash: one read at a time, for code, for data, and prefetching code."""

    def __init__(self, flash: FlashSpeed) -> None:
        self._flash = flash
        reads = flash.line // flash.read
        self._code, self._data = Cache(flash.code_lines, reads), Cache(flash.data_lines, reads)
        self._current = self._ahead = -1
        self._ready = self._free = 0

    def fetch(self, unit: int, now: int) -> int:
        """Wait cycles of code for one read."""
        if unit == self._current:
            return 0
        self._current = unit
        if self._code.has(unit):
            self._read_ahead(unit + 1, now)
            return 0
        if unit == self._ahead:
            stall = max(0, self._ready - now)
        else:
            start = max(now, self._free)
            self._free = start + self._flash.wait + 1
            stall = start + self._flash.wait - now
        self._code.take(unit)
        self._read_ahead(unit + 1, now + stall)
        return stall

    def _read_ahead(self, unit: int, now: int) -> None:
        if not self._flash.prefetch or unit == self._ahead or self._code.knows(unit):
            return
        self._ahead = unit
        self._free = self._ready = max(now, self._free) + self._flash.wait + 1

    def load(self, unit: int, now: int) -> int:
        """Wait cycles of a data load."""
        if self._data.has(unit):
            return 0
        start = max(now, self._free)
        self._free = start + self._flash.wait + 1
        self._data.take(unit)
        return start + self._flash.wait - now
