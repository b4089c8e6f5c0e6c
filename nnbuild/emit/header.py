"""<model>.h: all declarations that a program needs."""

from __future__ import annotations

import hashlib
from math import prod

from nnbuild import __version__
from nnbuild.base.literals import C_TYPES
from nnbuild.emit.float_io import float_io
from nnbuild.emit.parallel import declaration, done_flags
from nnbuild.emit.row_input import counts_rows, row_constants, row_function
from nnbuild.emit.text import MEMBERS, SIZES, comment_safe, common_type, describe_tensor, scale_text
from nnbuild.plan.plan import Plan

FLOATS = """\
/*
 * Float results are identical with every compiler and all its flags; flags that the files cannot undo, such as
 * -ffast-math, are rejected. The processor must round to nearest and keep subnormal numbers.
 */"""


ONE_MODEL = """\
/*
 * A program and the code of the model must come from the same files. If the linker finds no {name}_{mark},
 * one of them is of another model or version: compile both anew.
 */
#define {name} {name}_{mark}
"""


def header(plan: Plan, digest: str, classes: tuple[str, ...] = ()) -> str:
    """The declarations; the name of the function that every program calls first depends on all of them."""
    before, after = _parts(plan, digest, classes)
    return "\n".join((*before, one_model(f"{plan.prefix}_init", *before, *after), *after)) + "\n"


def one_model(name: str, *texts: str) -> str:
    """Makes the name of a function that programs call depend on all these texts."""
    return ONE_MODEL.format(name=name, mark=hashlib.sha256("\n".join(texts).encode()).hexdigest()[:8])


def init_symbol(header: str, prefix: str) -> str:
    """The linker's name of the model's first function."""
    return next(line.split()[2] for line in header.splitlines() if line.startswith(f"#define {prefix}_init "))


def _parts(plan: Plan, digest: str, classes: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """What comes before and after the name of the first function."""
    guard = f"{plan.prefix.upper()}_H"
    before = [
        f"/* {comment_safe(plan.graph.name)}: printed by nnbuild {__version__}, so change the model instead. */",
        *([FLOATS] if any(plan.tensor(name).dtype == "float32" for name in plan.locations) else []),
        f"#ifndef {guard}\n#define {guard}\n",
        "#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        *(_constants(plan, digest)),
        _context(plan),
    ]
    return before, [
        _functions(plan),
        float_io(plan, classes),
        *([declaration(plan)] if plan.parallel else []),
        "#ifdef __cplusplus\n}\n#endif\n",
        "#endif",
    ]


def _constants(plan: Plan, digest: str) -> list[str]:
    upper = plan.prefix.upper()
    lines = [
        f'#define {upper}_HASH "{digest}"',
        f"#define {upper}_ARENA_BYTES {plan.arena}",
        f"#define {upper}_STATE_BYTES {plan.state}",
        f"#define {upper}_STEPS {len(plan.steps)}",
        f"#define {upper}_INPUTS {len(plan.graph.inputs)}",
        f"#define {upper}_OUTPUTS {len(plan.graph.outputs)}",
        "",
    ]
    lines += row_constants(plan)
    for word, names in (("INPUT", plan.graph.inputs), ("OUTPUT", plan.graph.outputs)):
        for index, name in enumerate(names):
            tensor = plan.tensor(name)
            lines.append(f'/* {word.lower()} {index}, "{comment_safe(name)}": {describe_tensor(tensor)} */')
            lines.append(f"#define {upper}_{word}{index}_SIZE {prod(tensor.shape)}")
            for axis, size in enumerate(tensor.shape):
                lines.append(f"#define {upper}_{word}{index}_DIM{axis} {size}")
            if tensor.quant is not None:
                lines.append(f"#define {upper}_{word}{index}_SCALE {scale_text(tensor.quant.scale)}")
                lines.append(f"#define {upper}_{word}{index}_ZERO_POINT {tensor.quant.zero_point}")
            lines.append("")
    return lines


def _context(plan: Plan) -> str:
    """The context; the arena is a union, so that C allows access through every type."""
    dtypes = {plan.tensor(name).dtype for name in plan.locations}
    demands = [version.demand for step in plan.steps for version in step.versions]
    dtypes |= {demand.scratch_type for demand in demands if demand.scratch}
    members = []
    if len(plan.isas) > 1:
        levels = ", ".join(f"{level} {isa.name}" for level, isa in enumerate(reversed(plan.isas)))
        members.append(f"    int32_t isa; /* set by init, the best that the processor supports: {levels} */")
    members += done_flags(plan)
    if plan.banks > 1:
        members.append("    int32_t bank; /* the copy of the states that this run uses */")
    if counts_rows(plan):
        members.append("    int32_t rows; /* received since the last run */")
    for space, size in (("arena", plan.arena), ("state", plan.state)):
        if size:
            views = [f"        {C_TYPES[d]} {MEMBERS[d]}[{-(-size // SIZES[d])}];" for d in MEMBERS if d in dtypes]
            members.append("    union {\n" + "\n".join(views) + f"\n    }} {space};")
    upper, name = plan.prefix.upper(), f"{plan.prefix}_context"
    return f"""\
#if defined(__GNUC__)
#define {upper}_ALIGNED __attribute__((aligned({plan.alignment})))
#else
#define {upper}_ALIGNED
#endif

/* All memory of a run. The caller owns it; it may be static, and there may be several instances. */
typedef struct {name} {{
{chr(10).join(members) or "    char empty;"}
}} {upper}_ALIGNED {name};
"""


def _functions(plan: Plan) -> str:
    p, upper = plan.prefix, plan.prefix.upper()
    inputs, outputs = common_type(plan, plan.graph.inputs), common_type(plan, plan.graph.outputs)
    return f"""\
/* Starts a new sequence: resets the state that persists between runs. Call it once before the first run. */
void {p}_init({p}_context *context);

/* Where to write input `index`; null if there is no such input. Write every input before every run. */
{inputs} *{p}_input({p}_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. Returns 0 on success. */
int {p}_run({p}_context *context);

/* Computes one of {upper}_STEPS steps; call them in order. For callers that cannot block for a whole run. */
int {plan.step_function}({p}_context *context, unsigned step);

{row_function(plan)}/* Output `index`, valid until an input is written again; null if there is no such output. */
const {outputs} *{p}_output(const {p}_context *context, unsigned index);
"""
