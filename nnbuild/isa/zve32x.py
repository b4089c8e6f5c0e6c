"""RISC-V's vectors of integers: four registers form one of sums, and inputs are scalars that multiply all channels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nnbuild.isa import byte_spellings, riscv
from nnbuild.isa.vectors import Spelling, Vectors

_SCALED = """\
const vint32m4_t product = __riscv_vmul_vv_i32m4(a, multiplier, {n});
const vuint32m4_t sum = __riscv_vreinterpret_v_i32m4_u32m4(__riscv_vadd_vv_i32m4(product, low, {n}));
const vbool8_t carry = __riscv_vmsltu_vv_u32m4_b8(sum, __riscv_vreinterpret_v_i32m4_u32m4(product), {n});
const vint32m4_t upper = __riscv_vadd_vv_i32m4(__riscv_vmulh_vv_i32m4(a, multiplier, {n}), high, {n});
return __riscv_vadd_vx_i32m4_mu(carry, upper, upper, 1, {n});"""
_ACROSS = "__riscv_vmv_x_s_i32m1_i32(__riscv_vred{0}_vs_i32m4_i32m1(a, __riscv_vmv_v_x_i32m1({1}, 1), {2}))"
_WHOLE = """\
for (int32_t i = 0; i < count;) {{
    const size_t n = __riscv_vsetvl_e8m8((size_t)(count - i));

    __riscv_vse8_v_i8m8(to + i, {value}, n);
    i += (int32_t)n;
}}"""
_SHORT = _WHOLE.replace("e8m8", "e16m8").replace("vse8_v_i8m8", "vse16_v_i16m8")
"""The same for 16-bit numbers."""
_CENTRED = "__riscv_vsub_vx_i16m8(__riscv_vsext_vf2_i16m8(__riscv_vle8_v_i8m4(from + i, n), n), (int16_t)zero, n)"
HERE = '__asm__ volatile("" : "+{0}"({1}));'
"""Prevents early loads: registers that do not suffice would be spilled, to as much stack as a processor's vectors are
long."""
BY_LANES = ("add", "sub", "mul", "min", "max", "and", "xor")
_KEPT = [f'"+vr"(*{name})' for name in "abcd"]
LONGEST_SEGMENT = 8
_UNSIGNED = "__riscv_vreinterpret_v_i32m4_u32m4({0})"


def _fill(depth: int) -> str:
    stores = (_SHORT if depth == 2 else _WHOLE).format(value=f"__riscv_vmv_v_x_i{8 * depth}m8(value, n)")
    return f"{HERE.format('r', 'value')}\n{stores}"


def _repeated(bits: int, times: int) -> str:
    """Stores segments of equal numbers."""
    if times > LONGEST_SEGMENT:
        return ""
    kind = f"i{bits}m1"
    segments = f"__riscv_vcreate_v_{kind}x{times}({', '.join(['a'] * times)})"
    return f"""\
for (int32_t i = 0; i < count;) {{
    const size_t n = __riscv_vsetvl_e{bits}m1((size_t)(count - i) / {times});
    const vint{bits}m1_t a = __riscv_vle{bits}_v_{kind}(from, n);

    __riscv_vsseg{times}e{bits}_v_{kind}x{times}(to + i, {segments}, n);
    from += n;
    i += (int32_t)n * {times};
}}"""


def _short(r: Callable[..., str]) -> dict[str, Spelling]:
    """Operations on 16-bit numbers."""
    return {
        "centre": _SHORT.format(value=_CENTRED),
        "copy": _SHORT.format(value="__riscv_vle16_v_i16m8(from + i, n)"),
        "widen_words": lambda count: r("vsext_vf2_i32m4", r("vle16_v_i16m2", "from", count=count), count=count),
        "copy_repeated": lambda times: _repeated(16, times),
        "h_load": f"{HERE.format('r', 'from')}\nreturn {r('vle16_v_i16m2', 'from')};",
        "h_store": f"{r('vse16_v_i16m2', 'to', 'a')};",
        **{f"h_{name}": r(f"v{name}_vv_i16m2", "a", "b") for name in ("add", "sub")},
        "h_shift_left": lambda by: r("vsll_vx_i16m2", "a", str(by)),
        "h_mac": r("vwmacc_vx_i32m4", "a", "(int16_t)x", "w"),
    }


def _rounding(r: Callable[..., str]) -> dict[str, Spelling]:
    return {
        "upper": r("vmulh_vv_i32m4", "a", "b"),
        "high_rounded": r("vsmul_vv_i32m4", "a", "b", near=True),
        "away": r("vadd_vv_i32m4", "a", r("vsra_vx_i32m4", "a", "31")),
        "round_each": r("vssra_vv_i32m4", "a", _UNSIGNED.format("by"), near=True),
        "upper_by": r("vmulh_vx_i32m4", "a", "b"),
        "high_rounded_by": r("vsmul_vx_i32m4", "a", "b", near=True),
        "round_each_by": r("vssra_vx_i32m4", "a", "(size_t)by", near=True),
    }


def _between_lanes(r: Callable[..., str], lanes: int) -> dict[str, Spelling]:
    return {
        "loop_end": '__asm__("" : "+r"(a));\nreturn a;',
        "sum_across": _ACROSS.format("sum", "0", lanes),
        "max_across": _ACROSS.format("max", "INT32_MIN", lanes),
        "gather": r("vluxei32_v_i32m4", "from", r("vsll_vx_u32m4", _UNSIGNED.format("a"), "2")),
    }


def spelt(lanes: int, name: str, *operands: str, count: int = 0, near: bool = False) -> str:
    """A call of an intrinsic for the first `count` lanes, or for all."""
    rounding = ["__RISCV_VXRM_RNU"] if near else []
    return f"__riscv_{name}({', '.join([*operands, *rounding, str(count or lanes)])})"


def spellings(lanes: int) -> dict[str, Spelling]:
    r = partial(spelt, lanes)

    def stored(bits: int, to: str, value: str, low: int, high: int, count: int) -> str:
        kind, most = {8: "i8m1", 16: "i16m2"}[bits], 1 << (bits - 1)
        value = r("vnclip_wx_i16m2", value, "0", near=True)
        value = r("vnclip_wx_i8m1", value, "0", near=True) if bits == 8 else value
        value = r(f"vmax_vx_{kind}", value, str(low)) if low > -most else value
        value = r(f"vmin_vx_{kind}", value, str(high)) if high < most - 1 else value
        return f"{r(f'vse{bits}_v_{kind}', to, value, count=count)};"

    def in_order(bits: int, names: str, low: int, high: int, count: int) -> str:
        lines = []
        for vector, name in enumerate(names):
            some = min(lanes, count - vector * lanes)
            to = f"to + {vector * lanes}" if vector else "to"
            lines.append(stored(bits, to, name, low, high, some) if some > 0 else f"(void){name};")
        return "\n".join(lines)

    def mask(count: int, first: int, others: int) -> str:
        near = r("vmsltu_vx_u32m4_b8", r("vid_v_u32m4"), str(count))
        return r("vmerge_vxm_i32m4", r("vmv_v_x_i32m4", str(others)), str(first), near)

    widened = r("vsext_vf2_i16m2", r("vle8_v_i8m1", "from"))
    right, left = (r(f"v{way}_vv_i32m4", "a", _UNSIGNED.format("by")) for way in ("sra", "sll"))
    down = "__riscv_vreinterpret_v_u32m4_i32m4({0})"
    return {
        "load": f"{HERE.format('r', 'from')}\nreturn {r('vle32_v_i32m4', 'from')};",
        "store": f"{r('vse32_v_i32m4', 'to', 'a')};",
        "widen": lambda count: r("vsext_vf4_i32m4", r("vle8_v_i8m1", "from", count=count), count=count),
        "each": f"{HERE.format('r', 'a')}\nreturn {r('vmv_v_x_i32m4', 'a')};",
        "mask": mask,
        **{name: r(f"v{name}_vv_i32m4", "a", "b") for name in BY_LANES},
        **{f"{name}_by": r(f"v{name}_vx_i32m4", "a", "b") for name in BY_LANES},
        "shift_left": lambda by: r("vsll_vx_i32m4", "a", str(by)),
        "shift_right": lambda by: r("vsra_vx_i32m4", "a", str(by)),
        "shift_down": lambda by: down.format(r("vsrl_vx_u32m4", _UNSIGNED.format("a"), str(by))),
        "shift_down_by": down.format(r("vsrl_vx_u32m4", _UNSIGNED.format("a"), "(size_t)by")),
        "shift_left_each": left,
        "shift_right_each": right,
        "scaled_apart": _SCALED.format(n=lanes),
        **_rounding(r),
        **dict.fromkeys(("inputs", "weights"), lambda depth: widened),
        "repeat": lambda depth, bits=8: "from[0]",
        "dot": lambda depth, lift: r("vwmacc_vx_i32m4", "a", "(int16_t)x", "w"),
        "dot_lanes": r("vwmacc_vv_i32m4", "a", "x", "w"),
        "settled": f"{HERE.format('vr', 'a')}\nreturn a;",
        "settle": lambda count: f'__asm__ volatile("" : {", ".join(_KEPT[:count])});',
        "anew": f"{HERE.format('r', 'from')}\nreturn from;",
        "lift": lambda by: _WHOLE.format(value="__riscv_vle8_v_i8m8(from + i, n)"),
        "lift_repeated": lambda by, times: _repeated(8, times),
        "fill": _fill,
        **byte_spellings.riscv(lanes),
        **_short(r),
        **_between_lanes(r, lanes),
        "store_bytes": lambda low, high, count: stored(8, "to", "a", low, high, count),
        "store_words": lambda low, high, count: stored(16, "to", "a", low, high, count),
        "store_mixed": lambda depth, block, low, high, count: in_order(8, "abcd", low, high, count),
        "store_mixed_words": lambda block, low, high, count: in_order(16, "ab", low, high, count),
    }


def vectors(name: str, lanes: int) -> Vectors:
    return Vectors(
        name=name,
        guard=riscv.GUARD,
        lanes=lanes,
        registers=8,
        types={"sums": "vint32m4_t", "halves": "vint16m2_t", "bytes": "vint8m4_t"},
        spellings=spellings(lanes),
        kernels=("integer", "tables", "bytes"),
        cycles={
            "gather": 18.0,
            "turn": 40.0,
            "repeat": 1,
            "look_up": 1.5,
            **dict.fromkeys(("lift", "copy", "centre", "fill"), 6),
        },
        in_order=True,
        depth=1,
    )


VECTORS = (vectors("zve32x", 16), vectors("zve32x_256", 32))
"""The second has twice as many numbers in registers of 256 bits."""
