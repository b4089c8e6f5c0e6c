/* The constants, each in the order in which its kernel reads it. */
#include "conv_avx2_private.h"

/* op: kernel of conv2d, packed for avx2_fma_by_2 */
const float conv_avx2_00_op_kernel[16] = {
    -1.24182439f, 0.0185745507f, -0.759753823f, -1.73990297f, 0.864388287f, -0.541847229f,
    0.0f, 0.0f, 1.85070574f, -0.240368932f, -1.01224411f, -0.414767265f,
    1.88640177f, 0.021243779f, 0.0f, 0.0f,
};

/* op: bias of conv2d, packed for avx2_fma_by_2 */
const float conv_avx2_00_op_bias[6] = {
    -0.280253559f, 0.516401052f, 0.617314816f, -0.280253559f, 0.516401052f, 0.617314816f,
};
