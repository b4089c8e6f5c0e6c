/* net: what is computed, in which order and where. */
#include "depthwise_private.h"

void depthwise_init(depthwise_context *context)
{
    (void)context;
}

float *depthwise_input(depthwise_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.f32;
    default:
        return 0;
    }
}

const float *depthwise_output(const depthwise_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.f32 + 12;
    default:
        return 0;
    }
}

int depthwise_step(depthwise_context *context, unsigned step)
{
    switch (step) {
    case 0: /* op: depthwise_conv2d [3][3][1] -> [1][1][3], 27 MACs, scalar, about 321 cycles */
        depthwise_00_op(context->arena.f32, context->arena.f32 + 12, 0, 1);
        return 0;
    default:
        return -1;
    }
}

int depthwise_run(depthwise_context *context)
{
    for (unsigned step = 0; step < DEPTHWISE_STEPS; ++step) {
        const int status = depthwise_step(context, step);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}
