/* net: what its own files share; a program needs conv_avx2.h only. */
#ifndef CONV_AVX2_PRIVATE_H
#define CONV_AVX2_PRIVATE_H

#include "conv_avx2.h"

extern const float conv_avx2_00_op_kernel[16];
extern const float conv_avx2_00_op_bias[6];

void conv_avx2_00_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end);

#endif
