/* net: what is computed, in which order and where. */
#include "conv_avx2_private.h"

void conv_avx2_init(conv_avx2_context *context)
{
    (void)context;
}

float *conv_avx2_input(conv_avx2_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.f32;
    default:
        return 0;
    }
}

const float *conv_avx2_output(const conv_avx2_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.f32 + 100;
    default:
        return 0;
    }
}

int conv_avx2_step(conv_avx2_context *context, unsigned step)
{
    switch (step) {
    case 0: /* op: conv2d [5][5][4] -> [3][3][3], 108 MACs, avx2_fma_by_2, about 100 cycles */
        conv_avx2_00_op(context->arena.f32, context->arena.f32 + 100, 0, 3);
        return 0;
    default:
        return -1;
    }
}

int conv_avx2_run(conv_avx2_context *context)
{
    for (unsigned step = 0; step < CONV_AVX2_STEPS; ++step) {
        const int status = conv_avx2_step(context, step);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}
