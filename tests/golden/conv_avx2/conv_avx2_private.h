/* net: what its own files share; a program needs conv_avx2.h only. */
#ifndef CONV_AVX2_PRIVATE_H
#define CONV_AVX2_PRIVATE_H

#include "conv_avx2.h"

extern const float conv_avx2_00_op_kernel[16];
extern const float conv_avx2_00_op_bias[6];

/*
 * Where gcc 12 knows the object in which two arrays lie, as with -flto or in one file, it may compute an address in
 * one from that in the other, take this for an access to address 0, and drop the call. So calls tell a step nothing.
 */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define CONV_AVX2_APART __attribute__((noipa))
#elif defined(__GNUC__) && !defined(__clang__)
#define CONV_AVX2_APART __attribute__((noinline, noclone))
#else
#define CONV_AVX2_APART
#endif

CONV_AVX2_APART void conv_avx2_00_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end);

#endif
