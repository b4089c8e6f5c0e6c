"""Steps divided anywhere, as a kernel module divides them, give what whole ones give: the module's own C, run here."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.even_graphs import even_graph
from benchmarks.nets import Net, quantized
from benchmarks.random_graphs import random_graph
from nnbuild import passes
from nnbuild.backends.kmod import bridge, folder
from nnbuild.backends.registry import backend_of
from nnbuild.emit.emit import emit
from nnbuild.jobs.options import Options, board_of, target_of
from nnbuild.model.graph import Array, Graph
from nnbuild.ops import interpret
from nnbuild.ops.conv2d import Conv2D
from nnbuild.plan.plan import Plan, make_plan

DIVISIONS = 3
DRAWN = 8
"""Networks of each kind."""
Division = Callable[[int], int]


def planned(graph: Graph) -> Plan:
    options = Options(Path("net"), "linux-kmod")
    board = board_of(options)
    backend = backend_of(board)
    target = backend.prepare(graph, target_of(options, board), None)
    return backend.settle(make_plan(graph, "net", target), target)


class Here:
    """A module's model as a library."""

    def __init__(self, plan: Plan, where: Path) -> None:
        emit(plan, "array").write(where)
        for name, data in folder.files(board_of(Options(Path("net"), "linux-kmod")), plan).items():
            (where / name).parent.mkdir(exist_ok=True)
            (where / name).write_bytes(data)
        sources = [str(where / f"net_{part}.c") for part in ("kernels", "weights", "bridge")]
        flags = ["-O1", "-ffp-contract=off", "-shared", "-fPIC", f"-I{where}"]
        subprocess.run(["gcc", *flags, "-o", str(where / "net.so"), *sources], check=True)
        self.plan, self.library = plan, ctypes.CDLL(str(where / "net.so"))
        steps = (ctypes.c_int32 * (2 * len(plan.steps))).in_dll(self.library, "nn_model_step_table")
        self.extents = [int(extent) for extent in steps[::2]]
        count = ctypes.c_uint32.in_dll(self.library, "nn_model_place_count").value
        table = (ctypes.c_uint32 * (4 * count)).in_dll(self.library, "nn_model_places")
        rows = np.array(table, np.int64).reshape(-1, 4).tolist()
        self.places = {(kind, index): (offset, size) for kind, index, offset, size in rows}
        self.size = ctypes.c_uint32.in_dll(self.library, "nn_model_context_bytes").value

    def run(self, inputs: list[Array], pieces: Division) -> list[bytes]:
        held = ctypes.create_string_buffer(self.size + 64)
        start = (ctypes.addressof(held) + 63) // 64 * 64
        for index, values in enumerate(inputs):
            offset, size = self.places[0, index]
            ctypes.memmove(start + offset, values.tobytes(), size)
        for step, extent in enumerate(self.extents):
            begin = 0
            while begin < extent:
                end = min(extent, begin + pieces(extent))
                self.library.nn_model_part(ctypes.c_void_p(start), None, step, begin, end)
                begin = end
        outputs = [self.places[1, index] for index in range(len(self.plan.graph.outputs))]
        return [ctypes.string_at(start + offset, size) for offset, size in outputs]


def graphs() -> list[tuple[str, Graph]]:
    drawn = {f"{maker.__name__} {seed}": maker(seed) for maker in (random_graph, even_graph) for seed in range(DRAWN)}
    return [(name, passes.run(graph)) for name, graph in (drawn | {"expanding": expanding()}).items()]


def expanding() -> Graph:
    """Points with many more outputs than inputs, over which the output is written as far as it may."""
    net = Net("net")
    x = net.input(9, 8, 6)
    for filters in (6, 36, 6, 48):
        shape = (1, 1, net.shape(x)[-1], filters)
        kernel, bias = net.chance.normal(0, 0.4, shape), net.chance.normal(0, 0.4, filters)
        x = net.add(Conv2D(), [x], {"kernel": kernel, "bias": bias})
    return net.graph(x)


@pytest.mark.turns(4)
@pytest.mark.slow
@pytest.mark.parametrize("form", ["float", "int8", "int16"])
def test_any_division_gives_the_same_bits(form: str, tmp_path: Path) -> None:
    """Those of a run that is not divided, and in integers the reference's."""
    checked = 0
    for number, (name, plain) in enumerate(graphs()):
        graph = quantized(plain, form)
        floats = any(tensor.dtype == "float32" for tensor in graph.tensors.values())
        if graph.states or floats != (form == "float"):
            continue
        (where := tmp_path / str(number)).mkdir()
        here, samples = Here(planned(graph), where), bridge.golden_inputs(planned(graph))
        inputs = [samples[port][0] for port in graph.inputs]
        wanted = here.run(inputs, lambda extent: extent)
        if not floats:
            reference = interpret.run(graph, samples)
            assert wanted == [reference[output][0].tobytes() for output in graph.outputs], name
        chance = np.random.default_rng(number)
        divisions: list[Division] = [lambda _: 1]
        divisions += [lambda extent: int(chance.integers(1, extent + 1))] * DIVISIONS  # noqa: B023
        for pieces in divisions:
            assert here.run(inputs, pieces) == wanted, name
        checked += 1
    assert checked >= DRAWN
