"""Models of `.tflite` files that keep variables: what they mean, in numpy and in C, and by TFLite's own interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite")

from nnbuild import cli, passes
from nnbuild.base.errors import ModelError
from nnbuild.frontend import load
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.drawn import drawn
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from tests.frontend.tflite_files import File, O, to_bytes
from tests.support.compiled import run_graph
from tests.support.streaming_files import Net, older_wake_word, wake_word

pytestmark = pytest.mark.slow

SHAPE = (1, 2, 1, 3)
STEPS = 130
"""More than the influence of any input lasts in these files."""
LONG = 10_000


def imported(file: File, folder: Path) -> Graph:
    path = folder / "net.tflite"
    path.write_bytes(to_bytes(file))
    return passes.run(load(path))


def rows(graph: Graph, count: int, seed: int = 0) -> dict[str, Array]:
    chance = np.random.default_rng(seed)
    return {name: drawn(graph, name, chance, count) for name in graph.inputs}


def scene(*, initial: int | None = 3) -> tuple[Net, int, int]:
    net = Net()
    x = net.tensor("x", SHAPE)
    if initial is not None:
        net.once()
    return net, x, net.variable("v", SHAPE, initial) if initial is not None else net.handle("v")


def later_reads_see_assignments() -> File:
    net, x, v = scene()
    before = net.read(v, SHAPE, x)
    net.assign(v, x)
    return net.file([x], [net.add("CONCATENATION", [before, net.read(v, SHAPE, x)], (1, 4, 1, 3), **ROWS)])


def the_last_assignment_stays() -> File:
    net, x, v = scene()
    before = net.read(v, SHAPE, x)
    net.assign(v, x)
    net.assign(v, net.add("MAXIMUM", [before, x], SHAPE, "MaximumMinimumOptions"))
    return net.file([x], [before])


def never_set_but_assigned_first() -> File:
    net, x, v = scene(initial=None)
    net.assign(v, x)
    return net.file([x], [net.add("MAXIMUM", [net.read(v, SHAPE, x), x], SHAPE, "MaximumMinimumOptions")])


def containers_tell_apart() -> File:
    net, x, v = scene()
    other = net.variable("v", SHAPE, 9, container="other")
    out = net.add("CONCATENATION", [net.read(v, SHAPE, x), net.read(other, SHAPE, x)], (1, 4, 1, 3), **ROWS)
    net.assign(other, x)
    net.assign(v, net.add("MINIMUM", [net.read(v, SHAPE, x), x], SHAPE, "MaximumMinimumOptions"))
    return net.file([x], [out])


def two_handles_of_one() -> File:
    net, x, v = scene()
    net.assign(net.handle("v"), x)
    return net.file([x], [net.add("MAXIMUM", [net.read(v, SHAPE, x), x], SHAPE, "MaximumMinimumOptions")])


def only_read() -> File:
    net, x, v = scene()
    return net.file([x], [net.add("MAXIMUM", [net.read(v, SHAPE, x), x], SHAPE, "MaximumMinimumOptions")])


def called_twice() -> File:
    net, x, v = scene()
    net.once()
    before = net.read(v, SHAPE, x)
    net.assign(v, x)
    return net.file([x], [net.add("MAXIMUM", [before, x], SHAPE, "MaximumMinimumOptions")])


def they_change_places() -> File:
    net, x, v = scene()
    w = net.variable("w", SHAPE, 70)
    first, second = net.read(v, SHAPE, x), net.read(w, SHAPE, x)
    net.assign(v, second)
    net.assign(w, first)
    return net.file([x], [net.add("CONCATENATION", [first, x, second], (1, 6, 1, 3), **ROWS)])


def handed_on() -> File:
    """A line of delays, of which one also keeps what is an output."""
    net, x, v = scene()
    w, u = net.variable("w", SHAPE, 70), net.variable("u", SHAPE)
    out = net.add("MAXIMUM", [net.read(u, SHAPE, x), x], SHAPE, "MaximumMinimumOptions")
    net.assign(u, net.read(w, SHAPE, x))
    net.assign(w, net.read(v, SHAPE, x))
    net.assign(v, out)
    return net.file([x], [out])


def read_after_its_new_value_is_known() -> File:
    net, x, v = scene()
    before = net.read(v, SHAPE, x)
    net.assign(v, net.last(net.add("CONCATENATION", [before, x], (1, 4, 1, 3), **ROWS), 2))
    return net.file([x], [net.add("MAXIMUM", [before, x], SHAPE, "MaximumMinimumOptions")])


ROWS = {"options": "ConcatenationOptions", "Axis": 1}
SMALL: dict[str, Callable[[], File]] = {
    made.__name__: made
    for made in (
        *(later_reads_see_assignments, the_last_assignment_stays, never_set_but_assigned_first),
        *(containers_tell_apart, two_handles_of_one, only_read, called_twice),
        *(they_change_places, handed_on, read_after_its_new_value_is_known),
    )
}
NETS: dict[str, Callable[[], File]] = {
    "mixed": lambda: wake_word(1, features=10, first=(8, 5), blocks=(((5,), 12), ((3, 6), 12), ((9,), 8)), end=4),
    "own_beginning": lambda: wake_word(2, features=6, first=(8, 3), blocks=(((2, 4), 8),), end=2, initial=40),
    "float": lambda: wake_word(3, "float32", features=10, first=(8, 5), blocks=(((5,), 12), ((3, 6), 12)), end=4),
    "older": lambda: older_wake_word(4),
}


def by_interpreter(file: File, inputs: dict[str, Array]) -> list[Array]:
    """Every output of every step."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    made = litert.Interpreter(
        model_content=to_bytes(file), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF
    )
    made.allocate_tensors()
    source, targets = made.get_input_details()[0], made.get_output_details()
    found = []
    for row in next(iter(inputs.values())):
        made.set_tensor(source["index"], row.reshape(source["shape"]))
        made.invoke()
        found.append([made.get_tensor(each["index"])[0] for each in targets])
    return [np.stack(each) for each in zip(*found, strict=True)]


def with_states(file: File) -> File:
    """The same, with all that is assigned among its outputs."""
    kept = [o.inputs[1] for o in file.operators if o.kind == "ASSIGN_VARIABLE"]
    return replace(file, outputs=[*file.outputs, *dict.fromkeys(k for k in kept if k not in file.outputs)])


@pytest.mark.oracle
@pytest.mark.parametrize("name", [*SMALL, *NETS])
def test_equals_the_interpreter(name: str, tmp_path: Path) -> None:
    """Outputs and states."""
    file = with_states({**SMALL, **NETS}[name]())
    graph = imported(file, tmp_path)
    inputs = rows(graph, STEPS)
    values = interpret.run(graph, inputs)
    for output, wanted in zip(graph.outputs, by_interpreter(file, inputs), strict=True):
        assert_same(values[output].reshape(wanted.shape), wanted)


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", [*SMALL, *NETS])
def test_c_equals_numpy_and_starts_anew(name: str, tmp_path: Path) -> None:
    """Every tensor, states and all; then with a fresh start for every sample."""
    graph = imported({**SMALL, **NETS}[name](), tmp_path)
    inputs = rows(graph, STEPS)
    for reset_each in (False, True):
        found = run_graph(graph, inputs, tmp_path, apart=not reset_each, reset_each=reset_each, flags=["-O1"])
        wanted = interpret.run(graph, inputs, reset_each=reset_each)
        for output in found:
            assert_same(found[output], wanted[output])


@pytest.mark.oracle
@pytest.mark.full
@pytest.mark.parametrize("build", [wake_word, older_wake_word])
@pytest.mark.parametrize("seed", range(3))
def test_many_steps(build: Callable[[int], File], seed: int, tmp_path: Path) -> None:
    file = with_states(build(seed))
    graph = imported(file, tmp_path)
    inputs = rows(graph, LONG, seed)
    found = run_graph(graph, inputs, tmp_path, flags=["-O2"])
    for output, wanted in zip(graph.outputs, by_interpreter(file, inputs), strict=True):
        assert_same(found[output].reshape(wanted.shape), wanted)


def assert_same(found: Array, wanted: Array) -> None:
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    else:
        np.testing.assert_array_equal(found, wanted)


def test_a_ring_lies_where_it_is(tmp_path: Path) -> None:
    """One read and then one assignment need no copy of the whole."""
    graph = imported(NETS["mixed"](), tmp_path)
    plan = make_plan(graph, "net", Target())
    assert all(plan.locations[state.after] == plan.locations[state.before] for state in graph.states)
    rings = sum(state.after in op.outputs for state in graph.states for op in graph.ops if op.kind == "shift")
    assert rings == len(graph.states) == 5
    assert {op.kind for op in graph.ops if op.kind in ("slice", "concatenate")} == set()
    assert not [op for op in graph.ops if op.name.endswith("kept:op")]


def spoilt(change: Callable[[Net, int, int], None]) -> Callable[[], File]:
    def build() -> File:
        net, x, v = scene(initial=None)
        change(net, x, v)
        return net.file([x], [net.add("MAXIMUM", [x, x], SHAPE, "MaximumMinimumOptions")])

    return build


def unset(net: Net, x: int, v: int) -> None:
    net.read(v, SHAPE, x)


def other_shape(net: Net, x: int, v: int) -> None:
    net.assign(v, x)
    net.assign(v, net.reshape(x, (1, 3, 1, 2)))


def other_type(net: Net, x: int, v: int) -> None:
    net.assign(v, x)
    real = net.tensor("real", SHAPE, "float32")
    net.operators.append(O("DEQUANTIZE", [x], [real]))
    net.assign(v, real)


def late_start(net: Net, x: int, v: int) -> None:
    net.assign(v, x)
    net.variable("v", SHAPE, 3)
    net.once()


def no_handle(net: Net, x: int, v: int) -> None:
    net.assign(x, v)


def other_scale(net: Net, x: int, v: int) -> None:
    net.assign(v, x)
    net.assign(v, net.conv(x, 3))


def computed_start() -> File:
    net, x, v = scene()
    file = net.file([x], [net.read(v, SHAPE, x)])
    inside = Net()
    inside.assign(inside.handle("v"), inside.tensor("t", SHAPE))
    return File(
        file.tensors, file.operators, file.inputs, file.outputs, [File(inside.tensors, inside.operators, [], [])]
    )


WRONG: dict[str, tuple[Callable[[], File], str]] = {
    "unset": (
        spoilt(unset),
        "operator 1 (READ_VARIABLE) for 'read2': the variable 'v' is read before it is assigned. Give it a "
        "value in the graph that CALL_ONCE calls, or assign it before it is read.",
    ),
    "shape": (
        spoilt(other_shape),
        "operator 3 (ASSIGN_VARIABLE): the variable 'v' is assigned int8 [1, 3, 1, 2] here, and elsewhere int8 "
        "[1, 2, 1, 3]. Give the variable one type and one shape in the model, and convert it again.",
    ),
    "type": (
        spoilt(other_type),
        "operator 3 (ASSIGN_VARIABLE): the variable 'v' is assigned float32 [1, 2, 1, 3] here, and elsewhere int8 "
        "[1, 2, 1, 3]. Give the variable one type and one shape in the model, and convert it again.",
    ),
    "order": (
        spoilt(late_start),
        "operator 1 (ASSIGN_VARIABLE): the variable 'v' is read or assigned before CALL_ONCE sets it, so its first run "
        "differs from all others. Move CALL_ONCE first.",
    ),
    "handle": (
        spoilt(no_handle),
        "operator 1 (ASSIGN_VARIABLE): its variable is unknown: its handle does not come from VAR_HANDLE. The "
        "file is damaged; convert the model again.",
    ),
    "start": (
        computed_start,
        "operator 1 (ASSIGN_VARIABLE): it assigns a value that is not a constant. The file is damaged; convert the "
        "model again.",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str, tmp_path: Path) -> None:
    build, text = WRONG[name]
    with pytest.raises(ModelError) as caught:
        imported(build(), tmp_path)
    assert str(caught.value) == text


def test_another_scale_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the variable 'v' has different scales or zero points in the model"):
        imported(spoilt(other_scale)(), tmp_path)


def test_the_check_takes_raw_bytes_and_carries_states(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wake.tflite"
    file.write_bytes(to_bytes(NETS["mixed"]()))
    graph = load(file)
    x = np.random.default_rng(0).normal(0, 5, (40, *graph.tensors[graph.inputs[0]].shape)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    for options in ([], ["--reset-each"]):
        assert cli.main(["check", str(file), "--inputs", str(tmp_path / "x.npz"), *options]) == 0
        assert "PASS: 40 samples" in capsys.readouterr().out
