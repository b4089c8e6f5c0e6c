"""nn_target.c of a listening program: its input is sound, its outputs are the feature row, the network's outputs and
the events.

The states of front end and network are outputs, too, so that a check compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from nnbuild.backends.link_binding import byte_lines, descriptor, descriptor_text
from nnbuild.emit.text import pointer_to
from nnbuild.features.listen_c import features_of
from nnbuild.features.network_binding import Hearing
from nnbuild.plan.plan import Plan

OURS = ":"
"""Prefix of the names of outputs other than the network's, whose names are arbitrary."""


@dataclass(frozen=True)
class Port:
    """One output: a C pointer to it, and its name."""

    name: str
    pointer: str
    dtype: str
    shape: tuple[int, ...]
    quant: Any = None

    @property
    def described(self) -> dict[str, Any]:
        known: dict[str, Any] = {"name": self.name, "shape": list(self.shape), "type": self.dtype}
        if self.quant is not None and len(self.quant.scales) == 1:
            known |= {"scale": self.quant.scale, "zero_point": self.quant.zero_point}
        return known


def ports(plan: Plan, hearing: Hearing) -> list[Port]:
    dtype, size = hearing.front_end.row
    found = [Port(f"{OURS}features", "listener.features.row", dtype, (size,))]
    for member in hearing.front_end.members:
        if member.kept:
            found.append(
                Port(f"{OURS}features.{member.name}", f"listener.features.{member.name}", member.dtype, (member.size,))
            )
    for name in (*plan.graph.outputs, *(state.before for state in plan.graph.states)):
        tensor = plan.tensor(name)
        where = pointer_to(plan.locations[name], tensor.dtype).replace("context->", "listener.spotter.net.")
        found.append(Port(name, where, tensor.dtype, tuple(tensor.shape), tensor.quant))
    counts = ("runs", "event", "score")
    return found + [Port(f"{OURS}{name}", f"&listener.spotter.{name}", "int32", (1,)) for name in counts]


def listening_descriptor(plan: Plan, hearing: Hearing) -> dict[str, Any]:
    told, framing = descriptor(plan), hearing.front_end.framing
    shape = [framing.step] if framing.axes == 1 else [framing.step, framing.axes]
    own = {"layer": "features", "op": "features", "kernel": "push", "macs": 0, "output": None}
    return told | {
        "hash": hearing.digest(told["hash"]),
        "inputs": [{"name": "sound", "shape": shape, "type": framing.sample}],
        "outputs": [port.described for port in ports(plan, hearing)],
        "steps": [
            own,
            own | {"layer": "window", "kernel": "spot_row"},
            *({**step, "output": None} for step in told["steps"]),
            own | {"layer": "answer", "kernel": "spot_answer"},
        ],
    }


def listening_target(plan: Plan, hearing: Hearing) -> str:
    p, steps, framing = plan.prefix, len(plan.steps), hearing.front_end.framing
    features = f"{features_of(hearing, p).upper()}_FEATURES"
    text = descriptor_text(listening_descriptor(plan, hearing))
    sample = {"int16": "int16_t", "float32": "float"}[framing.sample]
    whole = framing.step * framing.axes
    return f"""\
/* Binds what listens to the link; see nn_target.h. */
#include "nn_target.h"

#include "{p}_listen.h"

static {p}_listener listener;
static {sample} sound[{whole}];
static uint64_t ticks[{steps + 3}];

/* JSON, as bytes, because a string literal of this length is beyond what C99 promises to take. */
const char nn_target_descriptor[] = {{
{byte_lines(text)}
}};
const uint32_t nn_target_descriptor_size = sizeof nn_target_descriptor;

void nn_target_init(void)
{{
    {p}_listen_init(&listener);
}}

int nn_target_run(void)
{{
    const int32_t events = {p}_listen(&listener, sound, {features}_STEP);

    return events < 0 ? events : 0;
}}

uint32_t nn_target_steps(void)
{{
    return {steps + 3};
}}

/* The parts of a run that has enough samples and rows, to be measured one by one. */
int nn_target_step(uint32_t index)
{{
    if (index == 0) {{
        if (listener.features.held < {features}_WINDOW - {features}_STEP) {{
            listener.features.held = {features}_WINDOW - {features}_STEP;
        }}
        return {features_of(hearing, p)}_features_push(&listener.features, sound, {features}_STEP) < 0;
    }}
    if (index == 1) {{
        listener.spotter.due = 1;
        return {p}_spot_row(&listener.spotter, listener.features.row) != 1;
    }}
    if (index < {steps + 2}) {{
        return {f"{plan.step_function}(&listener.spotter.net, index - 2)" if steps else "0"};
    }}
    return {p}_spot_answer(&listener.spotter) < 0;
}}

{_region(plan, hearing, whole)}"""


def _region(plan: Plan, hearing: Hearing, whole: int) -> str:
    sizes = {"float32": 4, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4}
    cases = "\n".join(
        f"        case {index}:\n            *size = {sizes[port.dtype] * prod(port.shape)};\n"
        f"            return {port.pointer};"
        for index, port in enumerate(ports(plan, hearing))
    )
    return f"""\
void *nn_target_region(uint32_t kind, uint32_t index, uint32_t *size)
{{
    if (kind == NN_TARGET_INPUT && index == 0) {{
        *size = sizeof sound;
        return sound;
    }}
    if (kind == NN_TARGET_TICKS && index == 0) {{
        *size = sizeof ticks;
        return ticks;
    }}
    if (kind == NN_TARGET_OUTPUT) {{
        switch (index) {{
{cases}
        default:
            break;
        }}
    }}
    return 0;
}}
"""
