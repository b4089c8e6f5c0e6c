/* tiny dense: what its own files share; a program needs dense.h only. */
#ifndef DENSE_PRIVATE_H
#define DENSE_PRIVATE_H

#include "dense.h"

extern const float dense_00_first_op_kernel[6];
extern const float dense_00_first_op_bias[2];

/*
 * Where gcc 12 knows the object in which two arrays lie, as with -flto or in one file, it may compute an address in
 * one from that in the other, take this for an access to address 0, and drop the call. So calls tell a step nothing.
 */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define DENSE_APART __attribute__((noipa))
#elif defined(__GNUC__) && !defined(__clang__)
#define DENSE_APART __attribute__((noinline, noclone))
#else
#define DENSE_APART
#endif

DENSE_APART void dense_00_first_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end);
DENSE_APART void dense_01_bent_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end);

#endif
