/* tiny conv: what its own files share; a program needs conv.h only. */
#ifndef CONV_PRIVATE_H
#define CONV_PRIVATE_H

#include "conv.h"

extern const float conv_00_conv_op_kernel[18];
extern const float conv_00_conv_op_bias[2];
extern const float conv_02_head_op_kernel[24];
extern const float conv_02_head_op_bias[3];

void conv_00_conv_op(const float *in, float *out, float *scratch, int32_t begin, int32_t end);
void conv_01_pool_op(const float *in, float *out, int32_t begin, int32_t end);
void conv_02_head_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end);
void conv_03_choice_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end);

#endif
