"""What a stream adds to a model: a function that takes one row, and runs the model when there are enough."""

from __future__ import annotations

from math import prod

from nnbuild.base.literals import C_TYPES
from nnbuild.emit.text import pointer_to
from nnbuild.plan.plan import Plan


def counts_rows(plan: Plan) -> bool:
    """Whether rows must be counted until there are enough for a run."""
    return plan.graph.stream is not None and plan.graph.stream.hop > 1


def row_constants(plan: Plan) -> list[str]:
    stream = plan.graph.stream
    if stream is None:
        return []
    upper = plan.prefix.upper()
    return [
        "/* A stream: rows of input 0 come in one by one. */",
        f"#define {upper}_ROW_SIZE {_row(plan)} /* elements of a row */",
        f"#define {upper}_ROWS_PER_STEP {stream.hop} /* rows after which outputs are new */",
        f"#define {upper}_WARM_UP {stream.warm_up} /* runs until outputs depend on nothing but what came in */",
        "",
    ]


def row_function(plan: Plan) -> str:
    if plan.graph.stream is None:
        return ""
    return f"""\
/* Takes the next row of input 0: 1 when outputs are new, 0 when more rows are wanted first, below 0 when it failed. */
int {plan.prefix}_step({plan.prefix}_context *context, const {_type(plan)} *row);

"""


def take_row(plan: Plan) -> str:
    if plan.graph.stream is None:
        return ""
    p, hop, size = plan.prefix, plan.graph.stream.hop, _row(plan)
    shape = plan.tensor(plan.graph.inputs[0]).shape
    run = prod(shape[plan.graph.stream.axis + 1 :])
    at = "i" if run == size else f"i / {run} * {run * hop} + i % {run}"
    first = f"context->rows * {run} + " if hop > 1 else ""
    counted = (
        f"    if (++context->rows < {hop}) {{\n        return 0;\n    }}\n    context->rows = 0;\n" if hop > 1 else ""
    )
    where = pointer_to(plan.locations[plan.graph.inputs[0]], plan.tensor(plan.graph.inputs[0]).dtype)
    return f"""\
int {p}_step({p}_context *context, const {_type(plan)} *row)
{{
    {_type(plan)} *input = {where};
    int status = 0;

    for (int32_t i = 0; i < {size}; ++i) {{
        input[{first}{at}] = row[i];
    }}
{counted}    status = {p}_run(context);
    if (status != 0) {{
        return status < 0 ? status : -status;
    }}
    return 1;
}}
"""


def _row(plan: Plan) -> int:
    stream = plan.graph.stream
    assert stream is not None
    return prod(plan.tensor(plan.graph.inputs[0]).shape) // stream.hop


def _type(plan: Plan) -> str:
    return C_TYPES[plan.tensor(plan.graph.inputs[0]).dtype]
