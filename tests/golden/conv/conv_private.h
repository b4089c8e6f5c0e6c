/* tiny conv: what its own files share; a program needs conv.h only. */
#ifndef CONV_PRIVATE_H
#define CONV_PRIVATE_H

#include "conv.h"

extern const float conv_00_conv_op_kernel[18];
extern const float conv_00_conv_op_bias[2];
extern const float conv_02_head_op_kernel[24];
extern const float conv_02_head_op_bias[3];

/*
 * Where gcc 12 knows the object in which two arrays lie, as with -flto or in one file, it may compute an address in
 * one from that in the other, take this for an access to address 0, and drop the call. So calls tell a step nothing.
 */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define CONV_APART __attribute__((noipa))
#elif defined(__GNUC__) && !defined(__clang__)
#define CONV_APART __attribute__((noinline, noclone))
#else
#define CONV_APART
#endif

CONV_APART void conv_00_conv_op(const float *in, float *out, float *scratch, int32_t begin, int32_t end);
CONV_APART void conv_01_pool_op(const float *in, float *out, int32_t begin, int32_t end);
CONV_APART void conv_02_head_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end);
CONV_APART void conv_03_choice_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end);

#endif
