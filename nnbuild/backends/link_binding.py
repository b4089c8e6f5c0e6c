"""nn_target.c: binds one model to the link, so that a host can talk to it."""

from __future__ import annotations

import json
from typing import Any

from nnbuild import __version__
from nnbuild.emit.emit import digest
from nnbuild.emit.parallel import most_parts
from nnbuild.emit.text import pointer_to
from nnbuild.model.graph import Tensor
from nnbuild.plan.plan import Plan

TARGET_FILE = "nn_target.c"


def descriptor(plan: Plan) -> dict[str, Any]:
    """The device's description of its model."""
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


def descriptor_text(facts: dict[str, Any]) -> bytes:
    return json.dumps(facts, separators=(",", ":")).encode()


def descriptor_array(plan: Plan) -> str:
    """The descriptor as a C array: JSON as bytes, since the string would exceed the length that C99 guarantees."""
    return f"""\
const char nn_target_descriptor[] = {{
{byte_lines(descriptor_text(descriptor(plan)))}
}};
const uint32_t nn_target_descriptor_size = sizeof nn_target_descriptor;
"""


def byte_lines(data: bytes) -> str:
    lines = [data[at : at + 24] for at in range(0, len(data), 24)]
    return "\n".join("    " + " ".join(f"{byte}," for byte in line) for line in lines)


FILLED = """\
    if (!begun) { /* what memory held before must not matter */
        begun = 1;
        memset(&model, 0x7f, sizeof model);
    }
"""
INCLUDE = '#include "nn_offload.h"\n'
TOLD = """\
    case NN_TARGET_DEVICE:
        if (index == 0) {
            *size = sizeof told;
            nn_offload_tell(told);
            return told;
        }
        break;
"""
TURN = """\
    case NN_TARGET_TURN:
        if (index == 0) {
            *size = sizeof model.bank;
            return &model.bank;
        }
        break;
"""


def target(plan: Plan, counted: bool = False) -> str:
    """`counted`: the instructions of each core are counted externally."""
    p, cores = plan.prefix, plan.parallel or counted
    return f"""\
/* Binds the model to the link; see nn_target.h. */
#include "nn_target.h"

#include <string.h>

#include "{p}.h"
{'#include "nn_cores_link.h"' + chr(10) if cores else ""}{INCLUDE if plan.device is not None else ""}
static {p}_context model;
static uint8_t begun;
static uint64_t ticks[{max(1, len(plan.steps))}];
{"static uint64_t told[NN_OFFLOAD_TOLD];" + chr(10) if plan.device is not None else ""}
/* JSON, as bytes, because a string literal of this length is beyond what C99 promises to take. */
{descriptor_array(plan)}
void nn_target_init(void)
{{
{_init(plan, cores)}}}

int nn_target_run(void)
{{
{_run(plan, cores)}}}

uint32_t nn_target_steps(void)
{{
    return {p.upper()}_STEPS;
}}

int nn_target_step(uint32_t index)
{{
{_step(plan, cores)}}}

{_region(plan)}"""


def _init(plan: Plan, cores: bool) -> str:
    begin = FILLED + f"    {plan.prefix}_init(&model);\n"
    if not cores:
        return begin
    return f"    nn_cores_mark();\n{begin}    nn_cores_mark();\n    nn_cores_link_start({most_parts(plan)});\n"


def _run(plan: Plan, cores: bool) -> str:
    """The body of a run; step by step with several cores, so that each step's instructions can be told apart."""
    if not cores:
        return f"    return {plan.prefix}_run(&model);\n"
    return f"""\
    for (uint32_t step = 0; step < {plan.prefix.upper()}_STEPS; ++step) {{
        const int status = nn_target_step(step);
        if (status != 0) {{
            return status;
        }}
    }}
    return 0;
"""


def _step(plan: Plan, cores: bool) -> str:
    if not cores:
        return f"    return {plan.step_function}(&model, index);\n"
    p = plan.prefix
    call = (
        f"{p}_step_parallel(&model, index, nn_cores_run, 0)"
        if plan.parallel
        else f"{plan.step_function}(&model, index)"
    )
    return f"""\
    int status;

    nn_cores_mark();
    status = {call};
    nn_cores_mark();
    return nn_cores_link_told(status);
"""


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
{TOLD if plan.device is not None else ""}{TURN if plan.banks > 1 else ""}    default:
        break;
    }}
    return 0;
}}
"""


def _kind(plan: Plan, kind: str, names: list[str]) -> str:
    cases = []
    for index, name in enumerate(names):
        location = plan.locations[name]
        pointer = pointer_to(location, plan.tensor(name).dtype).replace("context->", "model.")
        cases.append(f"        case {index}:\n            *size = {location.size};\n            return {pointer};")
    inner = "\n".join(cases)
    body = f"        switch (index) {{\n{inner}\n        default:\n            break;\n        }}\n" if cases else ""
    return f"    case {kind}:\n{body}        break;"
