/* net: what its own files share; a program needs conv_dsp.h only. */
#ifndef CONV_DSP_PRIVATE_H
#define CONV_DSP_PRIVATE_H

#include "conv_dsp.h"

extern const int64_t conv_dsp_00_op_kernel[15];

/*
 * Where gcc 12 knows the object in which two arrays lie, as with -flto or in one file, it may compute an address in
 * one from that in the other, take this for an access to address 0, and drop the call. So calls tell a step nothing.
 */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define CONV_DSP_APART __attribute__((noipa))
#elif defined(__GNUC__) && !defined(__clang__)
#define CONV_DSP_APART __attribute__((noinline, noclone))
#else
#define CONV_DSP_APART
#endif

CONV_DSP_APART void conv_dsp_00_op(const int8_t *in, int8_t *out, int64_t *scratch, int32_t begin, int32_t end);

#endif
