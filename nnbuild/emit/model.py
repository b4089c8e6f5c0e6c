"""<model>.c: one commented call for every step."""

from __future__ import annotations

from nnbuild.base.literals import float_literal
from nnbuild.emit.call import calls
from nnbuild.emit.core_memory import HEADER, local_functions
from nnbuild.emit.detect import detection
from nnbuild.emit.device import acts_at
from nnbuild.emit.kernels import describe
from nnbuild.emit.parallel import run_parallel
from nnbuild.emit.row_input import counts_rows, take_row
from nnbuild.emit.text import SIZES, comment_safe, common_type, pointer_to
from nnbuild.ops.interpret import initial_value
from nnbuild.plan.plan import Plan, Step


def model(plan: Plan) -> str:
    p = plan.prefix
    parts = [
        f"/* {comment_safe(plan.graph.name)}: what is computed, in which order and where. */",
        f'#include "{p}_private.h"\n',
        f'#include "{HEADER}"\n' if plan.local_bytes else "",
        detection(plan),
        _init(plan),
        local_functions(plan),
        _pointer(plan, "input", plan.graph.inputs, ""),
        _pointer(plan, "output", plan.graph.outputs, "const "),
        _steps(plan),
        _run(plan),
        run_parallel(plan),
        take_row(plan),
    ]
    return "\n".join(part for part in parts if part)


def _init(plan: Plan) -> str:
    p = plan.prefix
    lines = [f"    context->isa = {p}_detect();"] if len(plan.isas) > 1 else []
    turns = ["    context->bank = 0;"] if plan.banks > 1 else []
    lines += turns
    for state in plan.graph.states:
        tensor, location = plan.tensor(state.before), plan.locations[state.before]
        size, begun = location.size // SIZES[tensor.dtype], plan.initial.get(state.before)
        start = initial_value(plan.graph, state).reshape(-1)
        value = float_literal(start[0]) if tensor.dtype == "float32" else str(start[0])
        if begun is not None:
            period = plan.constants[begun].size
            value = f"{begun}[i % {period}]" if period < size else f"{begun}[i]"
        loop = [f"    for (int32_t i = 0; i < {size}; ++i) {{"]
        loop.append(f"        ({pointer_to(location, tensor.dtype)})[i] = {value};\n    }}")
        if state.banks > 1:
            banks = f"for (context->bank = 0; context->bank < {state.banks}; ++context->bank)"
            loop = [f"    {banks} {{", *("    " + line.replace("\n", "\n    ") for line in loop), "    }"]
        lines += loop
    lines += turns if any(state.banks > 1 for state in plan.graph.states) else []
    lines += ["    context->rows = 0;"] if counts_rows(plan) else []
    if not lines:
        lines = ["    (void)context;"]
    return f"void {p}_init({p}_context *context)\n{{\n" + "\n".join(lines) + "\n}\n"


def _pointer(plan: Plan, word: str, names: tuple[str, ...], const: str) -> str:
    p = plan.prefix
    kind = common_type(plan, names)
    cases = []
    for index, name in enumerate(names):
        where = pointer_to(plan.locations[name], plan.tensor(name).dtype)
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
int {plan.step_function}({p}_context *context, unsigned step)
{{
{unused}    switch (step) {{
{cases}
    default:
        return -1;
    }}
}}
"""


def _case(plan: Plan, index: int, step: Step) -> str:
    end = f"{plan.prefix}_device_step(context, {index})" if acts_at(plan.device, index) else "0"
    lines = [
        f"    case {index}: /* {describe(step)} */",
        *calls(plan, step),
        *turn(plan, index),
        f"        return {end};",
    ]
    return "\n".join(lines)


def turn(plan: Plan, index: int) -> list[str]:
    """Moves on to the next copy of the states after the last step."""
    if plan.banks == 1 or index + 1 < len(plan.steps):
        return []
    return [f"        context->bank = context->bank + 1 < {plan.banks} ? context->bank + 1 : 0;"]


def _run(plan: Plan) -> str:
    p, upper = plan.prefix, plan.prefix.upper()
    if not plan.steps:
        return f"int {p}_run({p}_context *context)\n{{\n    (void)context;\n    return 0;\n}}\n"
    return f"""\
int {p}_run({p}_context *context)
{{
    for (unsigned step = 0; step < {upper}_STEPS; ++step) {{
        const int status = {plan.step_function}(context, step);
        if (status != 0) {{
            return status;
        }}
    }}
    return 0;
}}
"""
