"""The application of a new project: its sample, and the code that prints the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from nnbuild.base.literals import float_literal
from nnbuild.emit.text import comment_safe
from nnbuild.jobs.class_names import class_names
from nnbuild.jobs.pipeline import Compiled
from nnbuild.model.samples import load_samples
from nnbuild.quantize.data import Source, batches

A_LINE = 8
ZEROS = "zeros: put your data there"


@dataclass(frozen=True)
class Sample:
    """`label` is the sample's known class."""

    header: str
    told: str
    label: int | None


def sample_of(compiled: Compiled, file: Path | None) -> Sample:
    """The first sample of the user's file; without a file, zeros for the user to replace."""
    graph = compiled.imported
    ports = [graph.tensors[name] for name in graph.inputs]
    label = None
    if file is None:
        values = [np.zeros(port.shape, np.float32) for port in ports]
        told = ZEROS
    else:
        samples = load_samples(file, ports)
        values = [samples.inputs[port.name][0] for port in ports]
        told = f"the first of {file.name}"
        if samples.labels is not None:
            label = int(samples.labels[0] if samples.labels.ndim == 1 else np.argmax(samples.labels[0]))
    return Sample(f"/* A sample in the model's own units: {told}. */\n{_arrays(values)}", told, label)


def sample_header(compiled: Compiled) -> str:
    """The first calibration sample, for an example beside the printed C; zeros where its shape differs."""
    options, plan = compiled.options, compiled.plan
    shapes = [plan.tensor(name).shape for name in plan.graph.inputs]
    values, told = [np.zeros(shape, np.float32) for shape in shapes], ZEROS
    if options.calibrate is not None and options.features is None and options.stream is None:
        first = next(batches(Source(options.calibrate, options.image_range), compiled.imported))
        found = [np.asarray(first[name][0], np.float32) for name in compiled.imported.inputs]
        if [each.size for each in found] == [prod(shape) for shape in shapes]:
            values, told = found, f"the first of {comment_safe(options.calibrate.name)}"
    opening = f"/* {plan.prefix}_sample.h: printed by nnbuild. A sample in the model's own units: {told}. */"
    return f"{opening}\n{_arrays(values)}"


def _arrays(values: Sequence[np.ndarray]) -> str:
    return "\n".join(_array(index, each.reshape(-1)) for index, each in enumerate(values))


def _array(index: int, values: np.ndarray) -> str:
    if not values.any():
        return f"static const float sample{index}[{len(values)}] = {{0.0f}};\n"
    rows = [values[at : at + A_LINE] for at in range(0, len(values), A_LINE)]
    text = "\n".join("    " + " ".join(f"{float_literal(float(value))}," for value in row) for row in rows)
    return f"static const float sample{index}[{len(values)}] = {{\n{text}\n}};\n"


def application(compiled: Compiled, sample: Sample) -> dict[str, str]:
    """The texts for the placeholders in main.c."""
    prefix, graph = compiled.plan.prefix, compiled.graph
    classes = class_names(compiled.options.labels, compiled.options.model, graph)
    widest = max(map(len, classes), default=0)
    inputs = [f"    {prefix}_quantize_input(&model, {i}, sample{i});\n" for i in range(len(graph.inputs))]
    if classes:
        one, arguments = f"%-{widest}s  %g", f"{prefix}_class((unsigned)i)"
        best, answers = "It is: %s", [f"{prefix}_class((unsigned)best)"]
        if sample.label is not None:
            best += " (it should be: %s)"
            answers.append(f"{prefix}_class({sample.label})")
    else:
        one, arguments, best, answers = "output %d: %g", "i", "The largest is output %d", ["best"]
    return {
        "SAMPLE": sample.told,
        "SET_INPUTS": "".join(inputs),
        "BARE_ONE": _bare(f"{prefix}_class((unsigned)i)" if classes else "i", classes, "        "),
        "BARE_BEST": _bare_best(prefix, classes, sample.label),
        "PRINT_ONE": f'"{one}\\n", {arguments}',
        "PRINT_BEST": f'"{best}\\n", {", ".join(answers)}',
    }


def _bare(which: str, classes: Sequence[str], indent: str) -> str:
    """Code that prints one line of the answer without a C library."""
    name = f"nn_print({which});" if classes else f'nn_print("output ");\n{indent}nn_print_whole({which});'
    return f'{indent}{name}\n{indent}nn_print(": ");\n{indent}nn_print_real(answer[i], 4);\n{indent}nn_print("\\n");\n'


def _bare_best(prefix: str, classes: Sequence[str], label: int | None) -> str:
    if not classes:
        lines = ['nn_print("The largest is output ");', "nn_print_whole(best);"]
    else:
        lines = ['nn_print("It is: ");', f"nn_print({prefix}_class((unsigned)best));"]
        if label is not None:
            lines += ['nn_print(" (it should be: ");', f"nn_print({prefix}_class({label}));", 'nn_print(")");']
    return "".join(f"    {line}\n" for line in [*lines, 'nn_print("\\n");'])
