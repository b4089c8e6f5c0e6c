"""What the writer makes of loops, conditions and constants that are known while it prints."""

from __future__ import annotations

import pytest

from nnbuild.base.c_folding import folded
from nnbuild.base.writer import Instruction, Writer


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("10 * 2 + x", "20 + x"),
        ("(y * 7 + 0) * 48", "y * 336"),
        ("in + ((top + ky) * 14 + 0 * 2) * 24 + c", "in + (top + ky) * 336 + c"),
        ("to[16 + 1] = a + 4 + 8", "to[17] = a + 12"),
        ("top < 0 ? -top : 0", "0"),
        ("4 - top < 2 ? 4 - top : 3", "4 - top < 2 ? 4 - top : 3"),
        ("1 && a < b || 0", "a < b"),
        ("(a & 3) | (b << (2 + 1))", "(a & 3) | (b << 3)"),
        ("line + x % 2 * 192", "line + x % 2 * 192"),
        ("x - (y + 1 - 1)", "x - y"),
        ("(x - 1 + 0) << (n - 1)", "(x - 1) << (n - 1)"),
        ("(a < b) == (c < d + 0)", "(a < b) == (c < d)"),
        ("(a ? b : c + 0) ? 1 : 2", "(a ? b : c) ? 1 : 2"),
        ("x * -1 + 23", "-x + 23"),
        ("f(a + 0, (const float *)(b + 2 + 2))", "f(a, (const float *)(b + 4))"),
        ("2.0f * 1.5f * x", "2.0f * 1.5f * x"),
        ("0x80000000U - 1", "0x80000000U - 1"),
        ("2147483647 + 1 + x", "2147483647 + 1 + x"),
        ("(int64_t)1 << 30", "(int64_t)1 << 30"),
    ],
)
def test_expressions_fold(text: str, wanted: str) -> None:
    assert folded(text, {"top": (0, 3)}) == wanted


def test_a_loop_of_one_trip_leaves_its_statements() -> None:
    w = Writer("m")
    with w.loop("i", 1), w.loop("k", 8, step=8):
        w("out[i * 4 + k] = in[i];")
    assert str(w) == "out[0] = in[0];\n"


def test_a_loop_of_no_trip_leaves_nothing() -> None:
    w = Writer("m")
    with w.loop("i", 0):
        w(w.helper("expf", "x") + ";")
        w(w.call(Instruction("sum", "int {name}(int a)", "return a;", 1), "x") + ";")
    assert (str(w).strip(), w.helpers, w.instructions, w.cycles) == ("", set(), {}, 0)


def test_a_share_of_an_index_whose_end_is_not_known() -> None:
    w = Writer("m")
    with w.loop("piece", "end", start="begin", trips=8):
        w("const int32_t y = piece / 2 * 2;")
        w("f(y);")
    assert "    const int32_t y = piece / 2 * 2;\n" in str(w)


def test_a_constant_is_printed_where_it_is_used() -> None:
    w = Writer("m")
    w("const int32_t run = (3 - 1) * 4;")
    with w.loop("i", "run", trips=8):
        w("x += a[i + run];")
    assert str(w) == "for (int32_t i = 0; i < 8; ++i) {\n    x += a[i + 8];\n}\n"


def test_what_is_declared_in_a_block_of_its_own_gets_its_own_name() -> None:
    w = Writer("m")
    for at in range(2):
        with w.block(""):
            w(f"const float *row = in + {at};")
            w("x += row[1] + arrow;")
    assert str(w).splitlines() == [
        "const float *row = in;",
        "x += row[1] + arrow;",
        "const float *row_2 = in + 1;",
        "x += row_2[1] + arrow;",
    ]


def test_known_conditions_choose() -> None:
    w = Writer("m")
    with w.loop("y", 4):
        w("const int32_t top = y * 2 + 1;")
        with w.block("if (top < 0)"):
            w("never();")
        with w.block("else if (y < 3)"):
            w("sometimes(top);")
        with w.block("else"):
            w("last(top);")
        with w.block("if (y >= 0)"):
            w("always();")
        with w.block("else"):
            w("never();")
    assert str(w).splitlines() == [
        "for (int32_t y = 0; y < 4; ++y) {",
        "    const int32_t top = y * 2 + 1;",
        "    if (y < 3) {",
        "        sometimes(top);",
        "    } else {",
        "        last(top);",
        "    }",
        "    always();",
        "}",
    ]


def test_what_is_not_read_any_more_is_not_declared() -> None:
    w = Writer("m")
    with w.loop("y", 4):
        w("const int32_t top = y * 2;")
        w("const int32_t first = top < 0 ? -top : 0;")
        w("x += a[first];")
    assert str(w) == "for (int32_t y = 0; y < 4; ++y) {\n    x += a[0];\n}\n"


def test_what_is_only_ever_set_is_not_declared() -> None:
    w = Writer("m")
    with w.function("void f(const int32_t *in, int32_t *out)", ["in"]):
        w("const int32_t *taps = in + 3;")
        w("int32_t sum = 0, other = 1;")
        w("int32_t first = in[0];")
        with w.loop("i", 4):
            w("const int32_t w0 = taps[i];")
            w("first += w0;")
            w("out[i] = sum;")
            w("taps += 1;")
    assert str(w).splitlines() == [
        "void f(const int32_t *in, int32_t *out)",
        "{",
        "    int32_t sum = 0, other = 1;",
        "    for (int32_t i = 0; i < 4; ++i) {",
        "        out[i] = sum;",
        "    }",
        "    (void)in;",
        "}",
    ]
