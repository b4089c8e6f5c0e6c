"""What streaming adds to a model: a function that takes one row, and runs the model when there are enough."""

from __future__ import annotations

from math import prod

from nnbuild.base.literals import C_TYPES
from nnbuild.emit.text import pointer_to
from nnbuild.plan.plan import Plan


def counts_rows(plan: Plan) -> bool:
    """Whether a run needs several rows, so that they must be counted."""
    return plan.graph.stream is not None and plan.graph.stream.hop > 1


def row_constants(plan: Plan) -> list[str]:
    stream = plan.graph.stream
    if stream is None:
        return []
    upper = plan.prefix.upper()
    return [
        "/* Streaming: rows of input 0 arrive one by one. */",
        f"#define {upper}_ROW_SIZE {row_size(plan)} /* elements of a row */",
        f"#define {upper}_ROWS_PER_STEP {stream.hop} /* rows per update of the outputs */",
        f"#define {upper}_WARM_UP {stream.warm_up} /* runs until outputs depend only on received rows */",
        "",
    ]


def row_function(plan: Plan) -> str:
    if plan.graph.stream is None:
        return ""
    return f"""\
/* Takes the next row of input 0. Returns 1 if outputs are new, 0 if more rows are needed, less than 0 on failure. */
int {plan.prefix}_step({plan.prefix}_context *context, const {_type(plan)} *row);

"""


def take_row(plan: Plan) -> str:
    if plan.graph.stream is None:
        return ""
    p, hop, size = plan.prefix, plan.graph.stream.hop, row_size(plan)
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


def row_size(plan: Plan) -> int:
    """Elements of a row."""
    stream = plan.graph.stream
    assert stream is not None
    return prod(plan.tensor(plan.graph.inputs[0]).shape) // stream.hop


def _type(plan: Plan) -> str:
    return C_TYPES[plan.tensor(plan.graph.inputs[0]).dtype]
