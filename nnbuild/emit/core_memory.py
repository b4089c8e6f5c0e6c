"""A step in core-local memories: for each tile, copies its data in, computes on the copies alone, and copies the
results back."""

from __future__ import annotations

from collections.abc import Mapping

from nnbuild.base.literals import C_TYPES
from nnbuild.base.paths import FIRMWARE
from nnbuild.emit.text import pointer_to
from nnbuild.emit.weights import block_offsets
from nnbuild.model.graph import Tensor
from nnbuild.plan.core_memory import COPY_ALIGNMENT, Tile, Tiling
from nnbuild.plan.plan import WEIGHTS, Plan, Step

HEADER = "nn_local.h"

Placed = tuple[Tensor, int, int]


def local_sources(plan: Plan) -> dict[str, bytes]:
    """Headers that a plan's C includes besides its own."""
    return {HEADER: (FIRMWARE / "cores" / HEADER).read_bytes()} if plan.local_bytes else {}


def local_functions(plan: Plan) -> str:
    """For each tiled step: the table of its tiles, and the function that computes those of one part."""
    starts = {name: at for name, _, at in block_offsets(plan)}
    found = []
    for step in plan.steps:
        if step.tiling is not None:
            found += [_tables(step, step.tiling), _part(plan, step, step.tiling, starts)]
    return "\n".join(found)


def local_calls(step: Step, part: bool) -> list[str]:
    """Computes the part `index`, or all parts one after the other."""
    name = f"{step.function}_local"
    if part or step.parts == 1:
        return [f"        {name}(context, {'index' if part else '0'});"]
    return [
        f"        for (int32_t index = 0; index < {step.parts}; ++index) {{",
        f"            {name}(context, index);",
        "        }",
    ]


def _tables(step: Step, local: Tiling) -> str:
    """One row per tile: its range of work items, then for every tensor the first byte and the number of bytes copied;
    for sliced constants, last the first byte of the slice."""
    tiles = [tile for tiles in local.parts for tile in tiles]
    firsts = [sum(map(len, local.parts[:part])) for part in range(len(local.parts) + 1)]
    width = len(_numbers(local, tiles[0]))
    rows = "\n".join("    {" + ", ".join(map(str, _numbers(local, tile))) + "}," for tile in tiles)
    name = step.function
    return f"""\
static const int32_t {name}_tiles[][{width}] = {{
{rows}
}};
static const int32_t {name}_parts[] = {{{", ".join(map(str, firsts))}}};
"""


def _numbers(local: Tiling, tile: Tile) -> list[int]:
    spans = (*tile.ranges.reads, *(tile.ranges.writes if local.writes else ()))
    slices = [tile.slice * local.constants] if local.sliced else []
    return [tile.begin, tile.end, *(number for span in spans for number in (span.begin, span.size)), *slices]


def _slice(local: Tiling) -> int:
    """The column with the first byte of a tile's slice of the constants."""
    return 2 * (1 + len(local.reads) + len(local.writes))


def _placed(step: Step, local: Tiling) -> tuple[list[Placed], list[Placed]]:
    """Each tensor read and written in local memory, with its offset and its column in the table of tiles."""
    both = [*zip(step.site.reads, local.reads, strict=True)]
    both += zip(step.site.writes, local.writes, strict=True) if local.writes else ()
    found = [(tensor, at, 2 + 2 * index) for index, (tensor, at) in enumerate(both)]
    return found[: len(local.reads)], found[len(local.reads) :]


def _whole(tensor: Tensor, at: int, column: int, const: str) -> str:
    """Address at which the whole tensor would begin if the tile's bytes of it lie at `at`."""
    kind = C_TYPES[tensor.dtype]
    return f"({const}{kind} *)nn_local_whole(local, {at} + tile[{column}] % {COPY_ALIGNMENT} - tile[{column}])"


def _part(plan: Plan, step: Step, local: Tiling, starts: Mapping[str, int]) -> str:
    reads, writes = _placed(step, local)
    p, name, lines = plan.prefix, step.function, []
    constants = f"{p}_{WEIGHTS} + {_first(step, starts)}"
    if local.constants and not local.sliced:
        lines.append(f"    nn_local_copy(local, {constants}, {local.constants});")
    inner = [
        *(_another_slice(step, local, constants) if local.sliced else ()),
        *(_copy(plan, placed, True) for placed in reads),
        f"nn_local_confine(local, {'0, 0' if writes else _open(plan, step)});",
        _call(plan, step, local, starts),
        "nn_local_release();",
        *(_copy(plan, placed, False) for placed in writes),
    ]
    lines += [
        f"    for (int32_t i = {name}_parts[index]; i < {name}_parts[index + 1]; ++i) {{",
        f"        const int32_t *const tile = {name}_tiles[i];\n",
        *(f"        {line}" for line in inner),
        "    }",
    ]
    return f"""\
static void {name}_local({p}_context *context, int32_t index)
{{
    unsigned char *const local = nn_local_begin({local.size});

{chr(10).join(lines)}
}}
"""


def _another_slice(step: Step, local: Tiling, constants: str) -> list[str]:
    """Copies the tile's slice of the constants, unless the previous tile used the same one."""
    at = _slice(local)
    return [
        f"if (i == {step.function}_parts[index] || tile[{at}] != {step.function}_tiles[i - 1][{at}]) {{",
        f"    nn_local_copy(local, {constants} + tile[{at}], {local.constants});",
        "}",
    ]


def _call(plan: Plan, step: Step, local: Tiling, starts: Mapping[str, int]) -> str:
    """Pointers point to where each whole tensor would begin; only the copied bytes are touched."""
    version, reads, writes = step.versions[0], *_placed(step, local)
    arguments = [_whole(tensor, at, column, "const ") for tensor, at, column in reads]
    arguments += [_whole(tensor, at, column, "") for tensor, at, column in writes]
    if not writes:
        arguments += [pointer_to(plan.locations[tensor.name], tensor.dtype) for tensor in step.site.writes]
    if version.demand.scratch:
        arguments.append(f"({C_TYPES[version.demand.scratch_type]} *)(void *)(local + {local.scratch})")
    if version.takes_weights:
        beyond = f" - tile[{_slice(local)}]" if local.sliced else ""
        arguments.append(f"nn_local_whole(local, -{_first(step, starts)}{beyond})")
    return f"{step.function}({', '.join(arguments)}, tile[0], tile[1]);"


def _copy(plan: Plan, placed: Placed, there: bool) -> str:
    tensor, at, column = placed
    own = f"local + {at} + tile[{column}] % {COPY_ALIGNMENT}"
    kind = "const unsigned char *)(const void *" if there else "unsigned char *)(void *"
    shared = f"({kind})({pointer_to(plan.locations[tensor.name], tensor.dtype)}) + tile[{column}]"
    to, source = (own, shared) if there else (shared, own)
    return f"nn_local_copy({to}, {source}, tile[{column + 1}]);"


def _open(plan: Plan, step: Step) -> str:
    """The shared memory that the step writes: from the first output's beginning to the last one's end."""
    found = sorted(step.site.writes, key=lambda tensor: plan.locations[tensor.name].offset)
    first, last = (plan.locations[tensor.name] for tensor in (found[0], found[-1]))
    return f"{pointer_to(first, found[0].dtype)}, {last.offset + last.size - first.offset}"


def _first(step: Step, starts: Mapping[str, int]) -> int:
    return min((starts[name] for name in step.versions[0].names.packed.values()), default=0)
