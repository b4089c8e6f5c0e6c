/* The constants, each in the order in which its kernel reads it. */
#include "depthwise_dsp_private.h"

/* op: stream of depthwise_conv2d, packed for planar */
const int32_t depthwise_dsp_00_op_stream[30] = {
    -51272, 327408, -17498332, -2358872, -31457276, -32178444, -27983908, 1713987883,
    183297, 2, 6496, -36635368, 30933584, 47775640, -38208048, 27787736,
    728, 2055790917, 183298, 4, -2320, -133167456, 32506320, 88081712,
    -128911344, -103808528, 11535680, 1583196994, 183300, 8,
};
