"""Code is priced in bytes: by what it consists of, not by how it is written, and shared routines once."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from nnbuild.base.c_metrics import KINDS, measure_c
from nnbuild.base.writer import Instruction, Writer
from nnbuild.isa.c99 import C99
from nnbuild.isa.encoding import ENCODINGS, THUMB2
from nnbuild.isa.registry import isas
from nnbuild.kernels.contract import Demand, Kernel
from nnbuild.kernels.registry import variants
from nnbuild.model.graph import Op, Tensor
from nnbuild.ops.activation import Activation
from nnbuild.ops.site import Site, site_of
from nnbuild.plan.chain import Work
from nnbuild.plan.code_size import Code, code_of, total
from nnbuild.plan.printed import plain_names
from nnbuild.plan.select import Choice, Offer, Price, refusal
from nnbuild.plan.shared_code import choose_by_program_size, exchange_of, program_bytes
from nnbuild.plan.target import Target
from tests.kernels.cases import cases
from tests.support.quantized import quantized

SUM = Instruction("sum", "int32_t {name}(int32_t a, int32_t b)", "return a + b;", 1)
LONG = replace(SUM, name="long", outlined=True)
PLAIN = Target(C99)


def kinds(line: str) -> dict[str, int]:
    found = Counter(measure_c(f"void f(float *in, int64_t wide)\n{{\n    {line}\n}}\n").kinds)
    return dict(found - Counter(function=1, parameter=1))


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("x = y + 3;", {"assign": 1, "operation": 1}),
        ("x += a[4 + 1] * b[i];", {"operation": 2, "memory": 2}),
        (
            "const float value = in[row * 48 + 2] * 2.5f;",
            dict(assign=1, float=1, float_memory=1, float_literal=1, address=1),
        ),
        ("to[0] = (int8_t)(x > 127 ? 127 : x);", {"memory": 1, "assign": 1, "narrow": 1, "compare": 1, "select": 1}),
        ("const int32_t high = (int32_t)(wide >> 32);", {"assign": 1}),
        ("for (int32_t i = 0; i < 9; ++i) {", {"loop": 1}),
        ("x = y & 123456;", {"assign": 1, "operation": 1, "literal": 1}),
        ("__m256 v = _mm256_add_ps(a, b);", {"assign": 1, "vector": 1}),
        ("int32x4_t v = vaddq_s32(a, vreinterpretq_s32_s8(b));", {"assign": 1, "vector": 1}),
        ("vint32m4_t v = __riscv_vadd_vx_i32m4(a, x, 16);", {"assign": 1, "vector": 1}),
        ("typedef int32x4_t __attribute__((aligned(4), may_alias)) seen;", {}),
    ],
)
def test_what_a_line_consists_of(line: str, wanted: dict[str, int]) -> None:
    assert kinds(line) == wanted


def test_every_family_has_every_kind() -> None:
    assert all(encoding.bytes.keys() == KINDS.keys() for encoding in ENCODINGS)


@pytest.mark.slow
def test_other_names_change_no_price() -> None:
    """Every variable of every kernel gets another name."""
    makers = dict(cases())
    for name in ("conv2d-10", "depthwise-1-1", "dense-7", "pool-average-1", "softmax-2-1"):
        graph = quantized(makers[name](), "int8", seed=1, same_scale=name.startswith("pool"))
        site = site_of(graph, graph.ops[0])
        for isa in ("armv7em_dsp", "avx2_fma"):
            for kernel in variants(graph.ops[0].kind):
                if refusal(kernel, site, Target(isas()[isa])) is None:
                    w = Writer("m")
                    kernel.emit(w, site, plain_names(site, kernel.demand(site)))
                    text = f"void f(void)\n{{\n{w}}}\n"
                    declared = set(re.findall(r"(?:int32_t|float|int8_t \*|int64_t|__m256i) (\w+) = ", text))
                    other = text
                    for variable in declared:
                        other = re.sub(rf"\b{variable}\b", f"renamed_{variable}_at_length", other)
                    assert not declared or other != text
                    assert measure_c(other).kinds == measure_c(text).kinds


def body(*calls: Instruction) -> Writer:
    w = Writer("m")
    for call in calls:
        w(f"x = {w.call(call, 'x', 'y')};")
    return w


def test_a_routine_counts_once_in_a_program() -> None:
    one, two = code_of(body(LONG), THUMB2), code_of(body(LONG, LONG), THUMB2)
    assert one.shared == two.shared
    assert one.shared["long"] > 0
    assert total([one, two]) == one.own + two.own + one.shared["long"]


def test_what_is_inlined_counts_where_it_is() -> None:
    none, one, three = (code_of(body(*[SUM] * count), THUMB2) for count in (0, 1, 3))
    assert not three.shared
    assert three.own - one.own == pytest.approx(2 * (one.own - none.own), abs=2)


def work(*offers: tuple[str, Code]) -> Work:
    site = Site(Op("op", Activation("tanh"), ("x",), ("y",)), (Tensor("x", (9,)),), (Tensor("y", (9,)),), {})
    demand = Demand(1)
    made = [Kernel(name, frozenset(), lambda _: None, lambda _: demand, lambda *_: None) for name, _ in offers]
    prices = [Price(1, 0, partial(replace, code), 0) for _, code in offers]
    return Work(site, Choice(tuple(map(Offer, made, [demand] * len(made), prices)), ()))


def test_steps_come_to_share_a_routine() -> None:
    """Each alone would take its own loop of 250 bytes; three of them are smaller on one routine."""
    each = work(("own", Code(250)), ("shared", Code(100, {"tile": 200})))
    assert program_bytes([item.choice for item in [each] * 3]) == 750
    assert program_bytes([item.choice for item in choose_by_program_size([each] * 3)]) == 500
    assert choose_by_program_size([each])[0].choice.price.code.own == 250


def test_a_routine_is_weighed_against_what_all_steps_gain_by_it() -> None:
    """Its 30 bytes are 3 % of the program: for one of three steps, 9 % of the time are too little; for all, enough,
    unless accuracy is given up for bytes, or no byte is traded."""

    def step(fast: float) -> Work:
        each = work(("small", Code(300)), ("fast", Code(300, {"tile": 30})))
        prices = (replace(each.choice.offers[0].price, cycles=100), replace(each.choice.offers[1].price, cycles=fast))
        offers = (replace(o, price=p) for o, p in zip(each.choice.offers, prices, strict=True))
        return replace(each, choice=Choice(tuple(offers), ()))

    def taken(steps: list[Work], target: Target = PLAIN) -> list[str]:
        return [item.choice.kernel.name for item in choose_by_program_size(steps, exchange_of(target))]

    assert taken([step(73), step(100), step(100)]) == ["small"] * 3
    assert taken([step(73)] * 3) == ["fast"] * 3
    assert taken([step(84)] * 3, replace(PLAIN, compressed=True)) == ["small"] * 3
    assert taken([step(84)] * 3) == ["fast"] * 3
    assert taken([step(73)] * 3, replace(PLAIN, min_size=True)) == ["small"] * 3


@pytest.mark.turns(14)
@pytest.mark.slow
@pytest.mark.skipif(
    None in map(shutil.which, ("arm-none-eabi-gcc", "riscv64-unknown-elf-gcc")), reason="needs compilers of boards"
)
@pytest.mark.parametrize(
    ("model", "board"),
    [
        *((name, "mps2-an386") for name in ("kws", "resnet8", "mnist", "autoencoder")),
        *(("mnist", board) for board in ("linux", "mps3-an547", "rv32", "rv32-zve32x", "microbit")),
    ],
)
def test_estimates_are_near_the_objects(model: str, board: str) -> None:
    from benchmarks.code_size import TOLERANCE, objects, rows

    found = [one for row in rows() if row.model == model and row.board == board for one in objects(row)]
    if not found:
        pytest.skip("the model is not there")
    assert [f"{one.name}: {one.estimate} for {one.text}" for one in found if abs(one.off) > TOLERANCE] == []
    assert np.mean([abs(one.off) for one in found]) < TOLERANCE / 2
