/* The constants, each in the order in which its kernel reads it. */
#include "conv_private.h"

/* conv: kernel of conv2d, packed for scalar */
const float conv_00_conv_op_kernel[18] = {
    -0.875f, -0.75f, -0.625f, -0.5f, -0.375f, -0.25f,
    -0.125f, 0.0f, 0.125f, 0.25f, 0.375f, 0.5f,
    0.625f, 0.75f, 0.875f, -0.875f, -0.75f, -0.625f,
};

/* conv: bias of conv2d, packed for scalar */
const float conv_00_conv_op_bias[2] = {
    -0.875f, -0.75f,
};

/* head: kernel of dense, packed for scalar */
const float conv_02_head_op_kernel[24] = {
    -0.875f, -0.75f, -0.625f, -0.5f, -0.375f, -0.25f,
    -0.125f, 0.0f, 0.125f, 0.25f, 0.375f, 0.5f,
    0.625f, 0.75f, 0.875f, -0.875f, -0.75f, -0.625f,
    -0.5f, -0.375f, -0.25f, -0.125f, 0.0f, 0.125f,
};

/* head: bias of dense, packed for scalar */
const float conv_02_head_op_bias[3] = {
    -0.875f, -0.75f, -0.625f,
};
