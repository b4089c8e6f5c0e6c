"""A run whose large steps are computed in parts at the same time, by whatever threads the caller has.

Every part writes outputs of its own and has scratch of its own, so the result does not depend on who is first.
"""

from __future__ import annotations

from nnbuild.emit.call import calls
from nnbuild.emit.kernels import describe
from nnbuild.plan.plan import Plan, Step


def declaration(plan: Plan) -> str:
    """For the header; empty where nothing is spread."""
    if not plan.parallel:
        return ""
    p, most = plan.prefix, max(step.parts for step in plan.steps)
    return f"""\
/* Calls part(job, 0) to part(job, parts - 1), in any order or at the same time; returns when all have returned. */
typedef void {p}_parallel(void *pool, void (*part)(void *job, int32_t index), void *job, int32_t parts);

/* As {p}_run, to the bit, but large steps are computed in up to {most} parts by `parallel`, which gets `pool`. */
int {p}_run_parallel({p}_context *context, {p}_parallel *parallel, void *pool);
"""


def run_parallel(plan: Plan) -> str:
    if not plan.parallel:
        return ""
    p, upper = plan.prefix, plan.prefix.upper()
    parts = [_part(plan, index, step) for index, step in enumerate(plan.steps) if step.parts > 1]
    cases = [
        f"        case {index}: /* {describe(step)} */\n"
        f"            parallel(pool, {_part_name(plan, index)}, context, {step.parts});\n            break;"
        for index, step in enumerate(plan.steps)
        if step.parts > 1
    ]
    return f"""\
{"".join(parts)}int {p}_run_parallel({p}_context *context, {p}_parallel *parallel, void *pool)
{{
    for (unsigned step = 0; step < {upper}_STEPS; ++step) {{
        int status = 0;

        switch (step) {{
{chr(10).join(cases)}
        default:
            status = {p}_step(context, step);
        }}
        if (status != 0) {{
            return status;
        }}
    }}
    return 0;
}}
"""


def _part_name(plan: Plan, index: int) -> str:
    return f"{plan.prefix}_{index:02d}_part"


def _part(plan: Plan, index: int, step: Step) -> str:
    p = plan.prefix
    lines = [line[4:] for call in calls(plan, step, part=True) for line in call.split("\n")]
    return f"""\
static void {_part_name(plan, index)}(void *job, int32_t index)
{{
    {p}_context *const context = job;

{chr(10).join(lines)}
}}

"""
