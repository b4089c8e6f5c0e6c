/* net: what is computed, in which order and where. */
#include "conv_dsp_private.h"

void conv_dsp_init(conv_dsp_context *context)
{
    (void)context;
}

int8_t *conv_dsp_input(conv_dsp_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.i8 + 48;
    default:
        return 0;
    }
}

const int8_t *conv_dsp_output(const conv_dsp_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.i8;
    default:
        return 0;
    }
}

int conv_dsp_step(conv_dsp_context *context, unsigned step)
{
    switch (step) {
    case 0: /* op: conv2d [5][5][4] -> [5][5][6], 600 MACs, patches_wide, about 2,860 cycles */
        conv_dsp_00_op(context->arena.i8 + 48, context->arena.i8, context->arena.i64 + 20, 0, 25);
        return 0;
    default:
        return -1;
    }
}

int conv_dsp_run(conv_dsp_context *context)
{
    for (unsigned step = 0; step < CONV_DSP_STEPS; ++step) {
        const int status = conv_dsp_step(context, step);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}
