/* tiny conv: what is computed, in which order and where. */
#include "conv_private.h"

void conv_init(conv_context *context)
{
    (void)context;
}

float *conv_input(conv_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.f32 + 24;
    default:
        return 0;
    }
}

const float *conv_output(const conv_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.f32;
    default:
        return 0;
    }
}

int conv_step(conv_context *context, unsigned step)
{
    switch (step) {
    case 0: /* conv: conv2d [4][4][1] -> [4][4][2], 288 MACs, scalar, about 2,572 cycles */
        conv_00_conv_op(context->arena.f32 + 24, context->arena.f32, context->arena.f32 + 40, 0, 4);
        return 0;
    case 1: /* pool: pool2d [4][4][2] -> [2][2][2], scalar, about 138 cycles */
        conv_01_pool_op(context->arena.f32, context->arena.f32, 0, 2);
        return 0;
    case 2: /* head: dense [8] -> [3], 24 MACs, scalar, about 172 cycles */
        conv_02_head_op(context->arena.f32, context->arena.f32 + 8, 0, 1);
        return 0;
    case 3: /* choice: softmax [3] -> [3], scalar, about 201 cycles */
        conv_03_choice_op(context->arena.f32 + 8, context->arena.f32, 0, 1);
        return 0;
    default:
        return -1;
    }
}

int conv_run(conv_context *context)
{
    for (unsigned step = 0; step < CONV_STEPS; ++step) {
        const int status = conv_step(context, step);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}
