/* net: what its own files share; a program needs conv_vnni.h only. */
#ifndef CONV_VNNI_PRIVATE_H
#define CONV_VNNI_PRIVATE_H

#include "conv_vnni.h"

extern const int8_t conv_vnni_00_op_kernel[64];
extern const int32_t conv_vnni_00_op_bias[16];
extern const int32_t conv_vnni_00_op_multiplier[16];
extern const int64_t conv_vnni_00_op_addend[16];
extern const int32_t conv_vnni_00_op_shift[16];

void conv_vnni_00_op(const int8_t *restrict in, int8_t *restrict out, int8_t *restrict scratch, int32_t begin,
        int32_t end);

#endif
