/* net: what is computed, in which order and where. */
#include "conv_vnni_private.h"

void conv_vnni_init(conv_vnni_context *context)
{
    (void)context;
}

int8_t *conv_vnni_input(conv_vnni_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.i8 + 176;
    default:
        return 0;
    }
}

const int8_t *conv_vnni_output(const conv_vnni_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.i8 + 288;
    default:
        return 0;
    }
}

int conv_vnni_step(conv_vnni_context *context, unsigned step)
{
    switch (step) {
    case 0: /* op: conv2d [5][5][4] -> [3][3][3], 108 MACs, avx512_vnni_integers, about 142 cycles */
        conv_vnni_00_op(context->arena.i8 + 176, context->arena.i8 + 288, context->arena.i8, 0, 3);
        return 0;
    default:
        return -1;
    }
}

int conv_vnni_run(conv_vnni_context *context)
{
    for (unsigned step = 0; step < CONV_VNNI_STEPS; ++step) {
        const int status = conv_vnni_step(context, step);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}
