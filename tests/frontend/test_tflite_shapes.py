"""The arithmetic of shapes that converters write for an open batch: computed while a file is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import passes
from nnbuild.base.errors import ModelError, UsageError
from nnbuild.frontend import load
from nnbuild.frontend.assembly import Assembly
from nnbuild.frontend.import_options import DEFAULTS, ImportOptions
from nnbuild.frontend.tflite import read
from nnbuild.frontend.tflite.call import Call
from nnbuild.frontend.tflite.folding import FOLDS, folded
from nnbuild.frontend.tflite.records import Tensor
from nnbuild.ops import interpret
from tests.frontend.tflite_files import File, O, T, to_bytes
from tests.fuzz.tflite_seeds import numbers

Values = list[tuple[Any, Any]]


def computed(name: str, rank: int, dtype: str = "int32") -> T:
    return T(name, (1,) * rank, dtype, (), (), signature=(-1,) * rank)


class Writer:
    """Builds a file operator by operator."""

    def __init__(self, *inputs: T) -> None:
        self.tensors: list[T] = list(inputs)
        self.operators: list[O] = []
        self.inputs = list(range(len(inputs)))

    def tensor(self, one: T) -> int:
        self.tensors.append(one)
        return len(self.tensors) - 1

    def number(self, value: Any) -> int:
        return self.tensor(numbers(f"c{len(self.tensors)}", value))

    def op(self, kind: str, inputs: list[int], out: T, options: str = "NONE", **values: Any) -> int:
        place = self.tensor(out)
        self.operators.append(O(kind, inputs, [place], options, values))
        return place

    def load(self, folder: Path, output: int, options: ImportOptions = DEFAULTS) -> Any:
        path = folder / "net.tflite"
        path.write_bytes(to_bytes(File(self.tensors, self.operators, self.inputs, [output])))
        return load(path, options=options)


@pytest.mark.parametrize("seed", range(12))
def test_a_shape_that_is_worked_out_in_any_way_is_known(seed: int, tmp_path: Path) -> None:
    """SHAPE, then whatever leads from it to the sizes that a RESHAPE takes."""
    chance = np.random.default_rng(seed)
    sizes = tuple(int(n) for n in chance.integers(1, 6, chance.integers(2, 5)))
    w = Writer(T("x", (1, *sizes), "float32", (), (), signature=(-1, *sizes)))
    shape = w.op("SHAPE", [0], T("shape", (len(sizes) + 1,), "int32", (), ()), "ShapeOptions", OutType=2)
    kept = int(chance.integers(1, len(sizes) + 1))
    parts = [_axis(w, shape, i, chance) for i in range(kept)]
    rest = w.op("GATHER", [shape, w.number(range(kept, len(sizes) + 1))], computed("rest", 1), "GatherOptions", Axis=0)
    last = w.op("REDUCE_PROD", [rest, w.number([0])], computed("last", 0), "ReducerOptions", KeepDims=False)
    target = w.op("PACK", [*parts, last], computed("to", 1), "PackOptions", Axis=0, ValuesCount=kept + 1)
    out = w.op("RESHAPE", [0, target], T("out", (1,) * (kept + 1), "float32", (), (), signature=(-1,) * (kept + 1)))
    graph = w.load(tmp_path, w.op("ABS", [out], computed("abs", kept + 1, "float32")))
    (x,), (y,) = graph.inputs, graph.outputs
    assert graph.tensors[y].shape == (*sizes[: kept - 1], int(np.prod(sizes[kept - 1 :])))
    given = chance.normal(size=(2, *sizes)).astype(np.float32)
    found = interpret.run(passes.run(graph), {x: given})[y]
    np.testing.assert_array_equal(found.reshape(-1), np.abs(given).reshape(-1))


def _axis(w: Writer, shape: int, axis: int, chance: np.random.Generator) -> int:
    """One size, in one of the ways in which converters take it."""
    if chance.random() < 0.5:
        ends = [w.number([axis]), w.number([axis + 1]), w.number([1])]
        return w.op("STRIDED_SLICE", [shape, *ends], computed("n", 0), "StridedSliceOptions", ShrinkAxisMask=1)
    one = w.op("GATHER", [shape, w.number([axis])], computed("n", 1), "GatherOptions", Axis=0)
    scaled = w.op("MUL", [one, w.number([3])], computed("n3", 1), "MulOptions")
    back = w.op("FLOOR_DIV", [scaled, w.number([3])], computed("n1", 1), "FloorDivOptions")
    return w.op("SQUEEZE", [back], computed("n0", 0), "SqueezeOptions")


def test_parts_of_a_shape_may_be_empty(tmp_path: Path) -> None:
    """As tf.signal.frame splits it, and takes a number of a part."""
    w = Writer(T("x", (1, 6, 4), "float32", (), (), signature=(-1, 6, 4)))
    shape = w.op("SHAPE", [0], T("shape", (3,), "int32", (), ()), "ShapeOptions", OutType=2)
    ends = [w.tensor(T(f"part{i}", (n,), "int32", (), ())) for i, n in enumerate((1, 2, 0))]
    w.operators.append(
        O("SPLIT_V", [shape, w.number([1, -1, 0]), w.number(0)], ends, "SplitVOptions", {"NumSplits": 3})
    )
    first = w.op("RESHAPE", [ends[0], w.tensor(T("single", (0,), "int32", (), ()))], T("n", (), "int32", (), ()))
    rest = w.op("REDUCE_PROD", [ends[1], w.number([0])], computed("rest", 0), "ReducerOptions", KeepDims=False)
    target = w.op("PACK", [first, rest], computed("to", 1), "PackOptions", Axis=0, ValuesCount=2)
    out = w.op("RESHAPE", [0, target], T("out", (1, 1), "float32", (), (), signature=(-1, -1)))
    graph = w.load(tmp_path, out)
    assert graph.tensors[graph.outputs[0]].shape == (24,)


def sizes(folder: Path, **shapes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Those of an input and an output that leave their axes open."""
    w = Writer(T("image", (1, 1, 1, 3), "float32", (), (), signature=(-1, -1, -1, 3)))
    out = w.op("ABS", [0], T("out", (1, 1, 1, 3), "float32", (), (), signature=(-1, -1, -1, 3)))
    graph = w.load(folder, out, ImportOptions(shapes))
    return [graph.tensors[name].shape for name in (*graph.inputs, *graph.outputs)]


def test_an_open_axis_is_named_with_the_input_that_leaves_it_open(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        sizes(tmp_path)
    assert str(caught.value) == (
        "input 'image': its axes 1, 2 of 4 are open, but memory is planned at compile time. "
        "Give them sizes: --shape image=1,N,N,3."
    )


def test_open_axes_take_the_sizes_given(tmp_path: Path) -> None:
    assert sizes(tmp_path, image=(1, 5, 7, 3)) == [(5, 7, 3)] * 2


@pytest.mark.parametrize("shape", [(1, 5, 7, 4), (2, 5, 7, 3), (5, 7, 3)])
def test_sizes_of_other_axes_are_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--shape image: it does not fit the file's 1,N,N,3, .* image=1,N,N,3\."):
        sizes(tmp_path, image=shape)


def test_sizes_of_an_unknown_input_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--shape x: the inputs of net\.tflite are image\. Name one"):
        sizes(tmp_path, x=(1, 2, 2, 3))


def constants() -> Iterator[tuple[str, Values, str, dict[str, Any]]]:
    """(kind, inputs with the types they have, options) for every operator that is folded."""
    ints = [([[1, -2, 3], [4, 5, -6]], "int32"), ([[2, 3, -4]], "int32")]
    floats = [([[0.5, 2.5], [4.0, 1.25]], "float32")]
    for kind, options in (("ADD", "Add"), ("SUB", "Sub"), ("MUL", "Mul"), ("DIV", "Div")):
        yield kind, ints, f"{options}Options", {}
    for kind in "FLOOR_DIV FLOOR_MOD MAXIMUM MINIMUM EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL".split():
        yield kind, ints, "NONE", {}
    for kind in "NEG ABS SQRT RSQRT SQUARE FLOOR CEIL ZEROS_LIKE".split():
        yield kind, floats, "NONE", {}
    bounds8 = {"Min": -1.0, "Max": 3.0, "NumBits": 8}
    yield "FAKE_QUANT", floats, "FakeQuantOptions", bounds8
    for kind in ("LOGICAL_AND", "LOGICAL_OR"):
        yield kind, [([True, True, False], "bool"), ([True, False, False], "bool")], "NONE", {}
    yield "LOGICAL_NOT", [([True, False], "bool")], "NONE", {}
    yield "CAST", floats, "CastOptions", {"InDataType": 0, "OutDataType": 2}
    yield "SELECT", [([[True, False, True]] * 2, "bool"), ints[0], ints[0]], "NONE", {}
    yield "SELECT_V2", [([True, False, True], "bool"), *ints], "NONE", {}
    yield "SLICE", [ints[0], ([0, 1], "int32"), ([-1, 2], "int32")], "NONE", {}
    bounds = [([0, 2], "int32"), ([2, 0], "int32"), ([1, -1], "int32")]
    yield "STRIDED_SLICE", [ints[0], *bounds], "StridedSliceOptions", {"EndMask": 1}
    yield "PACK", [ints[0], ints[0]], "PackOptions", {"Axis": 1, "ValuesCount": 2}
    yield "UNPACK", [([[7, 8, 9]], "int32")], "UnpackOptions", {"Axis": 0, "Num": 1}
    yield "SPLIT", [(1, "int32"), ints[0]], "SplitOptions", {"NumSplits": 1}
    yield "SPLIT_V", [ints[0], ([-1], "int32"), (1, "int32")], "SplitVOptions", {"NumSplits": 1}
    yield "CONCATENATION", [ints[0], ints[0]], "ConcatenationOptions", {"Axis": 1}
    yield "GATHER", [ints[0], ([2, 0, 0], "int32")], "GatherOptions", {"Axis": 1}
    yield "GATHER_ND", [ints[0], ([[1, 2], [0, 0]], "int32")], "NONE", {}
    yield "RANGE", [(2, "int32"), (11, "int32"), (3, "int32")], "NONE", {}
    yield "FILL", [([2, 3], "int32"), (7, "int32")], "NONE", {}
    yield "BROADCAST_TO", [ints[1], ([4, 3], "int32")], "NONE", {}
    yield "BROADCAST_ARGS", [([4, 1], "int32"), ([2, 1, 3], "int32")], "NONE", {}
    yield "TILE", [ints[0], ([2, 2], "int32")], "NONE", {}
    one_hot = [([0, 2, 1], "int32"), (4, "int32"), (1.0, "float32"), (-1.0, "float32")]
    yield "ONE_HOT", one_hot, "OneHotOptions", {"Axis": -1}
    yield "PAD", [floats[0], ([[1, 0], [0, 2]], "int32")], "NONE", {}
    yield "PADV2", [floats[0], ([[1, 0], [0, 2]], "int32"), (3.0, "float32")], "NONE", {}
    for kind in ("SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"):
        yield kind, [ints[0], ([1], "int32")], "ReducerOptions", {"KeepDims": kind == "SUM"}
    for kind in ("REDUCE_ANY", "REDUCE_ALL"):
        yield kind, [([[True, False], [True, True]], "bool"), ([1], "int32")], "ReducerOptions", {}
    yield "RESHAPE", [ints[0], ([3, -1], "int32")], "NONE", {}
    yield "SQUEEZE", [ints[1]], "SqueezeOptions", {}
    yield "EXPAND_DIMS", [ints[0], (1, "int32")], "NONE", {}
    yield "TRANSPOSE", [ints[0], ([1, 0], "int32")], "NONE", {}


CONSTANTS = list(constants())
BOOLEAN = ("EQUAL", "NOT_EQUAL", "LESS", "GREATER", "LOGICAL", "REDUCE_ANY", "REDUCE_ALL")


def written(kind: str, given: Values, options: str, values: dict[str, Any], shape: tuple[int, ...] | None) -> File:
    arrays = [np.asarray(value, dtype) for value, dtype in given]
    first = arrays[1] if kind.startswith("SELECT") else arrays[2] if kind == "ONE_HOT" else arrays[0]
    first = arrays[1] if kind == "FILL" else first
    dtype = "bool" if kind.startswith(BOOLEAN) else "int32" if kind == "CAST" else first.dtype.name
    open_as = (-1,) * 4 if shape is None else ()
    out = T("out", shape if shape is not None else (1,) * 4, dtype, (), (), signature=open_as)
    parts = [T(f"c{i}", a.shape, a.dtype.name, (), (), data=a) for i, a in enumerate(arrays)]
    x = T("x", (1, 2), "float32", (), ())
    version = 2 if kind == "BROADCAST_TO" else 1
    operator = O(kind, range(1, len(parts) + 1), [len(parts) + 1], options, values, version=version)
    return File([x, *parts, out], [operator], [0], [])


def result(file: File, path: Path) -> np.ndarray:
    path.write_bytes(to_bytes(File(file.tensors, file.operators, [0], [0])))
    found: dict[int, Tensor] = {}
    (operator,) = read(path).operators
    assert folded(Call(Assembly("net"), operator, {}, found, 1))
    (out,) = found.values()
    return out.values()


def test_every_folded_operator_is_tested() -> None:
    assert {kind for kind, *_ in CONSTANTS} == {*FOLDS, "ZEROS_LIKE"}


@pytest.mark.oracle
@pytest.mark.parametrize("case", CONSTANTS, ids=[kind for kind, *_ in CONSTANTS])
def test_constants_are_what_tflite_computes(case: tuple[str, Values, str, dict[str, Any]], tmp_path: Path) -> None:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    path = tmp_path / "net.tflite"
    found = result(written(*case, None), path)
    file = written(*case, found.shape)
    path.write_bytes(to_bytes(File(file.tensors, file.operators, [0], [len(file.tensors) - 1])))
    kinds = interpreter.OpResolverType  # the reference kernels lack CEIL
    resolver = kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES if case[0] == "CEIL" else kinds.BUILTIN_REF
    runner = interpreter.Interpreter(str(path), experimental_op_resolver_type=resolver)
    runner.allocate_tensors()
    runner.invoke()
    wanted = runner.get_tensor(runner.get_output_details()[0]["index"])
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", ["RANGE", "FILL", "TILE", "BROADCAST_TO", "FLOOR_DIV", "RESHAPE"])
def test_odd_constants_are_refused_in_words(kind: str, tmp_path: Path) -> None:
    given, options, values = next((g, o, v) for k, g, o, v in CONSTANTS if k == kind)
    huge = [(np.asarray(v, d) * 0 + (0 if kind == "FLOOR_DIV" else 2**20), d) for v, d in given]
    if kind == "RANGE":
        huge = [(0, "int32"), (2**31 - 1, "int32"), (1, "int32")]
    with pytest.raises(ModelError):
        result(written(kind, huge, options, values, None), tmp_path / "net.tflite")
