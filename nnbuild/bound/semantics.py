"""The effect of each Thumb instruction on registers, flags and memory: exact where it may decide a branch or an
address, and "unknown from now on" for all other arithmetic. Other instructions are refused."""

from __future__ import annotations

from collections.abc import Callable

from nnbuild.bound.instruction import Instruction, Operand
from nnbuild.bound.operands import MASK, Meaningless, pc_of, shifted, singles, value, written
from nnbuild.bound.transfers import (
    LOADS,
    STORES,
    float_flags,
    float_load,
    float_many,
    float_move,
    float_store,
    load_many,
    load_one,
    load_pair,
    no_change,
    push,
    status,
    store_many,
    store_one,
    store_pair,
)
from nnbuild.bound.writer import Writer

Handler = Callable[[Writer, Instruction], None]

ONE_UNKNOWN = frozenset(
    """
    smlad smladx smlsd smlsdx smuad smuadx smusd smusdx smulbb smulbt smultb smultt smulwb smulwt smlabb smlabt smlatb
    smlatt smlawb smlawt smmul smmulr smmla smmlar smmls smmlsr pkhbt pkhtb sxtb16 uxtb16 sxtab16 uxtab16 sxtab uxtab
    sxtah uxtah sadd16 ssub16 sadd8 ssub8 uadd16 usub16 uadd8 usub8 qadd16 qsub16 qadd8 qsub8 qadd qsub qdadd qdsub
    uqadd16 uqsub16 uqadd8 uqsub8 shadd16 shsub16 shadd8 shsub8 uhadd16 uhsub16 uhadd8 uhsub8 sasx ssax qasx qsax shasx
    shsax uasx usax uqasx uqsax uhasx uhsax sel usad8 usada8 ssat usat ssat16 usat16 rev rev16 revsh rbit
    """.split()
)
"""Instructions whose first operand becomes unknown; otherwise they change only the flags Q and GE, which nothing
here reads."""
TWO_UNKNOWN = frozenset(
    """
    umull smull umlal smlal umaal smlald smlaldx smlsld smlsldx smlalbb smlalbt smlaltb smlaltt
    """.split()
)
NOTHING = frozenset("nop nop.w yield dmb dsb isb it itt ite ittt itte itet itee".split()) | frozenset(
    f"it{a}{b}{c}" for a in "te" for b in "te" for c in "te"
)
FLOATS = frozenset(
    """
    vadd.f32 vsub.f32 vmul.f32 vnmul.f32 vdiv.f32 vfma.f32 vfms.f32 vfnma.f32 vfnms.f32 vmla.f32 vmls.f32 vnmla.f32
    vnmls.f32 vabs.f32 vneg.f32 vsqrt.f32 vmov.f32 vcvt.s32.f32 vcvt.u32.f32 vcvt.f32.s32 vcvt.f32.u32 vcvtr.s32.f32
    vcvtr.u32.f32 vcvtb.f32.f16 vcvtt.f32.f16 vcvtb.f16.f32 vcvtt.f16.f32
    """.split()
)


def write(w: Writer, i: Instruction) -> None:
    """Writes an instruction that is not a branch."""
    if i.name in ONE_UNKNOWN:
        w.forget(written(i.operands[:1]))
    elif i.name in TWO_UNKNOWN:
        w.forget(written(i.operands[:2]))
    elif i.name in FLOATS:
        w.forget(singles(i.operands[:1]))
    elif i.name in HANDLERS:
        HANDLERS[i.name](w, i)
    elif i.name not in NOTHING:
        raise Meaningless(i.text)


def _three(i: Instruction) -> tuple[str, Operand, Operand]:
    """Destination and two sources; with two operands the destination is the first source."""
    operands = i.operands
    if len(operands) == 2:
        operands = (operands[0], operands[0]._replace(shift="", amount=0), operands[1])
    if len(operands) != 3 or operands[0].kind != "reg" or operands[0].reg == "pc":
        raise Meaningless
    return operands[0].reg, operands[1], operands[2]


# Arithmetic


def _sum(w: Writer, i: Instruction, target: str, a: str, b: str, carry: str, needs: tuple[str, ...]) -> None:
    """target = a + b + carry, with flags. A subtraction adds the complement."""
    if not i.sets_flags:
        if target:
            w.set(target, f"({a} + {b} + {carry}) & {MASK}" if carry != "0" else f"({a} + {b}) & {MASK}", needs)
        return
    w.set("t", f"{a} + {b} + {carry}", needs)
    w.set("x", a, needs)
    w.set("y", b, needs)
    w.set("nz", f"t & {MASK}", ("t",))
    w.set("c", "t >> 32", ("t",))
    w.set("v", "((x ^ nz) & (y ^ nz)) >> 31", ("x", "y", "nz"))
    if target:
        w.set(target, "nz", ("nz",))


def _add(w: Writer, i: Instruction) -> None:
    target, first, second = _three(i)
    if first.reg == "pc" and second.kind == "imm":
        return w.set(target, f"{pc_of(i) + second.value & 0xFFFFFFFF:#x}")  # a form of ADR
    (a, needs), (b, more) = value(w, i, first), value(w, i, second)
    if _steps(i, first, second):
        if i.sets_flags:
            _sum(w, i, "", a, b, "0", needs)
        return w.move(target, first.reg, second.value)
    carry = "c" if i.name == "adc" else "0"
    _sum(w, i, target, a, b, carry, (*needs, *more, *(("c",) if carry == "c" else ())))


def _steps(i: Instruction, first: Operand, second: Operand) -> bool:
    """Whether a register becomes another one plus a constant."""
    plain = i.name in ("add", "addw", "sub", "subw") and second.kind == "imm"
    return plain and first.kind == "reg" and not first.shift and first.reg != "pc"


def _subtract(w: Writer, i: Instruction) -> None:
    target, first, second = _three(i)
    if first.reg == "pc" and second.kind == "imm":
        return w.set(target, f"{pc_of(i) - second.value & 0xFFFFFFFF:#x}")
    if "pc" in (first.reg, second.reg):
        raise Meaningless
    if i.name == "rsb":
        first, second = second, first
    (a, needs), (b, more) = value(w, i, first), value(w, i, second)
    if i.name == "sbc":
        _sum(w, i, target, a, f"({b} ^ {MASK})", "c", (*needs, *more, "c"))
    elif i.sets_flags:
        _difference(w, a, b, (*needs, *more))
        if _steps(i, first, second):
            w.move(target, first.reg, -second.value)
        else:
            w.set(target, "nz", ("nz",))
    elif _steps(i, first, second):
        w.move(target, first.reg, -second.value)
    else:
        w.set(target, f"({a} - {b}) & {MASK}", (*needs, *more))


def _difference(w: Writer, a: str, b: str, needs: tuple[str, ...]) -> None:
    w.set("x", a, needs)
    w.set("y", b, needs)
    w.set("nz", f"(x - y) & {MASK}", ("x", "y"))
    w.set("c", "1 if x >= y else 0", ("x", "y"))
    w.set("v", "((x ^ y) & (x ^ nz)) >> 31", ("x", "y", "nz"))


def _compare(w: Writer, i: Instruction) -> None:
    (a, needs), (b, more) = value(w, i, i.operands[0]), value(w, i, i.operands[1])
    if i.name == "cmp":
        _difference(w, a, b, (*needs, *more))
        w.difference(a, b)
    else:
        _sum(w, i, "", a, b, "0", (*needs, *more))


LOGIC = {
    "and": "{a} & {b}",
    "orr": "{a} | {b}",
    "eor": "{a} ^ {b}",
    "bic": "{a} & ~{b}",
    "orn": "{a} | ({b} ^ " + MASK + ")",
}
TESTS = {"tst": "and", "teq": "eor"}


def _logic(w: Writer, i: Instruction) -> None:
    if i.name in TESTS:
        target, first, second = "", i.operands[0], i.operands[1]
    else:
        target, first, second = _three(i)
    (a, needs), (b, more) = value(w, i, first), value(w, i, second)
    text = LOGIC[TESTS.get(i.name, i.name)].format(a=a, b=b)
    _logical(w, i, target, text, (*needs, *more), second)


def _logical(w: Writer, i: Instruction, target: str, text: str, needs: tuple[str, ...], last: Operand) -> None:
    """Sets a result with only N and Z certain: the carry comes from the operand's shift or rotation."""
    if not i.sets_flags:
        w.set(target, text, needs)
        return
    w.set("nz", f"({text}) & {MASK}", needs)
    if last.shift or (last.kind == "imm" and last.value & 0xFFFFFFFF > 255):
        w.set("c")
    if target:
        w.set(target, "nz", ("nz",))


def _move(w: Writer, i: Instruction) -> None:
    text, needs = value(w, i, i.operands[1])
    if i.name == "mov" and not i.sets_flags and needs == (text,):
        return w.move(written(i.operands[:1])[0], text)
    if i.name == "mvn":
        text = f"{text} ^ {MASK}"
    _logical(w, i, written(i.operands[:1])[0], text, needs, i.operands[1])


def _move_top(w: Writer, i: Instruction) -> None:
    (target,) = written(i.operands[:1])
    w.set(target, f"({target} & 0xffff) | {(i.operands[1].value & 0xFFFF) << 16:#x}", (target,))


def _shift(w: Writer, i: Instruction) -> None:
    target, first, second = _three(i)
    a, needs = value(w, i, first)
    if second.kind == "imm":
        text = shifted(a, i.name, second.value)
        out = _carry_out(a, i.name, second.value)
        w.set("t", text, needs)
        if i.sets_flags:
            if out:
                w.set("c", out, needs)
            w.set("nz", f"t & {MASK}", ("t",))
    else:
        b, more = value(w, i, second)
        needs = (*needs, *more)
        w.set("y", f"{b} & 255", more)
        if i.name == "ror":
            w.set("t", f"(({a} >> (y & 31)) | ({a} << (32 - (y & 31)))) & {MASK}", (*needs, "y"))
        elif i.name == "lsl":
            w.set("t", f"({a} << y) & {MASK} if y < 32 else 0", (*needs, "y"))
        elif i.name == "lsr":
            w.set("t", f"{a} >> y", (*needs, "y"))
        else:
            w.set("t", f"((({a} ^ 0x80000000) - 0x80000000) >> y) & {MASK}", (*needs, "y"))
        if i.sets_flags:
            w.set("c")
            w.set("nz", f"t & {MASK}", ("t",))
    w.set(target, "t", ("t",))


def _carry_out(name: str, shift: str, amount: int) -> str:
    """The last bit shifted out; empty if there is none."""
    if amount == 0:
        return ""
    return f"({name} >> {32 - amount}) & 1" if shift == "lsl" else f"({name} >> {min(amount, 32) - 1}) & 1"


def _multiply(w: Writer, i: Instruction) -> None:
    if i.name == "mul":
        target, first, second = _three(i)
    else:
        ((target,), (first, second)) = written(i.operands[:1]), i.operands[1:3]
    (a, needs), (b, more) = value(w, i, first), value(w, i, second)
    needs = (*needs, *more)
    text = f"({a} * {b}) & {MASK}"
    if i.name != "mul":
        c, last = value(w, i, i.operands[3])
        sign = "+" if i.name == "mla" else "-"
        text, needs = f"({c} {sign} {a} * {b}) & {MASK}", (*needs, *last)
    w.set(target, text, needs)
    if i.sets_flags:
        w.set("nz", f"{target} & {MASK}", (target,))


def _divide(w: Writer, i: Instruction) -> None:
    target, first, second = _three(i)
    (a, needs), (b, more) = value(w, i, first), value(w, i, second)
    if i.name == "udiv":
        w.set(target, f"{a} // {b} if {b} else 0", (*needs, *more))
    else:
        w.set(target)


def _extend(w: Writer, i: Instruction) -> None:
    (target,) = written(i.operands[:1])
    text, needs = value(w, i, i.operands[-1])
    mask, sign = {"b": ("0xff", "0x80"), "h": ("0xffff", "0x8000")}[i.name[-1]]
    text = f"{text} & {mask}"
    w.set(target, f"(({text} ^ {sign}) - {sign}) & {MASK}" if i.name[0] == "s" else text, needs)


def _field(w: Writer, i: Instruction) -> None:
    target, name = written(i.operands[:2])
    low, width = i.operands[2].value, i.operands[3].value
    mask = (1 << width) - 1
    text = f"({name} >> {low}) & {mask:#x}"
    if i.name == "sbfx":
        text = f"(({text} ^ {1 << (width - 1):#x}) - {1 << (width - 1):#x}) & {MASK}"
    w.set(target, text, (name,))


def _insert(w: Writer, i: Instruction) -> None:
    (target,) = written(i.operands[:1])
    low, width = i.operands[-2].value, i.operands[-1].value
    mask = ((1 << width) - 1) << low
    rest = f"({target} & {0xFFFFFFFF & ~mask:#x})"
    if i.name == "bfc":
        w.set(target, rest, (target,))
    else:
        (_, name) = written(i.operands[:2])
        w.set(target, f"{rest} | (({name} << {low}) & {mask:#x})", (target, name))


def _leading_zeros(w: Writer, i: Instruction) -> None:
    target, name = written(i.operands[:2])
    w.set(target, f"32 - {name}.bit_length()", (name,))


def _address(w: Writer, i: Instruction) -> None:
    (target,) = written(i.operands[:1])
    w.set(target, f"{pc_of(i) + i.operands[1].value & 0xFFFFFFFF:#x}")


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("add", "addw", "adc"), _add),
    **dict.fromkeys(("sub", "subw", "rsb", "sbc"), _subtract),
    **dict.fromkeys(("cmp", "cmn"), _compare),
    **dict.fromkeys((*LOGIC, *TESTS), _logic),
    **dict.fromkeys(("mov", "movw", "mvn"), _move),
    "movt": _move_top,
    **dict.fromkeys(("lsl", "lsr", "asr", "ror"), _shift),
    **dict.fromkeys(("mul", "mla", "mls"), _multiply),
    **dict.fromkeys(("udiv", "sdiv"), _divide),
    **dict.fromkeys(("sxtb", "sxth", "uxtb", "uxth"), _extend),
    **dict.fromkeys(("ubfx", "sbfx"), _field),
    **dict.fromkeys(("bfi", "bfc"), _insert),
    "clz": _leading_zeros,
    "adr": _address,
    **dict.fromkeys(LOADS, load_one),
    **dict.fromkeys(STORES, store_one),
    "ldrd": load_pair,
    "strd": store_pair,
    "push": push,
    **dict.fromkeys(("stm", "stmdb"), store_many),
    **dict.fromkeys(("pop", "ldm", "ldmdb"), load_many),
    "vmov": float_move,
    "vmrs": float_flags,
    "vldr": float_load,
    "vstr": float_store,
    **dict.fromkeys(("vpush", "vpop", "vldmia", "vldmdb", "vstmia", "vstmdb"), float_many),
    **dict.fromkeys(("vcmp.f32", "vcmpe.f32"), no_change),
    "mrs": status,
}
