/* tiny dense: what its own files share; a program needs dense.h only. */
#ifndef DENSE_PRIVATE_H
#define DENSE_PRIVATE_H

#include "dense.h"

extern const float dense_00_first_op_kernel[6];
extern const float dense_00_first_op_bias[2];

void dense_00_first_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end);
void dense_01_bent_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end);

#endif
