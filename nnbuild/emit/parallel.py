"""A run whose large steps are computed in parts at the same time, by whatever cores or threads the caller has.

Every part writes outputs of its own and has scratch of its own, so the result does not depend on who is first. It
notes that it is done, so a caller that loses one is found out.
"""

from __future__ import annotations

from nnbuild.emit.call import borders_name, calls
from nnbuild.emit.kernels import describe
from nnbuild.plan.plan import Plan, Step

LOST = -2
"""What a run returns when a part was not computed."""


def most_parts(plan: Plan) -> int:
    return max((step.parts for step in plan.steps), default=1)


def done_flags(plan: Plan) -> list[str]:
    """What the context holds for parts to note that they are done."""
    text = "of each part, the last step, counted from 1, of which it was computed"
    return [f"    volatile int32_t done[{most_parts(plan)}]; /* {text} */"] if plan.parallel else []


def declaration(plan: Plan) -> str:
    """For the header; empty where nothing is spread."""
    if not plan.parallel:
        return ""
    p, upper, most = plan.prefix, plan.prefix.upper(), most_parts(plan)
    return f"""\
#define {upper}_PARTS {most}

/* Calls part(job, 0) to part(job, parts - 1), in any order or at the same time; returns when all have returned. */
typedef void {p}_parallel(void *pool, void (*part)(void *job, int32_t index), void *job, int32_t parts);

/* As {p}_run, to the bit, but large steps are computed in up to {upper}_PARTS parts by `parallel`, which gets `pool`.
 * {LOST} when `parallel` came back without one of them. */
int {p}_run_parallel({p}_context *context, {p}_parallel *parallel, void *pool);

/* As {p}_step, in parts. */
int {p}_step_parallel({p}_context *context, unsigned step, {p}_parallel *parallel, void *pool);
"""


def run_parallel(plan: Plan) -> str:
    if not plan.parallel:
        return ""
    p, upper = plan.prefix, plan.prefix.upper()
    spread = [(index, step) for index, step in enumerate(plan.steps) if step.parts > 1]
    cases = [
        f"    case {index}: /* {describe(step)} */\n"
        f"        return {p}_in_parts(context, {index}, {_part_name(plan, index)}, {step.parts}, parallel, pool);"
        for index, step in spread
    ]
    return f"""\
{"".join(_part(plan, index, step) for index, step in spread)}{_in_parts(plan)}
int {p}_step_parallel({p}_context *context, unsigned step, {p}_parallel *parallel, void *pool)
{{
    switch (step) {{
{chr(10).join(cases)}
    default:
        return {plan.step_function}(context, step);
    }}
}}

int {p}_run_parallel({p}_context *context, {p}_parallel *parallel, void *pool)
{{
    for (unsigned step = 0; step < {upper}_STEPS; ++step) {{
        const int status = {p}_step_parallel(context, step, parallel, pool);
        if (status != 0) {{
            return status;
        }}
    }}
    return 0;
}}
"""


def _in_parts(plan: Plan) -> str:
    p = plan.prefix
    return f"""\
static int {p}_in_parts({p}_context *context, int32_t step, void (*part)(void *job, int32_t index), int32_t parts,
                        {p}_parallel *parallel, void *pool)
{{
    for (int32_t i = 0; i < parts; ++i) {{
        context->done[i] = 0;
    }}
    parallel(pool, part, context, parts);
    for (int32_t i = 0; i < parts; ++i) {{
        if (context->done[i] != step + 1) {{
            return {LOST};
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
    tables = [
        f"    static const int32_t {borders_name(version)}[] = {{{', '.join(map(str, version.borders))}}};"
        for version in (() if step.tiling is not None else step.versions)
    ]
    return f"""\
static void {_part_name(plan, index)}(void *job, int32_t index)
{{
{chr(10).join(tables)}
    {p}_context *const context = job;

{chr(10).join(lines)}
    context->done[index] = {index + 1};
}}

"""
