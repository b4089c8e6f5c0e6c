"""nn_target.c: binds one model to the link, so that a host can talk to it."""

from __future__ import annotations

import json
from typing import Any

from nnbuild import __version__
from nnbuild.emit.emit import digest
from nnbuild.emit.text import place
from nnbuild.model.graph import Tensor
from nnbuild.plan.plan import Plan

TARGET_FILE = "nn_target.c"


def descriptor(plan: Plan) -> dict[str, Any]:
    """What the device says about its model."""
    return {
        "name": plan.graph.name,
        "hash": digest(plan.graph),
        "version": __version__,
        "inputs": [_tensor(plan.tensor(name)) for name in plan.graph.inputs],
        "outputs": [_tensor(plan.tensor(name)) for name in plan.graph.outputs],
        "steps": [
            {
                "layer": step.layer,
                "op": step.kind,
                "kernel": step.kernel_name,
                "macs": step.macs,
                "output": _tensor(step.site.writes[0]),
            }
            for step in plan.steps
        ],
    }


def _tensor(tensor: Tensor) -> dict[str, Any]:
    known: dict[str, Any] = {"name": tensor.name, "shape": list(tensor.shape), "type": tensor.dtype}
    if tensor.quant is not None:
        known |= {"scale": tensor.quant.scale, "zero_point": tensor.quant.zero_point}
    return known


def descriptor_array(plan: Plan) -> str:
    """The descriptor as a C array: JSON, as bytes, because a string literal of this length is beyond what C99 promises
    to take."""
    text = json.dumps(descriptor(plan), separators=(",", ":")).encode()
    return f"""\
const char nn_target_descriptor[] = {{
{byte_lines(text)}
}};
const uint32_t nn_target_descriptor_size = sizeof nn_target_descriptor;
"""


def byte_lines(data: bytes) -> str:
    lines = [data[at : at + 24] for at in range(0, len(data), 24)]
    return "\n".join("    " + " ".join(f"{byte}," for byte in line) for line in lines)


def target(plan: Plan) -> str:
    p = plan.prefix
    return f"""\
/* Binds the model to the link; see nn_target.h. */
#include "nn_target.h"

#include "{p}.h"
{'#include "nn_pool.h"' + chr(10) if plan.parallel else ""}
static {p}_context model;
static uint64_t ticks[{max(1, len(plan.steps))}];

/* JSON, as bytes, because a string literal of this length is beyond what C99 promises to take. */
{descriptor_array(plan)}
void nn_target_init(void)
{{
    {p}_init(&model);
}}

int nn_target_run(void)
{{
    return {_run(plan)};
}}

uint32_t nn_target_steps(void)
{{
    return {p.upper()}_STEPS;
}}

int nn_target_step(uint32_t index)
{{
    return {p}_step(&model, index);
}}

{_region(plan)}"""


def _run(plan: Plan) -> str:
    if not plan.parallel:
        return f"{plan.prefix}_run(&model)"
    threads = max(step.parts for step in plan.steps)
    return f"{plan.prefix}_run_parallel(&model, nn_pool_run, nn_pool({threads}))"


def _region(plan: Plan) -> str:
    outputs = [step.outputs[0] for step in plan.steps]
    states = [state.before for state in plan.graph.states]
    steps = f"{len(plan.steps) * 8}"
    return f"""\
void *nn_target_region(uint32_t kind, uint32_t index, uint32_t *size)
{{
    switch (kind) {{
{_kind(plan, "NN_TARGET_INPUT", list(plan.graph.inputs))}
{_kind(plan, "NN_TARGET_OUTPUT", list(plan.graph.outputs))}
{_kind(plan, "NN_TARGET_STEP_OUTPUT", outputs)}
{_kind(plan, "NN_TARGET_STATE", states)}
    case NN_TARGET_TICKS:
        if (index == 0) {{
            *size = {steps};
            return ticks;
        }}
        break;
    default:
        break;
    }}
    return 0;
}}
"""


def _kind(plan: Plan, kind: str, names: list[str]) -> str:
    cases = []
    for index, name in enumerate(names):
        location = plan.locations[name]
        pointer = place(location, plan.tensor(name).dtype).replace("context->", "model.")
        cases.append(f"        case {index}:\n            *size = {location.size};\n            return {pointer};")
    inner = "\n".join(cases)
    body = f"        switch (index) {{\n{inner}\n        default:\n            break;\n        }}\n" if cases else ""
    return f"    case {kind}:\n{body}        break;"
