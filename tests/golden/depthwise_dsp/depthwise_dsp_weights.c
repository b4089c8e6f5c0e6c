/* The constants, each in the order in which its kernel reads it. */
#include "depthwise_dsp_private.h"

/* op: stream of depthwise_conv2d, packed for planar */
const int32_t depthwise_dsp_00_op_stream[30] = {
    -51272, -14352656, -17563644, -32178656, 27852580, -2294028, -27984364, 1713987883,
    183297, 2, 6496, 38862104, 30997968, 27852216, -6815152, 47710680,
    424, 2055790917, 183298, 4, -2320, 30410400, 32569360, -103745456,
    87032272, 88080880, 11598288, 1583196994, 183300, 8,
};
