"""<model>_kmod.h and <model>_kmod.c: the functions for other modules."""

from __future__ import annotations

from math import prod

from nnbuild import __version__
from nnbuild.backends.kmod.bridge import needs_fpu
from nnbuild.emit.emit import digest
from nnbuild.emit.text import comment_safe, describe_tensor
from nnbuild.plan.plan import Plan

FUNCTIONS = """\
/* A new instance, at the start of a sequence; an error pointer when there is no memory. With GFP_ATOMIC from any
 * context, without waiting. */
struct {p}_instance *{p}_create(gfp_t gfp);

/* Gives an instance back. From where kvfree() may be called. */
void {p}_destroy(struct {p}_instance *instance);

/* Starts a new sequence: recurrent state is cleared. */
void {p}_reset(struct {p}_instance *instance);

/* Where input or output `index` lies, and how many bytes it has; null when there is none. A run may overwrite inputs,
 * and outputs last until inputs are written again. */
void       *{p}_input(struct {p}_instance *instance, unsigned int index, size_t *size);
const void *{p}_output(struct {p}_instance *instance, unsigned int index, size_t *size);

/* The same in numbers with 16 fractional bits, for callers that have no floating point: 1.5 is 98304. They are rounded
 * to what the model takes, and saturate. `count` must be the number of values there are, else -EINVAL. */
int {p}_write_q16(struct {p}_instance *instance, unsigned int index, const s32 *values, u32 count);
int {p}_read_q16(struct {p}_instance *instance, unsigned int index, s32 *values, u32 count);

/* Computes the outputs from the inputs. Where `gfp` allows to wait, others may run between two parts of it. -EBUSY when
 * this instance is running already, or where the FPU may not be used; then nothing was changed.{fpu} */
int {p}_run(struct {p}_instance *instance, gfp_t gfp);

/* An instance out of those that are kept ready for this CPU, at the start of a sequence; null when all are taken. From
 * any context; give it back soon. The module's parameter `pool` says how many there are. */
struct {p}_instance *{p}_pool_get(void);
void {p}_pool_put(struct {p}_instance *instance);
"""


SOURCE = """\
/* The functions of {p}_kmod.h, which other modules see; what they do is in nn_kmod_*.c. */
#include <linux/err.h>
#include <linux/export.h>

#include "{p}_kmod.h"
#include "nn_kmod.h"
#include "nn_target.h"

MODULE_DESCRIPTION("The neural network {p}, {hash}");
MODULE_VERSION("{version}");

static struct nn_instance *inside(struct {p}_instance *instance)
{{
    return (struct nn_instance *)instance;
}}

static void *region(struct nn_instance *instance, u32 kind, u32 index, size_t *size)
{{
    u32   bytes = 0;
    void *at = nn_region(instance, kind, index, &bytes);

    if (size != NULL) {{
        *size = bytes;
    }}
    return at;
}}

struct {p}_instance *{p}_create(gfp_t gfp)
{{
    return (struct {p}_instance *)nn_create(gfp);
}}

void {p}_destroy(struct {p}_instance *instance)
{{
    nn_destroy(inside(instance));
}}

void {p}_reset(struct {p}_instance *instance)
{{
    nn_reset(inside(instance));
}}

void *{p}_input(struct {p}_instance *instance, unsigned int index, size_t *size)
{{
    return region(inside(instance), NN_TARGET_INPUT, index, size);
}}

const void *{p}_output(struct {p}_instance *instance, unsigned int index, size_t *size)
{{
    return region(inside(instance), NN_TARGET_OUTPUT, index, size);
}}

int {p}_write_q16(struct {p}_instance *instance, unsigned int index, const s32 *values, u32 count)
{{
    return nn_write_q16(inside(instance), index, values, count);
}}

int {p}_read_q16(struct {p}_instance *instance, unsigned int index, s32 *values, u32 count)
{{
    return nn_read_q16(inside(instance), index, values, count);
}}

int {p}_run(struct {p}_instance *instance, gfp_t gfp)
{{
    return nn_run(inside(instance), gfp);
}}

struct {p}_instance *{p}_pool_get(void)
{{
    return (struct {p}_instance *)nn_pool_get();
}}

void {p}_pool_put(struct {p}_instance *instance)
{{
    nn_pool_put(inside(instance));
}}

{exports}
"""


def api_header(plan: Plan) -> str:
    p, upper = plan.prefix, plan.prefix.upper()
    guard = f"{upper}_KMOD_H"
    lines = [
        f"/* {comment_safe(plan.graph.name)} for other kernel modules: printed by nnbuild {__version__}. */",
        f"#ifndef {guard}\n#define {guard}\n",
        "#include <linux/gfp.h>\n#include <linux/types.h>\n",
        f'#define {upper}_KMOD_HASH "{digest(plan.graph)}"',
    ]
    for word, names in (("INPUT", plan.graph.inputs), ("OUTPUT", plan.graph.outputs)):
        for index, name in enumerate(names):
            tensor = plan.tensor(name)
            lines.append(f'/* {word.lower()} {index}, "{comment_safe(name)}": {describe_tensor(tensor)} */')
            lines.append(f"#define {upper}_KMOD_{word}{index}_COUNT {prod(tensor.shape)}")
    lines += [
        "",
        f"/* The memory one sequence is computed in. Use each from one place at a time. */\nstruct {p}_instance;\n",
        FUNCTIONS.format(p=p, fpu=" This model has no floats." if not needs_fpu(plan) else ""),
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def api_source(plan: Plan) -> str:
    p = plan.prefix
    names = "create destroy reset input output write_q16 read_q16 run pool_get pool_put".split()
    exports = "\n".join(f"EXPORT_SYMBOL_GPL({p}_{name});" for name in names)
    return SOURCE.format(p=p, hash=digest(plan.graph), version=__version__, exports=exports)
