"""What each Thumb instruction does to registers, flags and memory: exactly where that may decide a branch or an
address, and as "unknown from now on" for all other arithmetic. An instruction that is not here has no meaning."""

from __future__ import annotations

from collections.abc import Callable

from nnbuild.bound.instruction import Instruction, Operand
from nnbuild.bound.writer import Writer

MASK = "0xffffffff"
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
"""Whose first operand becomes unknown, and nothing else changes but the flags Q and GE, which nothing here reads."""
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
LOADS = {"ldr": (4, ""), "ldrb": (1, ""), "ldrh": (2, ""), "ldrsb": (1, "0x80"), "ldrsh": (2, "0x8000")}
STORES = {"str": 4, "strb": 1, "strh": 2}


class Meaningless(Exception):
    """The instruction has no meaning here."""


def write(w: Writer, i: Instruction) -> None:
    """Writes an instruction that is not a branch."""
    if i.name in ONE_UNKNOWN:
        w.forget(_written(i.operands[:1]))
    elif i.name in TWO_UNKNOWN:
        w.forget(_written(i.operands[:2]))
    elif i.name in FLOATS:
        w.forget(_floats(i.operands[:1]))
    elif i.name in HANDLERS:
        HANDLERS[i.name](w, i)
    elif i.name not in NOTHING:
        raise Meaningless(i.text)


def _written(operands: tuple[Operand, ...]) -> list[str]:
    names = [each.reg for each in operands if each.kind == "reg"]
    if len(names) != len(operands) or "pc" in names:
        raise Meaningless
    return names


def _floats(operands: tuple[Operand, ...]) -> list[str]:
    """The single registers that floating-point operands stand for."""
    names = []
    for each in operands:
        number = int(each.reg[1:]) if each.reg[:1] in ("s", "d") and each.reg[1:].isdigit() else -1
        if number < 0 or (each.reg[0] == "d" and number > 15):
            raise Meaningless
        names += [each.reg] if each.reg[0] == "s" else [f"s{2 * number}", f"s{2 * number + 1}"]
    return names


# Values of operands


def pc_of(i: Instruction) -> int:
    """What reading the program counter gives, in addresses and ADR."""
    return (i.address + 4) & ~3


def value(w: Writer, i: Instruction, operand: Operand) -> tuple[str, tuple[str, ...]]:
    """An operand as an expression, and the registers that this needs."""
    if operand.kind == "imm":
        return f"{operand.value & 0xFFFFFFFF:#x}", ()
    if operand.kind != "reg":
        raise Meaningless
    if operand.reg == "pc":
        if operand.shift:
            raise Meaningless
        return f"{i.address + 4:#x}", ()
    name = operand.reg
    return shifted(name, operand.shift, operand.amount), (name,)


def shifted(name: str, shift: str, amount: int) -> str:
    match shift, amount:
        case ("", _) | (_, 0):
            return name
        case ("lsl", _):
            return f"(({name} << {amount}) & {MASK})"
        case ("lsr", _):
            return f"({name} >> {amount})"
        case ("asr", _):
            return f"(((({name} ^ 0x80000000) - 0x80000000) >> {amount}) & {MASK})"
        case ("ror", _):
            return f"((({name} >> {amount}) | ({name} << {32 - amount})) & {MASK})"
    raise Meaningless


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
    """target = a + b + carry, with its flags. A subtraction adds the complement."""
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
    carry = "c" if i.name == "adc" else "0"
    _sum(w, i, target, a, b, carry, (*needs, *more, *(("c",) if carry == "c" else ())))


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
        w.set(target, "nz", ("nz",))
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
    """Sets what has only N and Z for certain: the carry is that of the operand's shift or rotation."""
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
    if i.name == "mvn":
        text = f"{text} ^ {MASK}"
    _logical(w, i, _written(i.operands[:1])[0], text, needs, i.operands[1])


def _move_top(w: Writer, i: Instruction) -> None:
    (target,) = _written(i.operands[:1])
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
    """The last bit that a shift drops; empty where it drops none."""
    if amount == 0:
        return ""
    return f"({name} >> {32 - amount}) & 1" if shift == "lsl" else f"({name} >> {min(amount, 32) - 1}) & 1"


def _multiply(w: Writer, i: Instruction) -> None:
    if i.name == "mul":
        target, first, second = _three(i)
    else:
        ((target,), (first, second)) = _written(i.operands[:1]), i.operands[1:3]
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
    (target,) = _written(i.operands[:1])
    text, needs = value(w, i, i.operands[-1])
    mask, sign = {"b": ("0xff", "0x80"), "h": ("0xffff", "0x8000")}[i.name[-1]]
    text = f"{text} & {mask}"
    w.set(target, f"(({text} ^ {sign}) - {sign}) & {MASK}" if i.name[0] == "s" else text, needs)


def _field(w: Writer, i: Instruction) -> None:
    target, name = _written(i.operands[:2])
    low, width = i.operands[2].value, i.operands[3].value
    mask = (1 << width) - 1
    text = f"({name} >> {low}) & {mask:#x}"
    if i.name == "sbfx":
        text = f"(({text} ^ {1 << (width - 1):#x}) - {1 << (width - 1):#x}) & {MASK}"
    w.set(target, text, (name,))


def _insert(w: Writer, i: Instruction) -> None:
    (target,) = _written(i.operands[:1])
    low, width = i.operands[-2].value, i.operands[-1].value
    mask = ((1 << width) - 1) << low
    rest = f"({target} & {0xFFFFFFFF & ~mask:#x})"
    if i.name == "bfc":
        w.set(target, rest, (target,))
    else:
        (_, name) = _written(i.operands[:2])
        w.set(target, f"{rest} | (({name} << {low}) & {mask:#x})", (target, name))


def _leading_zeros(w: Writer, i: Instruction) -> None:
    target, name = _written(i.operands[:2])
    w.set(target, f"32 - {name}.bit_length()", (name,))


def _address(w: Writer, i: Instruction) -> None:
    (target,) = _written(i.operands[:1])
    w.set(target, f"{pc_of(i) + i.operands[1].value & 0xFFFFFFFF:#x}")


# Memory


def _place(w: Writer, i: Instruction, operand: Operand) -> tuple[str, tuple[str, ...]]:
    """The address that an operand names, before any writing back."""
    if operand.kind != "mem":
        raise Meaningless
    base, needs = (f"{pc_of(i):#x}", ()) if operand.reg == "pc" else (operand.reg, (operand.reg,))
    if operand.offset:
        added = shifted(operand.offset, operand.shift, operand.amount)
        return f"(({base} + {added}) & {MASK})", (*needs, operand.offset)
    disp = 0 if i.post else operand.value
    return (f"(({base} + {disp}) & {MASK})" if disp else base), needs


def _write_back(w: Writer, i: Instruction, operand: Operand) -> None:
    if i.writeback:
        step = i.operands[-1].value if i.post else operand.value
        w.set(operand.reg, f"({operand.reg} + {step}) & {MASK}", (operand.reg,))


def load(w: Writer, target: str, address: str, needs: tuple[str, ...], size: int, sign: str = "") -> None:
    w.set("t", f"L{size}(m, {address})", needs, perhaps=True)
    w.set(target, f"((t ^ {sign}) - {sign}) & {MASK}" if sign else "t", ("t",))


def store(w: Writer, i: Instruction, source: str, address: str, needs: tuple[str, ...], size: int) -> None:
    for name in needs:
        w.use(name)
    value = "None" if not source or w.is_unknown((source,)) else w.use(source)
    if w.conditional and value != "None":
        value = f"{value} if p else None"
    where = "None" if w.is_unknown(needs) else w.guarded(address, needs)
    w.line(f"S{size}(m, {where}, {value}, {i.address:#x})")


def _load(w: Writer, i: Instruction) -> None:
    (target,), place = _written(i.operands[:1]), i.operands[1]
    size, sign = LOADS[i.name]
    address, needs = _place(w, i, place)
    w.set("a", address, needs)
    _write_back(w, i, place)
    load(w, target, "a", ("a",), size, sign)


def _store(w: Writer, i: Instruction) -> None:
    (source,), place = _written(i.operands[:1]), i.operands[1]
    address, needs = _place(w, i, place)
    store(w, i, source, address, needs, STORES[i.name])
    _write_back(w, i, place)


def _load_pair(w: Writer, i: Instruction) -> None:
    targets, place = _written(i.operands[:2]), i.operands[2]
    address, needs = _place(w, i, place)
    w.set("a", address, needs)
    _write_back(w, i, place)
    for number, target in enumerate(targets):
        load(w, target, f"a + {4 * number}", ("a",), 4)


def _store_pair(w: Writer, i: Instruction) -> None:
    sources, place = _written(i.operands[:2]), i.operands[2]
    address, needs = _place(w, i, place)
    for number, source in enumerate(sources):
        store(w, i, source, f"{address} + {4 * number}" if number else address, needs, 4)
    _write_back(w, i, place)


def _push(w: Writer, i: Instruction) -> None:
    names = _written(i.operands)
    w.set("sp", f"(sp - {4 * len(names)}) & {MASK}", ("sp",))
    for number, name in enumerate(names):
        store(w, i, name, f"sp + {4 * number}", ("sp",), 4)


def _store_many(w: Writer, i: Instruction) -> None:
    base, *names = _written(i.operands)
    if base in names:
        raise Meaningless
    down = 4 * len(names) if i.name == "stmdb" else 0
    for number, name in enumerate(names):
        store(w, i, name, f"({base} + {4 * number - down}) & {MASK}", (base,), 4)
    if i.writeback:
        w.set(base, f"({base} + {4 * len(names) - 2 * down}) & {MASK}", (base,))


def load_many(w: Writer, i: Instruction) -> None:
    """LDM and POP; the program counter among the targets becomes `target`, for the branch that follows."""
    names = [each.reg for each in i.operands]
    base = "sp" if i.name == "pop" else names.pop(0)
    down = 4 * len(names) if i.name == "ldmdb" else 0
    w.set("a", f"({base} - {down}) & {MASK}" if down else base, (base,))
    if i.writeback or i.name == "pop":
        w.set(base, f"({base} + {4 * len(names) - 2 * down}) & {MASK}", (base,))
    for number, name in enumerate(names):
        load(w, "target" if name == "pc" else name, f"a + {4 * number}", ("a",), 4)


# Floating point: values are unknown, but registers also keep integers and pointers for a while


def _float_move(w: Writer, i: Instruction) -> None:
    kinds = [each.reg[:1] if each.kind == "reg" else "" for each in i.operands]
    core = [each.reg for each in i.operands if each.reg in CORE]
    if len(i.operands) == 2 and len(core) == 1 and "d" not in kinds and all(kinds):
        target, source = i.operands[0].reg, i.operands[1].reg
        w.set(target, source, (source,))
    elif len(core) == 2 and i.operands[0].reg in CORE:
        w.forget(core)
    elif len(core) == 2:
        w.forget(_floats(tuple(each for each in i.operands if each.reg not in CORE)))
    elif not core:
        w.forget(_floats(i.operands[:1]))
    else:
        raise Meaningless


CORE = frozenset([*(f"r{number}" for number in range(13)), "sp", "lr"])


def _float_flags(w: Writer, i: Instruction) -> None:
    """VMRS: flags of a comparison, or the whole status in a register."""
    if i.operands[0].reg.startswith("apsr"):
        w.forget(("nz", "c", "v"))
    else:
        w.forget(_written(i.operands[:1]))


def _float_load(w: Writer, i: Instruction) -> None:
    w.forget(_floats(i.operands[:1]))


def _float_store(w: Writer, i: Instruction) -> None:
    address, needs = _place(w, i, i.operands[1])
    for number in range(len(_floats(i.operands[:1]))):
        store(w, i, "", f"{address} + {4 * number}" if number else address, needs, 4)


def _float_many(w: Writer, i: Instruction) -> None:
    """VPUSH, VPOP, VLDM, VSTM."""
    stack = i.name in ("vpush", "vpop")
    base = "sp" if stack else _written(i.operands[:1])[0]
    names = _floats(i.operands if stack else i.operands[1:])
    down = 4 * len(names) if i.name in ("vpush", "vstmdb", "vldmdb") else 0
    if i.name in ("vpush", "vstmia", "vstmdb"):
        for number in range(len(names)):
            store(w, i, "", f"({base} + {4 * number - down}) & {MASK}", (base,), 4)
    else:
        w.forget(names)
    if stack or i.writeback:
        w.set(base, f"({base} + {4 * len(names) - 2 * down}) & {MASK}", (base,))


def _no_change(w: Writer, i: Instruction) -> None:
    """A comparison of floats changes only the flags that VMRS reads."""


def _status(w: Writer, i: Instruction) -> None:
    w.forget(_written(i.operands[:1]))


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
    **dict.fromkeys(LOADS, _load),
    **dict.fromkeys(STORES, _store),
    "ldrd": _load_pair,
    "strd": _store_pair,
    "push": _push,
    **dict.fromkeys(("stm", "stmdb"), _store_many),
    **dict.fromkeys(("pop", "ldm", "ldmdb"), load_many),
    "vmov": _float_move,
    "vmrs": _float_flags,
    "vldr": _float_load,
    "vstr": _float_store,
    **dict.fromkeys(("vpush", "vpop", "vldmia", "vldmdb", "vstmia", "vstmdb"), _float_many),
    **dict.fromkeys(("vcmp.f32", "vcmpe.f32"), _no_change),
    "mrs": _status,
}
