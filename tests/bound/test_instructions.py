"""Every form of instruction that the proof knows does in the emulator what the proof thinks it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnbuild.bound.block import Refused, write_all
from nnbuild.bound.image import read_image
from nnbuild.bound.semantics import FLOATS, HANDLERS, NOTHING, ONE_UNKNOWN, TWO_UNKNOWN
from nnbuild.bound.writer import Writer
from tests.bound.assembled import MEMORY, assembled
from tests.bound.pinned import Pin, branches, sequences

THREE = "add adds sub subs and ands orr orrs eor eors bic bics orn orns adc adcs sbc sbcs rsb rsbs".split()
SHIFTED = ("lsl #3", "lsr #5", "asr #31", "ror #7", "lsr #32", "asr #32")
FORMS = "\n".join(
    [
        *(f"{name}.w r0, r1, r2" for name in THREE),
        *(f"{name}.w r0, r1, r2, {shift}" for name in THREE for shift in SHIFTED),
        *(f"{name}.w r8, r1, #{value}" for name in THREE for value in (0, 255, 0xFF00, 0x80000000, 0x00AB00AB)),
        *(f"{name} r0, r1" for name in "ands orrs eors bics adcs sbcs mvns cmp cmn tst movs add mov".split()),
        *(
            f"{name}.w r3, r1, {shift}"
            for name in ("cmp", "cmn", "tst", "teq")
            for shift in SHIFTED
            if "ror" not in shift
        ),
        *(f"{name} r3, #77" for name in ("cmp", "cmn.w", "tst.w", "teq.w", "adds", "subs", "movs")),
        "adds r0, r1, #3\nsubs r0, r1, #3\nadds r0, r1, r2\nsubs r0, r1, r2\nrsbs r0, r1, #0\nadd r8, r9\nadd sp, #8",
        "sub sp, #8\nadd r0, sp, #8\nadd.w r0, sp, #80\naddw r0, r1, #4095\nsubw r0, r1, #4095\nadd r0, sp\nadd r1, pc",
        "mov r0, r9\nmov.w r0, #0x12000000\nmovs.w r0, #0x80000000\nmovw r0, #0x1234\nmovt r0, #0x5678\nmvn r0, #5",
        "mvn.w r0, r1, lsl #4\nmvns.w r0, r1, asr #4\nadr r0, .+8\nmov r0, pc\ncmp r0, r9\nmov sp, r7\nmov r7, sp",
        *(f"{name} r0, r1, #{n}" for name in ("lsls", "lsrs", "asrs", "lsl.w", "lsr.w", "asr.w") for n in (1, 5, 31)),
        *(f"{name} r0, r1, #32" for name in ("lsrs", "asrs", "lsr.w", "asr.w")),
        *(f"{name} r0, r0, r1" for name in ("lsls", "lsrs", "asrs", "rors", "lsl.w", "lsrs.w", "asr.w", "ror.w")),
        ".balign 4\nadr r0, 1f\n.balign 4\n1: nop",
        "ror.w r0, r1, #9\nrors.w r0, r1, #9\nrrx r0, r1",
        "mul r0, r1, r2\nmuls r0, r1, r0\nmla r0, r1, r2, r3\nmls r0, r1, r2, r3\nudiv r0, r1, r2\nsdiv r0, r1, r2",
        *(f"{name} r0, r1, r2, r3" for name in "umull smull umlal smlal umaal smlald smlaldx smlsld smlsldx".split()),
        *(f"{name} r0, r1, r2, r3" for name in "smlalbb smlalbt smlaltb smlaltt".split()),
        *(f"{name} r0, r1, r2, r3" for name in "smlad smladx smlsd smlsdx smmla smmlar smmls smmlsr usada8".split()),
        *(f"{name} r0, r1, r2, r3" for name in "smlabb smlabt smlatb smlatt smlawb smlawt".split()),
        *(
            f"{name} r0, r1, r2"
            for name in "smuad smuadx smusd smusdx smmul smmulr smulbb smulbt smultb smultt".split()
        ),
        *(f"{name} r0, r1, r2" for name in "smulwb smulwt qadd qsub qdadd qdsub sel usad8 sxtab uxtab sxtah".split()),
        *(f"{name} r0, r1, r2" for name in "uxtah sxtab16 uxtab16 sadd16 ssub16 sadd8 ssub8 uadd16 usub16".split()),
        *(f"{name} r0, r1, r2" for name in "uadd8 usub8 qadd16 qsub16 qadd8 qsub8 uqadd16 uqsub16 uqadd8".split()),
        *(f"{name} r0, r1, r2" for name in "uqsub8 shadd16 shsub16 shadd8 shsub8 uhadd16 uhsub16 uhadd8".split()),
        *(f"{name} r0, r1, r2" for name in "uhsub8 sasx ssax qasx qsax shasx shsax uasx usax uqasx uqsax".split()),
        "uhasx r0, r1, r2\nuhsax r0, r1, r2\nsxtab16 r0, r1, r2, ror #8\npkhbt r0, r1, r2\npkhtb r0, r1, r2, asr #16",
        "pkhbt r0, r1, r2, lsl #16\nssat r0, #8, r1\nssat r0, #8, r1, asr #6\nusat r0, #8, r1\nusat r0, #8, r1, lsl #2",
        "ssat16 r0, #8, r1\nusat16 r0, #7, r1",
        *(f"{name} r0, r1" for name in "rev rev16 revsh rbit clz sxtb sxth uxtb uxth sxtb16 uxtb16".split()),
        *(f"{name}.w r0, r9, ror #8" for name in "sxtb sxth uxtb uxth".split()),
        "sxtb16 r0, r1, ror #8\nubfx r0, r1, #11, #1\nsbfx r0, r1, #3, #9\nubfx r0, r1, #0, #32\nsbfx r0, r1, #31, #1",
        "bfi r0, r1, #4, #8\nbfi r0, r1, #0, #32\nbfc r0, #4, #8",
        *(f"{name} r0, [r1, #4]" for name in "ldr ldrb ldrh ldrsb ldrsh str strb strh".split()),
        *(f"{name} r0, [r1, r2]" for name in "ldr ldrb ldrh ldrsb ldrsh str strb strh".split()),
        *(f"{name}.w r0, [r1, r2, lsl #2]" for name in "ldr ldrb ldrh ldrsb ldrsh str strb strh".split()),
        *(f"{name} r0, [r1, #-5]" for name in "ldr ldrb ldrh ldrsb ldrsh str strb strh".split()),
        *(f"{name} r0, [r1, #-7]!" for name in "ldr ldrb ldrh ldrsb ldrsh str strb strh".split()),
        *(f"{name} r0, [r1], #-6" for name in "ldr ldrb ldrh ldrsb ldrsh str strb strh".split()),
        *(f"{name} r0, [r1], #9" for name in "ldr ldrb ldrh ldrsb ldrsh str strb strh".split()),
        "ldr r0, [sp, #8]\nstr r0, [sp, #8]\nldr r0, [pc, #8]\nldrb.w r0, [pc, #-4]\nldr r1, [r1, #4]",
        "ldrd r0, r1, [pc, #8]",
        *(f"{name} r0, r2, [r1{rest}" for name in ("ldrd", "strd") for rest in ("]", ", #-8]", ", #16]!", "], #-16")),
        "ldrd r1, r0, [r1, #8]\npush {r0, r1, lr}\npush.w {r4, r8, lr}\npop {r0, r1}\npop.w {r4, r8, lr}",
        "ldm r1, {r0, r2, r3}\nldm r1, {r1, r2}\nldm r1!, {r0, r2}\nldm.w r1!, {r0, r8}\nldmdb r1, {r0, r8}",
        "ldmdb r1!, {r0, r8}\nstm r1!, {r0, r2}\nstm.w r1, {r0, r8}\nstmdb r1!, {r0, r8}\nstmdb r1, {r0, r8}",
        "str.w r0, [sp, #-4]!\nldr.w r0, [sp], #4\nnop\nnop.w\nyield\ndmb\ndsb\nisb\nmrs r0, primask",
        *(f"{name}.f32 s0, s1, s2" for name in "vadd vsub vmul vnmul vdiv vfma vfms vfnma vfnms vmla vmls".split()),
        *(f"{name}.f32 s0, s1" for name in "vabs vneg vsqrt vmov vcmp vcmpe vnmla vnmls".split() if name[:3] != "vnm"),
        "vnmla.f32 s0, s1, s2\nvnmls.f32 s0, s1, s2\nvcmp.f32 s0, #0\nvcmpe.f32 s0, #0\nvmrs apsr_nzcv, fpscr",
        "vmrs r0, fpscr\nvmov.f32 s0, #1.0\nvcvt.s32.f32 s0, s1\nvcvt.u32.f32 s0, s1\nvcvt.f32.s32 s0, s1",
        "vcvt.f32.u32 s0, s1\nvcvtr.s32.f32 s0, s1\nvcvtr.u32.f32 s0, s1\nvcvtb.f32.f16 s0, s1\nvcvtt.f32.f16 s0, s1",
        "vcvtb.f16.f32 s0, s1\nvcvtt.f16.f32 s0, s1\nvcvt.s32.f32 s0, s0, #4",
        "vmov s3, r4\nvmov r4, s3\nvmov r4, r5, d2\nvmov d2, r4, r5\nvmov r4, r5, s4, s5\nvmov s4, s5, r4, r5",
        "vldr s3, [r1, #8]\nvldr d3, [r1, #-8]\nvstr s3, [r1, #8]\nvstr d3, [r1]\nvldr s3, [pc, #8]",
        "vpush {d8, d9}\nvpop {d8, d9}\nvpush {s16}\nvldmia r1!, {s4-s7}",
        "vldmia r1, {d4}\nvstmia r1!, {d4}\nvstmia r1, {s4}",
        "vldmdb r1!, {s4-s7}\nvstmdb r1!, {s4-s7}",
        "it eq\naddeq r0, r1\nit lt\nmovlt r0, r1\nite ge\nmovge r0, #1\nmovlt r0, #0",
        "itt ne\nlslne r0, r2\naddne.w r4, r2, r4",
        *(f"it {cc}\nmvn{cc} r0, #0" for cc in "eq ne hs lo mi pl vs vc hi ls ge lt gt le".split()),
        "itet hi\nldrhi r0, [r1, #4]\nstrls r0, [r1, #8]\nstrbhi r2, [r1]\nitt eq\ncmpeq r0, r1\nmoveq r2, #3",
        "itt mi\nrsbmi r0, r0, #0\nldrdmi r2, r3, [r1, #8]",
        "itee gt\nvmovgt.f32 s1, s2\nvldrle s1, [r1]\nvstrle s3, [r1, #4]",
        "ittt eq\nmoveq r0, r3\npusheq {r3, r4}\npopeq {r4, r5}",
    ]
)


@pytest.mark.emulator
def test_every_form_does_what_the_emulator_does(tmp_path: Path) -> None:
    image = read_image(assembled(tmp_path, f"{FORMS}\nend: bx lr\nudf #0"))
    pin, seen = Pin(image, MEMORY), set()
    for sequence in sequences(image, image.functions["f"], image.symbol("end") or 0):
        if sequence[0].name == "rrx":
            continue
        pin.check(sequence, 5)
        seen |= {i.name for i in sequence}
    missing = {*HANDLERS, *ONE_UNKNOWN, *TWO_UNKNOWN, *FLOATS, *NOTHING} - seen
    assert {name for name in missing if not name.startswith("it")} <= {"nop.w"}


def test_what_has_no_meaning_is_refused_by_name(tmp_path: Path) -> None:
    text = "rrx r0, r1\nsvc #1\nbkpt #0\nmsr primask, r0\ncpsid i\nwfi\nldrex r0, [r1]\nudf #0\nrors.w r0, r1, #9\nend:"
    image = read_image(assembled(tmp_path, text))
    refused = []
    for sequence in sequences(image, image.functions["f"], image.symbol("end") or 0):
        assert not branches(sequence)
        try:
            write_all(Writer(), sequence)
        except Refused as problem:
            refused.append((problem.kind, problem.cause.split()[0]))
    names = ["rrx", "svc", "bkpt", "msr", "cpsid", "wfi", "ldrex", "udf"]
    assert refused == [("unknown instruction", name) for name in names]
