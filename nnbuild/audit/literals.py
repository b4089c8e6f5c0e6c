"""ARM's literal pools: addresses are kept as data between functions, and the line that matters is that of the load."""

from __future__ import annotations

import re
from functools import cached_property

from nnbuild.audit.code import Code, find_capstone
from nnbuild.audit.places import Locator

LOAD = re.compile(r"^(?:r\d+|sb|sl|fp|ip|lr|pc|s\d+|d\d+), \[pc(?:, #(-?(?:0x[0-9a-f]+|\d+)))?\]$")


class LiteralPools:
    """For one file: which instruction loads a word of a literal pool."""

    def __init__(self, locator: Locator) -> None:
        self._locator = locator

    @cached_property
    def _loads(self) -> dict[int, int]:
        """Address of the first load of each pool word."""
        if self._locator.file.machine != "arm" or find_capstone() is None:
            return {}
        code, found = Code(self._locator), dict[int, int]()
        for chunk in code.chunks():
            ahead = 4 if chunk.thumb else 8
            for address, _, mnemonic, operands in code.lines_of(chunk):
                match = LOAD.match(operands) if mnemonic.startswith(("ldr", "vldr")) else None
                if match is not None:
                    target = ((address + ahead) & ~3) + int(match[1] or "0", 0)
                    found.setdefault(target, address)
        return found

    def user(self, address: int) -> int:
        """The instruction that loads the word at `address`, or `address` itself where that is no literal."""
        return self._loads.get(address, address)
