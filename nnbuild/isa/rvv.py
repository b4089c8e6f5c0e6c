"""RISC-V's vectors of floats: an input is a scalar that multiplies all channels.

The first register is left for masks. No vector should wait on the stack, where its size is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from nnbuild.isa import riscv
from nnbuild.isa.vectors import Spelling, Vectors
from nnbuild.isa.zve32x import HERE

_PRODUCT = """\
{0} product = {1};

__asm__("" : "+vr"(product));
return product;"""
"""No compiler fuses it with an addition."""


@dataclass(frozen=True)
class _Group:
    """`size` registers that form a vector, of which `lanes` numbers are used."""

    lanes: int
    size: int

    def call(self, kind: str, name: str, *operands: str, count: int = 0, policy: str = "") -> str:
        """An intrinsic on the first `count` lanes, or on all."""
        return f"__riscv_{name}_{kind}m{self.size}{policy}({', '.join([*operands, str(count or self.lanes)])})"

    def narrow(self, bits: int) -> str:
        """The type of as many integers of fewer bits."""
        part = self.size * bits / 32
        return f"i{bits}m{part:.0f}" if part >= 1 else f"i{bits}mf{1 / part:.0f}"

    def compare(self, kind: str, name: str, *operands: str) -> str:
        return self.call(kind, name, *operands, policy=f"_b{32 // self.size}")

    def cast(self, source: str, to: str, value: str) -> str:
        return f"__riscv_vreinterpret_v_{source}m{self.size}_{to}m{self.size}({value})"

    def one_of(self, comparison: str, b: str) -> str:
        """The larger or smaller number; unlike the set's own instruction it keeps a NaN in `b`."""
        return self.call("f32", "vmerge_vvm", b, "a", self.compare("f32", f"vmf{comparison}_vv", "a", b))

    def across(self, operation: str, count: int) -> str:
        """Exchanges neighbours, then pairs, then fours …: lane i takes lane i ^ by."""
        lines = []
        for by in (1 << step for step in range(count.bit_length() - 1)):
            places = self.call("u32", "vxor_vx", self.call("u32", "vid_v"), str(by))
            lines.append(f"const vfloat32m{self.size}_t b{by} = {self.call('f32', 'vrgather_vv', 'a', places)};")
            lines.append(f"a = {self.combined(operation, f'b{by}')};")
        return "\n".join([*lines, "return a;"])

    def combined(self, operation: str, b: str) -> str:
        if operation == "add":
            return self.call("f32", "vfadd_vv", "a", b)
        return self.one_of({"max": "gt", "min": "lt"}[operation], b)


def _floats(group: _Group) -> dict[str, Spelling]:
    f, late = partial(group.call, "f32"), HERE.format("r", "from")
    zeros, u = f("vfmv_v_f", "0.0f"), partial(group.call, "u32")

    def repeated(times: int, count: int) -> str:
        loaded = f("vle32_v", "from", count=-(-count // times))
        return f"{late}\nreturn {f('vrgather_vv', loaded, u('vdivu_vx', u('vid_v'), str(times)), count=count)};"

    return {
        "f_load": f"{late}\nreturn {f('vle32_v', 'from')};",
        "f_load_first": lambda count: f"{late}\nreturn {f('vle32_v', zeros, 'from', count=count, policy='_tu')};",
        "f_load_repeated": repeated,
        "f_store": f"{f('vse32_v', 'to', 'a')};",
        "f_store_first": lambda count: f"{f('vse32_v', 'to', 'a', count=count)};",
        "f_each": f"{HERE.format('f', 'a')}\nreturn {f('vfmv_v_f', 'a')};",
        "f_repeat": lambda depth: f("vfmv_v_f", "*from"),
        **{f"f_{name}": f(f"vf{name}_vv", "a", "b") for name in ("add", "sub", "div")},
        "f_mul": _PRODUCT.format(f"vfloat32m{group.size}_t", f("vfmul_vv", "a", "b")),
        "f_max": group.one_of("gt", "b"),
        "f_min": group.one_of("lt", "b"),
        "f_sqrt": f("vfsqrt_v", "a"),
        "f_fma": f("vfmacc_vv", "c", "a", "b"),
        "f_fma_by": f("vfmacc_vf", "c", "a", "b"),
        "f_if_less": f("vmerge_vvm", "otherwise", "then", group.compare("f32", "vmflt_vv", "a", "b")),
        "f_across": group.across,
        "f_bits": group.cast("f32", "i32", "a"),
        "f_of_bits": group.cast("i32", "f32", "a"),
        "f_of_sums": f("vfcvt_f_x_v", "a"),
        "f_settled": f"{HERE.format('vr', 'a')}\nreturn a;",
        "fetch": "__builtin_prefetch(from)",
    }


def _bits(group: _Group) -> dict[str, Spelling]:
    """Operations on the floats' bits."""
    i, u = partial(group.call, "i32"), partial(group.call, "u32")
    unsigned = partial(group.cast, "i32", "u32")

    def mask(count: int, first: int, others: int) -> str:
        near = group.compare("u32", "vmsltu_vx", u("vid_v"), str(count))
        return i("vmerge_vxm", i("vmv_v_x", str(others)), str(first), near)

    def widen(bits: int) -> Spelling:
        loads, late = f"__riscv_vle{bits}_v_{group.narrow(bits)}(from, {{0}})", HERE.format("r", "from")
        return lambda count: f"{late}\nreturn {i(f'vsext_vf{32 // bits}', loads.format(count), count=count)};"

    def stored(bits: int, low: int, high: int, count: int) -> str:
        value = i("vmin_vx", i("vmax_vx", "a", str(low)), str(high))
        for half in (16, 8)[: 32 // bits // 2]:
            value = f"__riscv_vncvt_x_x_w_{group.narrow(half)}({value}, {group.lanes})"
        return f"__riscv_vse{bits}_v_{group.narrow(bits)}(to, {value}, {count});"

    return {
        "widen": widen(8),
        "widen_words": widen(16),
        "store_bytes": partial(stored, 8),
        "store_words": partial(stored, 16),
        "each": f"{HERE.format('r', 'a')}\nreturn {i('vmv_v_x', 'a')};",
        "mask": mask,
        **{name: i(f"v{name}_vv", "a", "b") for name in ("add", "sub", "and", "xor")},
        **{f"{name}_by": i(f"v{name}_vx", "a", "b") for name in ("add", "sub", "and", "xor")},
        "shift_left": lambda by: i("vsll_vx", "a", str(by)),
        "shift_right": lambda by: i("vsra_vx", "a", str(by)),
        "shift_down": lambda by: group.cast("u32", "i32", u("vsrl_vx", unsigned("a"), str(by))),
        "shift_left_each": i("vsll_vv", "a", unsigned("by")),
    }


def vectors(name: str, lanes: int, size: int = 1, kernels: Sequence[str] = ("float",)) -> Vectors:
    group = _Group(lanes, size)
    return Vectors(
        name=name,
        guard=riscv.WITH_FLOATS,
        lanes=lanes,
        registers=32 // size - 1,
        types={"floats": f"vfloat32m{size}_t", "sums": f"vint32m{size}_t"},
        spellings=_floats(group) | _bits(group),
        kernels=tuple(kernels),
        in_order=True,
        unsaved=True,
    )


VECTORS = (
    vectors("rvv", 4),
    # in registers of 256 bits: twice as many numbers at a time
    vectors("rvv256", 8),
    # in groups of registers: fewer instructions do as much
    vectors("rvv_m2", 8, 2, ("float",)),
    vectors("rvv_m4", 16, 4, ("float_sums",)),
)
