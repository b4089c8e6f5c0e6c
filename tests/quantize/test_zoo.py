"""Every model of the zoo in integers: the compiled C equals the integer reference in every bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnbuild import passes
from nnbuild.model.graph import Array
from nnbuild.ops import interpret
from nnbuild.plan.plan import make_plan
from nnbuild.plan.target import Target
from nnbuild.quantize.calibrate import calibrate
from nnbuild.quantize.quantize import Recipe, quantize_with
from tests.end_to_end.zoo_batches import batches, subject
from tests.support.batch import Entry, run_batch

pytestmark = pytest.mark.oracle

LOTS = [(writer, index) for writer in ("keras3", "tfkeras") for index in range(len(batches(writer)))]


def _alike(wanted: Array, found: Array) -> Array:
    """In every bit; what stays in floats, whose functions have last bits of their own, nearly."""
    near = np.isclose(wanted, found, rtol=1e-4, atol=1e-6) if wanted.dtype.kind == "f" else wanted == found
    return np.asarray(near)


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    ("writer", "lot", "form"),
    [
        pytest.param(*lot, form, marks=() if (number + (form == "int16")) % 4 == 0 else pytest.mark.full)
        for number, lot in enumerate(LOTS)
        for form in ("int8", "int16")
    ],
)
def test_integer_models_equal_their_reference(writer: str, lot: int, form: str, tmp_path: Path) -> None:
    wrong: list[str] = []
    entries: list[Entry] = []
    wanted = []
    names = batches(writer)[lot]
    for index, name in enumerate(names):
        case = subject(writer, name)
        graph = passes.run(case.graph)
        ranges = calibrate(graph, lambda case=case: [case.inputs], "minmax", 8)
        quantized = quantize_with(graph, Recipe(form), ranges)
        integers = {n: interpret.as_input(quantized.tensors[n], case.inputs[n], "float32") for n in quantized.inputs}
        plan = make_plan(quantized, f"m{index}", Target())
        entries.append(Entry(plan, integers))
        wanted.append(interpret.run(quantized, integers))
    for name, entry, exact, found in zip(names, entries, wanted, run_batch(entries, tmp_path), strict=True):
        for output in entry.plan.graph.outputs:
            differ = int((~_alike(exact[output], found[output])).sum())
            if differ:
                wrong.append(f"{name}, {output}: {differ} of {found[output].size} differ")
    assert not wrong, "\n".join(wrong)
