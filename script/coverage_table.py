#!/usr/bin/env python3
"""Writes docs/coverage.md. A type counts as covered if a test file proves it."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nnbuild.frontend.tflite.folding import FOLDS
from nnbuild.frontend.tflite.importer import OPERATORS
from nnbuild.frontend.tflite.variables import KINDS as VARIABLES
from tests.frontend.tflite_files import File
from tests.fuzz.tflite_seeds import SEEDS, WITHOUT_REFERENCE

PAGE = Path(__file__).resolve().parents[1] / "docs" / "coverage.md"
COLUMNS = {"float32": "float32", "int8": "int8", "int16": "int16"}
OTHER = "whole numbers"
"""int32, int64, uint8 and booleans."""

REFERENCE = """
ABS ADD ADD_N ARG_MAX ARG_MIN ASSIGN_VARIABLE ATAN2 AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND
BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN BITCAST BITWISE_XOR BROADCAST_ARGS BROADCAST_TO BUCKETIZE
CALL_ONCE CAST COMPLEX_ABS CONCATENATION CONV_2D CONV_3D CONV_3D_TRANSPOSE COS CUMSUM DENSIFY DEPTHWISE_CONV_2D
DEPTH_TO_SPACE DEQUANTIZE DILATE DIV DYNAMIC_UPDATE_SLICE EMBEDDING_LOOKUP EMBEDDING_LOOKUP_SPARSE EQUAL EXP EXPAND_DIMS
FAKE_QUANT FILL FLOOR FLOOR_DIV FLOOR_MOD FULLY_CONNECTED GATHER GATHER_ND GELU GREATER GREATER_EQUAL HARD_SWISH
HASHTABLE_LOOKUP IF IMAG L2_NORMALIZATION L2_POOL_2D LEAKY_RELU LESS LESS_EQUAL LOCAL_RESPONSE_NORMALIZATION LOG
LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX LSH_PROJECTION LSTM MATRIX_DIAG MATRIX_SET_DIAG MAXIMUM
MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL MULTINOMIAL NEG NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 NOT_EQUAL ONE_HOT
PACK PAD PADV2 POW PRELU QUANTIZE RANDOM_STANDARD_NORMAL RANDOM_UNIFORM RANGE RANK READ_VARIABLE REAL REDUCE_ALL
REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_WINDOW RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR
RESIZE_NEAREST_NEIGHBOR REVERSE_SEQUENCE REVERSE_V2 RFFT2D RIGHT_SHIFT RNN RSQRT SCATTER_ND SELECT SELECT_V2 SHAPE SIGN
SIN SKIP_GRAM SLICE SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPARSE_TO_DENSE SPLIT SPLIT_V SQRT SQUARE
SQUARED_DIFFERENCE SQUEEZE STABLEHLO_ADD STABLEHLO_COMPOSITE STABLEHLO_GATHER STABLEHLO_MAXIMUM STABLEHLO_MINIMUM
STABLEHLO_MULTIPLY STABLEHLO_PAD STABLEHLO_REDUCE_WINDOW STABLEHLO_RNG_BIT_GENERATOR STABLEHLO_SCATTER STRIDED_SLICE SUB
SUM SVDF TANH TILE TOPK_V2 TRANSPOSE TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN UNIQUE
UNPACK UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM VAR_HANDLE WHERE WHILE
ZEROS_LIKE
""".split()
"""Operators that the interpreter of ai-edge-litert 2.3 registers with its reference resolver; a test checks this
list."""

MICRO = """
ABS ADD ADD_N ARG_MAX ARG_MIN ASSIGN_VARIABLE AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND BROADCAST_ARGS BROADCAST_TO
CALL_ONCE CAST CEIL CONCATENATION CONV_2D COS CUMSUM DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE DIV
DYNAMIC_UPDATE_SLICE ELU EMBEDDING_LOOKUP EQUAL EXP EXPAND_DIMS FILL FLOOR FLOOR_DIV FLOOR_MOD FULLY_CONNECTED GATHER
GATHER_ND GREATER GREATER_EQUAL HARD_SWISH IF L2_NORMALIZATION L2_POOL_2D LEAKY_RELU LESS LESS_EQUAL LOG LOGICAL_AND
LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL NEG NOT_EQUAL PACK PAD PADV2
PRELU QUANTIZE READ_VARIABLE REDUCE_MAX REDUCE_MIN RELU RELU6 RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2
ROUND RSQRT SELECT_V2 SHAPE SIN SLICE SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE
SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM SVDF TANH TRANSPOSE TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK
VAR_HANDLE WHILE ZEROS_LIKE
""".split()
"""Operators in TFLite Micro's list of registrations."""

CMSIS = """
ADD AVERAGE_POOL_2D BATCH_MATMUL CONCATENATION CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED LOGISTIC MAXIMUM MAX_POOL_2D
MINIMUM MUL PAD RELU RELU6 RESHAPE SOFTMAX SVDF TANH TRANSPOSE TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM
""".split()
"""Operators for which CMSIS-NN 7 has functions, in int8 or int16."""

SHAPES = "its output's size depends on the values, and memory is planned before the model runs"
RANDOM = "its output is random, so it could not be checked"
TEXT = "it works on strings or hash tables"
WHY: dict[str, str] = {
    **dict.fromkeys(("UNIQUE", "WHERE"), SHAPES),
    **dict.fromkeys(("RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "MULTINOMIAL", "STABLEHLO_RNG_BIT_GENERATOR"), RANDOM),
    **dict.fromkeys(("HASHTABLE_LOOKUP", "LSH_PROJECTION", "SKIP_GRAM"), TEXT),
    "ATAN2": "the float library has no arc tangent",
    "BITCAST": "bits are not reinterpreted as another type",
    "EMBEDDING_LOOKUP_SPARSE": "no converter has been seen to write it",
    "LSTM": "UNIDIRECTIONAL_SEQUENCE_LSTM replaced it",
    **dict.fromkeys(("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"), "choose the boxes outside the model"),
    **dict.fromkeys(("STABLEHLO_GATHER", "STABLEHLO_SCATTER"), "GATHER, GATHER_ND and SCATTER_ND are read instead"),
    "STABLEHLO_PAD": "PAD, PADV2 and DILATE are read instead",
    "STABLEHLO_REDUCE_WINDOW": "REDUCE_WINDOW is read instead",
}
"""Reasons for operators that are not supported."""

MISSING: dict[str, tuple[str, str]] = {
    "CAST": ("int8, int16", "numbers with a scale go through QUANTIZE and DEQUANTIZE"),
    "DIV": ("int16", "converters leave it in float32"),
    "FAKE_QUANT": (f"int8, int16, {OTHER}", "TFLite reads any bytes as floats"),
    "NEG": ("int8, int16", "converters leave it in float32, as TFLite's kernel ignores the scales"),
    "POW": (OTHER, "converters write products"),
    "PRELU": ("int16", "TFLite's kernel multiplies in 32 bits, which overflow"),
    "SQRT": ("int16", "converters leave it in float32"),
    **{
        kind: ("int8, int16", "TFLite ignores the scales, so the result means nothing")
        for kind in (
            *("BITWISE_XOR", "FLOOR_DIV", "FLOOR_MOD", "REDUCE_WINDOW", "RIGHT_SHIFT"),
            *("STABLEHLO_ADD", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM", "STABLEHLO_MULTIPLY"),
        )
    },
}
"""Types that TFLite computes but nnbuild does not, for operators that it otherwise supports, with the reasons."""

REMARKS: dict[str, str] = {
    "BROADCAST_ARGS": "constant inputs only",
    "DENSIFY": "of constants",
    "DIV": "in int8 exact halves are rounded away from zero, by TFLite to either side; what is near zero differs where "
    "scales are less than 64 times apart, as TFLite's shift is undefined there",
    "DYNAMIC_UPDATE_SLICE": "at a constant position",
    "EMBEDDING_LOOKUP": "of a constant table",
    "FAKE_QUANT": "its range becomes the scale under --quantize",
    "GATHER": "indices constant or computed",
    "GATHER_ND": "indices constant",
    **dict.fromkeys(("COMPLEX_ABS", "IMAG", "REAL", "RFFT2D"), "between them RESHAPE, EXPAND_DIMS, SQUEEZE and MUL"),
    "IF": "both branches are computed, and one is chosen; they keep no state",
    "RANGE": "constant inputs only",
    "SCATTER_ND": "indices constant",
    "SPARSE_TO_DENSE": "indices constant",
    "WHILE": "a known number of steps; a loop over an LSTM, GRU or SimpleRNN becomes that layer, others are repeated",
    "SUM": "in int8 and int16 as MEAN without the division: TFLite's reference kernel reads beyond its data",
    **dict.fromkeys(("RNN", "SVDF", *VARIABLES), "its state is kept between runs"),
    **dict.fromkeys((f"UNSORTED_SEGMENT_{f}" for f in ("MAX", "MIN", "PROD", "SUM")), "segments constant"),
}
UNPROVEN = {"SUM": ("int8", "int16")}
"""Supported, but without a sound kernel to compare with."""


def proven() -> dict[str, set[str]]:
    """Operator -> the columns in which test files are compared with TFLite."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, file in SEEDS.items():
        if name in WITHOUT_REFERENCE:
            continue
        for operator in file.operators:
            ends = (file.inputs, file.outputs) if operator.kind in VARIABLES else (operator.inputs, operator.outputs)
            found[operator.kind].add(_column(file, *ends))
    return found


def _column(file: File, inputs: object, outputs: object) -> str:
    """The type of the first computed tensor, or of the inputs that hold numbers."""
    read = [file.tensors[i] for i in inputs if i >= 0]  # type: ignore[attr-defined]
    made = [file.tensors[i] for i in outputs]  # type: ignore[attr-defined]
    computed = [t for t in read if t.data is None]
    chosen = [t for t in made if t.dtype in COLUMNS] or computed or made
    kinds = {t.dtype for t in computed} | {made[0].dtype}
    if computed and made[0].dtype == "bool":
        chosen = computed
    return COLUMNS.get(chosen[0].dtype, OTHER) if kinds else OTHER


def rows() -> list[list[str]]:
    found = proven()
    made = []
    for kind in REFERENCE:
        types, why = MISSING.get(kind, ("", ""))
        cells = []
        for column in (*COLUMNS, OTHER):
            if column in found.get(kind, ()):
                cells.append("yes")
            elif column in UNPROVEN.get(kind, ()):
                cells.append("read")
            else:
                cells.append("no" if column in types.split(", ") else "-")
        covered = "yes" if kind in found else "no"
        remark = "; ".join(filter(None, (REMARKS.get(kind, ""), f"{types}: {why}" if types else "", WHY.get(kind, ""))))
        others = ["yes" if kind in names else "-" for names in (MICRO, CMSIS)]
        made.append([kind, covered, *cells, *others, remark])
    return made


def page() -> str:
    table = rows()
    covered = [row for row in table if row[1] == "yes"]
    whole = [row for row in covered if "no" not in row[2:6]]
    read = sorted(set(OPERATORS) | set(FOLDS) | set(VARIABLES) | {"SHAPE", "RANK", "ZEROS_LIKE"})
    beyond = [kind for kind in read if kind not in REFERENCE]
    lines = [
        "# Coverage of TensorFlow Lite",
        "",
        "<!-- Written by script/coverage_table.py from the files of the tests. -->",
        "",
        "This table lists every operator for which TFLite's interpreter (ai-edge-litert 2.3) has a reference kernel.",
        f"Of {len(table)} operators {len(covered)} are covered, {len(whole)} of them in every type that TFLite",
        f"computes. {' and '.join(beyond)} are covered, too, but TFLite has no reference kernel for them.",
        "",
        "| entry | meaning |",
        "|---|---|",
        "| `yes` | the tests compare a file with this operator in this type with the interpreter, in numpy and in "
        "compiled C: equal in every bit, floats within 1e-5 |",
        "| `read` | nnbuild computes it, but TFLite has no sound kernel to compare with |",
        "| `no` | TFLite computes it, nnbuild does not |",
        "| `-` | TFLite does not compute this type, or the operator is not covered |",
        "",
        "The last columns show the operators that TFLite Micro registers and those with a function in CMSIS-NN, from",
        "their public lists.",
        "",
        "| operator | covered | float32 | int8 | int16 | whole numbers | TFLite Micro | CMSIS-NN | remark |",
        "|---|---|---|---|---|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in table),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
