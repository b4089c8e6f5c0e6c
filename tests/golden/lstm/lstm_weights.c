/* The constants, each in the order in which its kernel reads it. */
#include "lstm_private.h"

/* op: bias of lstm, packed for scalar */
const float lstm_00_op_kernel[8] = {
    -0.875f, -0.625f, -0.375f, -0.125f, -0.75f, -0.5f,
    -0.25f, 0.0f,
};

/* op: recurrent of lstm, packed for scalar */
const float lstm_00_op_recurrent[16] = {
    -0.875f, -0.625f, -0.375f, -0.125f, 0.125f, 0.375f,
    0.625f, 0.875f, -0.75f, -0.5f, -0.25f, 0.0f,
    0.25f, 0.5f, 0.75f, -0.875f,
};
