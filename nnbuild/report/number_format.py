"""Number formats for people, independent of the machine's language and place."""

from __future__ import annotations

BOLD = 1.12
"""Width of bold letters relative to normal ones."""
MINUS, TIMES, NARROW = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}", "\N{NO-BREAK SPACE}"


def whole(number: float) -> str:
    return f"{number:,.0f}"


def signed(number: float, figures: int = 0) -> str:
    return f"{number:+,.{figures}f}".replace("-", MINUS)


def short(number: float) -> str:
    """Three figures and a prefix: 12.6 M."""
    size, prefix = abs(number), ""
    for prefix in ("", "k", "M", "G", "T"):
        if size < 999.5 or prefix == "T":
            break
        size, number = size / 1000, number / 1000
    if not prefix:
        return f"{number:.0f}" if number == int(number) else f"{number:.3g}"
    figures = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{number:.{figures}f}{NARROW}{prefix}"


def kilobytes(size: int) -> str:
    """Small sizes to the byte, larger ones in units of 1,024."""
    if size < 10_000:
        return f"{size:,}{NARROW}B"
    amount, unit = (size / 1024, "KB") if size < 1024 * 1024 else (size / 1024 / 1024, "MB")
    return f"{amount:,.1f}".removesuffix(".0") + f"{NARROW}{unit}"


def percent(share: float, figures: int = 1) -> str:
    """A share that is not exactly 0 or 1 is not rounded to it."""
    text = f"{100 * share:.{figures}f}"
    least = 10.0**-figures
    if share > 0 and float(text) == 0:
        text = f"< {least:.{figures}f}"
    elif share < 1 and float(text) == 100:
        text = f"> {100 - least:.{figures}f}"
    return f"{text}{NARROW}%"


def figures(number: float) -> str:
    """A measured quantity in three figures."""
    return "0" if number == 0 else f"{number:.3g}".replace("-", MINUS)


def duration(cost: float, unit: str, hertz: int) -> str:
    """Cycles and nanoseconds as time; instructions of an emulator have none."""
    if unit not in ("cycles", "ns") or not hertz:
        return ""
    seconds = cost / hertz
    for factor, name in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1 or name == "µs":
            return f"{seconds * factor:.3g}{NARROW}{name}"
    raise AssertionError("the last unit always fits")


_WIDTHS = {
    **dict.fromkeys("ijl|!'.,:;`", 0.34),
    **dict.fromkeys('frtI()[]{}/\\- "\u00a0', 0.42),
    **dict.fromkeys("ceksz_?", 0.6),
    **dict.fromkeys("mMW@%…→", 1.0),
    **dict.fromkeys("w+<>=~", 0.84),
}
"""Widths of letters relative to the font size, for the widest common font."""


def width_of(text: str, size: float) -> float:
    """The maximum width of a text."""
    return size * sum(_WIDTHS.get(each) or _width(each) for each in text)


def _width(letter: str) -> float:
    if letter.isascii():
        return 0.76 if letter.isupper() else 0.64
    return 1.02 if ord(letter) >= 0x1100 else 0.8


def clipped(text: str, width: float, size: float, tail: bool = False) -> str:
    """The part of a text that fits into a width at a font size: both ends, or only the tail, which distinguishes
    names with equal beginnings."""
    if width_of(text, size) <= width:
        return text
    for kept in range(len(text) - 1, 1, -1):
        end = kept if tail else kept // 2
        shown = f"{text[: kept - end]}…{text[len(text) - end :]}"
        if width_of(shown, size) <= width:
            return shown
    return f"…{text[-1:]}"


def middled(text: str, most: int) -> str:
    """A text limited to this many letters; the middle is omitted, because ends distinguish names with equal
    beginnings."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"
