"""The next of some values in descending order, without a list of those that came before: it is smaller than the last
one, or equal with a higher index."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa import c99


def compared(w: Writer, kind: str, others: float = 0, times: float = 1) -> None:
    """Counts comparisons of values, with the instructions around one."""
    row = c99.LARGER_FLOAT if kind == "float" else c99.LARGER
    w.bill((row.cycles + others) * times, floats=row.floats * times)


def declare_last(w: Writer, kind: str, values: str) -> None:
    """None yet."""
    w(w.use(c99.LOAD_AS, kind, "last", f"{values}[0]"))
    w("int32_t last_at = -1;")


def declare_next(w: Writer, kind: str, values: str, count: int, condition: str = "") -> None:
    """Declares the next value as `next`, which meets the condition on `x`, and its index as `next_at`, -1 if there is
    none; it becomes the last one."""
    w(f"{kind} next = {values}[0];")
    w("int32_t next_at = -1;")
    with w.loop("j", count):
        compared(w, kind, 6)
        w(w.use(c99.LOAD_AS, f"const {kind}", "x", f"{values}[j]"))
        behind = f"{condition}(last_at < 0 || x < last || (x == last && j > last_at))"
        with w.block(f"if ({behind} && (next_at < 0 || x > next))"):
            w("next = x;")
            w("next_at = j;")
    w("last = next;")
    w("last_at = next_at;")
