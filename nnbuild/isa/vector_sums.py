"""How the sums that several neighbouring lanes hold of one channel are added up and brought together."""

from __future__ import annotations

from functools import cache

from nnbuild.base.writer import Instruction
from nnbuild.isa.vectors import Vectors

TOGETHER = 4
"""So many vectors at most are added up in one go."""


@cache
def sums(floats: Vectors, depth: int, positions: int, channels: int) -> Instruction:
    """Of each of some vectors, one a position, the sums of every `depth` lanes: the first `channels` of them.

    Those of the first position come first, without a gap. Two vectors are added up for the price of one: half of
    the lanes of a sum of neighbours would be idle.
    """
    names = "abcd"[:positions]
    lines: list[str] = []
    if depth == 2:
        lines.append(f"{floats.type} sum = {_joined(floats, names[0], names[-1])};")
    else:
        first = _joined(floats, names[0], names[min(1, positions - 1)])
        second = _joined(floats, names[2], names[-1]) if positions > 2 else "first"
        lines += [f"const {floats.type} first = {first};", f"{floats.type} sum = {_joined(floats, 'first', second)};"]
    lines += [f"sum = {floats.prefix}_add_ps(sum, {swap});" for swap in _swaps(floats, depth)]
    places = [_place(depth, position, channel) for position in range(positions) for channel in range(channels)]
    if places != list(range(len(places))):
        lines.append(f"sum = {floats.permute('sum', places)};")
    head = f"{floats.type} {{name}}({', '.join(f'{floats.type} {name}' for name in names)})"
    name = f"{floats.name}_sums_of_{depth}_{positions}x{channels}"
    return Instruction(name, head, "\n".join([*lines, "return sum;"]), 1.0 + 1.5 * len(lines) + positions / 2)


def _joined(floats: Vectors, first: str, second: str) -> str:
    """Sums of neighbours within every 128 bits: the two of the first vector, then the two of the second."""
    even, odd = (f"{floats.prefix}_shuffle_ps({first}, {second}, {order})" for order in ("0x88", "0xdd"))
    return f"{floats.prefix}_add_ps({even}, {odd})"


def _swaps(floats: Vectors, depth: int) -> list[str]:
    """For depths of more than 128 bits, the vector with its parts in other places."""
    if floats.lanes == 8:
        return ["_mm256_permute2f128_ps(sum, sum, 1)"] if depth == 8 else []
    return [f"_mm512_shuffle_f32x4(sum, sum, {order})" for order in ("0xb1", "0x4e")[: max(0, depth.bit_length() - 3)]]


def _place(depth: int, position: int, channel: int) -> int:
    """The lane in which a sum is left."""
    if depth == 2:
        return channel // 2 * 4 + position * 2 + channel % 2
    return channel * depth + position
