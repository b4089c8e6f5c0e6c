"""A run whose large steps are computed in parallel parts, by whatever cores or threads the caller has.

Each part writes its own outputs and has its own scratch, so the result does not depend on their order. Each part
records that it is done, so a lost one is detected.
"""

from __future__ import annotations

from nnbuild.emit.call import borders_name, calls
from nnbuild.emit.kernels import describe
from nnbuild.plan.plan import Plan, Step

LOST = -2
"""Returned when a part was not computed."""


def most_parts(plan: Plan) -> int:
    return max((step.parts for step in plan.steps), default=1)


def done_flags(plan: Plan) -> list[str]:
    """The context's member in which parts record that they are done."""
    text = "for each part, the last step it completed, counted from 1"
    return [f"    volatile int32_t done[{most_parts(plan)}]; /* {text} */"] if plan.parallel else []


def declaration(plan: Plan) -> str:
    """Declarations for the header; empty where no step has parts."""
    if not plan.parallel:
        return ""
    p, upper, most = plan.prefix, plan.prefix.upper(), most_parts(plan)
    return f"""\
#define {upper}_PARTS {most}

/* Calls part(job, 0) to part(job, parts - 1), in any order or concurrently; returns once all have returned. */
typedef void {p}_parallel(void *pool, void (*part)(void *job, int32_t index), void *job, int32_t parts);

/* Bit-identical to {p}_run, but computes large steps in up to {upper}_PARTS parts through `parallel`, which is passed
 * `pool`. Returns {LOST} if `parallel` returned before a part was done. */
int {p}_run_parallel({p}_context *context, {p}_parallel *parallel, void *pool);

/* Like {p}_step, in parts. */
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
