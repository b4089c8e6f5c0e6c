"""The table of vector operations: each name has one meaning, and no operand has the name of a kind of value."""

from __future__ import annotations

from nnbuild.isa.across_ops import ACROSS
from nnbuild.isa.byte_ops import BYTES
from nnbuild.isa.integer_ops import INTEGERS
from nnbuild.isa.ops import FLOATS, KINDS, Operation
from nnbuild.isa.pair_ops import PAIRS
from nnbuild.isa.registry import vector_sets
from nnbuild.isa.vectors import OPERATIONS


def test_no_two_rows_have_one_name() -> None:
    assert len(OPERATIONS) == len(FLOATS) + len(INTEGERS) + len(BYTES) + len(PAIRS) + len(ACROSS)


def test_sets_spell_rows_of_the_table() -> None:
    assert [name for vectors in vector_sets() for name in vectors.spellings if name not in OPERATIONS] == []


def test_no_operand_is_called_as_a_kind_of_values() -> None:
    rows = [row for row in OPERATIONS.values() if isinstance(row, Operation)]
    operands = [operand.split()[-1].lstrip("*") for row in rows for operand in row.operands.split(", ")]
    assert set(operands).isdisjoint(KINDS)


def test_no_set_computes_a_root_by_its_meaning_in_double_precision() -> None:
    sets = [vectors for vectors in vector_sets() if "float" in vectors.kernels]
    assert sets and [vectors.name for vectors in sets if "f_sqrt" not in vectors.spellings] == []
