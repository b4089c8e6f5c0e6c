/* net: what its own files share; a program needs depthwise.h only. */
#ifndef DEPTHWISE_PRIVATE_H
#define DEPTHWISE_PRIVATE_H

#include "depthwise.h"

extern const float depthwise_00_op_kernel[27];
extern const float depthwise_00_op_bias[3];

void depthwise_00_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end);

#endif
