/* The constants, each in the order in which its kernel reads it. */
#include "dense_private.h"

/* first: kernel of dense, packed for scalar */
const float dense_00_first_op_kernel[6] = {
    -0.875f, -0.75f, -0.625f, -0.5f, -0.375f, -0.25f,
};

/* first: bias of dense, packed for scalar */
const float dense_00_first_op_bias[2] = {
    -0.875f, -0.75f,
};
