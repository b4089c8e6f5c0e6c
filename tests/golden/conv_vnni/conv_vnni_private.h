/* net: what its own files share; a program needs conv_vnni.h only. */
#ifndef CONV_VNNI_PRIVATE_H
#define CONV_VNNI_PRIVATE_H

#include "conv_vnni.h"

extern const int8_t conv_vnni_00_op_kernel[64];
extern const int32_t conv_vnni_00_op_bias[16];
extern const int32_t conv_vnni_00_op_multiplier[16];
extern const int64_t conv_vnni_00_op_addend[16];
extern const int32_t conv_vnni_00_op_shift[16];

/*
 * Where gcc 12 knows the object in which two arrays lie, as with -flto or in one file, it may compute an address in
 * one from that in the other, take this for an access to address 0, and drop the call. So calls tell a step nothing.
 */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define CONV_VNNI_APART __attribute__((noipa))
#elif defined(__GNUC__) && !defined(__clang__)
#define CONV_VNNI_APART __attribute__((noinline, noclone))
#else
#define CONV_VNNI_APART
#endif

CONV_VNNI_APART void conv_vnni_00_op(const int8_t *restrict in, int8_t *restrict out, int8_t *restrict scratch,
        int32_t begin, int32_t end);

#endif
