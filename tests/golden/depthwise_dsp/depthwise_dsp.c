/* net: what is computed, in which order and where. */
#include "depthwise_dsp_private.h"

void depthwise_dsp_init(depthwise_dsp_context *context)
{
    (void)context;
}

int8_t *depthwise_dsp_input(depthwise_dsp_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.i8 + 480;
    default:
        return 0;
    }
}

const int8_t *depthwise_dsp_output(const depthwise_dsp_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.i8 + 480;
    default:
        return 0;
    }
}

int depthwise_dsp_step(depthwise_dsp_context *context, unsigned step)
{
    switch (step) {
    case 0: /* op: depthwise_conv2d [6][7][3] -> [6][7][3], 1,134 MACs, planar, about 2,647 cycles */
        depthwise_dsp_00_op(context->arena.i8 + 480, context->arena.i8 + 480, context->arena.i32, 0, 1);
        return 0;
    default:
        return -1;
    }
}

int depthwise_dsp_run(depthwise_dsp_context *context)
{
    for (unsigned step = 0; step < DEPTHWISE_DSP_STEPS; ++step) {
        const int status = depthwise_dsp_step(context, step);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}
