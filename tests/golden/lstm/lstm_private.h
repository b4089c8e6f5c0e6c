/* net: what its own files share; a program needs lstm.h only. */
#ifndef LSTM_PRIVATE_H
#define LSTM_PRIVATE_H

#include "lstm.h"

extern const float lstm_00_op_kernel[8];
extern const float lstm_00_op_recurrent[16];

/*
 * Where gcc 12 knows the object in which two arrays lie, as with -flto or in one file, it may compute an address in
 * one from that in the other, take this for an access to address 0, and drop the call. So calls tell a step nothing.
 */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define LSTM_APART __attribute__((noipa))
#elif defined(__GNUC__) && !defined(__clang__)
#define LSTM_APART __attribute__((noinline, noclone))
#else
#define LSTM_APART
#endif

LSTM_APART void lstm_00_op(const float *in0, const float *in1, const float *in2, float *out0, float *out1,
        float *scratch, int32_t begin, int32_t end);

#endif
