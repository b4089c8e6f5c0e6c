"""ARM's literal pools: addresses are stored as data between functions, and the relevant line is that of the load."""

from __future__ import annotations

import re

from nnbuild.audit.code import Code, find_capstone
from nnbuild.audit.source_locations import Extent, Locator

LOAD = re.compile(r"^\w+, \[pc(?:, #(-?(?:0x[0-9a-f]+|\d+)))?\]$")


class LiteralPools:
    """For one file: the instruction that loads each word of a literal pool."""

    def __init__(self, locator: Locator) -> None:
        self._locator = locator
        self._code = Code(locator)
        self._loads: dict[int, dict[int, int]] = {}

    def user(self, address: int) -> int:
        """The instruction that loads the word at `address`, or `address` itself if it is not a literal."""
        if self._locator.file.machine != "arm" or not self._locator.is_data_in_code(address):
            return address
        function = self._locator.function_at(address)
        if function is None or find_capstone() is None:
            return address
        if function.start not in self._loads:
            self._loads[function.start] = self._loads_of(function)
        return self._loads[function.start].get(address, address)

    def _loads_of(self, function: Extent) -> dict[int, int]:
        """The first load of each word that the function loads relative to its code."""
        found: dict[int, int] = {}
        for chunk in self._code.chunks_of(function):
            ahead = 4 if chunk.thumb else 8
            for address, _, mnemonic, operands in self._code.lines_of(chunk):
                match = LOAD.match(operands) if mnemonic.startswith(("ldr", "vldr")) else None
                if match is not None:
                    target = ((address + ahead) & ~3) + int(match[1] or "0", 0)
                    found.setdefault(target, address)
        return found
