/* net: what is computed, in which order and where. */
#include "lstm_int8_private.h"

void lstm_int8_init(lstm_int8_context *context)
{
    (void)context;
}

int8_t *lstm_int8_input(lstm_int8_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.i8;
    default:
        return 0;
    }
}

const void *lstm_int8_output(const lstm_int8_context *context, unsigned index)
{
    switch (index) {
    case 0:
        return context->arena.i16 + 16;
    case 1:
        return context->arena.i32 + 12;
    default:
        return 0;
    }
}

int lstm_int8_step(lstm_int8_context *context, unsigned step)
{
    switch (step) {
    case 0: /* op: lstm [2][1] -> [2], [2], 48 MACs, integer, about 2,192 cycles */
        lstm_int8_00_op(context->arena.i8, context->arena.i16 + 16, context->arena.i32 + 12, context->arena.i16 + 8, 0,
                2);
        return 0;
    default:
        return -1;
    }
}

int lstm_int8_run(lstm_int8_context *context)
{
    for (unsigned step = 0; step < LSTM_INT8_STEPS; ++step) {
        const int status = lstm_int8_step(context, step);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}
