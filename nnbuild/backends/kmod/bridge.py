"""<model>_bridge.c: a model as the kernel module's glue sees it, in integers and addresses; and its golden results."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import prod

import numpy as np

from nnbuild import __version__
from nnbuild.backends.link_binding import byte_lines, descriptor_array
from nnbuild.base.literals import C_TYPES, float_literal
from nnbuild.emit.emit import digest
from nnbuild.emit.header import header
from nnbuild.emit.kernels import kernels, private_header
from nnbuild.emit.model import turn
from nnbuild.emit.row_input import counts_rows
from nnbuild.emit.text import SIZES, describe_tensor, pointer_to
from nnbuild.isa.c99 import C99
from nnbuild.model.graph import Array, Tensor
from nnbuild.ops.drawn import drawn
from nnbuild.ops.interpret import initial_value
from nnbuild.ops.tolerance import Standard, standards
from nnbuild.plan.plan import WEIGHTS, Location, Plan, Step, make_plan
from nnbuild.plan.target import Target

PART_CYCLES = 10_000
"""Cycles of the first chunks of a step: about 10 microseconds at 1 GHz."""
LONGEST_PIECE = 12_000
"""Most estimated cycles of a work item. The estimate is below a processor's real cycles: with everything else well
within 100 microseconds."""
GOLDEN_SAMPLES = 3
FRACTION = 1 << 16
"""Scale of fixed-point inputs and outputs, which have 16 fractional bits."""
LARGEST_SCALE = (1 << 31) - 1
MOST_SHIFT = 62


def needs_fpu(plan: Plan) -> bool:
    """Whether a run uses floats or vector registers."""
    floats = any(tensor.dtype == "float32" for tensor in plan.graph.tensors.values())
    return floats or plan.isa != C99 or any(data.dtype.kind == "f" for data in plan.constants.values())


def plan_hash(plan: Plan) -> str:
    """Identifies everything but the weights' values: equal for two models whose weights can be exchanged."""
    seen = hashlib.sha256()
    for text in (header(plan, ""), private_header(plan), kernels(plan)):
        seen.update(text.encode())
    return seen.hexdigest()[:16]


def bridge(plan: Plan) -> str:
    p = plan.prefix
    parts = [
        "/* The model in integers and addresses, for the kernel module around it; see nn_bridge.h. */",
        '#include "nn_bridge.h"\n',
        "#include <stddef.h>\n",
        f'#include "{p}_private.h"\n',
        f'const char nn_model_name[] = "nn_{p}";',
        f'const char nn_model_hash[] = "{digest(plan.graph)}";',
        f'const char nn_model_plan[] = "{plan_hash(plan)}";',
        f'const char nn_model_version[] = "{__version__}";',
        f"const uint32_t nn_model_context_bytes = sizeof({p}_context);",
        f"const uint32_t nn_model_steps = {len(plan.steps)};",
        f"const uint32_t nn_model_inputs = {len(plan.graph.inputs)};",
        f"const uint32_t nn_model_outputs = {len(plan.graph.outputs)};\n",
        _step_table(plan),
        _places(plan),
        _fillings(plan),
        _ports(plan, "input", plan.graph.inputs),
        _ports(plan, "output", plan.graph.outputs),
        _weights(plan),
        _part(plan),
        _close(plan),
    ]
    return "\n".join(parts)


def _table(kind: str, name: str, rows: list[str], count: bool = True) -> str:
    """A C table; C has no empty arrays, so a row of zeros replaces no rows."""
    body = "\n".join(f"    {row}," for row in rows or ["{0}"])
    number = f"const uint32_t {name.rstrip('s')}_count = {len(rows)};\n" if count else ""
    return f"{number}const {kind} {name}[] = {{\n{body}\n}};\n"


def _step_table(plan: Plan) -> str:
    rows = [f"{{{step.extent(step.versions[0])}, {_width(step)}}} /* {step.function} */" for step in plan.steps]
    return _table("nn_step", "nn_model_step_table", rows, count=False)


def _width(step: Step) -> int:
    return max(1, min(step.extent(step.versions[0]), int(PART_CYCLES / max(_piece_cycles(step), 1.0))))


def _piece_cycles(step: Step) -> float:
    """Estimated cycles of one work item, which is never divided."""
    return step.choice.price.cycles * prod(step.op.outer) / max(1, step.extent(step.versions[0]))


def with_short_pieces(plan: Plan, target: Target) -> Plan:
    """The plan with other, slower kernels for layers whose work items would block others for too long."""
    if not needs_fpu(plan):
        return plan
    for index, step in enumerate(plan.steps):
        for other in step.alternatives:
            if _piece_cycles(plan.steps[index]) <= LONGEST_PIECE:
                break
            if other.price is None:
                continue
            tried = replace(target, forced_kernels={**target.forced_kernels, step.op.name: other.kernel})
            changed = make_plan(plan.graph, plan.prefix, tried)
            same_steps = len(changed.steps) == len(plan.steps)
            if same_steps and _piece_cycles(changed.steps[index]) < _piece_cycles(plan.steps[index]):
                plan, target = changed, tried
    return plan


def long_pieces(plan: Plan) -> tuple[str, ...]:
    """Notes on layers that cannot be divided finely enough."""
    if not needs_fpu(plan):
        return ()
    return tuple(
        f"one piece of layer {step.layer!r} takes about {_piece_cycles(step):,.0f} cycles, and others wait that long"
        for step in plan.steps
        if _piece_cycles(step) > LONGEST_PIECE
    )


def _places(plan: Plan) -> str:
    kinds = {
        "INPUT": list(plan.graph.inputs),
        "OUTPUT": list(plan.graph.outputs),
        "STEP_OUTPUT": [step.outputs[0] for step in plan.steps],
        "STATE": [state.before for state in plan.graph.states],
    }
    rows = []
    for number, names in enumerate(kinds.values()):
        rows += [
            f"{{{number}, {i}, {_offset(plan, name)}, {plan.locations[name].size}}}" for i, name in enumerate(names)
        ]
    return _table("nn_place", "nn_model_places", rows)


def _offset(plan: Plan, name: str) -> str:
    location = plan.locations[name]
    return f"(uint32_t)offsetof({plan.prefix}_context, {location.space}) + {location.offset}"


def _fillings(plan: Plan) -> str:
    rows = []
    for state in plan.graph.states:
        width, location = SIZES[plan.tensor(state.before).dtype], plan.locations[state.before]
        for bank in range(state.banks):
            at = bank * location.stride
            for value, count in _runs(initial_value(plan.graph, state)):
                rows.append(f"{{{_offset(plan, state.before)} + {at}, {count * width}, {width}, {value}}}")
                at += count * width
    counted = {"bank": plan.banks > 1, "rows": counts_rows(plan)}
    rows += [f"{{(uint32_t)offsetof({plan.prefix}_context, {n}), 4, 4, 0}}" for n, there in counted.items() if there]
    return _table("nn_filling", "nn_model_fillings", rows)


def _runs(values: Array) -> Iterator[tuple[int, int]]:
    """(number, length of its run); floats by their bits, since the glue has no floats."""
    bits = np.ascontiguousarray(values).reshape(-1)
    bits = bits.view(np.int32) if bits.dtype == np.float32 else bits.astype(np.int64)
    edges = [0, *(np.flatnonzero(np.diff(bits)) + 1).tolist(), bits.size]
    for first, last in pairwise(edges):
        yield int(bits[first]), last - first


def _ports(plan: Plan, word: str, names: tuple[str, ...]) -> str:
    return _table("nn_port", f"nn_model_{word}_ports", [_port(plan.tensor(name)) for name in names], count=False)


def _port(tensor: Tensor) -> str:
    text = json.dumps(f"{tensor.name}: {describe_tensor(tensor)}", ensure_ascii=True)
    start = f"{{{text}, {prod(tensor.shape)}, {SIZES[tensor.dtype]}"
    if tensor.quant is None:
        return f"{start}, 0, 0, 0, 0, 0}}"
    there, back = fixed_scale(1 / (tensor.quant.scale * FRACTION)), fixed_scale(tensor.quant.scale * FRACTION)
    return f"{start}, {tensor.quant.zero_point}, {there[0]}u, {there[1]}, {back[0]}u, {back[1]}}}"


def fixed_scale(factor: float) -> tuple[int, int]:
    """(scale, shift) with scale / 2^shift as near to the factor as 31 bits allow."""
    shift = min(MOST_SHIFT, max(0, 30 - math.floor(math.log2(factor))))
    return min(LARGEST_SCALE, max(1, round(factor * 2**shift))), shift


def _weights(plan: Plan) -> str:
    """Where weights are exchangeable, the built-in ones are known by address."""
    if plan.swappable:
        size, where = f"{plan.prefix.upper()}_WEIGHT_BYTES", f"{plan.prefix}_weights"
    else:
        size, where = "0", "0"
    return f"const uint32_t nn_model_weight_bytes = {size};\nconst uint8_t *const nn_model_weights = {where};\n"


def _part(plan: Plan) -> str:
    """Like <model>_step in <model>.c, but for a range of the step's work items."""
    p = plan.prefix
    taken = any(step.versions[0].takes_weights for step in plan.steps)
    unused = ({"weights"} if not taken else set()) if plan.steps else {"memory", "weights", "begin", "end"}
    start = f"    {p}_context *context = memory;\n\n" if plan.steps else ""
    return f"""\
void nn_model_part(void *memory, const uint8_t *weights, uint32_t step, int32_t begin, int32_t end)
{{
{start}{"".join(f"    (void){name};{chr(10)}" for name in sorted(unused))}    switch (step) {{
{chr(10).join(_case(plan, index, step) for index, step in enumerate(plan.steps))}
    default:
        break;
    }}
}}
"""


def _case(plan: Plan, index: int, step: Step) -> str:
    arguments = [pointer_to(plan.locations[name], plan.tensor(name).dtype) for name in (*step.inputs, *step.outputs)]
    if step.demand.scratch:
        scratch = Location("arena", step.scratch or 0, step.demand.scratch)
        arguments.append(pointer_to(scratch, step.demand.scratch_type))
    if step.versions[0].takes_weights:
        arguments.append(WEIGHTS)
    call = f"        {step.function}({', '.join(arguments)}, begin, end);"
    extent = step.extent(step.versions[0])
    ends = [f"        if (end == {extent}) {{", *(f"    {line}" for line in turn(plan, index)), "        }"]
    return "\n".join([f"    case {index}:", call, *(ends if turn(plan, index) else []), "        break;"])


def _close(plan: Plan) -> str:
    wanted = standards(plan.graph, golden_inputs(plan), plan.graph.outputs)
    cases = "\n".join(_close_case(plan, index, wanted[name]) for index, name in enumerate(plan.graph.outputs))
    return f"""\
int nn_model_close(uint32_t sample, uint32_t output, const uint8_t *found, const uint8_t *wanted)
{{
    switch (output) {{
{cases}
    default:
        return 0;
    }}
    return 1;
}}
"""


def _close_case(plan: Plan, index: int, wanted: Standard) -> str:
    """Floats, and integers derived from floats, may deviate as far as a host check allows; non-finite values must be of
    the same kind."""
    tensor = plan.tensor(plan.graph.outputs[index])
    kind = C_TYPES[tensor.dtype]
    number = float_literal if kind == "float" else lambda value: str(int(value))
    difference = {"float": "float", "int32_t": "int64_t"}.get(kind, "int32_t")
    limits = ", ".join(number(float(limit)) for limit in wanted.tolerance)
    unlike = " && a != b && (a == a || b == b)" if kind == "float" else ""
    return f"""\
    case {index}:
        for (uint32_t i = 0; i < {prod(tensor.shape)}u; i++) {{
            static const {difference} limits[{GOLDEN_SAMPLES}] = {{{limits}}};
            {difference} a = ((const {kind} *)(const void *)found)[i];
            {difference} b = ((const {kind} *)(const void *)wanted)[i];
            {difference} error = a < b ? b - a : a - b;

            if (!(error <= limits[sample]){unlike}) {{
                return 0;
            }}
        }}
        break;"""


def golden_inputs(plan: Plan) -> dict[str, Array]:
    """Random numbers from the range of each input, always the same."""
    chance = np.random.default_rng(0)
    return {name: drawn(plan.graph, name, chance, GOLDEN_SAMPLES) for name in plan.graph.inputs}


def golden_source(plan: Plan) -> str:
    """Samples with the reference's outputs; a stateful model sees them in order."""
    wanted = standards(plan.graph, golden_inputs(plan), plan.graph.outputs)
    values = {name: each.values for name, each in wanted.items()} | golden_inputs(plan)
    return f"""\
/* What the model must give for these inputs, from the reference at build time. */
#include "nn_bridge.h"

#include "nn_target.h"

static const uint8_t inputs[] __attribute__((aligned(8))) = {{
{byte_lines(_rows(plan, values, plan.graph.inputs))}
}};

static const uint8_t outputs[] __attribute__((aligned(8))) = {{
{byte_lines(_rows(plan, values, plan.graph.outputs))}
}};

const nn_golden nn_model_golden = {{inputs, outputs, {GOLDEN_SAMPLES}}};

/* The model's description for the host. */
{descriptor_array(plan)}"""


def _rows(plan: Plan, values: dict[str, Array], names: tuple[str, ...]) -> bytes:
    """Little-endian, sample by sample, all tensors of a sample in order."""
    kinds = {name: np.dtype(plan.tensor(name).dtype).newbyteorder("<") for name in names}
    return b"".join(values[name][i].astype(kinds[name]).tobytes() for i in range(GOLDEN_SAMPLES) for name in names)
