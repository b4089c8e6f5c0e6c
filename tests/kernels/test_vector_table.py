"""The table of vector operations: each name has one meaning, and no operand has the name of a kind of value."""

from __future__ import annotations

from nnbuild.base.writer import Writer
from nnbuild.isa.across_ops import ACROSS
from nnbuild.isa.byte_ops import BYTES
from nnbuild.isa.integer_ops import INTEGERS
from nnbuild.isa.mve import HELIUM
from nnbuild.isa.ops import FLOATS, KINDS, Operation
from nnbuild.isa.pair_ops import PAIRS
from nnbuild.isa.registry import vector_sets
from nnbuild.isa.vectors import NUMBERS, OPERATIONS, instructions_spelt


def test_no_two_rows_have_one_name() -> None:
    assert len(OPERATIONS) == len(FLOATS) + len(INTEGERS) + len(BYTES) + len(PAIRS) + len(ACROSS) + len(NUMBERS)


def test_sets_spell_rows_of_the_table() -> None:
    assert [name for vectors in vector_sets() for name in vectors.spellings if name not in OPERATIONS] == []


def test_no_operand_is_called_as_a_kind_of_values() -> None:
    rows = [row for row in OPERATIONS.values() if isinstance(row, Operation)]
    operands = [operand.split()[-1].lstrip("*") for row in rows for operand in row.operands.split(", ")]
    assert set(operands).isdisjoint(KINDS)


def test_no_set_computes_a_root_by_its_meaning_in_double_precision() -> None:
    sets = [vectors for vectors in vector_sets() if "float" in vectors.kernels]
    assert sets and [vectors.name for vectors in sets if "f_sqrt" not in vectors.spellings] == []


def test_in_order_an_operation_costs_the_instructions_of_its_spelling() -> None:
    assert instructions_spelt("vaddq_s32(a, vreinterpretq_s32_u32(b))") == 1
    assert instructions_spelt("vldrbq_s32(from)") == 2  # and its address
    assert instructions_spelt("vldrbq_z_s32(from, vctp32q(3))") == 4  # and its predicate
    assert instructions_spelt("vpselq_f32(a, b, vcmpgtq_f32(a, b))") == 5  # a predicate by way of a core register
    assert instructions_spelt('__asm__("vmov %0, %1\\n\\tvmov %2, %3" : "=w"(r) : "w"(a));') == 2
    assert instructions_spelt('__asm__("" : "+w"(product));') == 0
    assert (HELIUM.price("add"), HELIUM.price("total_long"), HELIUM.price("round_each")) == (1, 1, 2)
    assert instructions_spelt("__riscv_vadd_vv_i32m4(a, __riscv_vreinterpret_v_u32m4_i32m4(b), 16)") == 1
    assert instructions_spelt("__riscv_vle32_v_i32m4(from, 16)") == 2  # and its address
    assert instructions_spelt("__riscv_vsmul_vv_i32m4(a, b, __RISCV_VXRM_RNU, 16)") == 2  # and the rounding


def test_a_number_is_a_scalar_where_a_set_has_instructions_for_it() -> None:
    for vectors in vector_sets():
        w = Writer("p")
        alone = "add_by" in vectors.spellings
        if "add" in vectors.spellings:
            assert vectors.call(w, "add", "a", 3).endswith("add_by(a, 3)") == alone, vectors.name
