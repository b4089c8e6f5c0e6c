/* net: what is computed, in which order and where. */
#include "lstm_private.h"

void lstm_init(lstm_context *context)
{
    for (int32_t i = 0; i < 2; ++i) {
        (context->state.f32)[i] = 0.0f;
    }
    for (int32_t i = 0; i < 2; ++i) {
        (context->state.f32 + 4)[i] = 0.0f;
    }
}

float *lstm_input(lstm_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.f32;
    default:
        return 0;
    }
}

const float *lstm_output(const lstm_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->state.f32;
    case 1:
        return context->state.f32 + 4;
    default:
        return 0;
    }
}

int lstm_step(lstm_context *context, unsigned step)
{
    switch (step) {
    case 0: /* op: lstm [1][1], [2], [2] -> [2], [2], 24 MACs, scalar, about 942 cycles */
        lstm_00_op(context->arena.f32, context->state.f32, context->state.f32 + 4, context->state.f32,
                context->state.f32 + 4, context->arena.f32 + 4, 0, 1);
        return 0;
    default:
        return -1;
    }
}

int lstm_run(lstm_context *context)
{
    for (unsigned step = 0; step < LSTM_STEPS; ++step) {
        const int status = lstm_step(context, step);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}
