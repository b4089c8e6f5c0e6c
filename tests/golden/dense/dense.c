/* tiny dense: what is computed, in which order and where. */
#include "dense_private.h"

void dense_init(dense_context *context)
{
    (void)context;
}

float *dense_input(dense_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.f32;
    default:
        return 0;
    }
}

const float *dense_output(const dense_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.f32;
    default:
        return 0;
    }
}

int dense_step(dense_context *context, unsigned step)
{
    switch (step) {
    case 0: /* first: dense [3] -> [2], 6 MACs, scalar, about 62 cycles */
        dense_00_first_op(context->arena.f32, context->arena.f32 + 4, 0, 1);
        return 0;
    case 1: /* bent: activation [2] -> [2], scalar, about 162 cycles */
        dense_01_bent_op(context->arena.f32 + 4, context->arena.f32, 0, 2);
        return 0;
    default:
        return -1;
    }
}

int dense_run(dense_context *context)
{
    for (unsigned step = 0; step < DENSE_STEPS; ++step) {
        const int status = dense_step(context, step);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}
