"""<model>.c: one commented call for every step."""

from __future__ import annotations

from nnbuild.emit.kernels import describe
from nnbuild.emit.text import SIZES, comment_safe, common_type, place
from nnbuild.plan.plan import Location, Plan, Step


def model(plan: Plan) -> str:
    p = plan.prefix
    parts = [
        f"/* {comment_safe(plan.graph.name)}: what is computed, in which order and where. */",
        f'#include "{p}_private.h"\n',
        _init(plan),
        _pointer(plan, "input", plan.graph.inputs, ""),
        _pointer(plan, "output", plan.graph.outputs, "const "),
        _steps(plan),
        _run(plan),
    ]
    return "\n".join(parts)


def _init(plan: Plan) -> str:
    p = plan.prefix
    if not plan.state:
        return f"void {p}_init({p}_context *context)\n{{\n    (void)context;\n}}\n"
    lines = []
    for state in plan.graph.states:
        tensor, location = plan.tensor(state.before), plan.locations[state.before]
        zero = "0.0f" if tensor.dtype == "float32" else str(tensor.quant.zero_point if tensor.quant else 0)
        lines.append(f"    for (int32_t i = 0; i < {location.size // SIZES[tensor.dtype]}; ++i) {{")
        lines.append(f"        ({place(location, tensor.dtype)})[i] = {zero};\n    }}")
    return f"void {p}_init({p}_context *context)\n{{\n" + "\n".join(lines) + "\n}\n"


def _pointer(plan: Plan, word: str, names: tuple[str, ...], const: str) -> str:
    p = plan.prefix
    kind = common_type(plan, names)
    cases = []
    for index, name in enumerate(names):
        where = place(plan.locations[name], plan.tensor(name).dtype)
        cases.append(f"    case {index}:\n        return {where};")
    return f"""\
{const}{kind} *{p}_{word}({const}{p}_context *context, unsigned index)
{{
    switch (index) {{
{chr(10).join(cases)}
    default:
        return 0;
    }}
}}
"""


def _steps(plan: Plan) -> str:
    p = plan.prefix
    unused = "" if plan.steps else "    (void)context;\n"
    cases = "\n".join(_case(plan, index, step) for index, step in enumerate(plan.steps))
    return f"""\
int {p}_step({p}_context *context, unsigned step)
{{
{unused}    switch (step) {{
{cases}
    default:
        return -1;
    }}
}}
"""


def _case(plan: Plan, index: int, step: Step) -> str:
    arguments = [place(plan.locations[name], plan.tensor(name).dtype) for name in (*step.op.inputs, *step.op.outputs)]
    if step.scratch is not None:
        arguments.append(_scratch(step))
    if step.takes_weights:
        arguments.append(f"{plan.prefix}_weights")
    call = f"{step.function}({', '.join(arguments)}, 0, {step.extent});"
    return f"    case {index}: /* {describe(step)} */\n        {call}\n        return 0;"


def _scratch(step: Step) -> str:
    return place(Location("arena", step.scratch or 0, step.demand.scratch), step.demand.scratch_type)


def _run(plan: Plan) -> str:
    p, upper = plan.prefix, plan.prefix.upper()
    if not plan.steps:
        return f"int {p}_run({p}_context *context)\n{{\n    (void)context;\n    return 0;\n}}\n"
    return f"""\
int {p}_run({p}_context *context)
{{
    for (unsigned step = 0; step < {upper}_STEPS; ++step) {{
        const int status = {p}_step(context, step);
        if (status != 0) {{
            return status;
        }}
    }}
    return 0;
}}
"""
